"""The program that a harness starts as its hook: asks the resident helper, or does the work alone.

It is run by path with `-I -S` and imports next to nothing, since it is started before every tool call.
"""

import _socket
import os
import sys

PEOPLE_ONLY = 0o077
"""Permission bits that a directory with a socket in it must not have."""

DEADLINE = 540
GRACE = 5
"""Seconds that the helper has beyond its own deadline; then it is taken for dead."""


def main() -> int:
    """Hand the question on, and the answer back. Ends with the hook's exit code, or becomes `entry`."""
    connection = connected()
    if connection is None:
        return alone(None)
    document = _read(0)
    words = sys.argv[1:]
    deadline = _option(words, "--deadline")
    connection.settimeout((int(deadline) if deadline.isdigit() else DEADLINE) + GRACE)
    try:
        connection.sendall(_question(document))
        connection.shutdown(_socket.SHUT_WR)
        answer = _received(connection)
    except TimeoutError:
        return _too_late(words)
    except OSError:
        answer = b""
    head, _, rest = answer.partition(b"\n")
    sizes = head.split()
    if len(sizes) != 3 or not head.replace(b" ", b"").isdigit() or len(rest) != int(sizes[1]) + int(sizes[2]):
        return alone(document)
    _write(1, rest[: int(sizes[1])])
    _write(2, rest[int(sizes[1]) :])
    return int(sizes[0])


def _too_late(words: list[str]) -> int:
    """What is left to say when the helper does not answer: code 2 refuses the call in every harness."""
    warned = _option(words, "--on-failure") == "warn"
    end = "the call runs without a backup" if warned else "the call is blocked"
    _write(2, f"agentrewind backup hook: the helper does not answer; {end}\n".encode())
    return 0 if warned else 2


def _option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1] if name in words[:-1] else ""


def connected() -> "_socket.socket | None":
    """A connection to the helper of exactly this installation and user, None where there is none."""
    path = socket_path()
    if path is None:
        return None
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except OSError:
        return None
    return connection


def socket_path() -> str | None:
    """Where the helper listens: in a directory of this user's alone; None where there is no such directory.

    The name holds what tells one installation, and one version of it, from another.
    """
    user = os.getuid()
    base = os.environ.get("XDG_RUNTIME_DIR") or "/tmp"
    directory = f"{base}/agentrewind-{user}"
    try:
        found = os.lstat(directory)
        package = os.stat(f"{__file__[: -len('backup/hosts/client.py')]}__init__.py")
    except OSError:
        return None
    if found.st_uid != user or found.st_mode & PEOPLE_ONLY or found.st_mode & 0o170000 != 0o040000:
        return None
    return f"{directory}/{package.st_dev:x}-{package.st_ino:x}-{package.st_mtime_ns:x}"


def alone(document: bytes | None) -> int:
    """Become the whole program, with the document on its standard input again if it was read already."""
    try:
        if document is not None:
            again = os.memfd_create("document")
            _write(again, document)
            os.lseek(again, 0, os.SEEK_SET)
            os.dup2(again, 0)
        os.execv(
            sys.executable, [sys.executable, "-I", "-m", "agentrewind.backup.hosts.entry", *sys.argv[1:]]
        )
    except OSError as error:
        _write(2, f"agentrewind backup hook: cannot be started: {error}\n".encode())
    return 2


def _question(document: bytes) -> bytes:
    """As `request.encode` writes it."""
    words = [os.fsencode(word) for word in sys.argv[1:]]
    fields = [os.getcwdb(), document, *words]
    fields += [name + b"=" + value for name, value in os.environb.items()]
    sizes = " ".join(str(len(field)) for field in fields)
    return f"{len(words)} {sizes}\n".encode() + b"".join(fields)


def _read(descriptor: int) -> bytes:
    parts = []
    while part := os.read(descriptor, 1 << 16):
        parts.append(part)
    return b"".join(parts)


def _received(connection: "_socket.socket") -> bytes:
    parts = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


if __name__ == "__main__":
    os._exit(main())
