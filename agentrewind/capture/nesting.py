"""Tells a call that an agent makes from one that a wrapped client or tool makes in its turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_inside: ContextVar[bool] = ContextVar("agentrewind_inside_call", default=False)


@contextmanager
def inside() -> Iterator[None]:
    """While this lasts, calls of wrapped clients in this context belong to the call around them."""
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)


def is_inside() -> bool:
    """True within a call that the layer already handles: nested client calls pass through."""
    return _inside.get()
