"""Signals that no harness takes for an ordinary failure, and a latch that outlasts one that does."""

from __future__ import annotations

import asyncio
import threading

import pytest

from agentrewind.errors import AgentRewindError, DivergenceError, StorageError
from agentrewind.rewind.signal import EndReason, Latch, LayerSignal, RewindSignal, StopSignal

SIGNALS = (RewindSignal, StopSignal)


@pytest.mark.parametrize("kind", SIGNALS)
def test_no_except_clause_of_a_harness_means_a_signal(kind: type[LayerSignal]) -> None:
    assert not issubclass(kind, Exception)
    assert issubclass(kind, LayerSignal)
    for other in (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError, AgentRewindError):
        assert not issubclass(kind, other)
        assert not issubclass(other, kind)


@pytest.mark.parametrize("kind", SIGNALS)
def test_its_text_is_constant_and_looks_like_no_rate_limit(kind: type[LayerSignal]) -> None:
    text = str(kind())
    assert text == str(kind())
    for word in ("429", "rate limit", "rate_limit", "too many requests", "timeout", "overloaded"):
        assert word not in text.lower()
    assert not any(character.isdigit() for character in text)


@pytest.mark.parametrize("kind", SIGNALS)
def test_it_is_truthy_and_takes_no_arguments(kind: type[LayerSignal]) -> None:
    assert kind()
    with pytest.raises(TypeError):
        kind("rec_000004")


def test_a_latch_that_is_up_lets_pass() -> None:
    latch = Latch()
    latch.check()
    assert latch.reason is None
    assert latch.error is None


def test_once_down_every_check_raises_the_same_signal() -> None:
    latch = Latch()
    assert isinstance(latch.rewind(), RewindSignal)
    for _ in range(3):
        with pytest.raises(RewindSignal):
            latch.check()
    assert latch.reason is EndReason.REWIND


def test_the_first_reason_stays() -> None:
    stopped = Latch()
    first = DivergenceError(record_uid="rec_000004", difference="model: recorded 'a', asked 'b'")
    assert isinstance(stopped.stop(first), StopSignal)
    stopped.stop(StorageError("disk full"))
    stopped.rewind()
    assert stopped.error is first
    with pytest.raises(StopSignal):
        stopped.check()

    rewound = Latch()
    rewound.rewind()
    rewound.stop(StorageError("disk full"))
    assert rewound.reason is EndReason.REWIND
    assert rewound.error is None
    with pytest.raises(RewindSignal):
        rewound.check()


def test_of_many_threads_one_gives_the_reason() -> None:
    latch = Latch()
    errors = [StorageError(str(number)) for number in range(8)]
    threads = [threading.Thread(target=latch.stop, args=(error,)) for error in errors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert latch.error in errors
