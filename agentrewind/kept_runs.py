"""Keeps a run as a folder that can stand in a repository; replays it from there, or brings it into a store.

Such a folder holds the run's segments and blobs as they are, and a small snapshot store with the one state
in which the run began: all that a replay needs, and nothing of the machine on which it was made.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from agentrewind.archive import SNAPSHOTS, take_in
from agentrewind.clock import Clock
from agentrewind.codec import encode
from agentrewind.durable import make_directory
from agentrewind.errors import DamagedError, ProtectedError, UnknownRunError, UsageError
from agentrewind.manual_history import state_at
from agentrewind.options import RunOptions
from agentrewind.records import JsonObject
from agentrewind.replay_outcome import Replay
from agentrewind.replayer import OnDivergence
from agentrewind.replaying import replay_run
from agentrewind.run_files import declared_root, open_snapshots
from agentrewind.run_store import Run
from agentrewind.timeline import Timeline
from agentrewind.workspace.copying import copy_snapshot
from agentrewind.workspace.roots import workspace_directory
from agentrewind.workspace.snapshots import SnapshotStore

_REF = "refs/agentrewind/kept"
_ATTRIBUTES = "* -text\n"
"""A checkout must not change a byte: every line of a log has a checksum."""


def keep_run(run: Run, into: Path, *, home: Path) -> Path:
    """Write the run's current path into a folder that is absent or empty; returns it.

    Raises:
        ProtectedError: the folder holds something, or lies in the store.
        DamagedError: the path has a gap, no node, or its first snapshot cannot be read.
    """
    if into.resolve().is_relative_to(home.resolve()):
        raise ProtectedError(f"{into} lies in the store; choose a folder of your repository")
    if into.is_dir() and any(into.iterdir()):
        raise ProtectedError(f"{into} is not empty; remove it first to keep another run there")
    if into.exists() and not into.is_dir():
        raise UsageError(f"{into} is not a directory")
    timeline = run.timeline()
    path = timeline.path()
    if gap := timeline.gap_on_path():
        raise DamagedError(f"the run cannot be replayed, its log is damaged: {gap}")
    if not path:
        raise DamagedError(f"run {run.run_id} holds no call that could be replayed")
    commit = state_at(timeline, path[0].record_uid, after=False)
    with open_snapshots(timeline, home) as source:
        into.mkdir(parents=True, exist_ok=True)
        with closing(SnapshotStore.open(into / SNAPSHOTS)) as target:
            copy_snapshot(source, commit, target, ref=_REF)
    _copy_log(run, into)
    (into / ".gitattributes").write_text(_ATTRIBUTES)
    return into


def replay_kept(
    folder: Path,
    *,
    environment: Mapping[str, str],
    command: Sequence[str] | None = None,
    on_divergence: OnDivergence = OnDivergence.STOP,
) -> Replay:
    """Replay a kept run against the agent's code as it is now; the folder is not touched.

    `command` starts the agent where it was recorded as a script; it replaces the recorded one, whose paths
    are those of another checkout or machine.

    Raises:
        UnknownRunError: there is no kept run in this folder.
        and what `replay_run` raises.
    """
    kept = _open(folder)
    timeline = kept.timeline()
    with tempfile.TemporaryDirectory(prefix="agentrewind-kept-") as base:
        home = Path(base).resolve()
        copy = Run(home / "runs" / timeline.header.run_id)
        copy.directory.mkdir(parents=True)
        _copy_log(kept, copy.directory)
        if command is not None:
            _set_command(copy, timeline, tuple(command))
        store = workspace_directory(home, declared_root(timeline)) / SNAPSHOTS
        shutil.copytree(kept.directory / SNAPSHOTS, store)
        return replay_run(copy, home=home, environment=environment, on_divergence=on_divergence)


def import_kept(folder: Path, *, home: Path, clock: Clock) -> JsonObject:
    """Bring a kept run into the store, with the one state that was kept; returns what came.

    Raises:
        UnknownRunError: there is no kept run in this folder.
        DamagedError: its log or its snapshot is damaged; nothing was imported.
        ProtectedError: a run of this id is there.
    """
    kept = _open(folder)
    make_directory(home)
    with tempfile.TemporaryDirectory(prefix=".import-", dir=home) as place:
        base = Path(place)
        (base / "run").mkdir(mode=0o700)
        _copy_log(kept, base / "run")
        shutil.copytree(kept.directory / SNAPSHOTS, base / SNAPSHOTS)
        with closing(SnapshotStore.open(base / SNAPSHOTS)) as store:
            commit = store.ref(_REF)
        contents: JsonObject = {"run_id": kept.timeline().header.run_id, "snapshots": [commit]}
        return take_in(base, contents, source=folder, home=home, clock=clock)


def is_kept(folder: Path) -> bool:
    """Whether `keep_run` has made this folder."""
    return bool(Run(folder).segment_numbers()) and (folder / SNAPSHOTS).is_dir()


def _open(folder: Path) -> Run:
    if not is_kept(folder):
        raise UnknownRunError(str(folder))
    return Run(folder.resolve())


def _copy_log(run: Run, into: Path) -> None:
    for number in run.segment_numbers():
        shutil.copyfile(run.segment_path(number), into / run.segment_path(number).name)
    if (run.directory / "blobs").is_dir():
        shutil.copytree(run.directory / "blobs", into / "blobs", copy_function=shutil.copyfile)


def _set_command(run: Run, timeline: Timeline, command: tuple[str, ...]) -> None:
    """Let every header of the copy name this command."""
    for number in run.segment_numbers():
        header = timeline.header_of(number)
        if header is None:
            raise DamagedError(f"the header of segment {number} of run {run.run_id} is damaged")
        options = RunOptions.from_json(header.options)
        if not options.command:
            raise UsageError(f"run {header.run_id} is one of harness {header.harness}; it takes no command")
        changed = replace(header, options=replace(options, command=command).to_json())
        path = run.segment_path(number)
        _, _, rest = path.read_bytes().partition(b"\n")
        path.write_bytes(encode(changed, put_blob=run.blobs.put) + rest)
