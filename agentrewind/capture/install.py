"""Puts every client wrapper in place: what the agent process calls once, before the agent is imported."""

from __future__ import annotations

from agentrewind.capture import anthropic, graph_steps, langchain_models, litellm, openai, strays
from agentrewind.capture.wire import CurrentGate


def install_all(current_gate: CurrentGate) -> None:
    """Wrap litellm, the openai and anthropic SDKs and LangChain, each when it is imported.

    None of them is imported from here, and installing twice changes nothing. Whatever posts to a language
    model behind their backs is refused.
    """
    litellm.install(current_gate)
    openai.install(current_gate)
    anthropic.install(current_gate)
    langchain_models.install(current_gate)
    graph_steps.install(current_gate)
    strays.install(current_gate)
