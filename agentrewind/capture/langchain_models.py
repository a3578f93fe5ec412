"""Joins LangChain's chat models."""

from agentrewind.capture.wire import CurrentGate


def install(current_gate: CurrentGate) -> None:
    """X."""
