"""Reads a task as a suspicious reviewer would: what would give the checker away, or make it waver."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mettlebench.sandbox import Sandbox, SandboxMode, run
from mettlebench.screen import screen_structure
from mettlebench.steps import reference_steps, violation_steps
from mettlebench.task import Task

FORBIDDEN_MODULES = frozenset(
    {"asyncio", "ctypes", "datetime", "http", "locale", "multiprocessing", "os", "platform", "random"}
    | {"requests", "secrets", "shutil", "signal", "socket", "subprocess", "tempfile", "threading", "time"}
    | {"urllib", "uuid"}
)
"""What an evaluator may not import: chance, clocks, network, this machine, ways round the scratch copy."""

COMMANDS = frozenset(
    {
        "awk",
        "bash",
        "chmod",
        "cp",
        "curl",
        "dd",
        "git",
        "gpg",
        "grep",
        "gunzip",
        "gzip",
        "jq",
        "mv",
        "openssl",
    }
    | {"pip", "pytest", "python", "python3", "rm", "rsync", "sed", "sh", "sqlite3", "tar", "unittest"}
    | {"vacuum", "xargs", "xz"}
)
"""What feedback may not name, since it would tell the remedy or the checker's means."""

MIN_FEEDBACK, MAX_FEEDBACK = 40, 500

