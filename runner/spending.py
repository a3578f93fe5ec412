"""What a cell's calls cost while it runs: stops the run when that passes its limit."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable
from typing import Self

from agentrewind.errors import DamagedError
from agentrewind.records import Json, LlmNode, Node
from agentrewind.run_store import Run
from runner.order import Price
from runner.result import Tokens

_LOOK_SECONDS = 2.0
_PATIENCE_SECONDS = 15.0


def tokens_of(nodes: Iterable[Node]) -> Tokens:
    """What the providers counted for these nodes, whichever API they speak."""
    total = [0, 0, 0]
    for node in nodes:
        usage = (node.output or {}).get("usage") if isinstance(node, LlmNode) else None
        if isinstance(usage, dict):
            found = usage_of(usage)
            total = [total[0] + found.input, total[1] + found.output, total[2] + found.cached]
    return Tokens(input=total[0], output=total[1], cached=total[2])


def counted(nodes: Iterable[Node]) -> bool:
    """Every answer came with the tokens that it took, so that their sum is what the provider counts."""
    return all((node.output or {}).get("usage") for node in nodes if isinstance(node, LlmNode))


def usage_of(usage: dict[str, Json]) -> Tokens:
    """A provider's `usage`: of chat completions, Responses, Messages or LangChain.

    >>> usage_of({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}})
    Tokens(input=9, output=2, cached=4)
    >>> usage_of({"input_tokens": 9, "output_tokens": 2, "cache_read_input_tokens": 4})
    Tokens(input=13, output=2, cached=4)
    """
    cached = 0
    for name in ("prompt_tokens_details", "input_tokens_details", "input_token_details"):
        details = usage.get(name)
        if isinstance(details, dict):
            cached = max(cached, _count(details, "cached_tokens"), _count(details, "cache_read"))
    if "prompt_tokens" in usage:
        return Tokens(
            input=_count(usage, "prompt_tokens"), output=_count(usage, "completion_tokens"), cached=cached
        )
    # Anthropic counts what it read from and wrote to its cache beside the input
    beside = _count(usage, "cache_read_input_tokens")
    written = _count(usage, "cache_creation_input_tokens")
    return Tokens(
        input=_count(usage, "input_tokens") + beside + written,
        output=_count(usage, "output_tokens"),
        cached=max(cached, beside),
    )


def _count(usage: dict[str, Json], name: str) -> int:
    found = usage.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def cost_of(tokens: Tokens, price: Price) -> float:
    """US dollars."""
    fresh = tokens.input - tokens.cached
    return (fresh * price.input + tokens.cached * price.cached + tokens.output * price.output) / 1e6


class Spending:
    """Watches the logs of a cell's runs; with price and limit it ends this process's run past the limit."""

    def __init__(self, price: Price | None, limit: float | None) -> None:
        self._price = price
        self._limit = limit
        self._runs: list[Run] = []
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._before: signal._HANDLER = signal.SIG_DFL
        self.over = False

    def follow(self, run: Run) -> None:
        """Count this run too."""
        self._runs.append(run)

    def __enter__(self) -> Self:
        if self._price is not None and self._limit is not None:
            # between two attempts no supervisor is there to take the signal
            self._before = signal.signal(signal.SIGTERM, self._told)
            self._thread = threading.Thread(target=self._watch, args=(self._price, self._limit), daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
            signal.signal(signal.SIGTERM, self._before)

    def _told(self, number: int, _frame: object) -> None:
        """Our own signal needs nothing more here; another's ends this process."""
        if not self.over:
            raise SystemExit(128 + number)

    def _watch(self, price: Price, limit: float) -> None:
        wait = _LOOK_SECONDS
        while not self._closed.wait(wait):
            if self._spent(price) >= limit:
                self.over = True
                # the supervisor hands this on to the agent process and ends the run in good order
                os.kill(os.getpid(), signal.SIGTERM)
                wait = _PATIENCE_SECONDS  # an attempt that began meanwhile is ended too

    def _spent(self, price: Price) -> float:
        try:
            return sum(cost_of(tokens_of(run.timeline().nodes.values()), price) for run in list(self._runs))
        except (DamagedError, OSError):
            return 0.0  # a line is being written; the next look sees it whole
