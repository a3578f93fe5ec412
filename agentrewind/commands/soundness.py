"""Finds what of a run cannot be read any more, and what it still serves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from agentrewind.archive import absent_states
from agentrewind.commands.output import counted
from agentrewind.errors import DamagedError, MissingSnapshotError
from agentrewind.log_end import missing_end
from agentrewind.manual_history import left_by
from agentrewind.opening import AUDIT
from agentrewind.provenance import is_recorded
from agentrewind.records import (
    MAIN_WORKSPACE,
    CommitId,
    JsonObject,
    LlmNode,
    Note,
    OutsideChange,
    Record,
    Restored,
    SafetySnapshot,
    SnapshotTaken,
    ToolNode,
)
from agentrewind.run_store import Run
from agentrewind.timeline import Timeline
from agentrewind.workspace.objects import (
    BLOB,
    COMMIT,
    KIND_NAMES,
    MODE_DIRECTORY,
    TREE,
    decode_tree,
    object_id,
)
from agentrewind.workspace.roots import workspace_directory
from agentrewind.workspace.snapshots import SnapshotStore
from agentrewind.workspace.wholeness import Examiner


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenSnapshot:
    """A snapshot that cannot be read whole, and what in the log names it."""

    commit: CommitId
    reason: str
    named_by: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """How sound a run is.

    Attributes:
        log: every damage of the log, in words; those that lost nothing are in `harmless`, how often an
            audit found what the watcher had missed, and how many states an import did not bring.
        nodes: nodes that can be listed.
        restorable: nodes whose files can be brought back.
        replayable: the current path has no gap.
    """

    run_id: str
    log: tuple[str, ...] = ()
    harmless: tuple[str, ...] = ()
    snapshots: tuple[BrokenSnapshot, ...] = ()
    nodes: int = 0
    restorable: int = 0
    replayable: bool = False

    @property
    def sound(self) -> bool:
        """Nothing that was acknowledged is lost."""
        return not self.log and not self.snapshots

    def to_json(self) -> JsonObject:
        """As `verify --json` prints it."""
        return {
            "run_id": self.run_id,
            "sound": self.sound,
            "log": list(self.log),
            "harmless": list(self.harmless),
            "snapshots": [
                {"commit": each.commit, "reason": each.reason, "named_by": list(each.named_by)}
                for each in self.snapshots
            ],
            "nodes": self.nodes,
            "restorable": self.restorable,
            "replayable": self.replayable,
        }


class Examination:
    """Examines runs; what several of them share is read once."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._good: dict[Path, set[bytes]] = {}

    def run(self, run: Run) -> Finding:
        """All that is wrong with one run; never raises for damage."""
        try:
            timeline = run.timeline()
            if not is_recorded(timeline.header):
                return _of_trajectory(timeline)
            root = Path(timeline.header.workspaces[MAIN_WORKSPACE].root)
        except DamagedError as error:
            return Finding(run_id=run.run_id, log=(str(error),))
        except KeyError:
            return Finding(run_id=run.run_id, log=("the header names no workspace",))
        names = _names(timeline)
        broken = tuple(self._broken(root, names))
        unreadable = {each.commit for each in broken}
        absent = absent_states(timeline)
        return Finding(
            run_id=run.run_id,
            log=(
                *(str(each) for each in timeline.damages if each.lost),
                *self._missing_end(root, timeline),
                *_rewind_files(run),
            ),
            harmless=(
                *(str(each) for each in timeline.damages if not each.lost),
                *_missed(timeline),
                *_left_behind(len(unreadable & absent)),
            ),
            snapshots=tuple(each for each in broken if each.commit not in absent),
            nodes=len(timeline.nodes),
            restorable=sum(1 for node in timeline.nodes.values() if _before(node) not in {None, *unreadable}),
            replayable=timeline.gap_on_path() is None,
        )

    def _missing_end(self, root: Path, timeline: Timeline) -> Iterator[str]:
        directory = workspace_directory(self._home, root) / "snapshots.git"
        if directory.is_dir():
            with closing(SnapshotStore.open(directory)) as store:
                if (missing := missing_end(timeline, store)) is not None:
                    yield missing

    def _broken(self, root: Path, names: dict[CommitId, list[str]]) -> Iterator[BrokenSnapshot]:
        directory = workspace_directory(self._home, root) / "snapshots.git"
        if not directory.is_dir():
            for commit, users in names.items():
                yield BrokenSnapshot(commit=commit, reason=f"there is no {directory}", named_by=tuple(users))
            return
        with closing(SnapshotStore.open(directory)) as store:
            examiner = Examiner(store)
            for commit, users in names.items():
                reason = _fault(store, commit, self._good.setdefault(directory, set()))
                reason = reason or _unfit(examiner, commit)
                if reason is not None:
                    yield BrokenSnapshot(commit=commit, reason=reason, named_by=tuple(users))


