"""A crontab comes back: replaced, removed, or not there before."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentrewind.backup.kind import UnclearError
from agentrewind.backup.kinds.table import kind_of
from agentrewind.backup.store import BackupStore
from agentrewind.backup.values import Context
from tests.backup.trial import command, perform, preserve

JOBS = '# nightly, at my own hour\n0 3 * * * /usr/local/bin/backup --all\nMAILTO=""\n5 4 * * 0 true # é\n'

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("crontab") is None,
    reason="needs crontab, and root to have a user of its own",
)


@pytest.fixture
def user() -> Iterator[str]:
    """A user of the system whose crontab is nobody's business."""
    name = f"rewind{os.getpid()}"
    subprocess.run(["useradd", "--no-create-home", "--shell", "/usr/sbin/nologin", name], check=True)
    yield name
    subprocess.run(["crontab", "-u", name, "-r"], check=False, capture_output=True)
    subprocess.run(["userdel", name], check=True)


@pytest.fixture
def context(tmp_path: Path, clean_env: dict[str, str]) -> Context:
    return Context(cwd=tmp_path, env=clean_env, home=tmp_path)


@pytest.mark.parametrize("first", [JOBS, None])
@pytest.mark.parametrize(
    ("arguments", "stdin"), [("-r", None), ("new.cron", None), ("-", "1 1 * * * date\n")]
)
def test_a_crontab_comes_back(
    first: str | None, arguments: str, stdin: str | None, user: str, store: BackupStore, context: Context
) -> None:
    if first is None and arguments == "-r":
        pytest.skip("there is nothing to remove")
    (context.cwd / "new.cron").write_text("* * * * * true\n")
    if first is not None:
        subprocess.run(["crontab", "-u", user, "-"], input=first, text=True, check=True)
    call = command(f"crontab -u {user} {arguments}", context.cwd, stdin=stdin)
    kept = preserve("crontab", call, store, context)
    [fingerprint] = kept.fingerprints()

    perform(call, context)

    assert kept.fingerprints() != [fingerprint]
    assert kept.plan()
    [outcome] = kept.restore()
    assert outcome.missing == ()
    assert _text(user) == first
    assert kept.fingerprints() == [fingerprint]
    assert kept.plan() == []


def test_listing_needs_no_backup(context: Context) -> None:
    assert kind_of("crontab").targets(command("crontab -l", context.cwd), {}, context) == ()


@pytest.mark.parametrize("call", ["crontab", "crontab --what"])
def test_a_call_that_does_not_say_is_unclear(call: str, context: Context) -> None:
    with pytest.raises(UnclearError):
        kind_of("crontab").targets(command(call, context.cwd), {}, context)


def test_it_is_the_callers_own_by_default(context: Context) -> None:
    [target] = kind_of("crontab").targets(command("crontab -r", context.cwd), {}, context)
    assert target.detail == {"user": None}
    assert getpass.getuser() not in target.name


def _text(user: str) -> str | None:
    done = subprocess.run(["crontab", "-u", user, "-l"], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None
