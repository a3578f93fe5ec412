"""The layer of this process, if it has one: what the public functions and the clients' wrappers ask for."""

from __future__ import annotations

from agentrewind.capture.gate import Gate
from agentrewind.layer import Layer

_layer: Layer | None = None


def current_layer() -> Layer | None:
    """The layer that this process is joined to, or None."""
    return _layer


def current_gate() -> Gate | None:
    """The gate of that layer."""
    return None if _layer is None else _layer.gate


def set_layer(layer: Layer | None) -> None:
    """Join this process to a layer, or let go of it. A process-global: harnesses lose context in threads."""
    global _layer
    _layer = layer
