"""Loads a task's folder into a `Task`, or says which line of which file is wrong."""

from __future__ import annotations

import re
from pathlib import Path

from mettlebench.errors import HarborTaskError, TaskFormatError, UnknownTaskError
from mettlebench.task import (
    FORMAT,
    MAX_CRITERIA,
    MIN_CRITERIA,
    Category,
    Criterion,
    Defect,
    Family,
    Log,
    Measure,
    Quote,
    Stage,
    Structure,
    Task,
    Violation,
)
from mettlebench.toml_file import Table, TomlFile

BUILT_IN = Path(__file__).parent / "tasks"
"""The folder of the tasks that come with this package."""

DEFAULT_EVALUATION_SECONDS = 180
REQUIRED = ("instruction.md", "build.py", "evaluate.py", "reference.sh", "violation.sh")

_TASK_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_CRITERION_ID = re.compile(r"C\d\d")
_TASK_KEYS = {
    "format",
    "id",
    "title",
    "family",
    "category",
    "licence",
    "canary",
    "evaluation_seconds",
    "violation",
    "structure",
}


def task_ids(folder: Path = BUILT_IN) -> tuple[str, ...]:
    """The ids of all tasks of a folder, sorted: each sub-folder that holds a `task.toml`."""
    if not folder.is_dir():
        raise TaskFormatError(folder, None, "this is no folder of tasks")
    found = sorted(entry.name for entry in folder.iterdir() if (entry / "task.toml").is_file())
    if not found:
        raise TaskFormatError(folder, None, "there is no task here: no folder in it holds a task.toml")
    return tuple(found)


def load_task(task_id: str, folder: Path = BUILT_IN) -> Task:
    """The task of this id; UnknownTaskError where there is none, TaskFormatError where it is malformed."""
    known = task_ids(folder)
    if task_id not in known:
        raise UnknownTaskError(task_id, folder, known)
    return read_task(folder / task_id)


def load_tasks(folder: Path = BUILT_IN) -> tuple[Task, ...]:
    """Every task of a folder, by id."""
    return tuple(read_task(folder / task_id) for task_id in task_ids(folder))


def is_harbor(folder: Path) -> bool:
    """Whether a folder with a `task.toml` holds a task of Harbor's format and not of ours."""
    return (folder / "tests" / "test.sh").is_file() and not (folder / "checklist.toml").exists()


def read_task(folder: Path) -> Task:
    """The task in this very folder; raises TaskFormatError with file and line, HarborTaskError."""
    if is_harbor(folder):
        raise HarborTaskError(
            f"{folder} is a Harbor task: it can be listed, shown and graded here, and is run by Harbor, with "
            "our agents as well (--agent runner.harbor.agent:AgentRewind)"
        )
    root = TomlFile(folder / "task.toml").root
    found = root.number("format", least=1)
    if found > FORMAT:
        root.refuse(f"the task has format {found}, this version reads up to {FORMAT}", "format")
    root.only(_TASK_KEYS)
    task_id = root.text("id")
    if not _TASK_ID.fullmatch(task_id):
        root.refuse(f"id must be words of a-z and 0-9 joined by hyphens, not {task_id!r}", "id")
    if task_id != folder.name:
        root.refuse(f"id is {task_id!r}, but the folder is called {folder.name!r}", "id")
    for name in REQUIRED:
        if not (folder / name).is_file():
            raise TaskFormatError(folder / name, None, "the file is missing; every task has one")
    criteria = _criteria(TomlFile(folder / "checklist.toml").root)
    ids = tuple(criterion.id for criterion in criteria)
    return Task(
        id=task_id,
        title=root.text("title"),
        family=root.word("family", Family),
        category=root.text("category"),
        licence=root.text("licence"),
        canary=root.text("canary"),
        instruction=_instruction(folder / "instruction.md"),
        criteria=criteria,
        violation=_violation(root.table("violation"), ids),
        structure=_structure(root.table("structure"), ids),
        evaluation_seconds=root.number("evaluation_seconds", least=1, default=DEFAULT_EVALUATION_SECONDS),
        folder=folder,
    )


def _instruction(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError as error:
        raise TaskFormatError(path, None, f"cannot be read as UTF-8 text: {error}") from error
    if not text:
        raise TaskFormatError(path, None, "the instruction is empty")
    return text + "\n"


def _criteria(root: Table) -> tuple[Criterion, ...]:
    root.only({"criterion"})
    tables = root.tables("criterion")
    if not MIN_CRITERIA <= len(tables) <= MAX_CRITERIA:
        root.refuse(f"a checklist has {MIN_CRITERIA} to {MAX_CRITERIA} criteria, not {len(tables)}")
    criteria: list[Criterion] = []
    for number, table in enumerate(tables, start=1):
        table.only({"id", "category", "intent", "feedback"})
        expected = f"C{number:02}"
        criterion_id = table.text("id")
        if criterion_id != expected:
            table.refuse(f"criteria are numbered in order: expected {expected!r}, not {criterion_id!r}", "id")
        criteria.append(
            Criterion(
                id=criterion_id,
                category=table.word("category", Category),
                intent=_joined(table.text("intent")),
                feedback=_joined(table.text("feedback")),
            )
        )
    return tuple(criteria)


def _joined(text: str) -> str:
    return " ".join(text.split())


def _violation(table: Table, ids: tuple[str, ...]) -> Violation:
    table.only({"fails", "why"})
    fails = table.text("fails")
    if fails not in ids:
        table.refuse(f"no criterion is called {fails!r}; there are {', '.join(ids)}", "fails")
    return Violation(fails=fails, why=_joined(table.text("why")))


def _structure(table: Table, ids: tuple[str, ...]) -> Structure:
    table.only({"stages", "defects", "log", "quotes", "deliverables", "lost_objects"})
    return Structure(
        stages=tuple(_stage(stage, ids) for stage in table.tables("stages")),
        defects=tuple(_defect(defect) for defect in table.tables("defects")),
        log=_log(table.table("log")) if table.has("log") else None,
        quotes=tuple(_quote(quote) for quote in table.tables("quotes")),
        deliverables=table.texts("deliverables"),
        lost_objects=table.number("lost_objects", least=0, default=0),
    )


def _stage(table: Table, ids: tuple[str, ...]) -> Stage:
    table.only({"does", "criteria"})
    criteria = table.texts("criteria")
    for criterion_id in criteria:
        if criterion_id not in ids:
            table.refuse(f"no criterion is called {criterion_id!r}; there are {', '.join(ids)}", "criteria")
    if not criteria:
        table.refuse("a stage names the criteria that look at its deliverables", "criteria")
    return Stage(does=table.text("does"), criteria=criteria)


def _defect(table: Table) -> Defect:
    table.only({"where", "what"})
    return Defect(where=table.text("where"), what=table.text("what"))


def _log(table: Table) -> Log:
    table.only({"path", "entries"})
    return Log(path=table.text("path"), entries=table.number("entries", least=1))


def _quote(table: Table) -> Quote:
    table.only({"value", "of", "in", "pattern"})
    measure = table.word("value", Measure)
    pattern = table.text("pattern") if table.has("pattern") else None
    if (measure is Measure.TEXT) != (pattern is not None):
        table.refuse('value = "text" needs a pattern with one group, and nothing else takes one', "value")
    if pattern is not None:
        try:
            groups = re.compile(pattern).groups
        except re.error as error:
            table.refuse(f"pattern is no regular expression: {error}", "pattern")
        if groups != 1:
            table.refuse(f"pattern must have exactly one group, not {groups}", "pattern")
    return Quote(measure=measure, source=table.text("of"), target=table.text("in"), pattern=pattern)
