"""Tables of the benchmark itself: criteria by family, sizes and categories of checklists."""

from __future__ import annotations

import collections
import re
import statistics
from collections.abc import Sequence
from pathlib import Path

from mettlebench.task import Task
from runner.report.table import Column, Table, Value
from runner.statistics import spread

_CATEGORIES = 5


def checklist_tables(tasks: Sequence[Task]) -> list[Table]:
    """Both tables; none where there is no task."""
    return [by_family(tasks), checklists(tasks)] if tasks else []


def by_family(tasks: Sequence[Task]) -> Table:
    """How tasks and criteria are spread over the families."""
    held: dict[str, list[int]] = {}
    for task in tasks:
        held.setdefault(task.family.value, []).append(len(task.criteria))
    total = sum(map(sum, held.values()))
    rows: list[tuple[Value, ...]] = [
        (
            family,
            len(sizes),
            100 * len(sizes) / len(tasks),
            sum(sizes),
            100 * sum(sizes) / total,
            sum(sizes) / len(sizes),
        )
        for family, sizes in sorted(held.items(), key=lambda item: (-sum(item[1]), item[0]))
    ]
    rows.append(("all", len(tasks), 100.0, total, 100.0, total / len(tasks)))
    columns = (
        *(Column("family"), Column("tasks"), Column("share of tasks %"), Column("criteria")),
        *(Column("share of criteria %"), Column("criteria per task", 2)),
    )
    return Table(
        name="criteria-by-family",
        title="Criteria by family of task",
        columns=columns,
        rows=tuple(rows),
        simulated=False,
    )


def checklists(tasks: Sequence[Task]) -> Table:
    """Sizes, feedback, categories, and the length of what is behind a task."""
    sizes = [len(task.criteria) for task in tasks]
    found = spread(sizes)
    assert found is not None
    categories = collections.Counter(each.category.value for task in tasks for each in task.criteria)
    total = sum(sizes)
    told = sum(bool(each.feedback) for task in tasks for each in task.criteria)
    deviation = "–" if found.deviation is None else f"{found.deviation:.2f}"
    rows: list[tuple[Value, ...]] = [
        ("tasks", str(len(tasks))),
        ("criteria", str(total)),
        ("criteria per task: mean (sd)", f"{found.mean:.2f} ({deviation})"),
        ("criteria per task: median", f"{statistics.median(sizes):g}"),
        ("criteria per task: range", f"{min(sizes)} – {max(sizes)}"),
        ("criteria with feedback", f"{told} / {total}"),
        *((f"category: {name}", str(count)) for name, count in categories.most_common(_CATEGORIES)),
        ("non-empty lines of a reference: mean, median, range", _lines([_reference(task) for task in tasks])),
        (
            "non-empty lines of an evaluator: mean, median, range",
            _lines([_length(task.folder / "evaluate.py") for task in tasks]),
        ),
    ]
    return Table(
        name="checklists",
        title="The tasks and their checklists",
        columns=(Column("statistic"), Column("value")),
        rows=tuple(rows),
        simulated=False,
    )


def _reference(task: Task) -> int:
    return _length(task.folder / "reference.sh")


def _length(path: Path) -> int:
    return len(re.findall(r"^.*\S.*$", path.read_text(encoding="utf-8"), re.M))


def _lines(lengths: Sequence[int]) -> str:
    found = spread(lengths)
    assert found is not None
    return f"{found.mean:.1f}, {statistics.median(lengths):g}, {min(lengths)} – {max(lengths)}"
