"""A harness's code under the layer, for tests: recorded against a scripted model, replayed without one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from agentrewind.capture.install import install_all
from agentrewind.current import current_gate, set_layer
from agentrewind.layer import Layer
from agentrewind.records import AttemptFailed, LlmNode
from agentrewind.rewind.memory import Memory
from harness_adapters.scripted import Policy, ScriptedModel
from tests.core.stage import Stage

T = TypeVar("T")


def attempt(code: Callable[[], T]) -> T | BaseException:
    """What the code gives, or what it raises."""
    try:
        return code()
    except Exception as error:  # noqa: BLE001 - the exception is the result
        return error


def told(error: object) -> tuple[object, ...]:
    """What a harness can see of an exception."""
    assert isinstance(error, BaseException), error
    names = ("status_code", "body", "code", "param", "type", "request_id", "message")
    response = getattr(error, "response", None)
    seen = [getattr(error, name, None) for name in names]
    answer = (response.status_code, response.text) if response is not None else None
    return (type(error), str(error), *seen, answer)


@dataclass
class Joined:
    """One run: `live` it once, then `replay` it."""

    stage: Stage
    model: ScriptedModel
    memory: str | None = None
    layers: list[Layer] = field(default_factory=list)

    @property
    def nodes(self) -> list[LlmNode]:
        return [node for node in self.stage.timeline.path() if isinstance(node, LlmNode)]

    @property
    def attempts(self) -> list[AttemptFailed]:
        return [record for record in self.stage.records if isinstance(record, AttemptFailed)]

    def bare(self, code: Callable[[], T]) -> T:
        """Without the layer."""
        return code()

    def live(self, code: Callable[[], T]) -> T:
        with self.stage.live() as layer, joined(layer):
            return code()

    def replay(self, code: Callable[[], T]) -> T:
        """From the log alone: no request reaches the model, and all that is recorded is asked for."""
        before = len(self.model.requests)
        layer = self.stage.replay()
        with joined(layer):
            result = code()
        assert len(self.model.requests) == before
        assert layer.remaining == 0
        return result


@contextmanager
def joined(layer: Layer) -> Iterator[None]:
    """This process under that layer."""
    install_all(current_gate)
    set_layer(layer)
    try:
        yield
    finally:
        set_layer(None)


@contextmanager
def run_of(directory: Path, policy: Policy) -> Iterator[Joined]:
    with ScriptedModel(policy) as model:
        yield Joined(stage=Stage.create(directory), model=model)


def later(code: Callable[[], Awaitable[T]]) -> Callable[[], T]:
    """Async code as code."""

    async def run() -> T:
        return await code()

    return lambda: asyncio.run(run())


def remember(layer: Layer, *, index: int, anchor: Any, conversation: str, role: str = "system") -> Memory:
    """Give the layer a rewind memory that belongs after `anchor`."""
    memory = Memory(
        text="MEMORY: try the other way",
        role=role,
        conversation=conversation,
        index=index,
        anchor=anchor,
    )
    layer.gate.memory = memory
    return memory
