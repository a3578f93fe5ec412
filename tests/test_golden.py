"""Runs that older versions wrote must load forever; these files are read and never written again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from agentrewind.codec import node_json
from agentrewind.jsonform import to_plain
from agentrewind.records import Event, Json, LlmNode, Note, ToolNode
from agentrewind.run_store import Run

GOLDEN = Path(__file__).parent / "golden" / "format-1"
ROWS = "row\n" * 12000
"""The long output in the golden run, which its expectations call `@rows@`."""


@pytest.fixture(scope="module")
def run() -> Run:
    return Run(GOLDEN / "three-segments")


@pytest.fixture(scope="module")
def expected() -> dict[str, Json]:
    found = json.loads((GOLDEN / "three-segments.expected.json").read_text())
    assert isinstance(found, dict)
    return found


def holds(actual: Json, wanted: Json) -> bool:
    """Whether all that was wanted is there; fields that were added since do not count."""
    if isinstance(wanted, dict):
        return isinstance(actual, dict) and all(
            name in actual and holds(actual[name], item) for name, item in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(actual, list) and len(actual) == len(wanted) and all(map(holds, actual, wanted))
    if isinstance(wanted, str):
        return actual == wanted.replace("@rows@", ROWS)
    return actual == wanted and type(actual) is type(wanted)


def test_every_node_is_what_it_was(run: Run, expected: dict[str, Json]) -> None:
    line = run.timeline()
    shown: list[Json] = [
        node_json(node, messages=line.messages(node.record_uid) if isinstance(node, LlmNode) else None)
        for node in line.nodes.values()
    ]
    wanted = expected["nodes"]
    assert isinstance(wanted, list)
    for actual, each in zip(shown, wanted, strict=True):
        assert holds(actual, each)


def test_the_run_as_a_whole_is_what_it_was(run: Run, expected: dict[str, Json]) -> None:
    line = run.timeline()
    assert line.state() == expected["state"]
    assert line.next_uid() == expected["next_uid"]
    assert [node.record_uid for node in line.checkpoints()] == expected["checkpoints"]
    assert {str(n): [node.record_uid for node in line.path(n)] for n in line.segments} == expected["paths"]
    assert {str(n): [each.memory for each in line.memories(n)] for n in line.segments} == expected["memories"]
    assert {str(n): [type(each).__name__ for each in line.events(n)] for n in line.segments} == expected[
        "events"
    ]
    assert to_plain(run.read_rewind(1)) == expected["rewind"]
    forks = {
        str(number): None
        if (fork := each.forked_from) is None
        else [fork.segment, fork.record_uid, fork.inclusive]
        for number, each in line.headers.items()
    }
    assert {number: {"forked_from": fork} for number, fork in forks.items()} == expected["headers"]


def test_the_damage_in_it_is_named_as_it_was(run: Run, expected: dict[str, Json]) -> None:
    line = run.timeline()
    assert [
        {"segment": each.segment, "offset": each.offset, "length": each.length, "lost": each.lost}
        for each in line.damages
    ] == expected["damages"]
    assert line.gaps(segment=0) == ()


def test_the_golden_run_holds_every_kind_of_record(run: Run) -> None:
    line = run.timeline()
    kinds = {type(record) for number in line.segments for record in line.records(number)}
    assert kinds == {*get_args(Event), LlmNode, ToolNode}


def test_values_that_json_cannot_hold_come_back(run: Run) -> None:
    line = run.timeline()
    node = line.node("rec_000002")
    assert isinstance(node, ToolNode)
    assert node.arguments == {
        "command": "cat blob",
        "stdin": b"\x00\xff",
        "limit": 2**70,
        "ratio": float("inf"),
        "odd": "caf\udce9",
        "looks": {"bytes": "base64:QQ=="},
        "keys": {"\ud800": None},
    }
    assert node.output == {"output": "blob:sha256:not one", "returncode": 0, "raw": b"\xde\xad"}
    changes = node.metadata.workspaces["ws0"].diff_summary
    assert [change.path for change in changes] == [
        b"crm/reports.py",
        b"data/\xff\n.bin",
        "größe.txt".encode(),
        b"link",
    ]


def test_lines_of_a_later_version_are_kept_as_notes(run: Run) -> None:
    notes = [event for event in run.timeline().events(1) if isinstance(event, Note)]
    assert [note.topic for note in notes] == ["unknown", "later"]
    assert notes[0].data["level"] == b"\x01\x02"


def test_the_format_page_names_every_field_and_event(run: Run) -> None:
    page = (Path(__file__).parent.parent / "docs" / "format.md").read_text()
    for number in run.segment_numbers():
        for line in run.segment_path(number).read_bytes().splitlines():
            if line.endswith(b"}") and b'"mood"' not in line:
                fields = json.loads(line)
                names = {*fields, fields.get("event", "kind"), *fields.get("metadata", {})}
                names -= {"urgency"}
                assert {name for name in names if f"`{name}`" not in page} == set()
