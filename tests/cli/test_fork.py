"""`fork`: another run from a node on, in a copy; or a rewind by a person, in the run itself."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentrewind.clock import SystemClock
from agentrewind.collecting import collect_all
from agentrewind.records import ForkPoint, LlmNode, RecordUid, RewindAsked, RunId
from agentrewind.run_store import Run, RunStore
from agentrewind.workspace.lock import WorkspaceLock
from tests.cli.desk import PROGRAM, Desk, tree
from tests.cli.test_replay import needs_namespaces

PLAN = ["sh echo one > one.txt; pwd", "sh echo two > two.txt", "sh rm one.txt", "say the end"]
BACK = ["sh pwd > where.txt", "say here", "sh echo another > three.txt", "say the other end"]

MEET = "sh touch ../met/$$; n=0; until [ -e ../go ] || [ $((n+=1)) -ge 600 ]; do sleep .05; done"
"""Says that it is at work, and stays so until it is let go."""


@pytest.fixture
def parent(desk: Desk) -> str:
    """A run with four answers: files one and two made, one removed."""
    desk.json(*desk.run_arguments(PLAN, BACK), code=1)
    return str(desk.json("list")[0]["run_id"])


def answers(desk: Desk, run_id: str) -> list[RecordUid]:
    """The uids of the model's answers on the path."""
    return [node.record_uid for node in run(desk, run_id).timeline().path() if isinstance(node, LlmNode)]


def run(desk: Desk, run_id: str) -> Run:
    return RunStore(desk.home).open(run_id)


def forked(desk: Desk, *arguments: str) -> tuple[dict[str, Any], Path]:
    """The document of a fork and the folder with its files."""
    document: dict[str, Any] = desk.json("fork", *arguments, code=1)
    return document, desk.home / "runs" / document["run_id"] / "copy"


@needs_namespaces
def test_a_fork_goes_on_in_a_copy_and_leaves_all_else_as_it_was(desk: Desk, parent: str) -> None:
    before = (tree(desk.workspace), tree(desk.home / "runs" / parent), desk.live_calls())
    third = answers(desk, parent)[2]

    document, copy = forked(desk, parent, "--at", third, "--memory", "make three instead")

    assert (tree(desk.workspace), tree(desk.home / "runs" / parent)) == before[:2]
    assert {path.name: path.read_text() for path in copy.iterdir()} == {
        "one.txt": "one\n",
        "two.txt": "two\n",
        "three.txt": "another\n",
    }
    # the two answers before it were served, the two after it were asked for
    assert desk.live_calls() == before[2] + 2
    header = run(desk, document["run_id"]).timeline().header
    assert header.forked_from == ForkPoint(run_id=RunId(parent), segment=0, record_uid=third)
    assert parent in desk.call("log", document["run_id"]).stdout


@needs_namespaces
def test_the_agent_sees_the_copy_at_the_recorded_path(desk: Desk, parent: str) -> None:
    _, copy = forked(desk, parent, "--at", answers(desk, parent)[0], "--memory", "again")
    assert (copy / "where.txt").read_text() == f"{desk.workspace}\n"


@needs_namespaces
def test_a_memory_of_a_person_is_told_as_such(desk: Desk, parent: str) -> None:
    document, _ = forked(
        desk, parent, "--at", answers(desk, parent)[1], "--memory", "look at the schema first"
    )
    made = run(desk, document["run_id"])
    [asked] = [event for event in made.timeline().events(0) if isinstance(event, RewindAsked)]
    assert (asked.by, asked.memory) == ("person", "look at the schema first")
    text = str(made.read_rewind(1)["report"]["memory_message"])  # type: ignore[index, call-overload]
    assert "A person took you back" in text
    assert "judged that path hopeless" not in text


@needs_namespaces
def test_an_edited_answer_is_carried_out_without_asking(desk: Desk, parent: str) -> None:
    before = desk.live_calls()
    second = answers(desk, parent)[1]
    call = {"name": "sh", "arguments": {"command": "echo mine > mine.txt"}}
    answer = json.dumps({"content": "I do it otherwise.", "tool_calls": [call]})

    document, copy = forked(desk, parent, "--at", second, "--answer", answer)

    assert (copy / "mine.txt").read_text() == "mine\n"
    assert not (copy / "two.txt").exists()
    node = run(desk, document["run_id"]).timeline().nodes[second]
    assert isinstance(node, LlmNode)
    assert node.output is not None
    assert node.output["content"] == "I do it otherwise."
    # the third and the fourth move of its plan were asked for
    assert desk.live_calls() == before + 2


