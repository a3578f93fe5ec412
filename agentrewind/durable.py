"""Files that appear whole or not at all, readable by their owner only."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path

from agentrewind.errors import ProtectedError, StorageError

_FILE_MODE = 0o600
_DIRECTORY_MODE = 0o700
_ROOM = "make room, then try again"
_RIGHTS = "mend its permissions, or keep the store elsewhere (AGENTREWIND_HOME)"
_IN_THE_WAY = "a file is in the way of a folder: move it, or keep the store elsewhere (AGENTREWIND_HOME)"
_ANY_REMEDY = "make room or mend its permissions, then try again"
_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), _ROOM),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _RIGHTS),
    **dict.fromkeys((errno.EEXIST, errno.ENOTDIR), _IN_THE_WAY),
}


def make_directory(path: Path) -> None:
    """Makes the directory and its missing parents, for the owner only; existing ones stay as they are."""
    missing = [path, *path.parents]
    try:
        for directory in reversed(missing):
            if not directory.is_dir():
                directory.mkdir(mode=_DIRECTORY_MODE, exist_ok=True)
                sync_directory(directory.parent)
    except OSError as error:
        raise storage_error("make the directory", path, error) from error


def write_file(path: Path, data: bytes) -> None:
    """Puts the file there, in place of an older one; it is durable on return."""
    temporary = _write_beside(path, data)
    try:
        temporary.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise storage_error("write", path, error) from error


def create_file(path: Path, data: bytes) -> None:
    """Puts a new file there, durable on return. Raises ProtectedError where one exists already."""
    temporary = _write_beside(path, data)
    try:
        # a link, unlike a rename, never replaces what somebody else has just put there
        os.link(temporary, path)
        temporary.unlink()
        sync_directory(path.parent)
    except FileExistsError as error:
        temporary.unlink(missing_ok=True)
        raise ProtectedError(f"{path} exists already and is never overwritten") from error
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise storage_error("create", path, error) from error


def sync_directory(path: Path) -> None:
    """Makes the names in the directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def storage_error(act: str, path: Path, error: OSError) -> StorageError:
    """The error for a store that cannot be written, with what to do."""
    reason = error.strerror or str(error)
    return StorageError(f"cannot {act} {path}: {reason}; {_REMEDIES.get(error.errno or 0, _ANY_REMEDY)}")


def _write_beside(path: Path, data: bytes) -> Path:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise storage_error("write", path, error) from error
    return temporary
