"""A harness that asks its model twice with one and the same prompt, and goes on with the second answer."""

from __future__ import annotations

from typing import Any

from agentrewind.adapters import AgentOutcome, Assignment
from agentrewind.layer import Layer


class Twice:
    def run(self, layer: Layer, assignment: Assignment) -> AgentOutcome:
        # imported here: the package makes folders when it is, and tests are collected by importing
        from minisweagent.agents.default import DefaultAgent
        from minisweagent.config import get_config_from_spec
        from minisweagent.environments.local import LocalEnvironment
        from minisweagent.models import get_model

        from harness_adapters.mini_swe_agent import attach

        class SecondThoughts(DefaultAgent):  # type: ignore[misc]
            def query(self) -> dict[str, Any]:
                self.model.query(self.messages)
                answer: dict[str, Any] = super().query()
                return answer

        agent = SecondThoughts(
            get_model(assignment.model, config=get_config_from_spec("mini.yaml")["model"]),
            LocalEnvironment(cwd=str(assignment.workspace)),
            system_template="You are a test.",
            instance_template="{{task}}",
        )
        attachment = attach(agent, layer)
        return attachment.outcome(agent.run(assignment.task))
