"""An independent look at directory trees, and random work in them.

Nothing here uses the package under test, so that both cannot be wrong in the same way.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import shutil
import stat
import struct
import subprocess
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

GIT_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.invalid",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.invalid",
    "HOME": "/nonexistent",
}


ORDINARY = 65534
NOBODY = 0xFFFFFFFF


@dataclass(frozen=True)
class Fact:
    """One path as the disk has it."""

    kind: str
    mode: int
    mtime_ns: int
    content: bytes
    twins: tuple[bytes, ...]
    attributes: tuple[tuple[str, bytes], ...] = ()


def manifest(
    root: Path, *, times: bool = True, skip: Callable[[bytes], bool] | None = None
) -> dict[bytes, Fact]:
    """Everything below a directory, and the directory itself as the empty path."""
    found: dict[bytes, tuple[os.stat_result, str, bytes]] = {}
    base = os.fsencode(root)

    def visit(path: bytes) -> None:
        full = os.path.join(base, path) if path else base
        found[path] = look(full)
        kind = found[path][1]
        if kind == "dir":
            for name in sorted(os.listdir(full)):
                inner = os.path.join(path, name) if path else name
                if skip is None or not skip(inner):
                    visit(inner)

    visit(b"")
    twins: dict[tuple[int, int], list[bytes]] = {}
    for path, (status, kind, _) in found.items():
        if kind != "dir":
            twins.setdefault((status.st_dev, status.st_ino), []).append(path)
    return {
        path: Fact(
            kind=kind,
            mode=stat.S_IMODE(status.st_mode),
            mtime_ns=status.st_mtime_ns if times else 0,
            content=content,
            twins=tuple(sorted(twins.get((status.st_dev, status.st_ino), []))),
            attributes=attributes(os.path.join(base, path) if path else base),
        )
        for path, (status, kind, content) in found.items()
    }


def look(full: bytes) -> tuple[os.stat_result, str, bytes]:
    status = os.lstat(full)
    if stat.S_ISREG(status.st_mode):
        with open(full, "rb") as file:
            return status, "file", hashlib.sha256(file.read()).digest()
    if stat.S_ISLNK(status.st_mode):
        return status, "link", os.readlink(full)
    return status, "dir" if stat.S_ISDIR(status.st_mode) else "special", b""


def attributes(full: bytes) -> tuple[tuple[str, bytes], ...]:
    """The extended attributes, those aside that the system gives by itself."""
    try:
        names = os.listxattr(full, follow_symlinks=False)
    except OSError:
        return ()
    chosen = [
        name for name in sorted(names) if not name.startswith("security.") or name.endswith("capability")
    ]
    return tuple((name, os.getxattr(full, name, follow_symlinks=False)) for name in chosen)


def access_list(user: int, group: int, entries: dict[int, int]) -> bytes:
    """A POSIX access control list as the kernel takes it: bits of owner, group, and further users by id."""
    rows = [(1, user, NOBODY), *[(2, bits, who) for who, bits in sorted(entries.items())], (4, group, NOBODY)]
    rows += [(16, 7, NOBODY), (32, 0, NOBODY)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)


def differences(one: dict[bytes, Fact], other: dict[bytes, Fact]) -> list[str]:
    """What differs between two manifests, readable."""
    return [
        f"{path!r}: {one.get(path)} != {other.get(path)}"
        for path in sorted({*one, *other})
        if one.get(path) != other.get(path)
    ]


def git(directory: Path, *arguments: str) -> str:
    """Run the real git program without anybody's configuration."""
    done = subprocess.run(
        ["git", *arguments], cwd=directory, env=GIT_ENVIRONMENT, capture_output=True, text=True, check=True
    )
    return done.stdout


@contextlib.contextmanager
def open_base() -> Iterator[Path]:
    """A directory of an ordinary user's own, which pytest's are not where the tests run as root."""
    base = Path(tempfile.mkdtemp(prefix="agentrewind-user-"))
    if os.geteuid() == 0:
        os.chown(base, ORDINARY, ORDINARY)
    try:
        yield base
    finally:
        subprocess.run(["chmod", "-R", "u+rwx", str(base)], check=True)
        shutil.rmtree(base)


