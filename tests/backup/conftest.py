"""Services shared by the tests of backups; each starts once a worker, where a test asks for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentrewind.backup.store import BackupStore
from tests.backup.bench import Bench
from tests.backup.services.postgres import Postgres, postgres
from tests.backup.shop import SHOP


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    """A PostgreSQL server."""
    with postgres() as running:
        yield running


@pytest.fixture
def shop(server: Postgres) -> Iterator[Postgres]:
    """The server with a fresh database `shop`."""
    server.sql("postgres", "CREATE DATABASE shop; ALTER DATABASE shop SET work_mem = '5MB';")
    server.sql("shop", SHOP)
    yield server
    server.sql("postgres", "DROP DATABASE IF EXISTS shop WITH (FORCE);")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[BackupStore]:
    """A store of backups."""
    with BackupStore(tmp_path / "agentrewind home" / "backup") as opened:
        yield opened


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A place where commands run, are preserved for first, and are taken back."""
    made = Bench(base=tmp_path / "bench")
    yield made
    made.store.close()


@pytest.fixture
def clean_env() -> dict[str, str]:
    """The variables that programs need, and none that point at anybody's services."""
    return {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
