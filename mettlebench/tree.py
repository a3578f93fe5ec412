"""Copies a workspace and digests it, following no link and opening nothing but plain files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from mettlebench.errors import WorkspaceCopyError

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK = 1 << 20


def copy_tree(source: Path, target: Path) -> None:
    """Make `target` a copy of `source`: names, contents, modes, links as links, modification times.

    `target` must not exist. Pipes, sockets and devices are left out. A file that cannot be read is copied
    as an empty one that cannot be read either. Raises WorkspaceCopyError where the copy cannot be made.
    """
    try:
        here = os.open(source, _DIRECTORY)
    except OSError as error:
        raise WorkspaceCopyError(f"the workspace {source} cannot be opened: {error.strerror}") from error
    try:
        target.mkdir(parents=True)
        _copy_directory(here, target)
    except OSError as error:
        raise WorkspaceCopyError(f"the workspace {source} cannot be copied: {error}") from error
    finally:
        os.close(here)


def _copy_directory(here: int, target: Path) -> None:
    for name in os.listdir(here):
        entry = os.lstat(name, dir_fd=here)
        if stat.S_ISDIR(entry.st_mode):
            (target / name).mkdir()
            with _opened(name, _DIRECTORY, here) as below:
                if below is not None:
                    _copy_directory(below, target / name)
            _same_times(target / name, entry)
        elif stat.S_ISLNK(entry.st_mode):
            (target / name).symlink_to(os.readlink(name, dir_fd=here))
            os.utime(target / name, ns=(entry.st_mtime_ns, entry.st_mtime_ns), follow_symlinks=False)
        elif stat.S_ISREG(entry.st_mode):
            with _opened(name, _READ, here) as below:
                _copy_file(below, target / name)
            _same_times(target / name, entry)
    _same_times(target, os.fstat(here))


def _opened(name: str, flags: int, here: int) -> contextlib.AbstractContextManager[int | None]:
    try:
        return _closing(os.open(name, flags, dir_fd=here))
    except (PermissionError, FileNotFoundError):
        return contextlib.nullcontext()


@contextlib.contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _copy_file(source: int | None, target: Path) -> None:
    with target.open("xb") as out:
        # the name may stand for something else by now than when it was listed
        if source is None or not stat.S_ISREG(os.fstat(source).st_mode):
            return
        while block := os.read(source, _BLOCK):
            out.write(block)


def _same_times(target: Path, entry: os.stat_result) -> None:
    target.chmod(stat.S_IMODE(entry.st_mode) & 0o1777)
    os.utime(target, ns=(entry.st_mtime_ns, entry.st_mtime_ns))


def tree_digest(root: Path) -> str:
    """A digest of all that `copy_tree` copies; equal for a tree and its copy.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = (Path(place) / "a").mkdir()
    ...     copy_tree(Path(place) / "a", Path(place) / "b")
    ...     tree_digest(Path(place) / "a") == tree_digest(Path(place) / "b")
    True
    """
    digest = hashlib.sha256()
    for line in tree_lines(root):
        digest.update(line + b"\n")
    return digest.hexdigest()


def tree_lines(root: Path) -> list[bytes]:
    """One line per entry below `root`, sorted: path, kind, mode, time, and digest or link target."""
    return sorted(_lines_below(root, root))


def _lines_below(root: Path, path: Path) -> Iterator[bytes]:
    entry = path.lstat()
    kind, content = _content(path, entry)
    if kind is None:
        return
    shown = os.fsencode(path.relative_to(root)).replace(b"\n", b"\\n")
    facts = f"{kind} {stat.S_IMODE(entry.st_mode) & 0o1777:o} {entry.st_mtime_ns}".encode()
    yield b"\t".join([shown, facts, content])
    if kind == "dir":
        with contextlib.suppress(PermissionError):
            for child in path.iterdir():
                yield from _lines_below(root, child)


def _content(path: Path, entry: os.stat_result) -> tuple[str | None, bytes]:
    if stat.S_ISDIR(entry.st_mode):
        return "dir", b""
    if stat.S_ISLNK(entry.st_mode):
        return "link", os.fsencode(path.readlink())
    if not stat.S_ISREG(entry.st_mode):
        return None, b""
    try:
        with path.open("rb") as file:
            return "file", hashlib.file_digest(file, "sha256").hexdigest().encode()
    except PermissionError:
        return "file", b"unreadable"


def remove_tree(root: Path) -> None:
    """Remove a directory, also one whose modes forbid it; what is gone already is fine."""
    if root.is_dir() and not root.is_symlink():
        _open_up(root)
        shutil.rmtree(root)


def _open_up(path: Path) -> None:
    path.chmod(0o700)
    for child in path.iterdir():
        if child.is_dir() and not child.is_symlink():
            _open_up(child)
