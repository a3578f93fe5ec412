"""One file that carries a run elsewhere: its log, its payloads, and the snapshots that its log names.

A tar file, compressed: first `export.json`, which gives the hash of every other member, then these. On import
nothing is believed: names, kinds and sizes of members are checked, every hash is, the log has to be readable,
and the run appears whole or not at all.
"""

from __future__ import annotations

import io
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import orjson

from agentrewind.clock import Clock
from agentrewind.codec import encode
from agentrewind.durable import make_directory
from agentrewind.errors import DamagedError, ProtectedError, UnsupportedFormatError, UsageError
from agentrewind.manual_history import left_by
from agentrewind.records import (
    MAIN_WORKSPACE,
    CommitId,
    Json,
    JsonObject,
    LlmNode,
    Note,
    OutsideChange,
    Restored,
    SafetySnapshot,
    ToolNode,
    WorkspaceSpan,
)
from agentrewind.redacted_records import redacted
from agentrewind.run_files import declared_root, open_snapshots
from agentrewind.run_store import RUN_ID, Run
from agentrewind.timeline import Timeline
from agentrewind.workspace.copying import copy_snapshots
from agentrewind.workspace.roots import workspace_directory
from agentrewind.workspace.snapshots import SETTINGS, SnapshotStore
from agentrewind.workspace.wholeness import Examiner

FORMAT = 1
CARRIED = "carried"
"""Topic of the note on what an import did not bring."""

SNAPSHOTS = "snapshots.git"
"""The folder beside that of the run in which its states come along."""

_KIND = "agentrewind-export"
_CONTENTS = "export.json"
_MEMBER = re.compile(
    r"run/(?:segment-\d{4,}\.jsonl|rewind-\d{4,}\.json|blobs/[0-9a-f]{64})"
    r"|snapshots\.git/(?:HEAD|config|info/attributes|agentrewind-store|agentrewind\.lock|generation"
    r"|objects/pack/pack-[0-9a-f]{40}\.(?:idx|pack)|refs/agentrewind/[A-Za-z0-9._-]+/carried-[0-9a-f]{16})"
)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_MOST_CONTENTS = 64 << 20
_REF = "refs/agentrewind/{run}/carried-{commit}"


def export_run(run: Run, file: Path, *, home: Path, redact: bool = False) -> JsonObject:
    """Write the archive, in place of an older file only once it is whole; returns what it holds.

    Its `digest` is that of the list of contents, and so of all that the archive holds: whoever is told it by
    another way than the archive itself can see that nothing was exchanged or cut off.

    With `redact` whatever looks like a credential is taken out of the log; snapshots, whose files cannot be
    judged so, are left out, and with them everything that restores or replays.

    Raises:
        DamagedError: the log has no header, or a snapshot that it names cannot be read.
    """
    timeline = run.timeline()
    root = declared_root(timeline)
    with tempfile.TemporaryDirectory(prefix="agentrewind-export-") as folder:
        base = Path(folder)
        if redact:
            _write_redacted(run, base / "run")
            commits: list[CommitId] = []
        else:
            _copy_log(run, base / "run")
            commits = list(dict.fromkeys(_commits(timeline)))
            _copy_states(timeline, commits, home, base / SNAPSHOTS)
        members = {path.relative_to(base).as_posix(): path for path in _files(base)}
        contents: JsonObject = {
            "kind": _KIND,
            "format": FORMAT,
            "run_id": run.run_id,
            "root": str(root),
            "redacted": redact,
            "snapshots": [*commits],
            "files": {name: [_digest(path), path.stat().st_size] for name, path in members.items()},
        }
        listed = orjson.dumps(contents)
        _write_tar(file, listed, members)
    return {
        "run_id": run.run_id,
        "file": str(file),
        "digest": sha256(listed).hexdigest(),
        "bytes": file.stat().st_size,
        "nodes": len(timeline.nodes),
        "snapshots": len(commits),
        "redacted": redact,
    }


def import_run(file: Path, *, home: Path, clock: Clock) -> JsonObject:
    """Bring the run of an archive into the store; returns what came.

    Raises:
        UsageError: the file is no archive of this kind.
        DamagedError: a hash, a member or the log is not what it should be; nothing was imported.
        ProtectedError: a run of this id is there, or a member would lie outside of the store.
    """
    make_directory(home)
    with tempfile.TemporaryDirectory(prefix=".import-", dir=home) as folder:
        base = Path(folder)
        contents, digest = _unpack(file, base)
        return {**take_in(base, contents, source=file, home=home, clock=clock), "digest": digest}


