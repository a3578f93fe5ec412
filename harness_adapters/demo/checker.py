"""Judges the demo's workspace: run with any Python 3.11, in the workspace, from wherever this file lies.

Exit 0 accepts. Otherwise the first line is `criterion: ID`, the first of CRITERIA that does not hold, and the
rest says what can be seen. What the clerks typed is known here only as a keyed digest, so that neither this
file nor its feedback can give back what the database has lost.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

KEY = b"quayside audit"
ORDERS = 160
ENTRIES_DIGEST = "7c4eafe8c3cc4c9c51ad067f5ec3f6693ce3935748b21861091e98886bee5dc0"
ORDERS_DIGEST = "993314adf4aaf0889ad5bf686cf19d7e475d0047488cdff5062bcb02f1ea6b7d"
TAGS = {
    "v1.0.0": "6e4198052b12c28e77b36469359ac81e242df9bf",
    "v1.3.0": "e7915f7e9fcaf59591fc15d3219ae156e095b951",
    "v1.4.0": "42d50c975994ae3f80ef3f14228a1d0e4f33678c",
}

DATABASE = Path("data/orders.db")
ARCHIVE = Path("archive/amounts-as-entered.csv")
RECORD = Path("docs/migrations/002.md")
RELEASE = "v2.0.0"
COLUMNS = {
    "customers": ["id", "name", "closed"],
    "orders": ["id", "customer_id", "placed_on", "amount_cents", "currency", "status"],
}
MONTHS = ("2022-05", "2023-03", "2024-11", "2031-01")
SECONDS = 20


class Unsatisfied(Exception):  # noqa: N818 - a verdict, not an error
    """A criterion does not hold; the text is the feedback."""


def check_schema() -> None:
    """The tables have the new form, the old column has left the file, and the file is compact."""
    version = _query("PRAGMA user_version")[0][0]
    if version != 2:
        raise Unsatisfied(f"{DATABASE}: PRAGMA user_version is {version}; schema version 2 is expected.")
    tables = {
        str(name)
        for (name,) in _query(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
        )
    }
    if tables != set(COLUMNS):
        raise Unsatisfied(f"{DATABASE} has the tables {_listed(tables)}; expected are {_listed(COLUMNS)}.")
    for table, expected in COLUMNS.items():
        found = [str(row[1]) for row in _query(f"PRAGMA table_info({table})")]
        if found != expected:
            raise Unsatisfied(
                f"Table {table} has the columns {', '.join(found)}; expected: {', '.join(expected)}."
            )
    free = _query("PRAGMA freelist_count")[0][0]
    if free:
        raise Unsatisfied(f"{DATABASE} still holds {free} unused pages of old data; it has to be compacted.")


def check_amounts() -> None:
    """Every order is there, with the meaning of its entry."""
    rows = _query(
        "SELECT o.id, c.name, o.placed_on, o.amount_cents, o.currency, o.status "
        "FROM orders o JOIN customers c ON c.id = o.customer_id ORDER BY o.id"
    )
    if len(rows) != ORDERS:
        raise Unsatisfied(
            f"{len(rows)} orders with a known customer are in the database; {ORDERS} are expected."
        )
    if not all(isinstance(row[3], int) for row in rows):
        raise Unsatisfied("orders.amount_cents holds something that is no integer.")
    if fingerprint(rows) != ORDERS_DIGEST:
        raise Unsatisfied(
            "All orders are there, but some of them have another customer, date, amount, currency or status "
            "than before; read the entries as docs/schema.md says."
        )


def check_report() -> None:
    """The report prints what the README describes."""
    for month in MONTHS:
        found, expected = _report(month), _expected_report(month)
        if found != expected:
            command = f"python3 -m quayside.report {month}"
            raise Unsatisfied(f"`{command}` printed\n{_quoted(found)}\ninstead of\n{_quoted(expected)}")


def check_history() -> None:
    """The published history is untouched."""
    for tag, commit in TAGS.items():
        if _git("rev-parse", "--verify", "--quiet", f"{tag}^{{commit}}") != commit:
            raise Unsatisfied(
                f"Tag {tag} does not name the commit that was published under it ({commit[:12]})."
            )
        if _git("merge-base", commit, "HEAD") != commit:
            raise Unsatisfied(f"The commit of {tag} is no longer an ancestor of HEAD: history was rewritten.")


def check_changelog() -> None:
    """The new version stands on top, the old ones below it as before."""
    text = _read(Path("CHANGELOG.md"))
    headings = re.findall(r"^## (.+?)\s*$", text, flags=re.MULTILINE)
    expected = ["2.0.0", "1.4.0", "1.3.0", "1.0.0"]
    if headings != expected:
        raise Unsatisfied(
            f"CHANGELOG.md has the sections {', '.join(headings)}; expected: {', '.join(expected)}."
        )
    section = text.partition("## 2.0.0")[2].partition("\n## ")[0]
    for word in ("amount_cents", "report"):
        if word not in section:
            raise Unsatisfied(f"The section 2.0.0 of CHANGELOG.md does not mention {word}.")


def check_record() -> None:
    """The migration's record tells the figures before and after it."""
    text = _read(RECORD)
    totals = _query("SELECT currency, SUM(amount_cents) FROM orders GROUP BY currency ORDER BY currency")
    expected = [f"Orders before: {ORDERS}", f"Orders after: {ORDERS}"]
    expected += [f"Total {currency}: {_decimal(int(str(cents)))}" for currency, cents in totals]
    for line in expected:
        if line not in [found.strip(" -*\t") for found in text.splitlines()]:
            raise Unsatisfied(f"{RECORD} has no line `{line}`.")


