"""What builders make workspaces with: fixed dates, fixed identities, the same bytes each time.

Runs inside the builder's sandbox, with only the standard library.
"""

from __future__ import annotations

import gzip
import io
import os
import random
import sqlite3
import subprocess
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

EPOCH = 1767603600
"""2026-01-05 09:00 UTC: no file of a workspace is younger."""


class Craft:
    """A workspace in the making; all paths are relative to `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def random(self, seed: int) -> random.Random:
        """A generator that gives the same numbers on every build."""
        return random.Random(seed)

    def write(self, path: str, data: str | bytes, *, mode: int = 0o644, at: int | None = None) -> Path:
        """Write a file, its folders too; `at` is its modification time in seconds."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data.encode() if isinstance(data, str) else data)
        target.chmod(mode)
        if at is not None:
            os.utime(target, (at, at))
        return target

    def read(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8")

    def csv(self, path: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Write plain comma-separated values; no cell may need quoting."""
        lines = [",".join(columns), *(",".join(str(cell) for cell in row) for row in rows)]
        self.write(path, "\n".join(lines) + "\n")

    def gzip(self, path: str, data: str | bytes, *, at: int = EPOCH) -> None:
        """Write a gzip file whose header holds a fixed time."""
        raw = data.encode() if isinstance(data, str) else data
        self.write(path, gzip.compress(raw, mtime=at), at=at)

    def tar(self, path: str, files: Mapping[str, str | bytes], *, at: int = EPOCH) -> None:
        """Write a gzipped tar archive of plain files, owned by nobody in particular."""
        held = io.BytesIO()
        with tarfile.open(fileobj=held, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for name, data in files.items():
                raw = data.encode() if isinstance(data, str) else data
                entry = tarfile.TarInfo(name)
                entry.size, entry.mtime, entry.mode = len(raw), at, 0o644
                archive.addfile(entry, io.BytesIO(raw))
        self.gzip(path, held.getvalue(), at=at)

    def database(self, path: str, script: str, rows: Mapping[str, Sequence[Sequence[object]]]) -> None:
        """Make an SQLite database: run a schema, then fill tables."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(target, isolation_level=None)
        connection.executescript(script)
        connection.execute("begin")
        for table, values in rows.items():
            marks = ",".join("?" * len(values[0]))
            connection.executemany(f"insert into {table} values ({marks})", values)
        connection.execute("commit")
        connection.close()

    def repository(self, path: str, *, branch: str = "main") -> Repository:
        """A new git repository with nothing in it but what is committed."""
        return Repository(self.root / path, branch)


class Repository:
    """A git repository in the making; each commit is an hour after the last unless told otherwise."""

    def __init__(self, root: Path, branch: str) -> None:
        self.root = root
        self._at = EPOCH - 90 * 86400
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--template=", f"--initial-branch={branch}")
        self.configure("user.name", "Dana Weber")
        self.configure("user.email", "dana@example.org")
        self.configure("gc.auto", "0")

    def configure(self, key: str, value: str) -> None:
        self.git("config", key, value)

    def git(self, *arguments: str, author: tuple[str, str] | None = None, stdin: bytes | None = None) -> str:
        """Run git at the repository's present time and return what it prints, without surrounding blanks."""
        return self.raw(*arguments, author=author, stdin=stdin).decode("utf-8", "replace").strip()

    def raw(
        self, *arguments: str, author: tuple[str, str] | None = None, stdin: bytes | None = None
    ) -> bytes:
        """Run git and return what it prints, to the byte."""
        dates = {"GIT_AUTHOR_DATE": f"{self._at} +0000", "GIT_COMMITTER_DATE": f"{self._at} +0000"}
        names = {"GIT_AUTHOR_NAME": author[0], "GIT_AUTHOR_EMAIL": author[1]} if author else {}
        ended = subprocess.run(
            ["git", *arguments],
            cwd=self.root,
            env={**self._environment(), **dates, **names},
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            check=False,
        )
        if ended.returncode:
            raise RuntimeError(f"git {' '.join(arguments)}: {ended.stderr.decode(errors='replace')}")
        return ended.stdout

    def commit(
        self,
        message: str,
        files: Mapping[str, str | bytes | None],
        *,
        author: tuple[str, str] | None = None,
        hours: int = 1,
    ) -> str:
        """Write files (None removes one), commit all, and return the commit's id."""
        self._at += hours * 3600
        for name, data in files.items():
            target = self.root / name
            if data is None:
                target.unlink()
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data.encode() if isinstance(data, str) else data)
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "-m", message, author=author)
        return self.git("rev-parse", "HEAD")

    def fast_import(self, stream: bytes) -> None:
        """Take in a whole history at once, as `git fast-import` reads it."""
        self.git("fast-import", "--quiet", stdin=stream)

    def check_out(self, branch: str) -> None:
        """Fill the working tree and the index from a branch."""
        self.git("symbolic-ref", "HEAD", f"refs/heads/{branch}")
        self.git("read-tree", "HEAD")
        self.git("checkout-index", "--all")
        self.finish()

    def finish(self) -> None:
        """Leave an index that holds no times of this machine."""
        (self.root / ".git/index").unlink(missing_ok=True)
        self.git("read-tree", "HEAD")

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.defpath,
            "HOME": "/nonexistent",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
        }
