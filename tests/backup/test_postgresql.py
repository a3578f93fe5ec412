"""PostgreSQL databases come back whole, whatever the statement took with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrewind.backup.kind import CaptureError, UnclearError
from agentrewind.backup.kinds.table import kind_of
from agentrewind.backup.store import BackupStore
from agentrewind.backup.values import Context
from tests.backup.services.postgres import Postgres
from tests.backup.trial import command, perform, preserve

LOSSES = {
    "rows": "DELETE FROM orders WHERE total > 500",
    "rows that cascade": "DELETE FROM customers WHERE id < 50",
    "all rows": "TRUNCATE customers RESTART IDENTITY CASCADE",
    "values": "UPDATE orders SET total = 0",
    "added rows": "INSERT INTO customers (name) VALUES ('new')",
    "a sequence": "SELECT setval('customers_id_seq', 1)",
    "a column": "ALTER TABLE orders DROP COLUMN total CASCADE",
    "a table and its views": "DROP TABLE orders CASCADE",
    "a schema": "DROP SCHEMA audit CASCADE",
    "a function": "DROP FUNCTION note CASCADE",
    "a new table": "CREATE TABLE extra AS SELECT * FROM orders",
    "a type": 'ALTER TABLE customers ALTER COLUMN "Level %" TYPE text',
    "a setting": "ALTER DATABASE shop SET work_mem = '9MB'",
    "a right": "GRANT SELECT ON orders TO PUBLIC",
    "several at once": 'BEGIN; DELETE FROM audit."log entries"; DROP VIEW spending CASCADE; COMMIT',
}


@pytest.fixture
def context(shop: Postgres, tmp_path: Path, clean_env: dict[str, str]) -> Context:
    return Context(cwd=tmp_path, env={**clean_env, **shop.env}, home=tmp_path)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_lost_state_comes_back(loss: str, shop: Postgres, store: BackupStore, context: Context) -> None:
    before = shop.dump("shop")
    call = command(f"psql -d shop -c {_quoted(LOSSES[loss])}", context.cwd)
    kept = preserve("postgresql", call, store, context)
    [fingerprint] = kept.fingerprints()
    assert kept.plan() == []

    perform(call, context)

    assert shop.dump("shop") != before
    assert kept.fingerprints() != [fingerprint]
    assert kept.plan()
    [outcome] = kept.restore()
    assert outcome.missing == ()
    assert shop.dump("shop") == before
    assert kept.fingerprints() == [fingerprint]
    assert kept.plan() == []


@pytest.mark.parametrize("call", ["dropdb shop", "psql -c 'DROP DATABASE shop' postgres"])
def test_a_dropped_database_comes_back(
    call: str, shop: Postgres, store: BackupStore, context: Context
) -> None:
    before = shop.dump("shop")
    dropping = command(call, context.cwd)
    kept = preserve("postgresql", dropping, store, context)
    perform(dropping, context)

    [outcome] = kept.restore()

    assert outcome.missing == ()
    assert shop.dump("shop") == before


def test_a_created_database_goes_again(shop: Postgres, store: BackupStore, context: Context) -> None:
    call = command("createdb fresh", context.cwd)
    kept = preserve("postgresql", call, store, context)
    perform(call, context)

    [outcome] = kept.restore()

    assert outcome.missing == ()
    assert "fresh" not in shop.sql("postgres", "SELECT datname FROM pg_database").split()


def test_rows_come_back_under_open_connections(shop: Postgres, store: BackupStore, context: Context) -> None:
    """Only a changed schema ends connections; the plan says which."""
    call = command("psql shop -c 'DELETE FROM customers'", context.cwd)
    kept = preserve("postgresql", call, store, context)
    perform(call, context)

    assert not any("connections" in line for line in kept.plan())
    perform(command("psql shop -c 'DROP VIEW spending CASCADE'", context.cwd), context)
    assert any("connections" in line for line in kept.plan())


def test_a_restore_that_was_cut_off_is_not_run_over(
    shop: Postgres, store: BackupStore, context: Context
) -> None:
    call = command("psql shop -c 'DROP TABLE orders CASCADE'", context.cwd)
    kept = preserve("postgresql", call, store, context)
    perform(call, context)
    shop.sql("postgres", "CREATE DATABASE shop_before_restore")
    try:
        now = shop.dump("shop")
        with pytest.raises(CaptureError, match="shop_before_restore"):
            kept.restore()
        assert shop.dump("shop") == now
    finally:
        shop.sql("postgres", "DROP DATABASE shop_before_restore")


@pytest.mark.parametrize(
    "call",
    [
        "psql shop -c 'SELECT 1'",
        "psql shop -c 'EXPLAIN DELETE FROM orders'",
        "psql -l",
        "psql --version",
        "pg_restore -l some.dump",
    ],
)
def test_reading_needs_no_backup(call: str, context: Context) -> None:
    assert kind_of("postgresql").targets(command(call, context.cwd), {}, context) == ()


@pytest.mark.parametrize(
    "call",
    [
        "psql shop",
        "psql shop -f nowhere.sql",
        "psql service=prod -c 'DROP TABLE x'",
        "psql -c 'DROP TABLE x' postgresql://a,b/x",
        "psql shop -c 'COPY orders TO PROGRAM $$rm -rf x$$'",
        r"psql shop -c '\! rm -rf x'",
        "psql shop --unheard-of",
        "pg_restore -C -d postgres x.dump",
    ],
)
def test_what_cannot_be_told_is_said(call: str, context: Context) -> None:
    with pytest.raises(UnclearError):
        kind_of("postgresql").targets(command(call, context.cwd), {}, context)


def test_no_password_reaches_the_target(context: Context) -> None:
    call = command("psql postgresql://ann:s3cret@db.example:6000/shop -c 'DROP TABLE x'", context.cwd)
    [target] = kind_of("postgresql").targets(call, {}, context)
    assert "s3cret" not in repr(target)
    assert target.detail == {
        "host": "db.example",
        "port": "6000",
        "user": "ann",
        "database": "shop",
        "os_user": None,
    }


def test_a_server_that_is_away_is_an_error(store: BackupStore, context: Context) -> None:
    call = command("psql -p 1 shop -c 'DROP TABLE x'", context.cwd)
    with pytest.raises(CaptureError, match="psql"):
        preserve("postgresql", call, store, context)


def _quoted(text: str) -> str:
    escaped = text.replace("'", "'\"'\"'")
    return f"'{escaped}'"
