"""Stories of what else lies in a workspace: others' changes, repositories, secrets."""

from __future__ import annotations

import json
import time

import pytest

from agentrewind.records import OutsideChange, RewindDone
from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest
from tests.e2e.laws import check_laws
from tests.e2e.stage import Stage
from tests.e2e.steps import back, commit, look, results, story, submit, work
from tests.workspace.disk import git

pytestmark = pytest.mark.slow


def test_a_change_from_outside_is_recorded_and_undone_by_the_agents_rewind(stage: Stage) -> None:
    def meanwhile(_request: ScriptedRequest) -> ScriptedAnswer:
        time.sleep(0.5)  # the snapshot that belongs to this answer is taken by then
        stage.write("notes.md", "by a person\n")
        stage.write("mine.txt", "changed by a person\n")
        return work("b", "echo b > b")

    stage.policy = story(
        work("a", "echo a > mine.txt"),
        meanwhile,
        look(),
        back("b", "NOTE_A"),
        NOTE_A=[work("c", "echo c > c"), submit()],
    )
    ended = stage.start()
    assert ended.code == 0
    (change,) = [event for event in stage.timeline.events(0) if isinstance(event, OutsideChange)]
    assert change.after == "rec_000003"
    assert sorted(each.path for each in change.workspaces["ws0"].diff_summary) == [b"mine.txt", b"notes.md"]
    assert sorted(path.name for path in stage.root.iterdir()) == ["c", "mine.txt"]
    assert stage.read("mine.txt") == "a\n"
    assert "2 change(s) that no call of yours made" in stage.arrivals[4].request.messages[-1]["content"]
    check_laws(stage)


def test_repositories_inside_are_as_at_the_checkpoint(stage: Stage) -> None:
    inner = stage.root / "vendor" / "lib"
    inner.mkdir(parents=True)
    for repository in (stage.root, inner):
        git(repository, "init", "-q")
        (repository / "first").write_text("first\n")
        git(repository, "add", "first")
        git(repository, "commit", "-qm", "first")
    (stage.root / "first").write_text("staged\n")
    git(stage.root, "add", "first")
    (stage.root / "first").write_text("unstaged\n")
    name = "git -c user.name=a -c user.email=a@example.invalid"
    stage.policy = story(
        work("a", f"{name} commit -qm agent && echo loose > loose"),
        work(
            "b",
            f"{name} commit -q --amend --allow-empty -m rewritten && git reset -q --hard HEAD && "
            f"git branch gone && cd vendor/lib && {name} commit -q --allow-empty -m more && "
            "git tag t && rm -rf .git/refs/heads .git/HEAD && mkdir -p ../new && cd ../new && git init -q",
        ),
        look(),
        back("b", "NOTE_A"),
        NOTE_A=[work("c", "git log --format=%s; git -C vendor/lib log --format=%s; git status -s"), submit()],
    )
    ended = stage.start()
    assert ended.code == 0
    seen = results(stage.arrivals[-1].request)[-1]
    assert "agent\\nfirst\\nfirst\\n M first\\n?? loose\\n?? vendor/" in seen
    assert git(stage.root, "fsck", "--no-dangling") == ""
    assert git(inner, "fsck", "--no-dangling") == ""
    assert not (stage.root / "vendor" / "new").exists()
    (done,) = [event for event in stage.timeline.events(1) if isinstance(event, RewindDone)]
    lost = [str(each) for each in done.report["lost_commits"]]  # type: ignore[union-attr]
    assert [each.split(":")[0] for each in lost] == [".", "vendor/lib"]
    assert (
        "2 commit(s) in the workspace's repositories were undone"
        in stage.arrivals[4].request.messages[-1]["content"]
    )
    check_laws(stage)


def test_a_secret_that_the_agent_changed_is_left_and_named(stage: Stage) -> None:
    stage.write(".env", "TOKEN=old\n")
    stage.policy = story(
        work("a", "echo a > a"),
        work(
            "b",
            "rm a; echo TOKEN=new > .env; echo made > .env.local; mkdir __pycache__; echo > __pycache__/x",
        ),
        look(),
        back("b", "NOTE_A"),
        NOTE_A=[work("c", "rm -f .env.local; cat .env"), submit()],
    )
    stage.skip = lambda path: path.split(b"/")[-1] in (b".env", b".env.local") or path == b""
    ended = stage.start()
    assert ended.code == 0
    assert stage.read(".env") == "TOKEN=new\n"
    memory = stage.arrivals[4].request.messages[-1]["content"]
    assert ".env" in memory
    assert ".env.local" in memory
    assert "__pycache__" not in memory
    (done,) = [event for event in stage.timeline.events(1) if isinstance(event, RewindDone)]
    assert ".env" in str(done.report["kept"])
    assert ".env" in str(results(stage.arrivals[3].request)[-1])
    check_laws(stage)


def test_nodes_whose_snapshot_ran_out_of_time_are_no_checkpoints(stage: Stage) -> None:
    """With no time at all, no node is offered, a rewind is refused with the reason, and the run goes on."""
    stage.write("before.txt", "from before\n")
    stage.policy = story(
        work("a", "echo a > a"),
        look(),
        ScriptedAnswer("say-go", [commit("rec_000001", "never")]),
        work("b", "echo b > b"),
        submit(),
    )
    ended = stage.start(policy={"snapshot_seconds": 0})
    assert ended.code == 0
    assert ended.result["rewinds"] == 0
    assert sorted(path.name for path in stage.root.iterdir()) == ["a", "b", "before.txt"]
    late = "before.txt (not looked at before the deadline of the snapshot)"
    for node in stage.timeline.path():
        assert late in node.metadata.workspaces["ws0"].partial
        assert not stage.timeline.is_checkpoint(node.record_uid)
    _, offered, refused, _ = map(json.loads, results(stage.arrivals[-1].request))
    assert offered["candidates"] == []
    assert "no earlier point with a whole snapshot" in offered["note"]
    assert "no whole snapshot" in refused["error"]