def take_in(base: Path, contents: JsonObject, *, source: Path, home: Path, clock: Clock) -> JsonObject:
    """Bring a run into the store: its log in `run` below `base`, and beside it the snapshots that are listed.

    What the log names beyond them is noted in it. Raises as `import_run`; `source` is named then.
    """
    run_id = str(contents["run_id"])
    if not RUN_ID.fullmatch(run_id):
        raise DamagedError(f"{source}: {run_id!r} cannot name a run")
    run = Run(base / "run")
    _check_rewinds(run, source)
    timeline = run.timeline()
    if timeline.damages:
        raise DamagedError(f"{source}: the log in it is damaged: {timeline.damages[0]}")
    if timeline.header.run_id != run_id:
        raise DamagedError(f"{source}: its log is that of run {timeline.header.run_id}")
    _make_ours(run, timeline)
    final = home / "runs" / run_id
    if final.exists():
        raise ProtectedError(f"a run {run_id} is in the store already; remove that one first")
    commits = _take_states(timeline, contents, base / SNAPSHOTS, home)
    absent = [commit for commit in dict.fromkeys(_commits(timeline)) if commit not in commits]
    if absent:
        text = f"{len(absent)} of the states that the log names did not come along"
        with run.writer(timeline.head) as writer:
            data: JsonObject = {"absent": [*absent]}
            writer.append(Note(topic=CARRIED, text=text, at=clock.now(), data=data), durable=True)
    make_directory(final.parent)
    (base / "run").rename(final)
    return {
        "run_id": run_id,
        "nodes": len(timeline.nodes),
        "snapshots": len(commits),
        "absent": len(absent),
        "redacted": bool(contents.get("redacted")),
    }


def absent_states(timeline: Timeline) -> frozenset[CommitId]:
    """The snapshots that never came along when the run was imported."""
    found: set[CommitId] = set()
    for segment in timeline.segments:
        for event in timeline.events(segment):
            if isinstance(event, Note) and event.topic == CARRIED:
                named = event.data.get("absent")
                found.update(CommitId(str(each)) for each in (named if isinstance(named, list) else ()))
    return frozenset(found)


def _commits(timeline: Timeline) -> Iterator[CommitId]:
    for node in timeline.nodes.values():
        if isinstance(node, LlmNode | ToolNode):
            yield from _of_spans(node.metadata.workspaces)
    for segment in timeline.segments:
        for event in timeline.events(segment):
            if isinstance(event, SafetySnapshot | OutsideChange):
                yield from _of_spans(event.workspaces)
            elif isinstance(event, Restored):
                yield left_by(event)


def _of_spans(spans: Mapping[str, WorkspaceSpan]) -> Iterator[CommitId]:
    span = spans.get(MAIN_WORKSPACE)
    for commit in (span.before_commit, span.after_commit) if span is not None else ():
        if commit is not None:
            yield commit


def _copy_log(run: Run, into: Path) -> None:
    into.mkdir()
    numbers = run.segment_numbers()
    for path in (*map(run.segment_path, numbers), *map(run.rewind_path, numbers)):
        if path.exists():
            shutil.copyfile(path, into / path.name)
    if (run.directory / "blobs").is_dir():
        shutil.copytree(run.directory / "blobs", into / "blobs", copy_function=shutil.copyfile)


def _write_redacted(run: Run, into: Path) -> None:
    into.mkdir()
    made = Run(into)
    for read in redacted(run.segments_read()):
        if read.header is None:
            raise DamagedError(f"the header of segment {read.segment} is damaged")
        lines = [encode(read.header, put_blob=made.blobs.put)]
        lines += [encode(record, put_blob=made.blobs.put) for _, record in read.records]
        made.segment_path(read.segment).write_bytes(b"".join(lines))


def _copy_states(timeline: Timeline, commits: list[CommitId], home: Path, into: Path) -> None:
    refs = {commit: _REF.format(run=timeline.header.run_id, commit=commit[:16]) for commit in commits}
    with open_snapshots(timeline, home) as source, closing(SnapshotStore.open(into)) as target:
        copy_snapshots(source, refs, target)


def _take_states(timeline: Timeline, contents: JsonObject, carried: Path, home: Path) -> list[CommitId]:
    commits = _listed_commits(contents)
    if not commits:
        return []
    refs = {commit: _REF.format(run=timeline.header.run_id, commit=commit[:16]) for commit in commits}
    store = workspace_directory(home, declared_root(timeline)) / SNAPSHOTS
    with closing(SnapshotStore.open(carried)) as source:
        examiner = Examiner(source)
        for commit in commits:
            examiner.examine(commit)  # before a store is made, or anything of it believed
        make_directory(store.parent)
        with closing(SnapshotStore.open(store)) as target:
            copy_snapshots(source, refs, target)
    return commits


def _listed_commits(contents: JsonObject) -> list[CommitId]:
    listed = contents.get("snapshots")
    if not isinstance(listed, list):
        raise DamagedError("the archive's list of contents names no snapshots")
    for each in listed:
        if not isinstance(each, str) or not _COMMIT.fullmatch(each):
            raise DamagedError(f"the archive names a snapshot {each!r}, which is no id of one")
    return [CommitId(str(each)) for each in listed]


