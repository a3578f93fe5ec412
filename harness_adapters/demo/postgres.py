"""A PostgreSQL server for the demo alone, in a directory of its own, on a port of this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from agentrewind.errors import UsageError

DATABASE = "shop"


@contextmanager
def server(directory: Path, environment: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """The variables by which its clients reach the server, which lives as long as this.

    Raises UsageError where PostgreSQL is not installed or does not start.
    """
    programs = _programs()
    directory.mkdir(mode=0o700)
    as_owner: list[str] = []
    if os.geteuid() == 0:
        # PostgreSQL refuses to run as root; the package made this user
        shutil.chown(directory, "postgres")
        as_owner = ["runuser", "-u", "postgres", "--"]
    port, data = _free_port(), directory / "data"
    _run([*as_owner, str(programs / "initdb"), "-D", str(data), "-A", "trust", "-U", "postgres",
          "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"], environment)  # fmt: skip
    settings = f"-p {port} -k {directory} -c listen_addresses=127.0.0.1 -c fsync=off"
    control = [*as_owner, str(programs / "pg_ctl"), "-D", str(data), "-w"]
    _run([*control, "-l", str(directory / "log"), "-o", settings, "start"], environment)
    try:
        client = {"PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "postgres"}
        _run(["createdb", DATABASE], {**environment, **client})
        yield {**client, "PGDATABASE": DATABASE}
    finally:
        _run([*control, "-m", "immediate", "stop"], environment)
        shutil.rmtree(directory)


def written(text: str, environment: Mapping[str, str]) -> str:
    """What psql writes for a statement in the demo's database."""
    return _run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", DATABASE, "-c", text], environment)


def _programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: path.parts[-3])
    beside = shutil.which("initdb")
    if beside is not None:
        return Path(beside).parent
    if not found or shutil.which("psql") is None:
        raise UsageError(
            "this story needs a PostgreSQL server of its own, and none is installed: "
            "apt-get install postgresql (Debian, Ubuntu), or put initdb, pg_ctl and psql into PATH"
        )
    return found[-1].parent


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _run(argv: Sequence[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        argv,
        cwd="/",
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise UsageError(f"PostgreSQL cannot be used: {argv[0]}: {done.stdout[-600:].strip()}")
    return done.stdout
