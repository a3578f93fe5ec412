"""Calls of one answer that run at the same time: a commit stands where it stood, whoever begins when."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrewind.rewind.tools import COMMIT
from harness_adapters.call_order import CallOrder, Wanted, must_wait_for

NAMES = st.sampled_from(["bash", "bash", "read", COMMIT])
CALLS = st.lists(st.tuples(NAMES, st.integers(0, 3)), min_size=1, max_size=7).map(
    lambda drawn: [Wanted(name=name, call_id=f"call_{number}", arguments=number) for name, number in drawn]
)


def check(calls: Sequence[Wanted], log: Sequence[tuple[str, int]]) -> None:
    """Every call ran once, and after all that it had to wait for."""
    begun = [place for what, place in log if what == "begin"]
    assert sorted(begun) == list(range(len(calls)))
    for place in range(len(calls)):
        for before in must_wait_for(calls, place):
            assert log.index(("end", before)) < log.index(("begin", place))


@given(calls=CALLS)
def test_a_call_waits_for_earlier_ones_only(calls: list[Wanted]) -> None:
    for place, call in enumerate(calls):
        waits = must_wait_for(calls, place)
        assert all(before < place for before in waits)
        if call.name == COMMIT:
            assert waits == list(range(place))
        assert all(before in waits for before in range(place) if calls[before].name == COMMIT)
        assert all(before in waits for before in range(place) if calls[before].call_id == call.call_id)


@given(calls=CALLS, workers=st.integers(1, 4), answers=st.integers(1, 2))
def test_threads_keep_the_order(calls: list[Wanted], workers: int, answers: int) -> None:
    order = CallOrder()
    for answer in range(answers):
        in_threads(order, f"answer-{answer}", calls, workers)


def in_threads(order: CallOrder, answer: str, calls: list[Wanted], workers: int) -> None:
    log: list[tuple[str, int]] = []

    def act(place: int) -> None:
        with order.turn(answer, calls, calls[place]):
            log.append(("begin", place))
            log.append(("end", place))

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(act, range(len(calls))))
    if len({(call.name, call.call_id) for call in calls}) == len(calls):
        check(calls, log)
    else:
        # equal calls may have changed places: nothing but the pool orders their begin
        assert sorted(place for what, place in log if what == "end") == list(range(len(calls)))


@given(calls=CALLS)
def test_tasks_keep_the_order(calls: list[Wanted]) -> None:
    order = CallOrder()
    log: list[tuple[str, int]] = []

    async def act(place: int) -> None:
        async with order.aturn("answer", calls, calls[place]):
            log.append(("begin", place))
            await asyncio.sleep(0)
            log.append(("end", place))

    async def together() -> None:
        await asyncio.gather(*map(act, range(len(calls))))

    asyncio.run(together())
    check(calls, log)


def test_a_call_that_breaks_lets_the_others_go_on() -> None:
    order = CallOrder()
    calls = [Wanted(name=COMMIT, call_id=None, arguments=n) for n in range(2)]
    with pytest.raises(KeyError), order.turn("answer", calls, calls[0]):
        raise KeyError
    with order.turn("answer", calls, calls[1]):
        pass


def test_a_call_that_is_cancelled_while_it_waits_lets_the_others_go_on() -> None:
    order = CallOrder()
    calls = [Wanted(name=COMMIT, call_id=None, arguments=n) for n in range(3)]
    ran: list[int] = []

    async def act(place: int) -> None:
        async with order.aturn("answer", calls, calls[place]):
            await asyncio.sleep(0.02)
            ran.append(place)

    async def together() -> None:
        tasks = [asyncio.create_task(act(place)) for place in range(3)]
        await asyncio.sleep(0.01)
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(together())
    assert ran == [0, 2]


def test_a_call_that_is_tried_again_waits_for_nobody() -> None:
    order = CallOrder()
    calls = [Wanted(name="bash", call_id="x", arguments=1), Wanted(name=COMMIT, call_id="y", arguments=2)]
    for _ in range(2):
        with order.turn("answer", calls, calls[0]):
            pass
    with order.turn("answer", calls, calls[1]):
        pass
