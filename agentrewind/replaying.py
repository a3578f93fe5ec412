"""Replays a run in a scratch copy that the harness sees at the recorded path, with nothing live in reach.

The child process gets a mount namespace of its own, in which the scratch copy covers the workspace, and a
network namespace without any network where the system allows it. The run that it reads is a copy too.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agentrewind.copy_enclosure import EXIT_NO_ENCLOSURE, enclosed
from agentrewind.errors import DamagedError, HarnessError, ProtectedError, UsageError
from agentrewind.handover import CLAIM, DEBUG_AT, REPLAY_RESULT
from agentrewind.launch import Launch, compose
from agentrewind.manual_history import state_at
from agentrewind.opening import Place
from agentrewind.options import RunOptions
from agentrewind.processes import RUN_VARIABLE
from agentrewind.records import JsonObject, LlmNode, RecordUid
from agentrewind.replay_outcome import Replay, read_report
from agentrewind.replayer import OnDivergence
from agentrewind.run_files import declared_root, open_snapshots
from agentrewind.run_store import Run
from agentrewind.timeline import Timeline
from agentrewind.workspace.restore import restore_into

_USELESS = "not-needed-in-a-replay"
_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "langchain": "OPENAI_API_KEY"}
_SECRET_ENDINGS = ("_API_KEY", "_TOKEN", "_SECRET", "_PASSWORD")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """Lends the person's own input and output to the child, which opens the debugger at `node`.

    With `plain_output` the child's output goes to standard error, so that ours stays free for a document.
    """

    node: str
    plain_output: bool = False

    def run(self, command: list[str], environment: Mapping[str, str]) -> int:
        """Wait for the child; the keyboard's interrupt is its business meanwhile."""
        output = sys.stderr if self.plain_output else None
        before = signal.signal(signal.SIGINT, lambda *_: None)
        try:
            return subprocess.run(command, env=environment, stdout=output, check=False).returncode
        finally:
            signal.signal(signal.SIGINT, before)


def replay_run(
    run: Run,
    *,
    home: Path,
    environment: Mapping[str, str],
    until: str | None = None,
    on_divergence: OnDivergence = OnDivergence.STOP,
    terminal: Terminal | None = None,
) -> Replay:
    """Run the current path again, every call answered from the log; the workspace is not touched.

    The environment is the child's; credentials in it are replaced by useless values. With `until` the
    replay stops before that node, which must lie on the current path; with `terminal` the debugger opens
    inside the harness at another one.

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
    if terminal is not None and terminal.node not in {node.record_uid for node in nodes}:
        timeline.node(terminal.node)
        raise UsageError(f"{terminal.node} is not replayed, so that no debugger could open there")
    root = declared_root(timeline)
    with tempfile.TemporaryDirectory(prefix="agentrewind-replay-") as folder:
        scratch = Path(folder).resolve()
        _write_scratch(timeline, nodes[0].record_uid, home=home, into=scratch / "workspace")
        copy = _copy_run(run, timeline, stop, into=scratch / "home" / "runs" / run.run_id)
        launch = _launch(scratch, copy, root=root, environment=environment, on_divergence=on_divergence)
        report = _run_child(scratch, launch, copy, root=root, terminal=terminal)
    return read_report(report, timeline, nodes=nodes, stop=stop, words=str(report.get("words", "")))


def _on_path(timeline: Timeline, until: str) -> RecordUid:
    node = timeline.node(until)
    if not timeline.on_path(node.record_uid):
        raise UsageError(f"{until} lies on an abandoned branch; only the current path can be replayed")
    return node.record_uid


def _write_scratch(timeline: Timeline, first: RecordUid, *, home: Path, into: Path) -> None:
    commit = state_at(timeline, first, after=False)
    with open_snapshots(timeline, home) as snapshots:
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
    scratch: Path, launch: Launch, copy: Path, *, root: Path, terminal: Terminal | None
) -> JsonObject:
    result, log = scratch / "result.json", scratch / "agent.log"
    launch.environment[REPLAY_RESULT] = str(result)
    # tools that a script calls by itself run again, and must reach nothing but the copy
    sealed = bool(RunOptions.from_json(Run(copy).timeline().header.options).command)
    if sealed:
        (scratch / "tmp").mkdir()
        launch.environment["TMPDIR"] = str(scratch / "tmp")
    command = enclosed(scratch / "workspace", root, launch.command, sealed=sealed)
    if terminal is None:
        with log.open("wb") as output:
            code = subprocess.run(
                command,
                env=launch.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            ).returncode
    else:
        launch.environment[DEBUG_AT] = terminal.node
        code = terminal.run(command, launch.environment)
    words = log.read_text(encoding="utf-8", errors="replace").strip() if log.exists() else "see above"
    if code == EXIT_NO_ENCLOSURE:
        raise ProtectedError(
            f"a copy cannot be laid over {root} here ({words}), and the real workspace is never used for a "
            "replay; it needs root or user namespaces"
        )
    try:
        report: JsonObject = json.loads(result.read_bytes())
    except (OSError, ValueError) as error:
        raise HarnessError(f"the replay ended with code {code} and left no result: {words[-800:]}") from error
    return {**report, "words": words.rpartition("\n")[2] if log.exists() else ""}


def _launch(
    scratch: Path, copy: Path, *, root: Path, environment: Mapping[str, str], on_divergence: OnDivergence
) -> Launch:
    """The start of an agent process on the copy of the run, with credentials that are good for nothing."""
    harmless = {
        name: _USELESS if name.endswith(_SECRET_ENDINGS) else value for name, value in environment.items()
    }
    run = Run(copy)
    timeline = run.timeline()
    for node in timeline.nodes.values():
        # its client may refuse to be made without one, although nothing is sent
        if isinstance(node, LlmNode) and (key := _KEYS.get(node.client.partition(".")[0])) is not None:
            harmless.setdefault(key, _USELESS)
    launch = compose(
        Place(run=run, root=root, store=scratch / "no-store"),
        segment=max(run.segment_numbers()),
        script=RunOptions.from_json(timeline.header.options).command,
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
