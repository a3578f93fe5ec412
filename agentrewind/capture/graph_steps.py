"""Hears from LangChain's callbacks which node of a graph begins. LangChain is never imported from here."""

from __future__ import annotations

import functools
import sys
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from agentrewind.capture.hook import when_imported
from agentrewind.capture.nesting import is_inside
from agentrewind.capture.wire import CurrentGate
from agentrewind.graph_steps import GraphStep

_MARK = "__agentrewind_steps__"
_TAG = "graph:step:"


def install(current_gate: CurrentGate) -> None:
    """Listen as soon as LangChain is imported. Installing twice changes nothing."""
    when_imported("langchain_core.tracers.context", functools.partial(_listen, current_gate=current_gate))


def _listen(module: ModuleType, *, current_gate: CurrentGate) -> None:
    if hasattr(module, _MARK):
        return
    from langchain_core.callbacks.base import BaseCallbackHandler

    class Listener(BaseCallbackHandler):  # type: ignore[misc]
        run_inline = True  # in the node's own order, not in a pool beside the event loop

        def on_chain_start(self, *_: Any, **facts: Any) -> None:
            gate = current_gate()
            # an agent within a tool is part of the tool's node and does not run again
            if gate is None or is_inside():
                return
            step = _step(facts.get("metadata") or {})
            # whatever runs within a step has its metadata as well
            if step is not None and f"{_TAG}{step.step}" in (facts.get("tags") or ()):
                with gate.stopping():
                    gate.on_step(step)

    # a default, since harnesses run graphs in contexts of their own
    handler: ContextVar[Any] = ContextVar("agentrewind_graph_steps", default=Listener())  # noqa: B039 - never changed
    module.register_configure_hook(handler, inheritable=True)
    setattr(module, _MARK, handler)


def current_step() -> GraphStep | None:
    """The step of a graph in whose context this is called, None where there is none."""
    module = sys.modules.get("langchain_core.runnables.config")
    context = getattr(module, "var_child_runnable_config", None)
    configuration = None if context is None else context.get()
    return _step((configuration or {}).get("metadata") or {})


def _step(metadata: dict[str, Any]) -> GraphStep | None:
    number, name = metadata.get("langgraph_step"), metadata.get("langgraph_node")
    if not isinstance(number, int) or name is None:
        return None
    # the namespace names the task as well, by an id that differs from run to run
    above = str(metadata.get("langgraph_checkpoint_ns") or "").split("|")[:-1]
    return GraphStep(step=number, place=(*(each.partition(":")[0] for each in above), str(name)))
