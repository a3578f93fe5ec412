"""A LangChain agent that is told what the environment says, so that its requests can diverge on replay."""

from __future__ import annotations

import os
from typing import Any

from agentrewind.adapters import Assignment
from agentrewind.layer import Layer
from agentrewind.records import JsonObject
from harness_adapters.langchain import LangChainAdapter


class Wandering(LangChainAdapter):
    def build(self, layer: Layer, assignment: Assignment, settings: JsonObject) -> Any:
        told = os.environ.get("TOLD", "You are a test.")
        return super().build(layer, assignment, {**settings, "instructions": told})
