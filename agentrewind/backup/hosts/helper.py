"""The resident helper: answers hooks over a private socket, and ends when idle, replaced or out of date."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from agentrewind.backup.hosts.entry import answer_in_time
from agentrewind.backup.hosts.request import decode

IDLE = 900.0
"""Seconds without a question after which it ends."""

_LOOK = 2.0
"""Seconds between looks at whether the socket is still its own."""


def main() -> None:
    """Serve at the path that is given, unless somebody does already."""
    path = Path(sys.argv[1])
    lock = path.with_name(f"{path.name}.lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    Helper(path, lock).serve()


class Helper:
    """One helper at one path; holds the lock as long as it lives."""

    def __init__(self, path: Path, lock: BinaryIO) -> None:
        self._path = path
        self._lock = lock
        self._busy = 0
        self._counted = threading.Lock()
        os.utime(lock.fileno())
        self._began = os.fstat(lock.fileno()).st_mtime

    def serve(self) -> None:
        """Answer until idle, until the socket is taken away, or until the code on disk is newer."""
        self._path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            old = os.umask(0o177)
            listener.bind(str(self._path))
            os.umask(old)
            listener.listen(64)
            listener.settimeout(_LOOK)
            mine = self._path.stat().st_ino
            quiet = 0.0
            while quiet < IDLE and self._is_there(mine):
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    quiet = 0.0 if self._busy else quiet + _LOOK
                    continue
                quiet = 0.0
                if _newest_source() > self._began:
                    connection.close()  # the client does the work alone, with the code as it is now
                    break
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()
            if self._is_there(mine):
                self._path.unlink(missing_ok=True)
        self._finish()

    def _is_there(self, inode: int) -> bool:
        try:
            return self._path.stat().st_ino == inode
        except OSError:
            return False

    def _answer(self, connection: socket.socket) -> None:
        with self._counted:
            self._busy += 1
        try:
            with connection, suppress(OSError, ValueError):
                if _user_of(connection) != os.getuid():
                    return
                reply = answer_in_time(decode(_received(connection)))
                out, err = reply.stdout.encode("utf-8", "backslashreplace"), reply.stderr.encode()
                connection.sendall(f"{reply.code} {len(out)} {len(err)}\n".encode() + out + err)
        finally:
            with self._counted:
                self._busy -= 1

    def _finish(self) -> None:
        """Let those that are being answered have their answers."""
        for thread in threading.enumerate():
            if thread is not threading.current_thread():
                thread.join(timeout=600)


def _user_of(connection: socket.socket) -> int:
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(user)


def _received(connection: socket.socket) -> bytes:
    connection.settimeout(30)
    parts: list[bytes] = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    connection.settimeout(None)
    return b"".join(parts)


def _newest_source() -> float:
    """When any of this package's loaded files was changed last."""
    newest = 0.0
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and (name == "agentrewind" or name.startswith("agentrewind.")):
            with suppress(OSError):
                newest = max(newest, Path(file).stat().st_mtime)
    return newest


if __name__ == "__main__":
    main()