def _of_trajectory(timeline: Timeline) -> Finding:
    """Of a run that was not recorded there is a log alone."""
    return Finding(
        run_id=timeline.header.run_id,
        log=tuple(str(each) for each in timeline.damages if each.lost),
        harmless=(
            *(str(each) for each in timeline.damages if not each.lost),
            "the run was made of a trajectory: it never had files, and cannot be replayed",
        ),
        nodes=len(timeline.nodes),
    )


def _unfit(examiner: Examiner, commit: CommitId) -> str | None:
    """What keeps a snapshot of sound objects from being restored: what they say does not fit together."""
    try:
        examiner.examine(commit)
    except MissingSnapshotError as error:
        return error.reason
    except DamagedError as error:
        return str(error)
    return None


def _fault(store: SnapshotStore, commit: CommitId, good: set[bytes]) -> str | None:
    """What is wrong with a snapshot: every object that it reaches is read and compared with its name."""
    seen: set[bytes] = set()
    try:
        pending = [(bytes.fromhex(commit), COMMIT)]
        while pending:
            oid, wanted = pending.pop()
            if oid in good or oid in seen:
                continue
            seen.add(oid)
            kind, data = store.read(oid)
            if object_id(kind, data) != oid:
                return f"object {oid.hex()} is altered"
            if kind != wanted:
                return f"object {oid.hex()} is no {KIND_NAMES[wanted].decode()}"
            pending += _reached(kind, data)
    except MissingSnapshotError as error:
        return f"object {error.commit}: {error.reason}"
    except ValueError as error:
        return f"it is not what it should be: {error}"
    good |= seen
    return None


def _reached(kind: int, data: bytes) -> list[tuple[bytes, int]]:
    """What an object names, and the kind that this has to be of."""
    if kind == TREE:
        return [(item.oid, TREE if item.mode == MODE_DIRECTORY else BLOB) for item in decode_tree(data)]
    if kind == COMMIT:
        # the commits before it are examined where the log names them
        return [(bytes.fromhex(data.partition(b"\n")[0].removeprefix(b"tree ").decode("ascii")), TREE)]
    return []


def _names(timeline: Timeline) -> dict[CommitId, list[str]]:
    found: dict[CommitId, list[str]] = {}
    for number in timeline.segments:
        for record in timeline.records(number):
            for name, commit in _commits(record):
                users = found.setdefault(commit, [])
                if name not in users:
                    users.append(name)
    return found


def _commits(record: Record) -> Iterable[tuple[str, CommitId]]:
    match record:
        case LlmNode() | ToolNode():
            name, spans = str(record.record_uid), record.metadata.workspaces
        case SnapshotTaken():
            name, spans = str(record.record_uid), record.workspaces
        case OutsideChange():
            name, spans = "an outside change", record.workspaces
        case SafetySnapshot():
            name, spans = "a safety snapshot", record.workspaces
        case Restored():
            return [("a restore", record.commit), ("a restore", left_by(record))]
        case _:
            return []
    span = spans.get(MAIN_WORKSPACE)
    both = () if span is None else (span.before_commit, span.after_commit)
    return [(name, commit) for commit in both if commit is not None]


def _rewind_files(run: Run) -> Iterator[str]:
    for path in sorted(run.directory.glob("rewind-*.json")):
        number = path.stem.removeprefix("rewind-")
        try:
            run.read_rewind(int(number))
        except (DamagedError, ValueError) as error:
            yield str(error)


def _before(node: LlmNode | ToolNode) -> CommitId | None:
    span = node.metadata.workspaces.get(MAIN_WORKSPACE)
    return span.before_commit if span else None


def _left_behind(count: int) -> Iterator[str]:
    if count:
        yield f"{counted(count, 'state')} of the files did not come along when the run was imported"


def _missed(timeline: Timeline) -> Iterator[str]:
    """What audits found that the watcher had missed, over all processes of the run."""
    notes = [
        event
        for segment in timeline.segments
        for event in timeline.events(segment)
        if isinstance(event, Note) and event.topic == AUDIT
    ]
    found = sum(value for note in notes if isinstance(value := note.data.get("disagreements"), int))
    if found:
        yield f"{found} change(s) were missed by the watcher and found by an audit"
