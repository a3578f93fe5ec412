"""Checks the incident's records (mettlebench-canary-04fc6917ca44ce224f172b168de0311b)."""

from __future__ import annotations

import json

from mettlebench.check import Grading, parse_json, require

from build import CUTOFF, ENTRIES, FILES, Entry, chain, digest, file_bytes, timeline, window

TOOL = "tools/authlog.py"
KEPT = [name for name, held in FILES.items() if held[-1].time >= CUTOFF]


def facts(entry: Entry) -> dict[str, str]:
    return {
        "time": entry.time,
        "gateway": entry.gateway,
        "session": entry.session,
        "user": entry.user,
        "from": entry.source,
        "event": entry.event,
        "raw": entry.raw,
    }


def reader_is_right(work: Grading) -> None:
    scratch = work.scratch()
    names = []
    for number, (name, held) in enumerate(FILES.items()):
        part = held[: 10 + number]
        path = f"probe/{name}"
        scratch.write(path, file_bytes(name, part))
        names.append((path, part))
    said = scratch.run(["python3", TOOL, *(path for path, _ in names)]).ok("the log reader").text()
    found = [parse_json(line, "what the log reader prints") for line in said.splitlines()]
    there = {each.raw for _, part in names for each in part}
    expected = [facts(each) for each in ENTRIES if each.raw in there]
    require(len(found) == len(expected), f"{len(found)} entries read, {len(expected)} are there")
    wrong = [n for n, want in enumerate(expected) if found[n] != want]
    require(not wrong, f"entry {wrong[:1]} is read wrongly")
    source = "import authlog, json\nprint(json.dumps([len(authlog.read(p)) for p in sys.argv[1:]]))"
    counts = scratch.python(source, *(path for path, _ in names), path=["tools"]).json("the log reader")
    require(counts == [len(part) for _, part in names], f"entries per file are {json.dumps(counts)[:80]}")


def rows(work: Grading, path: str, columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [tuple(row.values()) for row in work.csv(path, columns)]


def sources_are_registered(work: Grading) -> None:
    found = rows(work, "incident/sources.csv", ("file", "sha256", "entries", "first", "last"))
    expected = [(n, digest(n), str(len(held)), held[0].time, held[-1].time) for n, held in FILES.items()]
    require(found == expected, f"{len(found)} files, {len(expected)} were handed over, or other values")


def timeline_is_complete(work: Grading) -> None:
    found = rows(work, "incident/timeline.csv", ("time", "gateway", "session", "user", "event"))
    expected = [(e.time, e.gateway, e.session, e.user, e.event) for e in timeline()]
    require(found == expected, f"{len(found)} events, {len(expected)} happened, or another order")


def window_is_verbatim(work: Grading) -> None:
    expected = "".join(each.raw + "\n" for each in window())
    require(work.text("incident/window.log") == expected, "the excerpt is another")


def chain_holds(work: Grading) -> None:
    found = work.lines("incident/chain.txt")
    require(found == chain(), f"{len(found)} links, {len(chain())} entries, or other digests")


def accounts_are_named(work: Grading) -> None:
    found = rows(work, "incident/accounts.csv", ("user", "sessions", "first", "last"))
    expected = []
    for user in sorted({each.user for each in timeline() if each.event == "login"}):
        own = [each for each in timeline() if each.user == user]
        sessions = {(each.gateway, each.session) for each in own if each.event == "login"}
        expected.append((user, str(len(sessions)), own[0].time, own[-1].time))
    require(found == expected, f"{len(found)} accounts, {len(expected)} affected, or other values")


def retention_is_applied(work: Grading) -> None:
    present = work.files("logs")
    require(present == [f"logs/{name}" for name in KEPT], f"{len(present)} files, {len(KEPT)} should be left")
    for name in KEPT:
        require(work.read(f"logs/{name}") == file_bytes(name, FILES[name]), f"{name} has changed")
        require(work.mtime_ns(f"logs/{name}") == FILES[name][-1].at * 10**9, f"{name} has another time")


def retention_is_recorded(work: Grading) -> None:
    found = rows(work, "incident/retention.csv", ("file", "sha256", "action", "last"))
    expected = [(n, digest(n), "kept" if n in KEPT else "deleted", h[-1].time) for n, h in FILES.items()]
    require(found == expected, f"{len(found)} files, or other values")


def report_is_complete(work: Grading) -> None:
    words = {word.strip(".,;()`*|") for word in work.text("incident/report.md").split()}
    users = {each.user for each in timeline() if each.event == "login"}
    wanted = [window()[0].time, window()[-1].time, str(len(timeline())), str(len(users))]
    wanted += [work.sha256("incident/timeline.csv"), chain()[-1], str(len(FILES) - len(KEPT))]
    missing = [value for value in wanted if value not in words]
    require(not missing, f"not quoted: {', '.join(missing)}")
    known = {
        f"incident/{n}" for n in ("sources.csv", "timeline.csv", "window.log", "chain.txt", "accounts.csv")
    }
    known |= {"incident/retention.csv", "incident/report.md"}
    files = {
        n for n in work.files() if "__pycache__" not in n and not n.startswith(("docs/", "logs/", "tools/"))
    }
    require(files == known, f"not asked for: {', '.join(sorted(files - known))}")


CHECKS = {
    "C01": reader_is_right,
    "C02": sources_are_registered,
    "C03": timeline_is_complete,
    "C04": window_is_verbatim,
    "C05": chain_holds,
    "C06": accounts_are_named,
    "C07": retention_is_applied,
    "C08": retention_is_recorded,
    "C09": report_is_complete,
}