def _check_rewinds(run: Run, file: Path) -> None:
    """The log cannot tell that its last segment is missing; the file of the rewind that opened it can."""
    segments = set(run.segment_numbers())
    rewinds = {int(path.stem.rpartition("-")[2]) for path in run.directory.glob("rewind-*.json")}
    missing = sorted((rewinds | set(range(max(segments, default=0)))) - segments)
    if missing:
        raise DamagedError(f"{file}: segment {missing[0]} of its log is missing")


def _make_ours(run: Run, timeline: Timeline) -> None:
    """An archive may not say where on this machine a copy of the files lies."""
    for number, header in timeline.headers.items():
        declaration = header.workspaces.get(MAIN_WORKSPACE)
        if declaration is None or not Path(declaration.root).is_absolute():
            raise DamagedError(f"segment {number} of the archive names no absolute path as its workspace")
        if declaration.copy is None:
            continue
        own = replace(header, workspaces={MAIN_WORKSPACE: replace(declaration, copy=None)})
        path = run.segment_path(number)
        _, _, rest = path.read_bytes().partition(b"\n")
        path.write_bytes(encode(own, put_blob=run.blobs.put) + rest)


def _write_tar(file: Path, listed: bytes, members: Mapping[str, Path]) -> None:
    temporary = file.with_name(f".{file.name}.part")
    try:
        with tarfile.open(temporary, "w:gz", format=tarfile.PAX_FORMAT, compresslevel=6) as archive:
            info = tarfile.TarInfo(_CONTENTS)
            info.size, info.mode = len(listed), 0o600
            archive.addfile(info, io.BytesIO(listed))
            for name, path in members.items():
                info = tarfile.TarInfo(name)
                info.size, info.mode = path.stat().st_size, 0o600
                with path.open("rb") as source:
                    archive.addfile(info, source)
        temporary.chmod(0o600)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _unpack(file: Path, base: Path) -> tuple[JsonObject, str]:
    """The contents, their digest, and below `base` the members that they list. Raises as `import_run`."""
    try:
        with tarfile.open(file, "r:gz") as archive:
            contents, digest = _contents(archive, file)
            files = contents["files"]
            assert isinstance(files, dict)
            for info in archive:
                if info.offset == 0:
                    continue  # the contents themselves
                if not info.isreg() or not _MEMBER.fullmatch(info.name) or ".." in info.name:
                    raise ProtectedError(f"{file}: the member {info.name!r} has no place in a run; refused")
                _extract(archive, info, files, base, file)
            if files:
                raise DamagedError(
                    f"{file}: {len(files)} of its members are missing, {next(iter(files))} first"
                )
        _check_settings(base / SNAPSHOTS, file)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DamagedError(f"{file} cannot be read as an archive of a run: {error}") from error
    return contents, digest


def _check_settings(carried: Path, file: Path) -> None:
    """What git would read as settings is as every store has it."""
    for name, data in SETTINGS.items():
        path = carried / name
        if path.exists() and path.read_bytes() != data:
            raise ProtectedError(f"{file}: its {SNAPSHOTS}/{name} is not the one that export writes; refused")


def _contents(archive: tarfile.TarFile, file: Path) -> tuple[JsonObject, str]:
    first = archive.next()
    source = archive.extractfile(first) if first is not None and first.isreg() else None
    if first is None or source is None or first.name != _CONTENTS or first.size > _MOST_CONTENTS:
        raise UsageError(f"{file} is no archive that `agentrewind export` wrote")
    listed = source.read()
    try:
        found: Json = orjson.loads(listed)
    except orjson.JSONDecodeError as error:
        raise DamagedError(f"{file}: its list of contents is damaged: {error}") from error
    if not isinstance(found, dict) or found.get("kind") != _KIND or not isinstance(found.get("files"), dict):
        raise UsageError(f"{file} is no archive that `agentrewind export` wrote")
    if found.get("format") != FORMAT:
        version = found.get("format")
        raise UnsupportedFormatError(version if isinstance(version, int) else 0, FORMAT)
    return found, sha256(listed).hexdigest()


def _extract(
    archive: tarfile.TarFile, info: tarfile.TarInfo, files: dict[str, Json], base: Path, file: Path
) -> None:
    wanted = files.pop(info.name, None)
    source = archive.extractfile(info)
    if not isinstance(wanted, list) or len(wanted) != 2 or source is None or wanted[1] != info.size:
        raise DamagedError(f"{file}: the member {info.name} is not the one that was exported")
    path = base / info.name
    make_directory(path.parent)
    digest = sha256()
    with path.open("wb") as out:
        while chunk := source.read(1 << 20):
            digest.update(chunk)
            out.write(chunk)
    path.chmod(0o600)
    if digest.hexdigest() != wanted[0]:
        raise DamagedError(f"{file}: the member {info.name} was altered: its hash does not match")


def _files(base: Path) -> list[Path]:
    return [path for path in sorted(base.rglob("*")) if path.is_file()]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        digest = sha256()
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
