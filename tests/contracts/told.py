"""An adapter of the table whose task stands in the environment, so that it can differ from run to resume."""

from __future__ import annotations

import os
from dataclasses import replace

from agentrewind.adapters import AgentOutcome, Assignment, load_adapter
from agentrewind.layer import Layer


class Told:
    def run(self, layer: Layer, assignment: Assignment) -> AgentOutcome:
        adapter = load_adapter(os.environ["HARNESS"])
        return adapter.run(layer, replace(assignment, task=os.environ["TOLD"]))
