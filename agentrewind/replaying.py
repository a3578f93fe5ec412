"""Replays a run in a scratch copy that the harness sees at the recorded path, with nothing live in reach.

The child process gets a mount namespace of its own, in which the scratch copy covers the workspace, and a
network namespace without any network where the system allows it. The run that it reads is a copy too.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from agentrewind.errors import DamagedError, DivergenceError, HarnessError, ProtectedError, UsageError
from agentrewind.handover import CLAIM, REPLAY_RESULT
from agentrewind.launch import Launch, compose
from agentrewind.manual_history import state_at
from agentrewind.opening import Place
from agentrewind.options import RunOptions
from agentrewind.processes import RUN_VARIABLE
from agentrewind.records import MAIN_WORKSPACE, JsonObject, LlmNode, RecordUid, ToolNode
from agentrewind.replayer import OnDivergence
from agentrewind.replaying_enclosure import EXIT_NO_ENCLOSURE
from agentrewind.run_store import Run
from agentrewind.timeline import Timeline
from agentrewind.workspace.restore import restore_into
from agentrewind.workspace.roots import workspace_directory
from agentrewind.workspace.snapshots import SnapshotStore

_SECRET_ENDINGS = ("_API_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
_ENDED = ("accepted", "rejected")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What came of a replay. `served` counts nodes; `reached` names the node before which it stopped."""

    served: int
    divergence: DivergenceError | None
    state: str | None
    remaining: int
    warnings: tuple[str, ...]
    reached: RecordUid | None = None

    def to_json(self) -> JsonObject:
        """As `replay --json` prints it."""
        found = self.divergence
        return {
            "served": self.served,
            "live": 0,
            "divergence": None
            if found is None
            else {"record_uid": found.record_uid, "difference": found.difference},
            "state": self.state,
            "remaining": self.remaining,
            "until": self.reached,
            "warnings": list(self.warnings),
        }


def replay_run(
    run: Run,
    *,
    home: Path,
    environment: Mapping[str, str],
    until: str | None = None,
    on_divergence: OnDivergence = OnDivergence.STOP,
) -> Replay:
    """Run the current path again, every call answered from the log; the workspace is not touched.

    The environment is the child's; credentials in it are replaced by useless values. With `until` the
    replay stops before that node, which must lie on the current path.

    Raises:
        DamagedError: the log has a gap on the path, or the first snapshot cannot be read.
        ProtectedError: the scratch copy cannot be put at the recorded path here.
        HarnessError: the harness did not get as far as the log.
    """
    timeline = run.timeline()
    stop = None if until is None else _on_path(timeline, until)
    if gap := timeline.gap_on_path(until=stop):
        raise DamagedError(f"the log is damaged on the path that is to be replayed: {gap}")
    path = timeline.path(None if stop is None else timeline.segment_of(stop))
    nodes = [node for node in path if stop is None or node.record_uid < stop]
    if not nodes:
        raise UsageError("there is nothing to replay: the run holds no call before that point")
    root = _root(timeline)
    with tempfile.TemporaryDirectory(prefix="agentrewind-replay-") as folder:
        scratch = Path(folder).resolve()
        _write_scratch(timeline, nodes[0].record_uid, home=home, root=root, into=scratch / "workspace")
        copy = _copy_run(run, timeline, stop, into=scratch / "home" / "runs" / run.run_id)
        report = _run_child(scratch, copy, root=root, environment=environment, on_divergence=on_divergence)
    return _read(report, timeline, nodes=nodes, stop=stop)


def _on_path(timeline: Timeline, until: str) -> RecordUid:
    node = timeline.node(until)
    if not timeline.on_path(node.record_uid):
        raise UsageError(f"{until} lies on an abandoned branch; only the current path can be replayed")
    return node.record_uid


def _root(timeline: Timeline) -> Path:
    declaration = timeline.header.workspaces.get(MAIN_WORKSPACE)
    if declaration is None:
        raise DamagedError(f"the header of run {timeline.header.run_id} names no workspace")
    root = Path(declaration.root)
    if not root.is_dir():
        raise ProtectedError(
            f"the run saw its workspace at {root}, and there is no such folder here over which a copy could "
            "be laid; make an empty folder there to replay the run"
        )
    return root


def _write_scratch(timeline: Timeline, first: RecordUid, *, home: Path, root: Path, into: Path) -> None:
    commit = state_at(timeline, first, after=False)
    store = workspace_directory(home, root) / "snapshots.git"
    if not store.is_dir():
        raise DamagedError(f"the snapshots of workspace {root} are gone: there is no {store}")
    with closing(SnapshotStore.open(store)) as snapshots:
        restore_into(snapshots, commit, into)


