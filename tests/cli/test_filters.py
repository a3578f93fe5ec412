"""`list` and `log`: what their filters leave, what a run cost, and the pager."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrewind.commands.list import age
from agentrewind.journal import SegmentRead
from agentrewind.records import Json, JsonObject, Node
from agentrewind.selection import Selection, selected
from agentrewind.timeline import Timeline
from agentrewind.usage import usage_of
from tests import records
from tests.cli.desk import PROGRAM, Desk

# --- log ---


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        (["--tool", "submit"], [6, 14]),
        (["--tool", "nothing"], []),
        (["--failed"], [6]),
        (["--path", "a.txt"], [2, 4]),
        (["--path", "[ab].*"], [2, 4, 12]),
        (["--grep", "RM A.TXT"], [3, 4, 8]),
        (["--grep", "is missing"], [7]),
        (["--grep", "echo two", "--path", "b.txt"], [4, 12]),
        (["--grep", "echo two", "--failed"], []),
    ],
)
def test_log_shows_what_fits_every_filter(told: Desk, filters: list[str], numbers: list[int]) -> None:
    document = told.json("log", "last", *filters)
    assert [node["record_uid"] for node in document["nodes"]] == [records.uid(each) for each in numbers]
    text = told.call("log", "last", *filters).stdout
    shown = [line for line in text.splitlines() if "rec_" in line]
    assert [line[line.index("rec_") :][:10] for line in shown] == [records.uid(each) for each in numbers]
    assert f"{len(numbers)} node{'s' if len(numbers) != 1 else ''} shown" in text
    assert ("abandoned" in text) is any(3 <= each <= 10 for each in numbers)


def test_paths_that_the_log_leaves_out_are_looked_up(desk: Desk) -> None:
    desk.json(*desk.run_arguments(["sh for i in $(seq 300); do echo $i > f$i; done", "say done"]), code=1)
    assert len(desk.json("log", "last", "--path", "f99")["nodes"]) == 1
    (desk.home / "workspaces").rename(desk.home / "gone")
    error = desk.json("log", "last", "--path", "f99", code=4)["error"]
    assert "rec_000002 changed 300 paths" in error["message"]


def test_changed_files_are_named_and_repositories_counted(told: Desk, desk: Desk) -> None:
    assert "1 path changed: a.txt" in told.call("log", "last").stdout
    desk.json(*desk.run_arguments(["sh git init -q . && echo x > own.txt", "say done"]), code=1)
    line = next(line for line in desk.call("log", "last").stdout.splitlines() if "git init" in line)
    assert "own.txt" in line
    assert ".git/" not in line


_NODES = st.lists(
    st.builds(
        lambda output, tool, code: (output, tool, code),
        st.sampled_from(["alpha", "Beta", "gamma"]),
        st.booleans(),
        st.sampled_from([0, 1]),
    ),
    min_size=1,
    max_size=8,
)
_TEXTS = st.none() | st.sampled_from(["ALPHA", "beta", "mm", ""])
_TOOLS = st.none() | st.sampled_from(["bash", "other"])
_PATHS = st.none() | st.sampled_from(["*.py", "src/*", "none"])


@given(nodes=_NODES, text=_TEXTS, tool=_TOOLS, path=_PATHS, failed=st.booleans())
def test_filters_together_are_what_each_alone_leaves(
    nodes: list[tuple[str, bool, int]], text: str | None, tool: str | None, path: str | None, failed: bool
) -> None:
    made: list[Node] = []
    for number, (said, is_tool, code) in enumerate(nodes, 1):
        output: Json = {"output": said, "returncode": code}
        made.append(records.tool(number, output=output) if is_tool else records.llm(number))
    read = SegmentRead(
        segment=0,
        header=records.header(),
        records=tuple((number * 100, node) for number, node in enumerate(made)),
        damages=(),
    )
    timeline = Timeline([read])

    def changed(node: Node) -> tuple[bytes, ...]:
        return (b"src/a.py",) if int(node.record_uid[-1]) % 2 else (b"src/b.txt",)

    def pick(selection: Selection) -> frozenset[str]:
        return selected(timeline, selection, changed=changed)

    whole = pick(Selection(text=text, tool=tool, path=path, failed=failed))
    alone = [pick(Selection(text=text)), pick(Selection(tool=tool)), pick(Selection(path=path))]
    assert whole == frozenset.intersection(*alone, pick(Selection(failed=failed)))
    assert pick(Selection()) == frozenset(timeline.nodes)


# --- list ---


def test_list_filters(told: Desk, tmp_path: Path) -> None:
    def left(*filters: str) -> int:
        return len(told.json("list", *filters))

    assert left("--state", "accepted") == left("--state", "error", "--state", "accepted") == 1
    assert left("--state", "error") == 0
    assert left("--harness", "tests.cli.tiny:Tiny") == left("--model", "tiny") == 1
    assert left("--harness", "mini-swe-agent") == left("--model", "other") == 0
    assert left("--workspace", str(told.workspace)) == left("--workspace", ".") == 1
    assert left("--workspace", str(tmp_path)) == left("--workspace", "workspace/deeper") == 0
    assert "none of 1 run is like that" in told.call("list", "--state", "error").stdout
    assert told.call("list", "--state", "odd").returncode == 2


def test_list_tells_age_and_what_is_not_known(told: Desk) -> None:
    (row,) = told.json("list")
    assert (row["tokens_in"], row["tokens_out"], row["cost"]) == (None, None, None)
    title, line = told.call("list").stdout.splitlines()
    assert "tokens" in title
    assert "–/–" in line
    assert " s  tests.cli.tiny:Tiny" in line or " min  tests.cli.tiny:Tiny" in line


@pytest.mark.parametrize(
    ("since", "shown"),
    [
        ("2026-01-30T08:00:00.000Z", "1 d"),
        ("2026-01-31T06:00:00.000Z", "2 h"),
        ("2026-01-31T07:59:01.000Z", "59 s"),
        ("2027-01-01T00:00:00.000Z", "0 s"),
        ("soon", "–"),
    ],
)
def test_age(since: str, shown: str) -> None:
    assert age(since, "2026-01-31T08:00:00.000Z") == shown


def _answer(number: int, usage: Json) -> Node:
    from dataclasses import replace

    output: JsonObject = {"content": "x", "usage": usage}
    return replace(records.llm(number), output=output)


def test_tokens_are_added_up_under_either_name() -> None:
    nodes = [
        _answer(1, {"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.25}),
        _answer(2, {"input_tokens": 5, "output_tokens": 1, "cost": 0.5}),
        _answer(3, None),
        _answer(4, {"prompt_tokens": True, "completion_tokens": "3"}),
        records.tool(5),
    ]
    usage = usage_of(nodes)
    assert (usage.tokens_in, usage.tokens_out, usage.cost, usage.silent) == (15, 3, 0.75, 2)


# --- the pager ---


def _on_terminal(desk: Desk, command: str, **environment: str) -> str:
    shell = f"stty rows 10 cols 100; {' '.join(PROGRAM)} {command}"
    done = subprocess.run(
        ["script", "-qec", shell, "/dev/null"],
        env=desk.environment(TERM="xterm-256color", **environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout.decode()


@pytest.mark.parametrize("command", ["log last", "log last --failed"])
def test_only_what_a_terminal_cannot_hold_goes_through_the_pager(told: Desk, command: str) -> None:
    pager = "sed s/^/paged:/"
    shown = _on_terminal(told, command, PAGER=pager)
    assert ("paged:" in shown) is ("--failed" not in command)
    assert "rec_0000" in shown
    assert "paged:" not in told.call(*command.split(), environment=told.environment(PAGER=pager)).stdout


@pytest.mark.parametrize("no_color", [{}, {"NO_COLOR": "1"}])
def test_the_pager_gets_colours_only_where_they_are_wanted(told: Desk, no_color: dict[str, str]) -> None:
    seen = told.base / "seen"
    pager = told.base / "less"
    pager.write_text(f"#!/bin/sh\ncat > {seen}\n")
    pager.chmod(0o755)
    _on_terminal(told, "log last", PAGER=str(pager), **no_color)
    assert (b"\x1b[" in seen.read_bytes()) is (not no_color)
