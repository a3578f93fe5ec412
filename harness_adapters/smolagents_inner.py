"""Keeps the model calls that are made within a code action which is a node of its own.

They are no nodes, since they are not made again when the action is served; the action's record says them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from agentrewind.capture.nesting import is_inside
from agentrewind.records import Json, JsonObject

_MARK = "__agentrewind__"
_within: ContextVar[list[Json] | None] = ContextVar("agentrewind_smolagents_within", default=None)


@contextmanager
def inner_calls() -> Iterator[list[Json]]:
    """The list to which every model call of this context is added while this lasts."""
    calls: list[Json] = []
    token = _within.set(calls)
    try:
        yield calls
    finally:
        _within.reset(token)


def watch(model: Any) -> None:
    """Let a model tell of its calls; watching it twice changes nothing."""
    if hasattr(model, _MARK):
        return
    setattr(model, _MARK, True)
    generate, generate_stream = model.generate, getattr(model, "generate_stream", None)

    def whole(*args: Any, **kwargs: Any) -> Any:
        answer = generate(*args, **kwargs)
        _add(model, str(answer.content or ""), answer.token_usage)
        return answer

    def streamed(*args: Any, **kwargs: Any) -> Iterator[Any]:
        said, usage = "", None
        assert generate_stream is not None
        for delta in generate_stream(*args, **kwargs):
            said, usage = said + (delta.content or ""), delta.token_usage or usage
            yield delta
        _add(model, said, usage)

    model.generate = whole
    if generate_stream is not None:
        model.generate_stream = streamed


def _add(model: Any, content: str, usage: Any) -> None:
    calls = _within.get()
    if calls is None or not is_inside():
        return
    call: JsonObject = {"model": str(model.model_id), "content": content}
    if usage is not None:
        call["usage"] = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
    calls.append(call)