def as_ordinary_user(action: Callable[[], None]) -> None:
    """Run in a child process that permissions apply to, also where the tests run as root."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(ORDINARY)
                os.setuid(ORDINARY)
            action()
            status = 0
        except BaseException:  # noqa: BLE001 - the child must end here whatever happens
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


NAMES = [
    b"a",
    b"b",
    b"a.txt",
    b"a-b",
    b"dir",
    b"Dir",
    b" lead",
    b"trail ",
    b"new\nline",
    b"tab\t",
    b'quo"te',
    b"back\\slash",
    b"*",
    b"-dash",
    b":(top)x",
    b"\xc3\xa9",
    b"e\xcc\x81",
    b"\xff\xfe",
    b"n" * 255,
    b".gitignore",
    b".gitattributes",
]


class Worker:
    """Does random things in a directory, reproducibly."""

    def __init__(self, root: Path, *, with_git: bool = False) -> None:
        self.root = os.fsencode(root)
        self.with_git = with_git
        self.names = list(NAMES)

    def operations(self) -> list[str]:
        names = [name[3:] for name in dir(self) if name.startswith("do_")]
        return [name for name in names if self.with_git or not name.startswith("git")]

    def do(self, operation: str, seed: int) -> None:
        """One operation; one that the file system refuses (a name in use, say) is skipped."""
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            getattr(self, f"do_{operation}")(random.Random(seed))

    def _walk(self) -> tuple[list[bytes], list[bytes]]:
        files: list[bytes] = []
        directories = [self.root]
        for base, inner, leaves in os.walk(self.root):
            inner.sort()
            if base.split(b"/")[-1] == b".git" or b"/.git/" in base:
                continue
            directories += [os.path.join(base, name) for name in inner if name != b".git"]
            files += [os.path.join(base, name) for name in leaves]
        links = [path for path in directories if os.path.islink(path)]
        return sorted(files + links), sorted(path for path in directories if not os.path.islink(path))

    def _file(self, rng: random.Random) -> bytes:
        files = [path for path in self._walk()[0] if not os.path.islink(path)]
        if not files:
            raise FileNotFoundError
        return rng.choice(files)

    def _any(self, rng: random.Random) -> bytes:
        files, directories = self._walk()
        return rng.choice([*files, *directories[1:]] or [self._fresh(rng)])

    def _directory(self, rng: random.Random) -> bytes:
        return rng.choice(self._walk()[1])

    def _fresh(self, rng: random.Random) -> bytes:
        return os.path.join(self._directory(rng), rng.choice(self.names))

    def do_create(self, rng: random.Random) -> None:
        with open(self._fresh(rng), "xb") as file:
            file.write(rng.randbytes(rng.choice([0, 1, 10, 100, 5000])))

    def do_create_text(self, rng: random.Random) -> None:
        with open(self._fresh(rng), "xb") as file:
            file.write(b"line\r\n$Id$\n" * rng.choice([1, 20, 2000]))

    def do_edit_same_size(self, rng: random.Random) -> None:
        path = self._file(rng)
        status = os.lstat(path)
        with open(path, "r+b") as file:
            file.write(rng.randbytes(status.st_size))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def do_append(self, rng: random.Random) -> None:
        with open(self._file(rng), "ab") as file:
            file.write(rng.randbytes(rng.choice([1, 50])))

    def do_truncate(self, rng: random.Random) -> None:
        os.truncate(self._file(rng), 0)

    def do_replace(self, rng: random.Random) -> None:
        path = self._file(rng)
        with open(path + b"~", "xb") as file:
            file.write(rng.randbytes(30))
        os.rename(path + b"~", path)

    def do_rename(self, rng: random.Random) -> None:
        os.rename(self._any(rng), self._fresh(rng))

    def do_rename_directory(self, rng: random.Random) -> None:
        directories = self._walk()[1][1:]
        if directories:
            os.rename(rng.choice(directories), self._fresh(rng))

    def do_exchange(self, rng: random.Random) -> None:
        one, other = self._any(rng), self._any(rng)
        os.rename(one, one + b".swap")
        try:
            os.rename(other, one)
        finally:
            os.rename(one + b".swap", other if not os.path.lexists(other) else one)

    def do_chmod_file(self, rng: random.Random) -> None:
        os.chmod(self._file(rng), rng.choice([0o644, 0o600, 0o640, 0o444, 0o755, 0o4755, 0o000, 0o777]))

    def do_chmod_directory(self, rng: random.Random) -> None:
        os.chmod(self._directory(rng), rng.choice([0o755, 0o700, 0o555, 0o1777, 0o2755]))

    def do_attribute(self, rng: random.Random) -> None:
        path = self._any(rng)
        name = "trusted.a" if os.path.islink(path) else rng.choice(["user.a", "user.b c=d", "user.\xe9"])
        value = rng.choice([None, b"", b"1", rng.randbytes(40), b"nul\0\n"])
        if value is None:
            os.removexattr(path, name, follow_symlinks=False)
        else:
            os.setxattr(path, name, value, follow_symlinks=False)

    def do_access_list(self, rng: random.Random) -> None:
        path = rng.choice([self._directory(rng), self._any(rng)])
        of_directory = os.path.isdir(path) and rng.random() < 0.5
        value = access_list(7, rng.randrange(8), {ORDINARY: rng.randrange(8), 1000: rng.randrange(8)})
        kind = "default" if of_directory else "access"
        if not os.path.islink(path):
            os.setxattr(path, f"system.posix_acl_{kind}", value)

    def do_touch(self, rng: random.Random) -> None:
        os.utime(
            self._any(rng),
            ns=(0, rng.choice([0, 10**9, 10**18 + 1, 981173106 * 10**9])),
            follow_symlinks=False,
        )

    def do_delete(self, rng: random.Random) -> None:
        os.unlink(rng.choice(self._walk()[0] or [b"/nonexistent"]))

    def do_delete_tree(self, rng: random.Random) -> None:
        directories = self._walk()[1][1:]
        if directories:
            shutil.rmtree(rng.choice(directories))

    def do_mkdir(self, rng: random.Random) -> None:
        os.mkdir(self._fresh(rng))

    def do_mkdir_deep(self, rng: random.Random) -> None:
        os.makedirs(os.path.join(self._fresh(rng), rng.choice(self.names), b"deep"))

    def do_symlink(self, rng: random.Random) -> None:
        os.symlink(rng.choice([b"a", b"..", b"/etc", b"../../..", b"\xff", self.root]), self._fresh(rng))

    def do_hard_link(self, rng: random.Random) -> None:
        os.link(rng.choice(self._walk()[0] or [b"/nonexistent"]), self._fresh(rng), follow_symlinks=False)

    def do_swap_kind(self, rng: random.Random) -> None:
        path = self._any(rng)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
        kind = rng.choice(["file", "dir", "link"])
        if kind == "file":
            with open(path, "xb") as file:
                file.write(b"swapped")
        elif kind == "dir":
            os.mkdir(path)
            with open(os.path.join(path, b"inner"), "xb") as file:
                file.write(rng.randbytes(5))
        else:
            os.symlink(b"elsewhere", path)

    def do_cache(self, rng: random.Random) -> None:
        path = os.path.join(self._directory(rng), b"__pycache__")
        os.mkdir(path)
        with open(os.path.join(path, b"m.pyc"), "xb") as file:
            file.write(b"c")

    def do_git_init(self, rng: random.Random) -> None:
        git(Path(os.fsdecode(self._directory(rng))), "init", "-q")

    def _repository(self, rng: random.Random) -> Path:
        found = [base for base, inner, _ in os.walk(self.root) if b".git" in inner]
        if not found:
            raise FileNotFoundError
        return Path(os.fsdecode(rng.choice(sorted(found))))

    def do_git_commit(self, rng: random.Random) -> None:
        repository = self._repository(rng)
        (repository / "tracked").write_bytes(rng.randbytes(9))
        git(repository, "add", "tracked")
        git(repository, "commit", "-q", "--allow-empty", "-m", "work")

    def do_git_gc(self, rng: random.Random) -> None:
        git(self._repository(rng), "gc", "-q", "--prune=now")
