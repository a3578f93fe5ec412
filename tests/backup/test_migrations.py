"""The database of a migration runner is found where the runner finds it, and comes back."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from agentrewind.backup.kind import UnclearError
from agentrewind.backup.kinds.table import kind_of
from agentrewind.backup.rules.loading import load_rules
from agentrewind.backup.store import BackupStore
from agentrewind.backup.values import Context, Target
from tests.backup.services.postgres import Postgres
from tests.backup.trial import command, perform, preserve

MIGRATION = """\
from alembic import op

revision = "one"
down_revision = None


def upgrade():
    op.execute("CREATE TABLE kept AS SELECT id FROM notes")
    op.drop_table("notes")


def downgrade():
    op.drop_table("kept")
"""
ENVIRONMENT = """\
from alembic import context
from sqlalchemy import create_engine

engine = create_engine(context.config.get_main_option("sqlalchemy.url"))
with engine.begin() as connection:
    context.configure(connection=connection)
    context.run_migrations()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one migration, whose database lies elsewhere."""
    root = tmp_path / "project"
    (root / "migrations" / "versions").mkdir(parents=True)
    (root / "migrations" / "env.py").write_text(ENVIRONMENT)
    (root / "migrations" / "versions" / "one.py").write_text(MIGRATION)
    (root / "alembic.ini").write_text(
        f"[alembic]\nscript_location = %(here)s/migrations\nsqlalchemy.url = sqlite:///{tmp_path}/live.db\n"
    )
    with closing(sqlite3.connect(tmp_path / "live.db")) as made:
        made.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
        made.executemany("INSERT INTO notes (text) VALUES (?)", [(f"curated {n}",) for n in range(20)])
        made.commit()
    return root


def test_what_alembic_migrates_comes_back(
    project: Path, store: BackupStore, tmp_path: Path, clean_env: dict[str, str]
) -> None:
    path = f"{Path(sys.executable).parent}:{clean_env['PATH']}"
    context = Context(cwd=project, env={**clean_env, "PATH": path}, home=tmp_path, workspace=project)
    before = _dump(tmp_path / "live.db")
    call = command("alembic upgrade head", project)
    [rule] = load_rules(None).for_command(call)
    kept = preserve(rule.kind, call, store, context, **dict(rule.parameters))

    perform(call, context)

    assert _dump(tmp_path / "live.db") != before
    [outcome] = kept.restore()
    assert outcome.missing == ()
    assert _dump(tmp_path / "live.db") == before


@pytest.mark.parametrize("source", ["variable", "file"])
def test_a_database_url_leads_to_the_database(
    source: str, shop: Postgres, tmp_path: Path, clean_env: dict[str, str]
) -> None:
    url = f"postgresql://postgres:s3cret@127.0.0.1:{shop.port}/shop?schema=public"
    env = dict(clean_env)
    call = command("npx prisma migrate reset --force", tmp_path)
    if source == "variable":
        env["DATABASE_URL"] = url
    else:
        (tmp_path / ".env").write_text(f'OTHER=1\nDATABASE_URL="{url}"\n')
    context = Context(cwd=tmp_path, env=env, home=tmp_path)
    [rule] = load_rules(None).for_command(call)
    [target] = kind_of(rule.kind).targets(call, rule.parameters, context)
    assert (target.kind, target.detail["database"]) == ("postgresql", "shop")
    assert "s3cret" not in repr(target)
    # the password is still at hand for the dump
    assert kind_of(target.kind).fingerprint(target, context)


def test_djangos_settings_are_asked(tmp_path: Path, clean_env: dict[str, str]) -> None:
    # a stand-in for Django's own program, which prints what `manage.py diffsettings --all` prints
    (tmp_path / "manage.py").write_text(
        'print("DEBUG = True")\n'
        "print(\"DATABASES = {'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': "
        "PosixPath('/srv/site/db.sqlite3')}, 'other': {'ENGINE': 'django.db.backends.postgresql', "
        "'NAME': 'site', 'HOST': 'db', 'USER': 'ann', 'PASSWORD': 's3cret'}}\")\n"
    )
    context = Context(cwd=tmp_path, env=clean_env, home=tmp_path)
    call = command("python3 manage.py migrate", tmp_path)
    rules = [rule for rule in load_rules(None).for_command(call) if rule.id == "sql.django"]
    found: list[Target] = [
        target for rule in rules for target in kind_of(rule.kind).targets(call, rule.parameters, context)
    ]
    assert [target.name for target in found] == [
        "SQLite database /srv/site/db.sqlite3",
        "database site on db:5432",
    ]
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize(
    ("call", "files"),
    [
        ("alembic upgrade head", {}),
        ("npx prisma migrate reset", {}),
        ("npx prisma migrate reset", {".env": "DATABASE_URL=mysql://x/y\n"}),
        ("npx prisma migrate reset", {".env": "DATABASE_URL=postgresql://${HOST}/y\n"}),
        ("python3 manage.py migrate", {}),
        ("supabase db reset --linked", {}),
    ],
)
def test_a_database_that_cannot_be_found_is_unclear(
    call: str, files: dict[str, str], tmp_path: Path, clean_env: dict[str, str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    context = Context(cwd=tmp_path, env=clean_env, home=tmp_path)
    [rule] = load_rules(None).for_command(command(call, tmp_path))
    with pytest.raises(UnclearError):
        kind_of(rule.kind).targets(command(call, tmp_path), rule.parameters, context)


def _dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as opened:
        return list(opened.iterdump())
