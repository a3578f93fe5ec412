"""Makes the runs that are looked at: a story by a real agent, a long one, one full of hostile text."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agentrewind.records import (
    Change,
    Finished,
    ForkPoint,
    InputId,
    JsonObject,
    LlmNode,
    Metadata,
    NodeKind,
    Note,
    RecordUid,
    RewindAsked,
    RewindDone,
    RunId,
    SnapshotTaken,
    Started,
    Submission,
    ToolNode,
    WorkspaceSpan,
)
from agentrewind.run_store import Run, RunStore
from tests import records
from tests.browser.agent import CHECK, FILES, HARNESS
from tests.cli.desk import Desk


def tell_story(desk: Desk) -> str:
    """A run with three rewinds, by a real process over a real workspace; returns its id."""
    for name, text in FILES.items():
        path = desk.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    report: dict[str, Any] = desk.json(
        "run", "--harness", HARNESS, "--model", "scripted-1", "--workspace", str(desk.workspace),
        "--task", "the report", "--check", CHECK,
    )  # fmt: skip
    assert (report["state"], report["rewinds"]) == ("accepted", 3), report
    run_id: str = report["run_id"]
    return run_id


def at(second: float) -> str:
    """A moment of a made-up run."""
    moment = datetime(2026, 1, 31, 8, tzinfo=UTC) + timedelta(seconds=second)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def write_run(home: Path, run_id: str, segments: list[list[Any]], **header: Any) -> Run:
    """A run with these segments; the first item of each but the first is where it forks from."""
    store = RunStore(home)
    first = replace(records.header(run_id=RunId(run_id)), created_at=at(0), **header)
    run = store.create(first)
    for number, made in enumerate(segments):
        if number:
            fork, *made = made
            run.create_segment(replace(first, segment=number, forked_from=fork))
        with run.writer(number) as writer:
            for record in made:
                writer.append(record, durable=False)
            writer.sync()
    return run


def answer(
    number: int, text: str, *, second: float, base: int | None = None, keep: int = 0, **more: Any
) -> LlmNode:
    node = records.llm(number, base=base, keep=keep, **more)
    return replace(node, output={"content": text, "tool_calls": []}, metadata=_meta(number, second, 900))


def call(
    number: int, command: str, output: Any, *, second: float, external: tuple[JsonObject, ...] = ()
) -> ToolNode:
    node = records.tool(number, output=output)
    meta = replace(_meta(number, second, 40), external=external)
    return replace(node, arguments={"command": command}, metadata=meta)


def changed(number: int, *paths: bytes, second: float) -> SnapshotTaken:
    span = WorkspaceSpan(
        before_commit=records.commit(number),
        after_commit=records.commit(number + 1),
        changed=bool(paths),
        diff_summary=tuple(Change(status="M", path=path) for path in paths),
        diff_total=len(paths),
    )
    return SnapshotTaken(record_uid=records.uid(number), workspaces={"ws0": span}, at=at(second))


def _meta(number: int, second: float, latency: int) -> Metadata:
    return replace(records.metadata(number), created_at=at(second), latency_ms=latency)


def long_run(home: Path, run_id: str = "20260131-090000-10e900", *, nodes: int = 2000) -> Run:
    """Many nodes, three rewinds on the way, and two results of five megabytes."""
    segments: list[list[Any]] = [[]]
    cuts = {nodes // 4: 0.6, nodes // 2: 0.7, 3 * nodes // 4: 0.9}
    number, parent, size = 0, None, 0
    path: list[int] = []
    while number < nodes:
        number += 1
        new = ({"role": "user", "content": f"step {number}"},) if parent is None else (
            {"role": "assistant", "content": f"answer {parent}"},
            {"role": "tool", "content": f"result {number - 1}: " + "lorem ipsum " * 20},
        )  # fmt: skip
        segments[-1].append(
            answer(
                number,
                f"I look at module {number // 2} and change what is needed.",
                second=number * 3,
                base=parent,
                keep=size,
                append=new,
            )
        )
        size += len(new)
        path.append(number)
        parent = number
        number += 1
        big = number in (100, nodes - 100)
        output = {"output": "line of output\n" * (350_000 if big else 4), "returncode": int(number % 60 == 0)}
        command = f"sed -i 's/old/new/' src/module_{number % 40}.py && make -s check"
        segments[-1].append(call(number, command, output, second=number * 3 - 1))
        segments[-1].append(changed(number, f"src/module_{number % 40}.py".encode(), second=number * 3))
        if number in cuts:
            target = path[int(len(path) * cuts[number])]
            segment = len(segments)
            note = f"Do not touch module {number % 40} before its tests exist; that was what broke the build."
            asked = RewindAsked(
                segment=segment,
                target=records.uid(target),
                memory=note,
                reason="the build is broken",
                asked_by=None,
                by="agent",
                at=at(number * 3),
            )
            segments[-1].append(asked)
            fork = ForkPoint(run_id=RunId(run_id), segment=0, record_uid=records.uid(target))
            report: JsonObject = {"modified": ["src/a.py"], "memory_message": note, "memory_role": "system"}
            segments.append(
                [
                    fork,
                    RewindDone(
                        segment=segment, target=records.uid(target), report=report, at=at(number * 3 + 1)
                    ),
                ]
            )
            path = path[: path.index(target)]
            parent, size = (path[-1], 2 * len(path) - 1) if path else (None, 0)
    segments[-1].append(Finished(state="accepted", detail="as told", at=at(number * 3 + 2)))
    return write_run(home, run_id, segments)


HOSTILE = {
    "script": "</pre></script><script>document.title='owned'</script>"
    "<img src=x onerror=\"document.title='owned'\">",
    "link": "[click](javascript:document.title='owned') <a href=\"javascript:document.title='owned'\">x</a>",
    "ansi": "\x1b[31mred\x1b[0m \x1b]0;owned\x07 \x1b[2J\x1b[1;1H\x9b31m",
    "rtl": "invoice\u202egpj.exe \u2066hidden\u2069 zero\u200bwidth tag\U000e0041",
    "template": "{{ 7 * 7 }} {% include 'error.html' %} &lt;b&gt;",
    "surrogate": "half \ud83d a pair, byte \udcff",
}
HOSTILE_PATHS = (
    b"a\n  D  everything.txt",
    b"<script>document.title='owned'</script>",
    b"\xff\xfe.bin",
    "\u202etxt.exe".encode(),
    b"javascript:alert(1)",
    b"\x1b[31mred",
)
LONG_LINE = 10_000_000
ODD_ID = RecordUid("../" + HOSTILE["script"] + "\n/?&#")


def hostile_run(home: Path, run_id: str = "20260131-100000-ba0bab") -> Run:
    """Every text that a run holds, as hostile as it can be."""
    every = " ".join(HOSTILE.values())
    script = HOSTILE["script"]
    heard = tuple({"role": name, "content": text} for name, text in HOSTILE.items())
    first: list[Any] = [
        Started(record_uid=records.uid(1), node_kind=NodeKind.LLM, input_id=InputId("x"), at=at(1)),
        answer(1, every, second=1, append=heard),
        call(2, every, {"output": every, HOSTILE["script"]: HOSTILE["script"]}, second=2,
             external=({HOSTILE["script"]: every, "state": "restorable"},)),
        changed(2, *HOSTILE_PATHS, second=3),
        Submission(record_uid=records.uid(2), accepted=False, exit_code=1, criterion=script,
                   feedback=every, repeated=1, at=at(3)),
        Note(topic=HOSTILE["script"], text=every, at=at(4), data={HOSTILE["script"]: every}),
        replace(answer(3, every, second=5), model=HOSTILE["script"], client=HOSTILE["rtl"]),
        replace(call(4, "x", "y" * LONG_LINE, second=6), tool_name=HOSTILE["script"], tool_call_id=every),
        changed(4, second=7),
        replace(call(5, "odd id", "z", second=8), record_uid=ODD_ID),
        RewindAsked(segment=1, target=records.uid(3), memory=every, reason=every, asked_by=None,
                    by="agent", at=at(9)),
    ]  # fmt: skip
    fork = ForkPoint(run_id=RunId(run_id), segment=0, record_uid=records.uid(3))
    report: JsonObject = {"created": [HOSTILE["script"]], "memory_message": every, "memory_role": "system"}
    second: list[Any] = [
        fork,
        RewindDone(segment=1, target=records.uid(3), report=report, at=at(10)),
        answer(6, every, second=11),
        Finished(state="error", detail=every, at=at(12)),
    ]
    return write_run(home, run_id, [first, second], harness=HOSTILE["script"], model=every)
