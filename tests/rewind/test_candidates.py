"""What an agent is shown of where it has been, and which targets it is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrewind.records import (
    Change,
    ErrorRecord,
    Json,
    LlmNode,
    Metadata,
    Node,
    RecordUid,
    RewindAsked,
    ToolNode,
    WorkspaceSpan,
)
from agentrewind.rewind.candidates import SHOWN, View, checkpoints, exit_code, listing, refusal
from tests.records import AT, asked, commit, llm, metadata, tool, uid


def changing(number: int, *changes: tuple[str, bytes], output: Json = None, **more: object) -> ToolNode:
    span = WorkspaceSpan(
        before_commit=commit(number),
        after_commit=commit(number + 1),
        changed=bool(changes),
        diff_summary=tuple(Change(status=status, path=path) for status, path in changes),
    )
    meta = Metadata(created_at=AT, latency_ms=1, workspaces={"ws0": span})
    return replace(tool(number, output=output, meta=meta), **more)  # type: ignore[arg-type]


def view(
    path: list[Node],
    *,
    asking: int | None = None,
    others: tuple[Node, ...] = (),
    notes: tuple[RewindAsked, ...] = (),
    stands_for: dict[int, int] | None = None,
    not_restored: tuple[str, ...] = (),
    partial: tuple[int, ...] = (),
) -> View:
    return View(
        path=path,
        asking=uid(asking) if asking is not None else None,
        known={node.record_uid: node for node in (*path, *others)},
        notes=notes,
        stands_for={uid(old): uid(new) for old, new in (stands_for or {}).items()},
        not_restored=not_restored,
        whole=frozenset(
            node.record_uid
            for node in path
            if isinstance(node, LlmNode) and node.record_uid not in map(uid, partial)
        ),
    )


def entries(of: View) -> list[dict[str, Json]]:
    found = listing(of)["candidates"]
    assert isinstance(found, list)
    return [each for each in found if isinstance(each, dict)]


def test_an_entry_sums_up_the_answer_and_what_followed() -> None:
    path: list[Node] = [
        llm(1),
        changing(2, ("A", b"a"), ("M", b"b"), output={"output": "x", "returncode": 3}),
        changing(3, output={"exit_code": 0}, error=ErrorRecord(type="builtins:OSError", message="gone")),
        changing(4, interrupted=True),
        llm(5),
    ]
    (entry,) = entries(view(path, asking=5))
    assert entry == {
        "record_uid": "rec_000001",
        "step": 1,
        "summary": "answer 1",
        "tools": [
            {"name": "bash", "arguments": '{"command":"echo 2"}', "exit_code": 3},
            {
                "name": "bash",
                "arguments": '{"command":"echo 3"}',
                "exit_code": 0,
                "error": "builtins:OSError: gone",
            },
            {"name": "bash", "arguments": '{"command":"echo 4"}', "interrupted": True},
        ],
        "files": [{"status": "A", "path": "a"}, {"status": "M", "path": "b"}],
        "memories": [],
        "external": [],
    }


@given(st.integers(0, 130))
def test_at_most_eighty_are_shown_newest_first(count: int) -> None:
    path: list[Node] = [llm(number) for number in range(1, count + 2)]
    of = view(path, asking=count + 1)
    shown = entries(of)
    assert [each["record_uid"] for each in shown] == [uid(n) for n in range(count, max(0, count - SHOWN), -1)]
    assert [each["step"] for each in shown] == list(range(count, max(0, count - SHOWN), -1))
    assert listing(of).get("older_not_shown", 0) == max(0, count - SHOWN)
    assert ("note" in listing(of)) == (count == 0)
    # whatever is not shown can still be gone back to
    assert [node.record_uid for node in checkpoints(of)] == [uid(n) for n in range(1, count + 1)]


def test_three_hundred_nodes_fit_into_a_prompt() -> None:
    path: list[Node] = []
    for number in range(1, 600, 2):
        node = llm(number)
        path.append(replace(node, output={"content": "word " * 2000}))
        path.append(
            changing(number + 1, *(("M", b"some/path/%d" % n) for n in range(60)), output={"returncode": 1})
        )
    text = orjson.dumps(listing(view(path)))
    assert len(text) < 400_000
    assert all(len(str(each["summary"])) <= 400 for each in entries(view(path)))
    files = entries(view(path))[0]["files"]
    assert isinstance(files, list)
    assert files[-1] == {"status": "…", "path": "and 20 more"}


def test_files_of_several_calls_are_those_since_the_checkpoint() -> None:
    path: list[Node] = [
        llm(1),
        changing(2, ("A", b"new"), ("A", b"passing"), ("D", b"back"), ("M", b"old")),
        changing(3, ("M", b"new"), ("D", b"passing"), ("A", b"back"), ("D", b"old")),
    ]
    assert entries(view(path))[0]["files"] == [
        {"status": "A", "path": "new"},
        {"status": "M", "path": "back"},
        {"status": "D", "path": "old"},
    ]


def test_odd_names_and_odd_texts_are_shown_and_not_dropped() -> None:
    path: list[Node] = [
        replace(llm(1), output={"content": [{"type": "text", "text": "one"}, {"text": "two"}, "odd"]}),
        changing(2, ("A", b"caf\xff\n")),
        replace(llm(3), output={"content": None}),
    ]
    newest, oldest = entries(view(path))
    assert oldest["summary"] == "one two"
    assert oldest["files"] == [{"status": "A", "path": "caf\\xff\n"}]
    assert newest["summary"] == ""


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ({"returncode": 0}, 0),
        ({"exit_code": 2}, 2),
        ({"returncode": None, "exit_code": 2}, 2),
        ({"returncode": True}, None),
        ("text", None),
        (None, None),
    ],
)
def test_exit_codes_are_found_under_their_usual_names(output: Json, code: int | None) -> None:
    assert exit_code(tool(2, output=output)) == code


def test_notes_stand_at_the_node_that_took_the_place_of_their_target() -> None:
    path: list[Node] = [llm(1), llm(20), llm(30)]
    notes = (asked(1, 5, memory="first"), asked(2, 10, memory="second"), asked(3, 20, memory="third"))
    # 5 was gone back to and its place taken by 10, then by 20; 20 itself once more is on the path
    of = view(path, notes=notes, stands_for={5: 10, 10: 20})
    assert {str(each["record_uid"]): each["memories"] for each in entries(of)} == {
        uid(1): [],
        uid(20): ["first", "second", "third"],
        uid(30): [],
    }


def test_a_circle_among_them_ends() -> None:
    of = view([llm(1)], notes=(asked(1, 5),), stands_for={5: 6, 6: 5})
    assert entries(of)[0]["memories"] == []


def test_what_a_rewind_leaves_alone_is_said() -> None:
    assert listing(view([llm(1)], not_restored=("files matching .env*",)))["left_as_is_by_a_rewind"] == [
        "files matching .env*"
    ]


def test_external_effects_stand_with_the_point_before_them() -> None:
    node = changing(2)
    effect: dict[str, Json] = {"what": "mail", "restorable": False}
    sent = replace(node, metadata=replace(node.metadata, external=(effect,)))
    path: list[Node] = [llm(1), sent, llm(3)]
    assert [each["external"] for each in entries(view(path))] == [[], [effect]]


# --- refusals ---

FAILED = replace(llm(3), output=None, error=ErrorRecord(type="builtins:OSError", message="x"))
PARTIAL = llm(5, meta=metadata(5, partial=("big (too large)",)))
BARE = llm(6, meta=metadata(None))
PATH: list[Node] = [llm(1), tool(2), FAILED, llm(4), PARTIAL, BARE, llm(7)]
MIXED = view(PATH, asking=7, others=(llm(8), tool(9)), partial=(5, 6))


def test_only_whole_answered_checkpoints_before_the_answer_are_valid() -> None:
    assert [node.record_uid for node in checkpoints(MIXED)] == [uid(1), uid(4)]
    assert [each["record_uid"] for each in entries(MIXED)] == [uid(4), uid(1)]
    # steps count every answer of the path
    assert [each["step"] for each in entries(MIXED)] == [3, 1]


@pytest.mark.parametrize("number", [1, 4])
def test_a_valid_target_is_not_refused(number: int) -> None:
    assert refusal(MIXED, uid(number)) is None


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("rec_000002", "tool call"),
        ("rec_000003", "failed"),
        ("rec_000005", "no whole snapshot"),
        ("rec_000006", "no whole snapshot"),
        ("rec_000007", "giving now"),
        ("rec_000008", "abandoned"),
        ("rec_000009", "tool call"),
        ("rec_000099", "no record 'rec_000099'"),
        ("", "no record ''"),
        ("the beginning", "no record 'the beginning'"),
    ],
)
def test_a_refusal_says_why_and_names_valid_targets_newest_first(target: str, reason: str) -> None:
    told = refusal(MIXED, target)
    assert told is not None
    assert reason in told
    assert told.endswith("Valid targets, newest first: rec_000004, rec_000001.")


def test_without_a_valid_target_that_is_said() -> None:
    assert str(refusal(view([llm(1)], asking=1), "rec_000001")).endswith("None is valid yet.")


@given(st.sets(st.integers(1, 30), min_size=1), st.integers(1, 31))
def test_a_target_is_refused_unless_it_is_listed(on_path: set[int], target: int) -> None:
    of = view([llm(number) for number in sorted(on_path)], others=tuple(llm(n) for n in range(1, 31)))
    listed = {RecordUid(str(each["record_uid"])) for each in entries(of)}
    assert (refusal(of, uid(target)) is None) == (uid(target) in listed)
    json.dumps(listing(of))