def _copy_run(run: Run, timeline: Timeline, stop: RecordUid | None, *, into: Path) -> Path:
    """The run without what comes after `stop`: the child cannot serve what it does not hold."""
    into.mkdir(parents=True)
    if (run.directory / "blobs").is_dir():
        shutil.copytree(run.directory / "blobs", into / "blobs")
    last = timeline.head if stop is None else timeline.segment_of(stop)
    for number in run.segment_numbers():
        if number <= last:
            data = run.segment_path(number).read_bytes()
            cut = _offset(run, number, stop) if stop is not None and number == last else len(data)
            (into / run.segment_path(number).name).write_bytes(data[:cut])
    return into


def _offset(run: Run, segment: int, uid: RecordUid) -> int:
    """Where in its segment a node is first spoken of."""
    read = next(each for each in run.segments_read() if each.segment == segment)
    for offset, record in read.records:
        if getattr(record, "record_uid", None) == uid:
            return offset
    raise DamagedError(f"segment {segment} does not hold {uid}")


def _run_child(
    scratch: Path, copy: Path, *, root: Path, environment: Mapping[str, str], on_divergence: OnDivergence
) -> JsonObject:
    result, log = scratch / "result.json", scratch / "agent.log"
    launch = _launch(scratch, copy, root=root, environment=environment, on_divergence=on_divergence)
    launch.environment[REPLAY_RESULT] = str(result)
    enclosure = [sys.executable, "-P", "-m", "agentrewind.replaying_enclosure"]
    if RunOptions.from_json(Run(copy).timeline().header.options).command:
        # tools that the script calls by itself run again, and must reach nothing but the copy
        enclosure.append("--seal")
        (scratch / "tmp").mkdir()
        launch.environment["TMPDIR"] = str(scratch / "tmp")
    with log.open("wb") as output:
        finished = subprocess.run(
            [*enclosure, str(scratch / "workspace"), str(root), *launch.command],
            env=launch.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    words = log.read_text(encoding="utf-8", errors="replace").strip()
    if finished.returncode == EXIT_NO_ENCLOSURE:
        raise ProtectedError(
            f"a copy cannot be laid over {root} here ({words}), and the real workspace is never used for a "
            "replay; it needs root or user namespaces"
        )
    try:
        report: JsonObject = json.loads(result.read_bytes())
    except (OSError, ValueError) as error:
        raise HarnessError(
            f"the replay ended with code {finished.returncode} and left no result: {words[-800:]}"
        ) from error
    return report


def _launch(
    scratch: Path, copy: Path, *, root: Path, environment: Mapping[str, str], on_divergence: OnDivergence
) -> Launch:
    """The start of an agent process on the copy of the run, with credentials that are good for nothing."""
    harmless = {
        name: "not-needed-in-a-replay" if name.endswith(_SECRET_ENDINGS) else value
        for name, value in environment.items()
    }
    run = Run(copy)
    launch = compose(
        Place(run=run, root=root, store=scratch / "no-store"),
        segment=max(run.segment_numbers()),
        script=RunOptions.from_json(run.timeline().header.options).command,
        environment=harmless,
        on_divergence=on_divergence,
    )
    # a supervisor that ends the processes of this run must not take the replay for one of them
    del launch.environment[RUN_VARIABLE]
    claim = launch.environment.pop(CLAIM, None)
    if claim is None:
        return launch
    # the enclosure is a Python process as well, and it is the script that has to join
    return replace(launch, command=["env", f"{CLAIM}={claim}", *launch.command])


def _read(
    report: JsonObject, timeline: Timeline, *, nodes: list[LlmNode | ToolNode], stop: RecordUid | None
) -> Replay:
    served, remaining = _count(report, "served"), _count(report, "remaining")
    divergence = _divergence(report)
    unfinished = stop is not None or timeline.state() not in _ENDED
    if divergence is not None and divergence.record_uid is None and remaining == 0 and unfinished:
        # what the harness asked for next is what the log, as far as it goes, does not hold
        divergence = None
    elif divergence is None and remaining:
        divergence = _stopped_short(nodes, remaining)
    error = report.get("error")
    if isinstance(error, str) and divergence is None and not (remaining == 0 and unfinished):
        raise HarnessError(f"the harness failed in the replay: {error}")
    warnings, state = report.get("warnings"), report.get("state")
    return Replay(
        served=served,
        divergence=divergence,
        state=state if isinstance(state, str) else None,
        remaining=remaining,
        warnings=tuple(str(each) for each in warnings) if isinstance(warnings, list) else (),
        reached=stop,
    )


def _divergence(report: JsonObject) -> DivergenceError | None:
    found = report.get("divergence")
    if not isinstance(found, dict):
        return None
    uid = found.get("record_uid")
    return DivergenceError(
        record_uid=uid if isinstance(uid, str) else None, difference=str(found.get("difference"))
    )


def _stopped_short(nodes: list[LlmNode | ToolNode], remaining: int) -> DivergenceError:
    answers = [node for node in nodes if isinstance(node, LlmNode)]
    return DivergenceError(
        record_uid=answers[-remaining].record_uid,
        difference=f"the harness ended, and {remaining} recorded call(s) were never asked for",
    )


def _count(report: JsonObject, name: str) -> int:
    value = report.get(name)
    return value if isinstance(value, int) else 0
