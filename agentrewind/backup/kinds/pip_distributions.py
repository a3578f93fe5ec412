"""Distributions that a Python has installed, and their files packed one archive each."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import orjson

from agentrewind.backup.kind import CaptureError, Store
from agentrewind.backup.programs import run
from agentrewind.backup.values import Context
from agentrewind.errors import DamagedError
from agentrewind.records import JsonObject

# asked of the environment's own interpreter, since only it knows its paths; needs no pip there
_LIST = """
import hashlib, importlib.metadata, json, os, re, sys
found = []
for each in importlib.metadata.distributions():
    name = each.metadata["Name"]
    if not name:
        continue
    files = sorted({os.path.normpath(str(one.locate())) for one in each.files or ()})
    prefix = os.path.normpath(sys.prefix) + os.sep
    inside = [one for one in files if one.startswith(prefix) and os.path.lexists(one)]
    record = each.read_text("RECORD") or each.read_text("installed-files.txt") or ""
    lines = sorted(line for line in record.splitlines() if ".pyc," not in line)
    found.append({
        "name": re.sub(r"[-_.]+", "-", name).lower(),
        "version": each.version,
        "place": os.path.dirname(os.path.normpath(str(each.locate_file("x")))),
        "record": hashlib.sha256("\\n".join(lines).encode()).hexdigest(),
        "files": inside if each.read_text("RECORD") else [],
        "bytes": sum(os.lstat(one).st_size for one in inside),
    })
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """One installed distribution. `files` is empty where it keeps no record of them."""

    name: str
    version: str
    record: str
    files: tuple[str, ...]
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a manifest says of one distribution; `archive` names its files, None where they were not kept."""

    version: str
    record: str
    archive: str | None


def listed(python: Path, context: Context) -> list[Distribution]:
    """What this interpreter has installed; of several of one name the one that it imports."""
    output = run([str(python), "-I", "-c", _LIST], context, cwd=Path("/"))
    try:
        rows = orjson.loads(output)
    except orjson.JSONDecodeError as error:
        raise CaptureError(f"{python} did not list its distributions: {error}") from error
    found: dict[str, Distribution] = {}
    for row in rows:
        each = Distribution(
            name=row["name"],
            version=row["version"] or "",
            record=row["record"],
            files=tuple(row["files"]),
            bytes=row["bytes"],
        )
        found.setdefault(each.name, each)
    return list(found.values())


def packed(distribution: Distribution, store: Store) -> tuple[str, int]:
    """The name and size of an archive of its files, every file read back and compared."""
    file = store.scratch() / "distribution.tar"
    digests: dict[str, str] = {}
    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as archive:
        for path in distribution.files:
            info = archive.gettarinfo(path, arcname=path)
            if not info.isreg():
                archive.addfile(info)
                continue
            data = Path(path).read_bytes()
            info.size = len(data)
            # a file that is linked from elsewhere is kept as a file of its own
            info.type = tarfile.REGTYPE
            digests[info.name] = sha256(data).hexdigest()
            archive.addfile(info, io.BytesIO(data))
    _verify(file, digests, distribution)
    file.chmod(0o600)
    name, size = store.put_file(file), file.stat().st_size
    file.unlink()
    return name, size


def unpack(name: str, store: Store) -> None:
    """Put the files of an archive back where they were, with mode, time and owner."""
    with store.open(name) as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
        for info in archive:
            path = Path("/") / info.name
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.restoring")
            temporary.unlink(missing_ok=True)
            _write(archive, info, temporary)
            if path.is_dir() and not path.is_symlink():
                continue
            temporary.replace(path)


def _write(archive: tarfile.TarFile, info: tarfile.TarInfo, path: Path) -> None:
    if info.issym():
        path.symlink_to(info.linkname)
        return
    source = archive.extractfile(info)
    if source is None:
        raise DamagedError(f"the backup's archive has no content for {info.name}")
    path.write_bytes(source.read())
    path.chmod(info.mode & 0o7777)
    if os.geteuid() == 0:
        os.chown(path, info.uid, info.gid)
    moment = int(float(info.mtime) * 1e9)
    os.utime(path, ns=(moment, moment))


def remove_files(distribution: Distribution) -> None:
    """Remove what the distribution recorded as its own, and directories that are empty then."""
    parents: set[Path] = set()
    for path in distribution.files:
        Path(path).unlink(missing_ok=True)
        parents.add(Path(path).parent)
    for parent in sorted(parents, key=lambda each: len(each.parts), reverse=True):
        _prune(parent)


def _prune(directory: Path) -> None:
    """Remove the directory, and those above it, while they hold nothing but compiled leftovers."""
    while directory.name not in ("site-packages", "dist-packages", "bin", "lib") and directory.is_dir():
        entries = list(directory.iterdir())
        if any(each.name != "__pycache__" for each in entries):
            return
        for cache in entries:
            for compiled in cache.iterdir():
                compiled.unlink()
            cache.rmdir()
        directory.rmdir()
        directory = directory.parent


def manifest_of(distribution: Distribution, archive: str | None) -> JsonObject:
    """What a manifest says of it; `archive` is None where its files were not kept."""
    return {"version": distribution.version, "record": distribution.record, "archive": archive}


def _verify(file: Path, digests: Mapping[str, str], distribution: Distribution) -> None:
    seen = 0
    with tarfile.open(file, "r:") as archive:
        for info in archive:
            source = archive.extractfile(info) if info.isreg() else None
            if source is not None and sha256(source.read()).hexdigest() != digests[info.name]:
                raise CaptureError(f"{info.name} changed while {distribution.name} was preserved")
            seen += 1
    if seen != len(distribution.files):
        raise CaptureError(f"the archive of {distribution.name} is not whole")


def known(manifest: JsonObject) -> dict[str, Kept]:
    """The distributions of a manifest. Raises DamagedError."""
    found = manifest.get("distributions")
    if not isinstance(found, dict):
        raise DamagedError("the backup's list of distributions cannot be read")
    kept = {}
    for name, each in found.items():
        if not isinstance(each, dict):
            raise DamagedError(f"the backup's record of {name} cannot be read")
        archive = each.get("archive")
        kept[name] = Kept(
            version=str(each.get("version")),
            record=str(each.get("record")),
            archive=str(archive) if archive else None,
        )
    return kept
