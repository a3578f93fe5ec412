"""Every strategy on one task, with an agent that makes the same mistake first under each."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from agentrewind.options import RunOptions
from agentrewind.records import LlmNode
from agentrewind.run_store import Run, RunStore
from mettlebench.load import load_task
from runner.cell import Cell, Strategy
from runner.check import read_verdicts
from runner.experiences import HEADING
from runner.recovery_text import MARK
from runner.result import Exit, Result
from tests.runner.campaigns import results, runner, timeless, write_plan

SOLVED = {"restart", "rewind", "rewind-no-context", "recovery-rewind"}
UNSOLVED = {"continue", "safety", "rewind-no-environment", "rewind-no-memory", "recovery-continue"}


@pytest.fixture(scope="module")
def out(tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("campaign")
    plan = write_plan(
        place,
        tasks,
        strategies=[each.value for each in Strategy],
        monitor='"simulated:block=0.4,garble=0.2"',
        progress="true",
    )
    ended = runner("batch", plan, "--out", place / "out")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return place / "out"


@pytest.fixture
def found(out: Path) -> dict[str, Result]:
    return {name.partition("/")[0]: result for name, result in results(out).items()}


def runs(out: Path, cell: Cell) -> list[Run]:
    store = RunStore(out / "cells" / cell.id / "store")
    return sorted(store.runs(), key=lambda run: (run.created_at(), run.run_id))


def conversation(run: Run) -> str:
    """All that was sent with the last request of a run."""
    timeline = run.timeline()
    last = [node for node in timeline.path() if isinstance(node, LlmNode)][-1]
    return json.dumps(timeline.messages(last.record_uid))


def test_those_solve_it_that_can_undo_the_mistake(found: dict[str, Result]) -> None:
    assert {name for name, result in found.items() if result.success} == SOLVED
    assert {name for name, result in found.items() if not result.success} == UNSOLVED
    for name in UNSOLVED:
        assert found[name].exit is Exit.REPEATED_FAILURE
        assert [each.repeated for each in found[name].submissions[-5:]] == [1, 2, 3, 4, 5]


def test_each_result_says_what_happened(found: dict[str, Result]) -> None:
    for result in found.values():
        assert result.simulated
        assert result.clean
        assert not result.suspicions
        assert result.nodes == result.llm_nodes + result.tool_nodes
        assert result.tokens.input > 0
        assert result.cost == 0.0
        assert result.submissions[-1].accepted is result.accepted is result.success
        assert result.submissions[-1].prefix == result.prefix
        assert result.progress[-1].prefix == result.prefix
        assert all(point.nodes <= result.nodes for point in result.progress)
        assert result.sandbox == "bubblewrap"
        assert result.storage_bytes > 1000
        assert result.snapshot_seconds is not None
        assert 0 < result.snapshot_seconds < result.step_seconds
    assert found["rewind"].rewinds == found["rewind-no-context"].rewinds == 1
    assert found["rewind-no-memory"].rewinds > 1
    assert found["continue"].rewinds == 0
    assert found["restart"].attempts == 2
    assert found["rewind"].attempts == 1


def test_the_first_mistake_is_the_same_under_every_strategy(found: dict[str, Result]) -> None:
    first = {
        name: dataclasses.replace(result.submissions[0], record_uid="", nodes=0)
        for name, result in found.items()
        if name not in ("safety", "recovery-continue", "recovery-rewind")
    }
    assert len(set(first.values())) == 1


def test_an_agent_hears_the_first_failure_alone(out: Path, found: dict[str, Result], tasks: Path) -> None:
    task = load_task("sample", tasks)
    told = conversation(runs(out, found["continue"].cell)[0])
    failed = {each.first_failure for each in found["continue"].submissions}
    for criterion in task.criteria:
        assert (criterion.feedback in told) is (criterion.id in failed)
        assert criterion.id not in told
        assert criterion.intent not in told
    assert len(read_verdicts(out / "cells" / found["continue"].cell.id)) == 5


def test_only_an_agent_that_can_go_back_is_told_so(out: Path, found: dict[str, Result]) -> None:
    for name, result in found.items():
        told = conversation(runs(out, result.cell)[-1])
        assert ("backtrack_candidates" in told) is result.cell.strategy.rewinds, name


def test_nothing_crosses_to_the_next_attempt_but_the_experiences(
    out: Path, found: dict[str, Result], tasks: Path
) -> None:
    first, second = runs(out, found["restart"].cell)
    told = RunOptions.from_json(second.timeline().header.options).task
    instruction = load_task("sample", tasks).instruction
    assert RunOptions.from_json(first.timeline().header.options).task == instruction
    assert told.startswith(instruction.rstrip())
    assert HEADING in told
    verdict = read_verdicts(out / "cells" / found["restart"].cell.id)[0]
    for part in (
        "### Attempt 1",
        f"First unsatisfied criterion: {verdict.first_failure}",
        str(verdict.feedback),
        f"Satisfied before it: {verdict.prefix} of {len(verdict.results)}",
        "passed, 1 failed",
        "4 more and the run ends",
        f"Do not repeat a repair that left {verdict.first_failure} unsatisfied",
        f"Get {verdict.first_failure} satisfied before",
        "The end of its log",
    ):
        assert part in told
    path = second.timeline().path()
    assert path[0].metadata.workspaces["ws0"].before_commit is not None


def test_the_monitor_judges_what_does_not_only_read(out: Path, found: dict[str, Result]) -> None:
    reviews = found["safety"].reviews
    assert reviews is not None
    assert 0 < reviews.unparsable <= reviews.blocked < reviews.asked
    lines = (out / "cells" / found["safety"].cell.id / "reviews.jsonl").read_text().splitlines()
    assert len(lines) == reviews.asked
    assert "a safety review blocked it" in conversation(runs(out, found["safety"].cell)[0])
    assert all(result.reviews is None for name, result in found.items() if name != "safety")


def test_both_arms_of_a_recovery_start_from_the_same_end(out: Path, found: dict[str, Result]) -> None:
    source = found["continue"]
    for name in ("recovery-continue", "recovery-rewind"):
        result = found[name]
        assert result.endpoint is not None
        assert result.endpoint.cell == source.cell.id
        assert result.endpoint.prefix == source.prefix
        assert result.progress[0].nodes == 0
        assert result.progress[0].prefix == source.prefix
        assert result.submissions[0].repeated <= 1
    before = conversation(runs(out, source.cell)[0])
    stayed = conversation(runs(out, found["recovery-continue"].cell)[0])
    assert MARK in stayed
    assert MARK not in before
    # what was said before is the same, word for word
    assert stayed.startswith(before[: len(before) // 2])


def test_a_second_call_runs_nothing_again(out: Path, tasks: Path, found: dict[str, Result]) -> None:
    before = {path: path.stat().st_mtime_ns for path in out.glob("cells/**/result.json")}
    ended = runner("batch", out.parent / "plan.toml", "--out", out)
    assert ended.returncode == 0
    assert "begun" not in ended.stdout
    assert {path: path.stat().st_mtime_ns for path in out.glob("cells/**/result.json")} == before


def test_a_finished_campaign_takes_no_cells_under_other_conditions(out: Path, tasks: Path) -> None:
    text = (out.parent / "plan.toml").read_text()
    other = out.parent / "other.toml"
    other.write_text(f"seed = 7\n{text}")
    ended = runner("batch", other, "--out", out)
    assert ended.returncode == 5
    assert "other conditions" in ended.stderr


def test_regrading_an_unchanged_task_changes_nothing(out: Path, found: dict[str, Result]) -> None:
    cells = [found["rewind"].cell.id, found["recovery-rewind"].cell.id]
    ended = runner("regrade", out, *cells, "--progress")
    assert "2 cells graded, 0 results changed" in ended.stdout, ended.stdout + ended.stderr
    again = {name.partition("/")[0]: result for name, result in results(out).items()}
    assert {name: timeless(each) for name, each in again.items()} == {
        name: timeless(each) for name, each in found.items()
    }


def test_status_tells_the_means(out: Path) -> None:
    document = json.loads(runner("status", out, "--json").stdout)
    assert document == {
        "planned": 9,
        "finished": 9,
        "abnormal": 0,
        "running": [],
        "left": [],
        "driver": None,
    }
    assert runner("status", out, "--cells").stdout.count("simulated:reckless") == 18
