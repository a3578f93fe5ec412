"""The structural screen: what makes an assignment long is declared by the task and found when finished."""

from __future__ import annotations

import csv
import hashlib
import re
from pathlib import Path

from mettlebench.task import Measure, Quote, Structure, Task

MIN_STAGES = 4
MIN_QUOTES = 2
MIN_DEFECTS = 2
MIN_LOG_ENTRIES = 30


def screen_structure(task: Task) -> list[str]:
    """What the declared structure lacks; empty where it has all that is asked for."""
    structure = task.structure
    findings = _stages(task)
    if len(structure.quotes) < MIN_QUOTES:
        findings.append(
            f"{len(structure.quotes)} values of earlier stages are quoted later, {MIN_QUOTES} are needed"
        )
    chained = len(structure.defects) >= MIN_DEFECTS
    logged = structure.log is not None and structure.log.entries >= MIN_LOG_ENTRIES
    if not chained and not logged:
        findings.append(
            f"there must be {MIN_DEFECTS} defects repaired one after the other, "
            f"or a log of {MIN_LOG_ENTRIES} entries to reconstruct"
        )
    if not structure.deliverables:
        findings.append("no deliverable is named")
    return findings


def _stages(task: Task) -> list[str]:
    findings = []
    stages = task.structure.stages
    if len(stages) < MIN_STAGES:
        findings.append(f"at least {MIN_STAGES} stages follow one another; {len(stages)} are named")
    firsts = [min(stage.criteria) for stage in stages]
    if firsts != sorted(firsts):
        findings.append("the stages are not in the order of their first criteria")
    looked_at = {criterion for stage in stages for criterion in stage.criteria}
    findings += [
        f"{criterion.id} belongs to no stage" for criterion in task.criteria if criterion.id not in looked_at
    ]
    return findings


def screen_shipped(structure: Structure, workspace: Path) -> list[str]:
    """What stands in the shipped workspace although it should be made first."""
    return [
        f"{quote.target} quotes the {quote.measure.value} of {quote.source}, but both are shipped"
        for quote in structure.quotes
        if (workspace / quote.target).exists() and not missing_quote(quote, workspace)
    ]


def screen_finished(structure: Structure, workspace: Path) -> list[str]:
    """What a workspace that the reference finished lacks of what the task declares."""
    findings = [
        f"the reference leaves no {path}"
        for path in structure.deliverables
        if not (workspace / path).exists()
    ]
    log = structure.log
    if log is not None:
        found = _rows(workspace / log.path)
        if found < log.entries:
            findings.append(f"{log.path} has {found} entries, {log.entries} are declared")
    for quote in structure.quotes:
        missing = missing_quote(quote, workspace)
        if missing:
            findings.append(missing)
    return findings


def missing_quote(quote: Quote, workspace: Path) -> str | None:
    """Why the declared value does not stand in its target; None where it does."""
    source, target = workspace / quote.source, workspace / quote.target
    if not source.is_file() or not target.is_file():
        return f"{quote.target} cannot quote {quote.source}: one of them is missing"
    value = _measured(quote, source)
    if value is None:
        return f"nothing in {quote.source} matches {quote.pattern!r}"
    text = target.read_text(encoding="utf-8", errors="replace")
    if re.search(rf"(?<![\w.]){re.escape(value)}(?![\w])", text) is None:
        return f"{quote.target} does not quote {value!r}, the {quote.measure.value} of {quote.source}"
    return None


def _measured(quote: Quote, source: Path) -> str | None:
    match quote.measure:
        case Measure.SHA256:
            return hashlib.sha256(source.read_bytes()).hexdigest()
        case Measure.LINES:
            return str(len(_filled(source)))
        case Measure.ROWS:
            return str(_rows(source))
        case Measure.TEXT:
            found = re.search(quote.pattern or "", source.read_text(encoding="utf-8", errors="replace"))
            return found.group(1) if found else None


def _rows(path: Path) -> int:
    """Entries of a record: lines, without the head line of a comma-separated file."""
    if not path.is_file():
        return 0
    if path.suffix != ".csv":
        return len(_filled(path))
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        return sum(bool(row) for row in csv.reader(file)) - 1


def _filled(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8", errors="replace")
    return [line for line in text.splitlines() if line.strip()]
