"""What is called read-only is run by the database itself, which must then be as it was."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentrewind.backup.understanding.sql import read_sql
from tests.backup.services.postgres import Postgres

_BOTH = [
    "select ", "* ", "1 ", "from ", "orders ", "customers ", "where ", "id = 1 ", "; ", ";\n",
    "delete from ", "update ", "set total = 2 ", "insert into ", "values (1) ", "(", ") ", "with x as (",
    "returning * ", "create table t (a int) ", "drop table ", "if exists ", "begin ", "commit ",
    "rollback ", "explain ", "/* ", " */ ", "-- ", "'", '"', "union all ", "limit 1 ", "in ", "as x ",
    "create view v as ", "truncate ", "alter table ", "rename to y ", "analyze ", ",", "x ",
]  # fmt: skip
_POSTGRESQL = [
    *_BOTH, "into t ", "for update ", "explain analyze ", "explain (analyze) ", "prepare p as ",
    "execute p ", "do ", "$$", "nextval('customers_id_seq') ", "setval('customers_id_seq', 5) ",
    "lastval() ", "count(*) ", "lock table ", "call p() ", "copy ", "to stdout ", "from stdin;\n1\n\\.\n",
    "\\d\n", "\\dt ", "\\g ", "\\gexec\n", "\\! true\n", "\\\\ ", "\\; ", "\\if true\n",
    "\\endif\n", "merge into ", "using ", "on true ", "when matched then delete ", "only ",
    "select note() ", "lo_creat(-1) ", "txid_current() ", "set_config('a.b', 'c', false) ",
    "declare c cursor for ", "fetch c ", "refresh materialized view ranks ", "vacuum ",
    "comment on table orders is 'x' ", "notify x ", "show all ", "E'\\'", "U&'\\0041' ", "::text ",
    "table orders ",
]  # fmt: skip
_SQLITE = [
    *_BOTH, "replace into ", "pragma user_version", " = 7 ", "(7) ", "pragma table_info(orders) ",
    "vacuum ", "reindex ", "pragma journal_mode ", "pragma writable_schema=1 ", "attach 'other.db' as o ",
    "create trigger g after insert on orders ", "begin delete from orders; end ", "changes() ",
    "randomblob(3) ", "explain query plan ", "on conflict do nothing ", "savepoint s ", "release s ",
    "pragma application_id=3 ", "[orders] ", "`orders` ", "pragma optimize ",
    "\n.tables\n", "\n.show x\n", ".output x\n", ".dump\n", ".headers on\n",
]  # fmt: skip


_STATEMENTS = [
    "select * from orders",
    "delete from orders where id = 1",
    "update orders set total = 2",
    "with x as (select 1) select * from x",
    "explain select 1",
    "explain delete from orders",
    "begin",
    "commit",
    "insert into customers values (9999, 'x')",
    "drop table if exists orders",
    "select count(*) from customers",
]


def _texts(tokens: list[str]) -> st.SearchStrategy[str]:
    soup = st.lists(st.sampled_from(tokens), min_size=1, max_size=9).map("".join)
    statement = st.sampled_from(_STATEMENTS)
    between = st.sampled_from(["; ", ";\n", "; -- ", "; /* ", " */; ", "'; ", "\n"])
    mixed = st.lists(st.tuples(statement | soup, between).map("".join), min_size=1, max_size=4).map("".join)
    return soup | mixed


def _state(server: Postgres) -> str:
    """Transactions that wrote, sequences, databases, roles and large objects."""
    return server.sql(
        "shop",
        "select pg_snapshot_xmax(pg_current_snapshot()), (select array_agg(last_value) from pg_sequences), "
        "(select count(*) from pg_database), (select count(*) from pg_roles), "
        "(select count(*) from pg_largeobject_metadata)",
    )


@given(text=_texts(_POSTGRESQL))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_reads_leaves_postgresql_as_it_was(shop: Postgres, text: str) -> None:
    if not read_sql(text, "postgresql").read_only or not text.strip():
        return
    shop.sql("postgres", "alter system set autovacuum = off; select pg_reload_conf()")
    before = _state(shop)
    subprocess.run(
        ["psql", "-X", "-q", "-d", "shop", "-f", "-"],
        env={**os.environ, **shop.env, "PAGER": "cat"},
        input=text.encode(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert _state(shop) == before, text


@given(text=_texts(_SQLITE))
@settings(max_examples=300, deadline=None)
def test_what_reads_leaves_sqlite_as_it_was(text: str) -> None:
    if not read_sql(text, "sqlite").read_only:
        return
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "shop.db"
        with closing(sqlite3.connect(path)) as database:
            database.executescript(
                "create table customers (id int, name text); create table orders (id int, total int);"
                "insert into orders values (1, 5), (2, 6);"
            )
        before = hashlib.sha256(path.read_bytes()).hexdigest()
        # the client goes on after an error, as agents' scripts do
        subprocess.run(
            ["sqlite3", "-batch", path], input=text.encode(), cwd=place, capture_output=True, check=False
        )
        assert hashlib.sha256(path.read_bytes()).hexdigest() == before, text
        assert [each.name for each in Path(place).iterdir()] == ["shop.db"], text
