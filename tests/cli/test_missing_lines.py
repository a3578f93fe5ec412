"""Lines that are taken out of a whole log, and references that lead nowhere: all of them are told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agentrewind.codec import encode
from agentrewind.records import LlmNode, MessageList, RecordUid
from agentrewind.run_store import Run
from agentrewind.timeline import Timeline
from tests.cli.desk import Desk

_NODE = re.compile(rb'\{"record_uid":"(rec_\d+)"')


def _lost(run: Run) -> list[str]:
    return [str(damage) for damage in run.timeline().damages if damage.lost]


def _without(path: Path, *gone: bytes) -> None:
    path.write_bytes(
        b"".join(line for line in path.read_bytes().splitlines(keepends=True) if line not in gone)
    )


def _cases(run: Run) -> Iterator[tuple[Path, str, tuple[bytes, ...]]]:
    """Every node line alone, with its `started`, and with all that speaks of the node in its segment."""
    for number in run.segment_numbers():
        lines = run.segment_path(number).read_bytes().splitlines(keepends=True)
        for line in lines:
            if (found := _NODE.match(line)) is None:
                continue
            about = [each for each in lines if b'"record_uid":"' + found[1] + b'"' in each]
            begun = [each for each in about if b'"event":"started"' in each]
            for gone in ([line], [line, *begun], about):
                yield run.segment_path(number), found[1].decode(), tuple(gone)


def test_no_node_can_be_taken_out_unnoticed(rewound: Desk) -> None:
    run = rewound.only_run()
    assert _lost(run) == []
    last = max(run.timeline().nodes)
    tried = 0
    for path, uid, gone in list(_cases(run)):
        whole = path.read_bytes()
        _without(path, *gone)
        told = any(uid in each or "missing" in each for each in _lost(run))
        path.write_bytes(whole)
        # of the last node nothing is left where all is gone that speaks of it
        assert told or (uid == last and len(gone) > 2), (uid, len(gone))
        tried += 1
    assert tried > 30


def test_a_row_of_nodes_and_a_decision_are_missed(rewound: Desk) -> None:
    run = rewound.only_run()
    path = run.segment_path(0)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    _without(path, *(line for line in lines if re.search(rb"rec_00000[34]", line)))
    assert any("rec_000003 to rec_000004" in each for each in _lost(run))
    assert run.timeline().gap_on_path() is not None
    path.write_bytes(whole)
    _without(path, *(line for line in lines if b'"rewind_asked"' in line))
    assert any("decision to go back" in each for each in _lost(run))


def test_what_is_missing_ends_verify_and_replay_as_damage(rewound: Desk) -> None:
    path = rewound.only_run().segment_path(0)
    _without(
        path,
        *(
            line
            for line in path.read_bytes().splitlines(keepends=True)
            if _NODE.match(line[:40]) and b"rec_000002" in line[:40]
        ),
    )
    (finding,) = rewound.json("verify", code=4)["runs"]
    assert any("rec_000002" in each for each in finding["log"])
    done = rewound.call("replay", "last")
    assert (done.returncode, "rec_000002" in done.stderr) == (4, True), done.stderr


@pytest.mark.parametrize(
    ("base", "keep"), [("itself", 1), ("a later one", 1), ("a tool call", 0), ("none", 1), ("one", 99)]
)
def test_message_lists_that_build_on_nothing_are_damage(rewound: Desk, base: str, keep: int) -> None:
    run = rewound.only_run()
    timeline = run.timeline()
    asked = [node for node in timeline.own_nodes(0) if isinstance(node, LlmNode)]
    tools = [uid for uid, node in timeline.nodes.items() if not isinstance(node, LlmNode)]
    node, places = asked[1], {"itself": asked[1], "a later one": asked[2], "one": asked[0]}
    named = tools[0] if base == "a tool call" else places[base].record_uid if base in places else None
    _replace(run, timeline, replace(node, messages=MessageList(base=named, keep=keep, append=())))
    (found,) = _lost(run)
    assert f"the messages of {node.record_uid} cannot be put together" in found
    assert run.timeline().gap_on_path(until=RecordUid(node.record_uid)) is not None


def _replace(run: Run, timeline: Timeline, node: LlmNode) -> None:
    """Write the node in the place of the one of that name, with a right checksum."""
    path = run.segment_path(timeline.segment_of(node.record_uid))
    begin = f'{{"record_uid":"{node.record_uid}"'.encode()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(
        b"".join(encode(node, put_blob=run.blobs.put) if line.startswith(begin) else line for line in lines)
    )


def test_a_last_segment_that_is_gone_is_missed_by_the_store(rewound: Desk) -> None:
    rewound.only_run().segment_path(1).unlink()
    (finding,) = rewound.json("verify", code=4)["runs"]
    assert any("segment 1 is missing" in each for each in finding["log"])
    # else the rewind, which is pending again by what is left of the log, would be carried out twice
    done = rewound.call("run", "--resume", "last")
    assert (done.returncode, "has lost its end" in done.stderr) == (4, True), done.stderr
    assert rewound.only_run().segment_numbers() == (0,)


def test_a_log_that_was_cut_off_is_missed_by_the_store(rewound: Desk) -> None:
    run = rewound.only_run()
    path = run.segment_path(1)
    lines = path.read_bytes().splitlines(keepends=True)
    begun = [place for place, line in enumerate(lines) if b'"event":"started"' in line and b'"llm"' in line]
    path.write_bytes(b"".join(lines[: begun[-1]]))
    (finding,) = rewound.json("verify", code=4)["runs"]
    assert any("segment 1 ends too early" in each for each in finding["log"])
