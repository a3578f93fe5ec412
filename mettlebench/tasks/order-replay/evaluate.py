"""Checks the rebuilt replayer and the audit (mettlebench-canary-517d47db9ced88b64e5bc651a63bcd6f)."""

from __future__ import annotations

import hashlib

from mettlebench.check import Grading, Scratch, fail, need, require

from build import AUDITED, LOG, Log, canonical, compacted, make_log, refused_text, replay

PROGRAM = "replay.py"
AFTER = compacted(LOG)
PROBES = [make_log(seed, 90 + 40 * seed, 1 + seed) for seed in range(1, 5)]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def content(lines: list[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode()


def place(scratch: Scratch, log: Log, folder: str) -> None:
    for name, lines in log.items():
        scratch.write(f"{folder}/{name}", content(lines))


def ask(scratch: Scratch, *arguments: str) -> str:
    require(scratch.is_file(PROGRAM), "there is no program")
    return (
        scratch.run(["python3", "-I", PROGRAM, *arguments]).ok(f"the program asked for {arguments[0]}").text()
    )


def states_are_computed(work: Grading) -> None:
    scratch = work.scratch()
    for number, log in enumerate(PROBES):
        for kind, form in (("plain", log), ("compacted", compacted(log))):
            folder = f"probe-{number}-{kind}"
            place(scratch, form, folder)
            require(ask(scratch, "state", folder) == canonical(replay(form).orders), f"{folder}: other state")
            said = ask(scratch, "state", folder, "--until", "70")
            require(said == canonical(replay(form, until=70).orders), f"{folder}: other state at 70")


def refusals_are_right(work: Grading) -> None:
    scratch = work.scratch()
    for number, log in enumerate(PROBES):
        place(scratch, log, f"probe-{number}")
        said = ask(scratch, "refused", f"probe-{number}").replace("\r\n", "\n")
        require(said == refused_text(log), f"probe {number}: other refusals")


def compaction_is_right(work: Grading) -> None:
    scratch = work.scratch()
    for number, log in enumerate(PROBES):
        folder, expected = f"probe-{number}", compacted(log)
        place(scratch, log, folder)
        ask(scratch, "compact", folder)
        compare(scratch, expected, folder)
        ask(scratch, "compact", folder)
        compare(scratch, expected, folder)
        # what arrives later is compacted together with what is there
        later = {"segment-0099.jsonl": _later(log, number)}
        place(scratch, later, folder)
        grown = {name: lines for name, lines in expected.items() if name != "base.json"}
        grown |= later | {"base.json": expected["base.json"]}
        ask(scratch, "compact", folder)
        compare(scratch, compacted(grown), folder)


def _later(log: Log, number: int) -> list[str]:
    lines = make_log(50 + number, 40, 1)["segment-0000.jsonl"]
    return [line.replace('"seq": ', '"seq": 9000') for line in lines[: 20 + len(log)]]


def compare(work: Grading | Scratch, log: Log, folder: str) -> None:
    found = {name.removeprefix(f"{folder}/") for name in work.files(folder)}
    require(found == set(log), f"{folder} holds {', '.join(sorted(found))}")
    for name, lines in log.items():
        if work.read(f"{folder}/{name}") != content(lines):
            fail(f"{folder}/{name} is not as it should be after compaction")


def audited_states_are_kept(work: Grading) -> None:
    for seq in AUDITED:
        found = work.read(f"audit/state-{seq}.json")
        require(found == canonical(replay(LOG, until=seq).orders).encode(), f"state {seq} is another")


def refused_are_listed(work: Grading) -> None:
    found = work.text("audit/refused.csv").replace("\r\n", "\n")
    require(found == refused_text(LOG), "other refusals than the original log has")


def log_is_compacted(work: Grading) -> None:
    compare(work, AFTER, "log")


def manifest_accounts(work: Grading) -> None:
    found = need(work.json("audit/manifest.json"), "segments", list)
    names = sorted(name for name in LOG if name != "base.json")
    expected = [
        {
            "name": name,
            "before": {"sha256": digest(content(LOG[name])), "events": len(LOG[name])},
            "after": {"sha256": digest(content(AFTER[name])), "events": len(AFTER[name])},
        }
        for name in names
    ]
    require(found == expected, f"{len(found)} segments, or other values")


def report_is_complete(work: Grading) -> None:
    words = {word.strip(".,;:()`*|") for word in work.text("audit/report.md").split()}
    refused = replay(LOG).refused
    wanted = [work.sha256(path) for path in ("audit/refused.csv", "audit/state-540.json", "log/base.json")]
    wanted += [str(len(refused)), str(sum(reason == "duplicate" for _, _, reason in refused))]
    wanted.append(str(sum(order["status"] == "open" for order in replay(LOG).orders.values())))
    missing = [value for value in wanted if value not in words]
    require(not missing, f"not quoted: {', '.join(missing)}")
    files = {
        name for name in work.files() if "__pycache__" not in name and not name.startswith(("docs/", "log/"))
    }
    known = {PROGRAM, *(f"audit/state-{seq}.json" for seq in AUDITED)}
    known |= {f"audit/{name}" for name in ("refused.csv", "manifest.json", "report.md")}
    require(files == known, f"beside what was asked for: {', '.join(sorted(files - known))}")


CHECKS = {
    "C01": states_are_computed,
    "C02": refusals_are_right,
    "C03": compaction_is_right,
    "C04": audited_states_are_kept,
    "C05": refused_are_listed,
    "C06": log_is_compacted,
    "C07": manifest_accounts,
    "C08": report_is_complete,
}
