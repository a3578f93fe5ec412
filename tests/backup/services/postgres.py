"""A PostgreSQL server of the tests' own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Postgres:
    """A running server: superuser `postgres`, no password, one port on 127.0.0.1."""

    port: int
    directory: Path

    @property
    def env(self) -> dict[str, str]:
        return {"PGHOST": "127.0.0.1", "PGPORT": str(self.port), "PGUSER": "postgres"}

    def sql(self, database: str, text: str) -> str:
        """What psql prints for the statements."""
        done = subprocess.run(
            ["psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", database, "-f", "-"],
            env={**os.environ, **self.env},
            input=text,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def dump(self, database: str) -> str:
        """Everything in the database as sorted text, for comparison."""
        done = subprocess.run(
            ["pg_dump", "--create", "--inserts", database],
            env={**os.environ, **self.env},
            text=True,
            capture_output=True,
            check=True,
        )
        kept = [line for line in done.stdout.splitlines() if not line.startswith(("\\", "-- Dumped"))]
        return "\n".join(sorted(kept))


@contextmanager
def postgres() -> Iterator[Postgres]:
    """Start a server whose data lie in a directory of its own, and stop it.

    Not below pytest's directory, which every other pytest that starts closes to all users but its own.
    """
    programs = _programs()
    directory = Path(tempfile.mkdtemp(prefix="agentrewind-postgres-"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    as_owner: list[str] = []
    if os.geteuid() == 0:
        # PostgreSQL refuses to run as root
        shutil.chown(directory, "postgres")
        as_owner = ["runuser", "-u", "postgres", "--"]
    data = directory / "data"
    _quietly([*as_owner, str(programs / "initdb"), "-D", str(data), "-A", "trust", "-U", "postgres",
              "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"])  # fmt: skip
    settings = f"-p {port} -k {directory} -c listen_addresses=127.0.0.1 -c fsync=off"
    control = [*as_owner, str(programs / "pg_ctl"), "-D", str(data), "-w"]
    _quietly([*control, "-l", str(directory / "log"), "-o", settings, "start"])
    try:
        yield Postgres(port=port, directory=directory)
    finally:
        _quietly([*control, "-m", "immediate", "stop"])
        shutil.rmtree(directory)


def _programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.fail("PostgreSQL's server is not installed: apt-get install postgresql")
    return found[-1].parent


def _quietly(argv: list[str], env: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(
        argv,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        env=env,
        text=True,
    )
    assert done.returncode == 0, done.stdout
