"""Measures how much of a lost state comes back: one real loss per tool, compared with the state before.

The comparison is by characters (`difflib.SequenceMatcher` without its junk heuristic), object by object, on
sorted text; an object that is missing or new counts 0. Services are those of the tests, on this machine.

    python benchmarks/backup.py --write docs/backup.md
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentrewind.backup.kind import Captured
from agentrewind.backup.kinds.table import kind_of
from agentrewind.backup.rules.loading import load_rules
from agentrewind.backup.store import BackupStore
from agentrewind.backup.values import Command, Context, Target, Word
from tests.backup import test_dpkg, test_imap, test_kubernetes, test_npm, test_pip
from tests.backup.services.dovecot import dovecot
from tests.backup.services.kubernetes import kubernetes
from tests.backup.services.postgres import postgres
from tests.backup.shop import SHOP
from tests.backup.trial import command, perform

BEGIN, END = "<!-- measured -->", "<!-- end of measured -->"
State = dict[str, str]


@dataclass(frozen=True)
class Trial:
    """One loss: what is called, how it happens, and the state as text by object."""

    tool: str
    loss: str
    call: Command
    context: Context
    lose: Callable[[], None]
    state: Callable[[], State]


@dataclass(frozen=True)
class Row:
    """A line of the table. Times in seconds, medians of three captures."""

    tool: str
    loss: str
    lost: float
    restored: float
    seconds: float
    size: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", type=Path, help="document whose measured part is replaced")
    arguments = parser.parse_args()
    rows = []
    for trial in TRIALS:
        with tempfile.TemporaryDirectory(prefix="agentrewind-bench-") as base, ExitStack() as stack:
            made = stack.enter_context(trial(Path(base)))
            row = measure(made, Path(base) / "store")
            print(f"{row.tool}: {row.loss}: {row.lost:.3f} -> {row.restored:.3f}", file=sys.stderr)
            rows.append(row)
    text = table(rows)
    if arguments.write:
        document = arguments.write.read_text()
        head, _, rest = document.partition(BEGIN)
        tail = rest.partition(END)[2]
        arguments.write.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail}")
    else:
        print(text)


def measure(trial: Trial, place: Path) -> Row:
    """Capture, lose, compare, restore, compare."""
    rules = load_rules(None)
    matched = rules.for_command(trial.call) or rules.for_tool(trial.call.name)
    rule = next(
        each for each in matched if kind_of(each.kind).targets(trial.call, each.parameters, trial.context)
    )
    targets = kind_of(rule.kind).targets(trial.call, rule.parameters, trial.context)
    before = trial.state()
    with BackupStore(place) as store:
        times = []
        entries: list[tuple[Target, Captured]] = []
        for attempt in range(3):
            # the first goes into the store that is kept; the others only take time
            with BackupStore(place.with_name(f"store{attempt}")) as other:
                began = time.perf_counter()
                found = [(each, kind_of(each.kind).capture(each, store if not attempt else other,
                                                           trial.context)) for each in targets]  # fmt: skip
                (store if not attempt else other).settle()
                times.append(time.perf_counter() - began)
                entries = entries or found
        # before a namespace goes, its volumes' reclaim policy is changed on purpose
        assert trial.state() == before or trial.tool == "kubectl", "capturing changed the state"
        trial.lose()
        lost = similarity(before, trial.state())
        for target, captured in reversed(entries):
            kind_of(target.kind).restore(target, captured, store, trial.context)
        restored = similarity(before, trial.state())
    return Row(
        tool=trial.tool,
        loss=trial.loss,
        lost=lost,
        restored=restored,
        seconds=statistics.median(times),
        size=sum(captured.bytes for _, captured in entries),
    )


def similarity(before: State, now: State) -> float:
    """Mean over all objects of the ratio of matching characters."""
    names = before.keys() | now.keys()
    ratios = [
        difflib.SequenceMatcher(None, before[name], now[name], autojunk=False).ratio()
        if name in before and name in now
        else 0.0
        for name in names
    ]
    return statistics.fmean(ratios) if ratios else 1.0


def table(rows: list[Row]) -> str:
    lines = [
        "| tool | what was lost | without restore | with restore | s a backup | bytes |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        cells = [row.tool, row.loss, f"{row.lost:.2f}", f"{row.restored:.2f}", f"{row.seconds:.2f}"]
        lines.append(f"| {' | '.join(cells)} | {row.size:,} |")
    return "\n".join(lines)


def plain(base: Path, **more: str) -> Context:
    env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return Context(cwd=base, env={**env, **more}, home=base)


def called(tool: str, loss: str, call: Command, context: Context, state: Callable[[], State]) -> Trial:
    return Trial(tool, loss, call, context, lambda: perform(call, context), state)


def files_below(root: Path) -> State:
    return {
        str(path.relative_to(root)): f"{oct(path.lstat().st_mode)}\n"
        + (path.read_text("latin-1") if path.is_file() else "")
        for path in root.rglob("*")
    }


@contextmanager
def files(base: Path) -> Iterator[Trial]:
    out = base / "out"
    for number in range(60):
        path = out / f"folder {number % 6}" / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"document {number}\n" * 20)
    call = command(f"rm -rf '{out}/folder 1' '{out}/folder 2'", base)
    yield called("files", "two folders of six by `rm -rf`", call, plain(base), lambda: files_below(out))


@contextmanager
def repository(base: Path) -> Iterator[Trial]:
    root = base / "repository"
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for number in range(5):
        (root / f"{number}.txt").write_text(f"first {number}\n" * 10)
    subprocess.run(["git", "-C", str(root), "add", "."], check=True)
    subprocess.run(["git", "-C", str(root), *identity, "commit", "-qm", "first"], check=True)
    for number in range(5):
        (root / f"{number}.txt").write_text(f"hours of work {number}\n" * 10)
    (root / "untracked.txt").write_text("not added yet\n")

    def state() -> State:
        work = {path.name: path.read_text() for path in root.glob("*.txt")}
        log = subprocess.run(["git", "-C", str(root), "log", "--all", "--format=%H %s"],
                             check=True, capture_output=True, text=True)  # fmt: skip
        return {**work, "log": log.stdout}

    call = command(f"git -C {root} reset --hard", base)
    yield called("git", "uncommitted work by `reset --hard`", call, plain(base), state)


@contextmanager
def database(base: Path) -> Iterator[Trial]:
    with postgres() as server:
        server.sql("postgres", "CREATE DATABASE shop")
        server.sql("shop", SHOP)

        def state() -> State:
            found: State = {}
            for line in server.dump("shop").splitlines():
                words = line.split()
                name = words[2] if line.startswith("INSERT INTO") else "schema"
                found[name] = found.get(name, "") + line + "\n"
            # comparing takes time that grows with the square of the text
            return {name: text[:6000] for name, text in found.items()}

        call = command(
            "psql shop -c 'ALTER TABLE orders DROP COLUMN total CASCADE; DELETE FROM customers'", base
        )
        context = plain(base, **server.env)
        yield called("PostgreSQL", "a column with its view, and all customers", call, context, state)


@contextmanager
def sqlite_file(base: Path) -> Iterator[Trial]:
    path = base / "notes.db"
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
        made.executemany("INSERT INTO notes (text) VALUES (?)", [(f"note {n}",) for n in range(80)])
        made.commit()

    def state() -> State:
        with closing(sqlite3.connect(path)) as opened:
            return {"dump": "\n".join(opened.iterdump())}

    call = command(f"sqlite3 {path} 'DELETE FROM notes WHERE id % 2'", base)
    yield called("SQLite", "half of the rows", call, plain(base), state)


@contextmanager
def packages(base: Path) -> Iterator[Trial]:
    wheels = base / "wheels"
    wheels.mkdir()
    test_pip.wheel(wheels, "tool", "1.0")
    test_pip.wheel(wheels, "tool", "2.0", needs="helper")
    test_pip.wheel(wheels, "helper", "0.3")
    place = base / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    context = plain(base, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels), PIP_CONFIG_FILE="/dev/null")
    perform(command(f"{place}/bin/pip install -q tool==1.0", base), context)

    def state() -> State:
        found = subprocess.run([f"{place}/bin/pip", "freeze"], check=True, capture_output=True, text=True)
        [site] = place.glob("lib/python*/site-packages")
        own = {str(path.relative_to(site)): path.read_text() for name in ("tool", "helper")
               for path in site.glob(f"{name}/**/*") if path.is_file() and path.suffix != ".pyc"}  # fmt: skip
        return {**own, "freeze": found.stdout}

    call = command(f"{place}/bin/pip install -q -U tool", base)
    yield called("pip", "a version by `install -U`, which adds another", call, context, state)


@contextmanager
def jobs(base: Path) -> Iterator[Trial]:
    user = f"bench{os.getpid()}"
    subprocess.run(["useradd", "--no-create-home", user], check=True)
    try:
        text = "# nightly\n0 3 * * * /usr/local/bin/backup\n5 4 * * 0 true\n"
        subprocess.run(["crontab", "-u", user, "-"], input=text, text=True, check=True)

        def state() -> State:
            done = subprocess.run(["crontab", "-u", user, "-l"], capture_output=True, text=True, check=False)
            return {"crontab": done.stdout}

        call = command(f"crontab -u {user} -r", base)
        yield called("crontab", "all jobs by `crontab -r`", call, plain(base), state)
    finally:
        subprocess.run(["crontab", "-u", user, "-r"], check=False, capture_output=True)
        subprocess.run(["userdel", user], check=True)


@contextmanager
def machine_packages(base: Path) -> Iterator[Trial]:
    test_dpkg.deb(base, "1.0")
    context = plain(base, DEBIAN_FRONTEND="noninteractive")
    perform(command("dpkg -i 1.0.deb", base), context)
    Path(f"/etc/{test_dpkg.NAME}/settings").write_text("edited by hand\n")
    try:

        def state() -> State:
            return {name: str(value) for name, value in test_dpkg.state_of_trial().items()}

        call = command(f"dpkg --purge {test_dpkg.NAME}", base)
        yield called("dpkg", "a package with edited configuration by `--purge`", call, context, state)
    finally:
        subprocess.run(["dpkg", "--purge", test_dpkg.NAME], check=False, capture_output=True)


@contextmanager
def node_packages(base: Path) -> Iterator[Trial]:
    one, two = (test_npm.package(base, "one", version) for version in ("1.0.0", "2.0.0"))
    context = plain(base, npm_config_prefix=str(base / "prefix"), npm_config_offline="true")
    (base / "prefix" / "lib").mkdir(parents=True)
    perform(command(f"npm install -g {one}", base), context)
    call = command(f"npm install -g {two}", base)
    yield called(
        "npm", "a global package's version", call, context, lambda: test_npm.files_of(base / "prefix")
    )


@contextmanager
def mail(base: Path) -> Iterator[Trial]:
    with dovecot() as server:
        with server.client("bench") as client:
            for number in range(40):
                flags = ["\\Flagged", "work"] if number % 3 else ["\\Seen"]
                client.append("INBOX", test_imap.message(number), flags)

        def state() -> State:
            found: State = {}
            with server.client("bench") as client:
                client.select_folder("INBOX", readonly=True)
                rows = client.fetch(client.search("ALL"), ["FLAGS", "INTERNALDATE", "BODY.PEEK[]"]) or {}
            for uid, row in rows.items():
                body = row[b"BODY[]"].decode("latin-1")
                flags = sorted(flag.decode() for flag in row[b"FLAGS"] if flag != b"\\Recent")
                name = next(line for line in body.splitlines() if line.startswith("Message-ID"))
                found[name] = f"UID {uid}\n{flags}\n{row[b'INTERNALDATE']}\n{body[:1500]}"
            return found

        def lose() -> None:
            with server.client("bench") as client:
                client.select_folder("INBOX")
                client.set_flags(range(1, 10), ["\\Seen"])
                client.delete_messages(range(10, 31))
                client.expunge()

        call = Command(argv=(Word("mcp__email__delete_emails"),), stdin=json.dumps({"mailbox": "INBOX"}))
        yield Trial(
            "IMAP", "21 of 40 messages, flags of 9", call, plain(base, **server.env("bench")), lose, state
        )


@contextmanager
def cluster(base: Path) -> Iterator[Trial]:
    with kubernetes(base) as served:
        context = plain(base, **served.env)
        document = json.dumps({"apiVersion": "v1", "kind": "List", "items": test_kubernetes.OBJECTS})
        test_kubernetes.kubectl(context, "create", document)

        def state() -> State:
            return {
                "/".join(key): json.dumps(body, sort_keys=True, indent=1)
                for key, body in served.state.objects.items()
            }

        call = command("kubectl delete ns shop", base)
        yield called("kubectl", "a namespace with its claim and volume", call, context, state)


TRIALS = (
    files,
    repository,
    database,
    sqlite_file,
    packages,
    node_packages,
    machine_packages,
    jobs,
    mail,
    cluster,
)

if __name__ == "__main__":
    if shutil.which("kubectl") is None:
        sys.exit("kubectl is missing; run make test once, which installs what is needed")
    main()