@needs_namespaces
def test_another_model_is_asked_from_there_on(desk: Desk, parent: str) -> None:
    document, _ = forked(desk, parent, "--at", answers(desk, parent)[2], "--model", "tiny-2")
    timeline = run(desk, document["run_id"]).timeline()
    models = [node.model for node in timeline.path() if isinstance(node, LlmNode)]
    assert models == ["tiny-1", "tiny-1", "tiny-2", "tiny-2"]
    assert timeline.header.model == "tiny-2"
    # what was declared changed is no difference when the fork itself is replayed
    assert desk.json("replay", document["run_id"])["divergence"] is None


@needs_namespaces
def test_a_prepared_fork_is_started_by_resuming_it(desk: Desk, parent: str) -> None:
    before = desk.live_calls()
    made = desk.json("fork", parent, "--at", answers(desk, parent)[2], "--prepare")
    assert desk.live_calls() == before
    copy = Path(made["copy"])
    assert (copy / "one.txt").exists()
    (desk.workspace / "original").write_text("untouched")

    document = desk.json("run", "--resume", made["run_id"], code=1)

    assert document["run_id"] == made["run_id"]
    assert (desk.workspace / "original").read_text() == "untouched"
    assert not (copy / "one.txt").exists()


@needs_namespaces
def test_a_forks_files_are_restored_in_its_copy(desk: Desk, parent: str) -> None:
    document, copy = forked(desk, parent, "--at", answers(desk, parent)[2])
    before = tree(desk.workspace)
    assert not (copy / "one.txt").exists()

    desk.json("restore", document["run_id"], answers(desk, parent)[2], "--in-place", "--outside", "revert")

    assert (copy / "one.txt").read_text() == "one\n"
    desk.json("undo", document["run_id"])
    assert not (copy / "one.txt").exists()
    assert tree(desk.workspace) == before