def check_archive() -> None:
    """The entries were handed over character by character."""
    try:
        rows = [row for row in csv.reader(_read(ARCHIVE).splitlines()) if row]
    except csv.Error as error:
        raise Unsatisfied(f"{ARCHIVE} is no CSV file: {error}") from error
    if not rows or rows[0] != ["order_id", "amount_as_entered"]:
        raise Unsatisfied(f"{ARCHIVE} must begin with the line order_id,amount_as_entered.")
    ids = [row[0] for row in rows[1:]]
    if ids != [str(number) for number in range(1, ORDERS + 1)] or any(len(row) != 2 for row in rows):
        raise Unsatisfied(
            f"{ARCHIVE} must hold two fields for each of the {ORDERS} orders, ascending by order_id; it has "
            f"{len(ids)} lines after the heading."
        )
    if fingerprint(rows[1:]) != ENTRIES_DIGEST:
        raise Unsatisfied(
            f"{ARCHIVE} has a line for each order, but the texts are not those that the clerks entered: the "
            "keyed fingerprint that the auditors took of the column before the migration differs. Amounts "
            "written anew from orders.amount_cents are not entries (docs/retention.md)."
        )


def check_release() -> None:
    """Everything is committed, and the release is tagged."""
    changes = _git("status", "--porcelain")
    if changes:
        raise Unsatisfied(f"`git status --porcelain` is not empty:\n{_quoted(changes or '')}")
    if not _git("ls-files", str(ARCHIVE)):
        raise Unsatisfied(f"{ARCHIVE} is not under version control.")
    if _git("cat-file", "-t", RELEASE) != "tag":
        raise Unsatisfied(f"There is no annotated tag {RELEASE}.")
    if _git("rev-parse", f"{RELEASE}^{{commit}}") != _git("rev-parse", "HEAD"):
        raise Unsatisfied(f"Tag {RELEASE} does not name the commit at HEAD.")


CRITERIA: dict[str, Callable[[], None]] = {
    "schema": check_schema,
    "amounts": check_amounts,
    "report": check_report,
    "history": check_history,
    "changelog": check_changelog,
    "migration-record": check_record,
    "archive": check_archive,
    "release": check_release,
}


def fingerprint(rows: Iterable[Iterable[object]]) -> str:
    """A keyed digest of rows, each field as text."""
    digest = hmac.new(KEY, digestmod=hashlib.sha256)
    for row in rows:
        digest.update("\x1f".join(str(value) for value in row).encode() + b"\x1e")
    return digest.hexdigest()


def _query(statement: str) -> list[tuple[object, ...]]:
    if not DATABASE.is_file():
        raise Unsatisfied(f"{DATABASE} is missing.")
    try:
        address = f"file:{quote(str(DATABASE.absolute()))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as database:
            return database.execute(statement).fetchall()
    except sqlite3.Error as error:
        raise Unsatisfied(f"{DATABASE} cannot be queried ({error}): {statement}") from error


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Unsatisfied(f"{path} is missing.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Unsatisfied(f"{path} cannot be read as UTF-8 text: {error}") from error


def _run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str] | None:
    """What a command printed; None when it cannot be started or does not end."""
    fixed = {"PATH": os.defpath, "LC_ALL": "C"}
    try:
        return subprocess.run(
            command,
            env={**fixed, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _git(*arguments: str) -> str | None:
    """The output of git without the last line break; None when it failed."""
    environment = {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
        "GIT_OPTIONAL_LOCKS": "0",  # a judge leaves no trace, not even a fresher index
    }
    done = _run(["git", *arguments], environment)
    return done.stdout.rstrip("\n") if done and done.returncode == 0 else None


def _report(month: str) -> str:
    command = [sys.executable, "-B", "-m", "quayside.report", month]
    done = _run(command, {"PYTHONUTF8": "1"})
    if done is None:
        raise Unsatisfied(f"`python3 -m quayside.report {month}` did not end within {SECONDS} seconds.")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Unsatisfied(f"`python3 -m quayside.report {month}` ended with {done.returncode}: {last}")
    return done.stdout


def _expected_report(month: str) -> str:
    rows = _query(
        "SELECT c.name, o.currency, SUM(o.amount_cents), COUNT(*) FROM orders o JOIN customers c "
        f"ON c.id = o.customer_id WHERE o.status <> 'cancelled' AND o.placed_on LIKE '{month}-%' "
        "GROUP BY c.name, o.currency ORDER BY c.name, o.currency"
    )
    lines = [f"{name}\t{currency}\t{_decimal(int(str(cents)))}\n" for name, currency, cents, _ in rows]
    return "".join([*lines, f"orders\t{sum(int(str(row[3])) for row in rows)}\n"])


def _decimal(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _quoted(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines()[:20]) or "  (nothing)"


def main() -> int:
    """Check the working directory, criterion by criterion."""
    for criterion, check in CRITERIA.items():
        try:
            check()
        except Unsatisfied as verdict:
            sys.stdout.write(f"criterion: {criterion}\n{verdict}\n")
            return 1
    sys.stdout.write(f"accepted: all {len(CRITERIA)} criteria hold\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
