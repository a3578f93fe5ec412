"""How each harness is set up for a cell: no limit of steps, time or commands, one temperature."""

from __future__ import annotations

import json

from agentrewind.records import Json, JsonObject
from runner.order import Conditions

REQUEST_SECONDS = 600
"""Time-out of one model request (paper, Table 9)."""

NO_LIMIT = 1_000_000_000


def harness_settings(harness: str, conditions: Conditions) -> JsonObject:
    """The settings that the run's header holds for this harness, those of the conditions last."""
    sampling: JsonObject = {"timeout": REQUEST_SECONDS}
    if conditions.temperature is not None:
        sampling["temperature"] = conditions.temperature
    own: JsonObject = {}
    config: list[Json] = []
    if harness == "mini-swe-agent":
        config = [
            "agent.step_limit=0",
            "agent.cost_limit=0",
            "environment.timeout=0",
            *(f"model.model_kwargs.{name}={json.dumps(value)}" for name, value in sampling.items()),
        ]
    elif harness == "smolagents":
        own = {"max_steps": NO_LIMIT, "model_settings": sampling}
    elif harness == "qwen-agent":
        # it streams, and a stream tells what it took only where it is asked to
        counted: JsonObject = {**sampling, "stream_options": {"include_usage": True}}
        own = {"max_calls": NO_LIMIT, "timeout": 0.0, "generate_cfg": counted}
    elif harness == "langchain":
        own = {"timeout": 0.0, "model_settings": sampling}
    return {**own, "config": [*config, *conditions.settings]}