@contextmanager
def at_work(desk: Desk, count: int, *arguments: str) -> Iterator[list[dict[str, Any]]]:
    """So many forks beside each other, all of them at work; their documents once they have ended."""
    command = [*PROGRAM, "fork", *arguments, "--json"]
    running = [
        subprocess.Popen(command, env=desk.environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for _ in range(count)
    ]
    documents: list[dict[str, Any]] = []
    try:
        met(desk, count)
        yield documents
    finally:
        (desk.base / "go").touch()
        documents += [json.loads(each.communicate()[0]) for each in running]


def met(desk: Desk, count: int) -> None:
    """Wait until so many forks are at work."""
    for _ in range(600):
        if len(list((desk.base / "met").iterdir())) == count:
            return
        time.sleep(0.05)


@pytest.fixture
def waiting(desk: Desk) -> str:
    """A run whose agent, once it has been taken back, waits to be let go, and then writes a file."""
    (desk.base / "met").mkdir()
    desk.json(*desk.run_arguments(PLAN[:1], [MEET, "sh pwd > end.txt"]), code=1)
    return str(desk.only_run().run_id)


@needs_namespaces
def test_forks_work_beside_each_other_and_beside_the_original(desk: Desk, waiting: str) -> None:
    arguments = [waiting, "--at", "rec_000001", "--memory", "meet"]
    with at_work(desk, 2, *arguments) as documents:
        with WorkspaceLock.acquire(desk.home, desk.workspace, owner={"run": waiting}):
            assert [row["state"] for row in desk.json("list")] == ["running"] * 3
        # nothing is collected under a fork, and its own copy is locked
        assert len(collect_all(desk.home, clock=SystemClock(), budget=0).busy) == 1
        fork = desk.json("list")[0]["run_id"]
        refused = desk.json("restore", fork, "rec_000001", "--in-place", code=5)["error"]["message"]
        assert f"in use by run {fork}" in refused
    copies = [desk.home / "runs" / each["run_id"] / "copy" for each in documents]
    assert [(copy / "end.txt").exists() for copy in copies] == [True, True]
    assert not (desk.workspace / "end.txt").exists()
    assert desk.json("verify")["sound"]
    assert collect_all(desk.home, clock=SystemClock()).busy == ()


@needs_namespaces
@pytest.mark.parametrize("to_all", [True, False], ids=["Ctrl-C", "SIGTERM"])
def test_a_fork_is_stopped_as_a_run_is(desk: Desk, waiting: str, to_all: bool) -> None:
    command = [*PROGRAM, "fork", waiting, "--at", "rec_000001", "--memory", "meet", "--json"]
    with subprocess.Popen(
        command,
        env=desk.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        met(desk, 1)
        if to_all:
            os.killpg(child.pid, signal.SIGINT)  # as a terminal does it
        else:
            child.terminate()
        out, err = child.communicate(timeout=60)
    assert child.returncode == (130 if to_all else 1), err
    assert b"Traceback" not in err
    assert json.loads(out)["state"] == "stopped"
    assert desk.json("list")[0]["state"] == "stopped"


def test_of_two_in_place_the_second_is_refused(desk: Desk, waiting: str) -> None:
    arguments = [waiting, "--at", "rec_000001", "--in-place"]
    segment = desk.home / "runs" / waiting / "segment-0001.jsonl"
    with at_work(desk, 1, *arguments, "--memory", "first") as documents:
        log = segment.read_bytes()
        refused = desk.json("fork", *arguments, code=5)["error"]["message"]
        assert f"workspace {desk.workspace} is in use by run {waiting}" in refused
        assert segment.read_bytes() == log
    assert [each["segments"] for each in documents] == [2]
    assert (desk.workspace / "end.txt").exists()


@needs_namespaces
def test_a_fork_goes_back_in_place_in_its_own_copy(desk: Desk, parent: str) -> None:
    document, copy = forked(desk, parent, "--at", answers(desk, parent)[2], "--memory", "make three")
    before = tree(desk.workspace)
    again = desk.json("fork", document["run_id"], "--at", answers(desk, parent)[0], "--in-place", code=1)
    assert (again["run_id"], again["segments"]) == (document["run_id"], 3)
    assert tree(desk.workspace) == before
    assert sorted(tree(copy)) == ["where.txt"]


@needs_namespaces
def test_the_parent_may_go_and_the_fork_stays_whole(desk: Desk, parent: str) -> None:
    made = desk.json("fork", parent, "--at", answers(desk, parent)[2], "--prepare")
    shutil.rmtree(desk.home / "runs" / parent)
    desk.json("gc")
    desk.json("run", "--resume", made["run_id"], code=1)
    assert desk.json("verify", made["run_id"])


def test_in_place_the_run_itself_goes_back(desk: Desk, parent: str) -> None:
    document = desk.json(
        "fork", parent, "--at", answers(desk, parent)[2], "--in-place", "--memory", "go on otherwise", code=1
    )
    assert document["run_id"] == parent
    assert sorted(path.name for path in desk.workspace.iterdir()) == ["one.txt", "three.txt", "two.txt"]
    desk.json("undo", parent)
    assert sorted(path.name for path in desk.workspace.iterdir()) == ["two.txt"]


def test_in_place_stops_at_changes_that_no_call_made(desk: Desk, parent: str) -> None:
    (desk.workspace / "two.txt").write_text("a person was here")
    arguments = ["fork", parent, "--at", answers(desk, parent)[1], "--in-place"]
    assert "two.txt" in desk.json(*arguments, code=5)["error"]["message"]
    assert (desk.workspace / "two.txt").read_text() == "a person was here"
    desk.json(*arguments, "--outside", "revert", code=1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--at", "rec_000099"], "no node"),
        (["--at", "rec_000002"], "tool call"),
        (["--at", "rec_000001", "--memory", "x", "--answer", "y"], "exclude each other"),
        (["--at", "rec_000001", "--answer", '{"content": 3}'], "text"),
        (["--at", "rec_000001", "--answer", '{"contents": "x"}'], "contents"),
        (["--at", "rec_000001", "--answer", "{broken"], "JSON"),
        (["--at", "rec_000001", "--answer", '{"tool_calls": [{"arguments": {}}]}'], "name"),
        (["--at", "rec_000001", "--memory", "@nowhere"], "nowhere"),
        (["--at", "rec_000001", "--in-place", "--model", "other"], "--model"),
    ],
)
def test_what_cannot_be_forked_is_said_and_nothing_is_made(
    arguments: list[str], words: str, desk: Desk, parent: str
) -> None:
    before = tree(desk.home / "runs"), desk.live_calls()
    document = desk.json("fork", parent, *arguments, code=2)
    assert words in document["error"]["message"]
    assert (tree(desk.home / "runs"), desk.live_calls()) == before
