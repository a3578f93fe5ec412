"""Who a run's agent is: a harness or somebody's command, and the models that it asks."""

from __future__ import annotations

import shlex

from agentrewind.options import RunOptions
from agentrewind.provenance import is_recorded
from agentrewind.records import LlmNode
from agentrewind.timeline import Timeline


def agent_of(timeline: Timeline) -> str:
    """The harness, or the command that a person has run under the layer."""
    header = timeline.header
    command = RunOptions.from_json(header.options).command
    name = header.harness or (shlex.join(command) if command else "script")
    return name if is_recorded(header) else f"{name} (a trajectory, not recorded)"


def models_of(timeline: Timeline) -> str | None:
    """The model of the run; for a command the models that its log names. None where there is none yet."""
    header = timeline.header
    if header.model is not None:
        return header.model
    seen = dict.fromkeys(node.model for node in timeline.nodes.values() if isinstance(node, LlmNode))
    return ", ".join(filter(None, seen)) or None