_SCRIPT = re.compile(r"[\w./-]+\.(py|sh|pl|mk)\b")
_CRITERION = re.compile(r"\bC\d\d\b")
_CHECKER_WORDS = re.compile(r"\b(checklist|criterion|criteria|evaluator|checker|grader|hidden test)\b", re.I)
_TEXTS = (".md", ".txt", ".rst", ".toml", ".cfg", ".py")
_CANARY = re.compile(r"mettlebench-canary-[0-9a-f]{16,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to mend, and in which file of the task's folder."""

    file: str
    message: str


def lint_task(task: Task) -> list[Finding]:
    """Findings that need no built workspace."""
    return [
        *(Finding(file="task.toml", message=message) for message in screen_structure(task)),
        *_canary(task),
        *_feedback(task),
        *_instruction(task),
        *_evaluator(task.folder / "evaluate.py", task),
        *_scripts(task),
    ]


def lint_workspace(
    task: Task, workspace: Path, *, mode: SandboxMode = SandboxMode.BUBBLEWRAP
) -> list[Finding]:
    """Findings in the workspace as it is handed out."""
    return [
        *_leaks(task, workspace),
        *_named_deliverables(task, workspace),
        *_lost_objects(task, workspace, mode),
    ]


def _canary(task: Task) -> Iterator[Finding]:
    if not _CANARY.fullmatch(task.canary):
        yield Finding(
            file="task.toml", message="canary must be `mettlebench-canary-` and 16 or more hex digits"
        )
    for name in ("checklist.toml", "evaluate.py", "reference.sh"):
        if task.canary not in (task.folder / name).read_text(encoding="utf-8"):
            yield Finding(file=name, message="the file does not carry the task's canary")


def _feedback(task: Task) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for criterion in task.criteria:
        for message in feedback_faults(criterion.feedback):
            yield Finding(file="checklist.toml", message=f"feedback of {criterion.id} {message}")
        other = seen.setdefault(criterion.feedback, criterion.id)
        if other != criterion.id:
            yield Finding(file="checklist.toml", message=f"{criterion.id} and {other} have the same feedback")


def feedback_faults(text: str) -> list[str]:
    """What is wrong with a feedback text.

    >>> feedback_faults("Run git gc.")
    ['names the command git', 'has 11 characters, expected 40 to 500']
    """
    faults = []
    if found := _SCRIPT.search(text):
        faults.append(f"names the script {found.group()}")
    if found := _CRITERION.search(text):
        faults.append(f"names the criterion {found.group()}")
    if found := _CHECKER_WORDS.search(text):
        faults.append(f"speaks of the {found.group().lower()}")
    if "`" in text:
        faults.append("quotes code")
    words = re.findall(r"(?<![\w./-])[a-z0-9]+(?![\w/-])", text)
    faults += [f"names the command {word}" for word in dict.fromkeys(words) if word in COMMANDS]
    if not MIN_FEEDBACK <= len(text) <= MAX_FEEDBACK:
        faults.append(f"has {len(text)} characters, expected {MIN_FEEDBACK} to {MAX_FEEDBACK}")
    return faults


def _instruction(task: Task) -> Iterator[Finding]:
    if found := _CRITERION.search(task.instruction):
        yield Finding(file="instruction.md", message=f"names the criterion {found.group()}")
    if task.canary in task.instruction:
        yield Finding(file="instruction.md", message="the agent sees the canary")
    if len(task.instruction.split()) < 60:
        yield Finding(file="instruction.md", message="an assignment of under 60 words is no assignment")


def _evaluator(path: Path, task: Task) -> Iterator[Finding]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        yield Finding(file=f"{path.name}:{error.lineno}", message=f"is no Python: {error.msg}")
        return
    for node in ast.walk(tree):
        for module in _imported(node):
            if module.split(".")[0] in FORBIDDEN_MODULES:
                yield Finding(
                    file=f"{path.name}:{getattr(node, 'lineno', 0)}",
                    message=f"imports {module}, which may waver",
                )
    if not any(_assigns_checks(node) for node in tree.body):
        yield Finding(file=path.name, message="defines no CHECKS, the table from criterion id to function")
    if len(path.read_text(encoding="utf-8").splitlines()) < 3 * len(task.criteria):
        yield Finding(file=path.name, message="is too short to look at every criterion")


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return []


def _assigns_checks(node: ast.stmt) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return any(isinstance(target, ast.Name) and target.id == "CHECKS" for target in targets)


def _scripts(task: Task) -> Iterator[Finding]:
    for step in reference_steps(task):
        if re.search(r"\|\|\s*(true|:)\s*$", step.script, re.M):
            yield Finding(file="reference.sh", message=f"step {step.name!r} swallows a failure")
        if re.search(r"\|\s*(head\b|grep\s+-\w*[qm])", step.script):
            ends = "ends its pipe before all is written, which fails by chance (141); sed -n 1,10p reads all"
            yield Finding(file="reference.sh", message=f"step {step.name!r} {ends}")
    for script, steps in (
        ("reference.sh", reference_steps(task)),
        ("violation.sh", violation_steps(task)),
    ):
        if not any(step.irreversible for step in steps):
            yield Finding(file=script, message="no step is marked [irreversible]")


def _leaks(task: Task, workspace: Path) -> Iterator[Finding]:
    secrets = [task.canary, *(criterion.feedback for criterion in task.criteria)]
    for path in sorted(workspace.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        data = path.read_bytes()
        for secret in secrets:
            if secret.encode() in data:
                shown = path.relative_to(workspace).as_posix()
                yield Finding(file=shown, message=f"the workspace holds hidden text: {secret[:40]!r}")


def _named_deliverables(task: Task, workspace: Path) -> Iterator[Finding]:
    texts = [task.instruction]
    for path in workspace.rglob("*"):
        told_in = path.suffix in _TEXTS or path.name in ("Makefile", "README")
        if told_in and path.is_file() and not path.is_symlink():
            texts.append(path.read_text(encoding="utf-8", errors="replace"))
    told = "\n".join(texts)
    for deliverable in task.structure.deliverables:
        if Path(deliverable).name not in told:
            yield Finding(
                file="instruction.md",
                message=f"neither it nor any document names the deliverable {deliverable}",
            )


def _lost_objects(task: Task, workspace: Path, mode: SandboxMode) -> Iterator[Finding]:
    lost = 0
    for folder in sorted(workspace.rglob(".git")):
        if not folder.is_dir():
            continue
        ended = run(
            Sandbox(workspace=folder.parent, mode=mode),
            ["git", "-c", "safe.directory=*", "fsck", "--unreachable", "--no-reflogs", "--no-progress"],
            seconds=60,
        )
        lost += ended.stdout.count(b"unreachable ")
    if lost != task.structure.lost_objects:
        yield Finding(
            file="task.toml",
            message=f"there are {lost} unreachable git objects, {task.structure.lost_objects} declared",
        )
