"""The verdict on a Harbor task: from the logs that its verifier left, or from its tests run here."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mettlebench.errors import EvaluatorError, HarborTaskError
from mettlebench.harbor.read import REWARD, ROOT, HarborTask
from mettlebench.sandbox import Sandbox, SandboxMode, require_sandbox, run
from mettlebench.tree import copy_tree, remove_tree
from mettlebench.verdict import CriterionResult, Verdict

REPORT = "ctrf.json"
CATEGORY = "test"

_TAIL = 3000
_LEFT_OUT = frozenset({"skipped", "pending"})
"""Tests that say nothing, by their own choice: pytest's exit code counts them neither."""


def grade_harbor(
    task: HarborTask, workspace: Path, *, mode: SandboxMode = SandboxMode.BUBBLEWRAP, previous: Verdict | None
) -> Verdict:
    """Run the task's `tests/test.sh` on a copy of the workspace, with no network.

    It sees the task's unpacked image, read-only, or else this machine's system. Raises HarborTaskError where
    it is not known where the workspace belongs, EvaluatorError where the tests end without a result.
    """
    if mode is not SandboxMode.BUBBLEWRAP:
        raise HarborTaskError(f"{task.id}: a Harbor task is graded at its own paths, which takes a sandbox")
    if task.workdir is None:
        raise HarborTaskError(
            f"{task.id}: neither [environment] workdir nor a WORKDIR of environment/Dockerfile says where "
            "the workspace belongs; add workdir to its task.toml"
        )
    require_sandbox(mode)
    place = Path(tempfile.mkdtemp(prefix="mettle-harbor-"))
    try:
        copy_tree(workspace, place / "workspace")
        (place / "logs").mkdir()
        sandbox = Sandbox(
            workspace=place / "workspace",
            inside=str(task.workdir),
            root=task.root,
            writable={place / "logs": "/logs/verifier"},
            read_only={task.folder / "tests": "/tests"},
        )
        ended = run(sandbox, ["bash", "/tests/test.sh"], seconds=task.seconds)
        said = (ended.stdout + ended.stderr).decode(errors="replace")[-_TAIL:]
        if ended.code is None:
            raise EvaluatorError(task.id, "does not come to an end in the time its task allows", said)
        return read_logs(task, place / "logs", previous=previous, said=said)
    finally:
        remove_tree(place)


def read_logs(task: HarborTask, logs: Path, *, previous: Verdict | None = None, said: str = "") -> Verdict:
    """The verdict that a verifier's logs hold: a report of its tests, the reward, or both.

    Raises EvaluatorError where there is neither, where one is malformed, or where they contradict each other.
    """
    reward = _reward(task, logs)
    statuses = _statuses(task, logs / REPORT)
    if statuses is None and reward is None:
        needs = "" if task.root else f" (its image, unpacked at {task.folder / ROOT}, may be what it lacks)"
        raise EvaluatorError(task.id, f"leaves no {REPORT}, reward.json or reward.txt{needs}", said)
    if statuses is None:
        assert reward is not None
        results: Sequence[CriterionResult] = [_result(REWARD, reward >= 1, f"the reward is {reward:g}")]
    else:
        results = _results(task, statuses)
        if not results:
            raise EvaluatorError(task.id, f"leaves a {REPORT} without a test that ran")
        every = all(each.passed for each in results)
        if reward is not None and every != (reward >= 1):
            passed = sum(each.passed for each in results)
            raise EvaluatorError(
                task.id,
                f"contradicts itself: {passed} of {len(results)} tests passed, and the reward is {reward:g}",
            )
    return _verdict(task, results, previous)


def _verdict(task: HarborTask, results: Sequence[CriterionResult], previous: Verdict | None) -> Verdict:
    first = next((each.id for each in results if not each.passed), None)
    held = {each.id for each in previous.results if each.passed} if previous else set()
    passed = sum(each.passed for each in results)
    return Verdict(
        task_id=task.id,
        results=tuple(results),
        first_failure=first,
        # the tests have no feedback of their own, and their names would give them away
        feedback=None if first is None else f"{passed} of {len(results)} tests pass.",
        regressions=tuple(each.id for each in results if not each.passed and each.id in held),
        ordered=False,
    )


def _results(task: HarborTask, statuses: Mapping[str, Sequence[str]]) -> list[CriterionResult]:
    names = [*(name for name in task.tests if name != REWARD)]
    # tests that are made while they run stand in no source
    names += [name for name in statuses if name not in names]
    found = []
    for name in names:
        seen = statuses.get(name, ())
        if seen and _LEFT_OUT.issuperset(seen):
            continue
        passed = bool(seen) and all(status == "passed" for status in seen)
        found.append(_result(name, passed, "" if passed else ", ".join(sorted(set(seen))) or "not run"))
    return found


def _result(name: str, passed: bool, detail: str) -> CriterionResult:  # noqa: FBT001
    return CriterionResult(id=name, category=CATEGORY, passed=passed, detail="" if passed else detail)


def _statuses(task: HarborTask, path: Path) -> dict[str, list[str]] | None:
    """The statuses of each test, more than one where it has parameters; None where there is no report."""
    document = _json(task, path)
    if document is None:
        return None
    try:
        tests = [(str(each["name"]), str(each["status"])) for each in document["results"]["tests"]]
    except (KeyError, TypeError) as error:
        raise EvaluatorError(task.id, f"leaves a {REPORT} that is no test report: {error!r}") from error
    found: dict[str, list[str]] = {}
    for name, status in tests:
        found.setdefault(_plain(name), []).append(status)
    return found


def _plain(name: str) -> str:
    """The test's name as in its source.

    >>> _plain("../tests/test_outputs.py::TestAll::test_one[a/b-2]")
    'test_outputs.py::TestAll::test_one'
    """
    file, separator, test = name.partition("[")[0].partition("::")
    return f"{file.rpartition('/')[2]}{separator}{test}"


def _reward(task: HarborTask, logs: Path) -> float | None:
    document = _json(task, logs / "reward.json")
    if document is not None:
        value = document.get("reward") if isinstance(document, dict) else document
    elif (logs / "reward.txt").is_file():
        value = (logs / "reward.txt").read_text(encoding="utf-8", errors="replace").strip()
    else:
        return None
    try:
        reward = float(value)  # type: ignore[arg-type]  # whatever it is, it is a number or refused
    except (TypeError, ValueError):
        reward = math.nan
    if not math.isfinite(reward):
        raise EvaluatorError(task.id, f"leaves a reward that is no number: {value!r}")
    return reward


def _json(task: HarborTask, path: Path) -> Any:
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise EvaluatorError(task.id, f"leaves a {path.name} that is no JSON: {error}") from error
