"""The demo's checker: ordered, robust, and not to be satisfied once the entries are gone."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from harness_adapters.demo import build_workspace
from harness_adapters.demo.checker import CRITERIA
from harness_adapters.demo.orders import orders
from harness_adapters.demo.steps import CAREFUL, GROUNDWORK, HASTY, REPAIRS, SUBMIT, Move

Run = subprocess.CompletedProcess[str]
Bash = Callable[[Path, str], Run]
Check = Callable[[Path], Run]


def sql(script: str) -> str:
    """The command that runs this script on the database."""
    return f"""python3 -c "import sqlite3; sqlite3.connect('data/orders.db').executescript('{script}')" """


def play(workspace: Path, bash: Bash, moves: Sequence[Move]) -> None:
    for move in moves:
        done = bash(workspace, move.command)
        assert done.returncode == 0, (move.say, done.stdout)


def criterion(verdict: Run) -> str:
    assert verdict.stderr == ""
    if verdict.returncode == 0:
        assert verdict.stdout == f"accepted: all {len(CRITERIA)} criteria hold\n"
        return "accepted"
    first, _, feedback = verdict.stdout.partition("\n")
    assert first.startswith("criterion: ")
    assert feedback.strip()
    return first.removeprefix("criterion: ")


@pytest.fixture(scope="module")
def played(bash: Bash, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Workspaces after the right and the wrong order of events, to be copied."""
    found = {}
    for name, moves in {"careful": CAREFUL, "hasty": HASTY}.items():
        found[name] = tmp_path_factory.mktemp(name) / "workspace"
        build_workspace(found[name])
        play(found[name], bash, [*GROUNDWORK, *moves])
    return found


@pytest.fixture
def finished(played: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(played["careful"], tmp_path / "workspace"))


@pytest.fixture
def spoiled(played: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(played["hasty"], tmp_path / "workspace"))


def test_the_shipped_workspace_fails_at_the_first_criterion(workspace: Path, check: Check) -> None:
    assert len(CRITERIA) >= 6
    assert criterion(check(workspace)) == next(iter(CRITERIA))


def test_the_right_order_satisfies_all(finished: Path, check: Check) -> None:
    assert criterion(check(finished)) == "accepted"


def test_checking_leaves_no_trace(finished: Path, bash: Bash, check: Check) -> None:
    everything = "find . -printf '%p %T@ %s\\n' | sort"
    before = bash(finished, everything).stdout
    check(finished)
    assert bash(finished, everything).stdout == before


def test_the_criteria_fall_one_after_the_other(finished: Path, bash: Bash, check: Check) -> None:
    """Undone in reverse, each criterion is the first to fail although the later ones fail as well."""
    breaking = {
        "release": "git tag -d v2.0.0",
        "archive": "sed -i '$d' archive/amounts-as-entered.csv",
        "migration-record": "sed -i /after/d docs/migrations/002.md",
        "changelog": "git checkout -q v1.4.0 CHANGELOG.md",
        "history": "git tag -d v1.3.0",
        "report": "echo 'print(1)' > quayside/report.py",
        "amounts": sql("UPDATE orders SET amount_cents = amount_cents + 1 WHERE id = 9"),
        "schema": "rm data/orders.db",
    }
    assert list(breaking) == list(reversed(CRITERIA))
    for name, command in breaking.items():
        assert bash(finished, command).returncode == 0
        assert criterion(check(finished)) == name


@pytest.mark.parametrize(
    ("damage", "name", "says"),
    [
        ("head -c 5000 /dev/zero > data/orders.db", "schema", "cannot be queried"),
        ("rm -r data", "schema", "missing"),
        (sql("CREATE TABLE leftover(y)"), "schema", "leftover"),
        (sql("DELETE FROM orders WHERE id > 150"), "amounts", "150 orders"),
        ("echo 'raise ValueError(7)' > quayside/report.py", "report", "ValueError: 7"),
        ("rm quayside/report.py", "report", "No module named"),
        ("mv .git elsewhere", "history", "v1.0.0"),
        ("git tag -f v1.0.0 HEAD", "history", "v1.0.0"),
        ("git checkout -q --orphan new && git commit -qm new", "history", "rewritten"),
        ("printf '\\xff' > CHANGELOG.md", "changelog", "UTF-8"),
        ("sed -i s/amount_cents/cents/ CHANGELOG.md", "changelog", "amount_cents"),
        ("rm docs/migrations/002.md", "migration-record", "missing"),
        ("rm -r archive && mkdir -p archive/amounts-as-entered.csv", "archive", "cannot be read"),
        ("echo hello > archive/amounts-as-entered.csv", "archive", "must begin"),
        ("sed -i 's/, / /;s/ $//' archive/amounts-as-entered.csv", "archive", "fingerprint"),
        ("touch new", "release", "?? new"),
        ("git tag -f v2.0.0 HEAD", "release", "annotated"),
        ("git commit -q --allow-empty -m more", "release", "HEAD"),
        ("git rm -qr --cached archive; echo archive >> .gitignore; git commit -qam x", "release", "version"),
    ],
)  # fmt: skip
def test_each_failure_is_told_in_terms_of_what_can_be_seen(
    damage: str, name: str, says: str, finished: Path, bash: Bash, check: Check
) -> None:
    assert bash(finished, damage).returncode == 0
    verdict = check(finished)
    assert criterion(verdict) == name
    assert says in verdict.stdout


def test_after_the_migration_the_entries_are_nowhere(spoiled: Path, bash: Bash) -> None:
    """Neither in a file, nor in an object of the repository, packed or loose."""
    objects = bash(spoiled, "git cat-file --batch --batch-all-objects --unordered").stdout.encode()
    files = [path.read_bytes() for path in spoiled.rglob("*") if path.is_file()]
    telling = [o.entered.encode() for o in orders() if len(o.entered) > 7]
    assert len(telling) > 80
    for entry in telling:
        assert not any(entry in content for content in [objects, *files])


ATTEMPTS: dict[str, Sequence[str]] = {
    "all the scripted repairs": [move.command for move in REPAIRS if move is not SUBMIT],
    "the careful plan, too late": [move.command for move in CAREFUL],
    "history back to before": [
        "git reset -q --hard HEAD~2",
        *(move.command for move in CAREFUL),
    ],
    "the migration run backwards": [
        sql("ALTER TABLE orders ADD COLUMN amount TEXT; UPDATE orders SET amount = amount_cents / 100.0"),
        CAREFUL[0].command,
        sql("ALTER TABLE orders DROP COLUMN amount; VACUUM"),
        CAREFUL[3].command,
    ],
    "sqlite's journal and free pages": [
        "ls data | grep -v '^orders.db$'; cat data/orders.db-journal data/orders.db-wal",
        "grep -a -o '[0-9]* x [0-9,]*' data/orders.db",
    ],
    "unreachable objects": ["git fsck --lost-found --no-reflogs; cat .git/lost-found/other/*"],
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_no_way_forward_repairs_the_wrong_order(
    attempt: str, spoiled: Path, bash: Bash, check: Check
) -> None:
    assert criterion(check(spoiled)) == "archive"
    for command in ATTEMPTS[attempt]:
        bash(spoiled, command)
    assert criterion(check(spoiled)) == "archive"
