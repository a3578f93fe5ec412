"""A graph under the layer sees what it sees without: the same requests, answers, types, errors and order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from harness_adapters.scripted import ScriptedAnswer, Step
from tests.e2e.steps import story

pytest.importorskip("langchain")
pytest.importorskip("langchain_openai")

from tests.adapters.graphs import Kind, World, built, created, world

pytestmark = [
    # of the clients' own making
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

MODES = ("invoke", "stream", "ainvoke", "astream")


def call(say: str, name: str, word: str) -> ScriptedAnswer:
    return ScriptedAnswer(f"say-{say}", [(name, {"word": word})])


LONG: tuple[Step, ...] = (
    call("one", "mark", "one"),
    call("two", "both", "two"),
    call("three", "command", "three"),
    call("four", "unknown", "four"),
    ScriptedAnswer("say-end with a longer text, so that it comes in several pieces"),
)
REFUSED = (call("one", "mark", "one"), ScriptedAnswer(None, status=400, body={"error": {"message": "no"}}))
BROKEN = (call("one", "mark", "one"), ScriptedAnswer(None, status=500))
RAISING = (call("one", "fail", "one"),)
STORIES = {"long": LONG, "400": REFUSED, "500": BROKEN, "raising": RAISING}


def events(graph: Any, mode: str) -> list[Any]:
    """All that comes out of a graph, in order, without the ids that are random, and what it raised."""
    given = {"messages": [("user", "do it")]}
    parts: list[Any] = []

    async def awaited() -> None:
        if mode == "ainvoke":
            parts.append(await graph.ainvoke(given))
            return
        async for part in graph.astream(given, stream_mode=["updates", "messages"]):
            parts.append(part)

    try:
        if mode == "invoke":
            parts.append(graph.invoke(given))
        elif mode == "stream":
            parts += graph.stream(given, stream_mode=["updates", "messages"])
        else:
            asyncio.run(awaited())
    except Exception as error:  # noqa: BLE001 - whatever comes out is compared
        status = getattr(error, "status_code", None)
        parts.append((type(error), error.args, str(error), status))
    return [plain(part) for part in parts]


def plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return [type(value).__name__, plain(value.model_dump())]
    if isinstance(value, dict):
        random = ("id", "langgraph_checkpoint_ns", "checkpoint_ns", "lc_versions", "run_id")
        return {key: plain(item) for key, item in value.items() if key not in random}
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(plain, value)]
    return value


def in_whole(parts: list[Any]) -> list[Any]:
    """The same with the pieces of each answer put together: a log holds answers, not in how many pieces."""
    found: list[Any] = []
    for part in parts:
        told = isinstance(part, list) and part[:2] == ["tuple", "messages"]
        if told and part[2][1][0] == "AIMessageChunk":
            piece = part[2][1][1]
            said = [piece["content"], "".join(each["args"] for each in piece["tool_call_chunks"][1:])]
            if found and found[-1][0] == "pieces":
                found[-1] = ["pieces", *(old + new for old, new in zip(found[-1][1:], said, strict=True))]
            else:
                found.append(["pieces", *said])
        else:
            found.append(part)
    return found


def sent(found: World) -> list[Any]:
    return [request.raw for request in found.server.requests]


@pytest.mark.parametrize(
    ("kind", "steps"),
    [
        *(pytest.param(created, steps, id=name) for name, steps in STORIES.items()),
        pytest.param(built, LONG, id="long-built"),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_bare_recorded_and_replayed_are_the_same(
    tmp_path: Path, mode: str, kind: Kind, steps: tuple[Step, ...]
) -> None:
    with world(tmp_path / "bare", story(*steps), rewinds=False) as bare:
        expected = events(kind(bare, None), mode)
        requests, marks = sent(bare), bare.marks
    with world(tmp_path / "joined", story(*steps), rewinds=False) as joined:
        recorded = joined.attempts.live(lambda _: events(kind(joined, None), mode))
        assert recorded == expected
        assert (sent(joined), joined.marks) == (requests, marks)
        if steps in (REFUSED, BROKEN):
            return  # a call that failed last is no node yet: a run that goes on makes it again
        replayed: list[Any] = []
        joined.attempts.replayed(lambda _: replayed.extend(events(kind(joined, None), mode)))
        assert in_whole(replayed) == in_whole(expected)
        assert (len(sent(joined)), joined.marks) == (len(requests), marks)
