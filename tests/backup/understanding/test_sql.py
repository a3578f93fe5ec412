"""What SQL text may change, for PostgreSQL by its grammar and for other dialects."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrewind.backup.understanding.sql import SqlEffects, joined, read_sql

READS = [
    "select 1",
    "",
    "select * from a.b where x = now()",
    "with recursive r as (select 1) select count(*) from r",
    "explain delete from z",
    "explain (costs off) update t set a = 1",
    "copy t to stdout",
    "copy (select 1) to stdout with csv",
    "set work_mem = '1GB'",
    "show all",
    "begin; select 1; rollback",
    "begin read only; select pg_size_pretty(pg_database_size('x')); commit",
    "values (1)",
    "table t",
    "select x from t -- drop table t",
    "/* delete /* nested */ from t */ select 1",
    "select 'delete from t; drop table x'",
    "select $x$ drop table t; $x$",
    'select "delete" from "drop"',
    "declare c cursor for select 1; fetch 10 from c; close c",
    r"\dt+",
    "\\d t\n\\l\nselect 1;",
    r"select 1 \g",
    r"\copy (select 1) to stdout",
    "select lastval(), currval('s'), random(), pg_sleep(1)",
]

CHANGES = {
    "delete from a.b": SqlEffects(read_only=False, tables=("a.b",)),
    "with d as (delete from a.b returning *) select * from d": SqlEffects(read_only=False, tables=("a.b",)),
    "select * into t2 from t": SqlEffects(read_only=False, tables=("t2",)),
    "COMMIT; DELETE FROM z; SELECT 1": SqlEffects(read_only=False, tables=("z",)),
    "explain analyze delete from z": SqlEffects(read_only=False, tables=("z",)),
    "explain (verbose, analyze) insert into z values (1)": SqlEffects(read_only=False, tables=("z",)),
    "copy (delete from t returning *) to stdout": SqlEffects(read_only=False, tables=("t",)),
    "copy t from '/x'": SqlEffects(read_only=False, tables=("t",)),
    "merge into t using s on t.a = s.a when matched then delete": SqlEffects(read_only=False, tables=("t",)),
    "select * from t for update": SqlEffects(read_only=False, tables=("t",)),
    'drop table "A b", c.d cascade': SqlEffects(read_only=False, tables=("A b", "c.d")),
    "drop schema s cascade": SqlEffects(read_only=False, schemas=("s",)),
    "drop database shop": SqlEffects(read_only=False, databases=("shop",)),
    "create database shop": SqlEffects(read_only=False, databases=("shop",)),
    "alter database a rename to b": SqlEffects(read_only=False, databases=("a", "b")),
    "alter table t drop column x": SqlEffects(read_only=False, tables=("t",)),
    "truncate a": SqlEffects(read_only=False, tables=("a",)),
    "prepare p as delete from t": SqlEffects(read_only=False, tables=("t",)),
    "select nextval('s')": SqlEffects(read_only=False, whole_database=True),
    "select setval('s', 1)": SqlEffects(read_only=False, whole_database=True),
    "select our_function(1)": SqlEffects(read_only=False, whole_database=True),
    "select other.count(1)": SqlEffects(read_only=False, whole_database=True),
    "explain select our_function(1)": SqlEffects(read_only=False, whole_database=True),
    "do $$ begin delete from t; end $$": SqlEffects(read_only=False, whole_database=True),
    "call p()": SqlEffects(read_only=False, whole_database=True),
    "execute p": SqlEffects(read_only=False, whole_database=True),
    "create extension x": SqlEffects(read_only=False, whole_database=True),
    r"\copy t from 'f.csv' csv": SqlEffects(read_only=False, tables=("t",)),
    "notify x": SqlEffects(read_only=False),
}

UNCLEAR = [
    "copy t to program 'x'",
    "copy t from program 'x'",
    "copy t to '/x'",
    "create role r",
    "drop owned by x",
    "alter system set x = 1",
    "select lo_export(1, '/x')",
    "select dblink_exec('x', 'delete from t')",
    "select pg_terminate_backend(1)",
    "do language plpython3u $$ import os $$",
    "selec",
    "select 1; \x00",
    "set standard_conforming_strings = off; select 'a\\'; delete from t; --'",
    r"\! rm x",
    "select 1; \\! rm x",
    r"select 'drop table t' \gexec",
    r"\i x.sql",
    r"\c other",
    r"\o f",
    r"select 1 \g f",
    r"select 1 \g |sh",
    r"\copy t to 'f'",
    r"\copy t from program 'x'",
    r"\set x `rm x`",
    r"\echo `rm x`",
    r"\set x 'drop table t' \\ :x",
    r"select 1 \watch \! rm x",
]


@pytest.mark.parametrize("text", READS)
def test_what_reads_from_postgresql(text: str) -> None:
    assert read_sql(text, "postgresql") == SqlEffects(read_only=True)


@pytest.mark.parametrize("text", CHANGES)
def test_what_changes_postgresql(text: str) -> None:
    found = read_sql(text, "postgresql")
    assert (found, sorted(found.tables)) == (CHANGES[text], sorted(CHANGES[text].tables))


@pytest.mark.parametrize("text", UNCLEAR)
def test_what_reaches_out_or_cannot_be_told(text: str) -> None:
    found = read_sql(text, "postgresql")
    assert not found.read_only
    assert found.unclear


SQLITE = {
    "select lower(a) from t": True,
    ".tables\nselect 1;": True,
    "pragma table_info(t)": True,
    "pragma user_version": True,
    "explain query plan delete from t": True,
    "pragma user_version=3": False,
    "pragma journal_mode=wal": False,
    "insert into t values (1)": False,
    "with a as (select 1) insert into t select * from a": False,
    "replace into t values (1)": False,
    "drop table t": False,
    "vacuum": False,
    "vacuum into 'x'": False,
    "attach 'x.db' as y": False,
    "select load_extension('x')": False,
    "select writefile('a', 'b')": False,
    "select our_function(1)": False,
    ".output x": False,
    ".shell rm x": False,
    ".read x.sql": False,
    "select 'a\n.show '; delete from t; --'": False,
    "begin; delete from t; commit": False,
    "selec": False,
}


@pytest.mark.parametrize("text", SQLITE)
def test_what_sqlite_is_given(text: str) -> None:
    assert read_sql(text, "sqlite").read_only is SQLITE[text]


MYSQL = {
    "show tables": True,
    "describe t": True,
    "explain select 1": True,
    "select a from t": True,
    "/*!50000 drop table t */": False,
    "select * into outfile 'x' from t": False,
    "load data infile 'x' into table t": False,
    "explain analyze delete from t": False,
    "select 1 for update": False,
    "select 1; drop database d": False,
    "rename table a to b": False,
    "set global x = 1": False,
    "call p()": False,
    "system rm x": False,
    "select 1 \\! rm x": False,
}


@pytest.mark.parametrize("text", MYSQL)
def test_what_mysql_is_given(text: str) -> None:
    assert read_sql(text, "mysql").read_only is MYSQL[text]


@given(
    st.permutations(["select 1", "show all", "table t"]), st.integers(0, 3), st.sampled_from(sorted(CHANGES))
)
@settings(deadline=None)
def test_statements_around_it_change_no_verdict(around: list[str], place: int, change: str) -> None:
    statements = [*around[:place], change, *around[place:]]
    found = read_sql(";\n".join(statements), "postgresql")
    assert not found.read_only
    assert set(CHANGES[change].tables) <= set(found.tables)


@given(st.text(max_size=50) | st.text(alphabet=" \n'\"\\$;:-/*().abselctdrop", max_size=50))
@settings(deadline=None, max_examples=300)
def test_no_text_makes_it_fail(text: str) -> None:
    for dialect in ("postgresql", "sqlite"):
        read_sql(text, dialect)


def test_nothing_together_is_read_only() -> None:
    assert joined([]) == SqlEffects(read_only=True)
