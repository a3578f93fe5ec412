"""The command line `mettlebench`: tasks are made, listed, shown, linted, gated, built and graded."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import click

from mettlebench import __version__
from mettlebench.build import build_workspace
from mettlebench.errors import MettleBenchError
from mettlebench.evaluate import evaluate
from mettlebench.gates import GateReport, gate, lint
from mettlebench.harbor.export import export_task
from mettlebench.harbor.read import FAMILY, HarborTask, load_either
from mettlebench.harbor.verdicts import grade_harbor, read_logs
from mettlebench.load import BUILT_IN, load_task, task_ids
from mettlebench.review import review_task
from mettlebench.sandbox import GIVEN_UP_BY_NONE, SandboxMode, require_sandbox
from mettlebench.scaffold import new_task
from mettlebench.task import Task
from mettlebench.verdict import Verdict, decode_verdict, encode_verdict

_F = TypeVar("_F", bound=Callable[..., object])


class _Given(click.Path):
    """A path; the empty text, which a variable without a value leaves, is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value) == "":
            self.fail("the path is empty; write . for the current folder", param, ctx)
        return super().convert(value, param, ctx)


def _tasks_option(command: _F) -> _F:
    return click.option(
        "--tasks",
        "folder",
        type=_Given(path_type=Path),
        default=BUILT_IN,
        help="A folder of tasks; by default those that come with this package.",
    )(command)


def _json_option(command: _F) -> _F:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def _sandbox_option(command: _F) -> _F:
    return click.option(
        "--sandbox",
        "mode",
        type=click.Choice([mode.value for mode in SandboxMode]),
        default=SandboxMode.BUBBLEWRAP.value,
        help="How commands are kept apart from this machine.",
    )(command)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="mettlebench")
def mettlebench() -> None:
    """Long engineering assignments with hidden, ordered checklists.

    Exit codes: 0 done, 1 the job failed (a gate is not passed, a workspace is not accepted), 2 wrong usage
    or a malformed task.
    """


@mettlebench.command("new")
@click.argument("place", type=_Given(path_type=Path))
def new_command(place: Path) -> None:
    """Make a small complete task at PLACE, to be turned into another; its folder's name is its id."""
    new_task(place)
    click.echo(
        f"{place}: a task that passes its gates; try `mettlebench gate --tasks {place.parent} {place.name}`"
    )


@mettlebench.command("list")
@_tasks_option
@_json_option
def list_command(folder: Path, as_json: bool) -> None:  # noqa: FBT001 -- click passes it by name
    """List tasks."""
    rows = [_row(load_either(task_id, folder)) for task_id in task_ids(folder)]
    if as_json:
        _emit([{"id": row[0], "family": row[1], "criteria": row[2]} for row in rows])
        return
    for task_id, family, criteria, title in rows:
        click.echo(f"{task_id:<32} {family:<16} {criteria:>2} criteria  {title}")
    click.echo(f"{len(rows)} tasks, {sum(row[2] for row in rows)} criteria")


@mettlebench.command("show")
@click.argument("task_id")
@click.option("--hidden", is_flag=True, help="Show the checklist too, which no agent may see.")
@_tasks_option
@_json_option
def show_command(task_id: str, hidden: bool, folder: Path, as_json: bool) -> None:  # noqa: FBT001
    """Show one task."""
    task = load_either(task_id, folder)
    if isinstance(task, HarborTask):
        _show_harbor(task, hidden=hidden, as_json=as_json)
        return
    if as_json:
        _emit(_document(task, hidden=hidden))
        return
    click.echo(f"{task.title}\n{task.id}, {task.family.value}, {task.category}, {task.licence}\n")
    click.echo(task.instruction)
    if not hidden:
        click.echo(f"{len(task.criteria)} criteria, hidden (--hidden shows them)")
        return
    for criterion in task.criteria:
        click.echo(
            f"{criterion.id} {criterion.category.value}: {criterion.intent}\n    > {criterion.feedback}"
        )
    click.echo(f"the order-violating run fails at {task.violation.fails}: {task.violation.why}")


@mettlebench.command("lint")
@click.argument("ids", nargs=-1)
@_tasks_option
@_sandbox_option
@_json_option
def lint_command(ids: Sequence[str], folder: Path, mode: str, as_json: bool) -> int:  # noqa: FBT001
    """Look for what gives a checker away or makes it waver, in the named tasks or in all."""
    chosen = _mode(mode)
    found = {task.id: lint(task, mode=chosen) for task in _chosen(folder, ids)}
    if as_json:
        _emit(
            [
                {"id": task_id, "file": each.file, "message": each.message}
                for task_id, findings in found.items()
                for each in findings
            ]
        )
    else:
        for task_id, findings in found.items():
            for each in findings:
                click.echo(f"{folder / task_id / each.file}: {each.message}")
        click.echo(f"{len(found)} tasks, {sum(map(len, found.values()))} findings")
    return 1 if any(found.values()) else 0


@mettlebench.command("gate")
@click.argument("ids", nargs=-1)
@click.option("--jobs", type=click.IntRange(1, 64), default=2, show_default=True, help="Tasks at a time.")
@_tasks_option
@_sandbox_option
@_json_option
def gate_command(ids: Sequence[str], jobs: int, folder: Path, mode: str, as_json: bool) -> int:  # noqa: FBT001
    """Run the gates of the named tasks, or of all: reference, order-violating run, shipped workspace."""
    chosen, tasks = _mode(mode), _chosen(folder, ids)
    reports: list[GateReport] = []
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        for report in pool.map(lambda task: gate(task, mode=chosen), tasks):
            reports.append(report)
            if not as_json:
                click.echo(f"{'pass' if report.passed else 'FAIL'}  {report.task_id}")
                for fault in report.faults:
                    click.echo(f"      {fault}")
    if as_json:
        _emit([{"id": each.task_id, "passed": each.passed, "faults": list(each.faults)} for each in reports])
    else:
        click.echo(f"{sum(each.passed for each in reports)} of {len(reports)} tasks pass")
    return 0 if all(each.passed for each in reports) else 1


@mettlebench.command("build")
@click.argument("task_id")
@click.argument("target", type=_Given(path_type=Path))
@_tasks_option
@_sandbox_option
def build_command(task_id: str, target: Path, folder: Path, mode: str) -> None:
    """Make the workspace of a task at TARGET, as an agent gets it."""
    if target.exists():
        raise click.UsageError(f"{target} exists; name a place where nothing is yet")
    build_workspace(load_task(task_id, folder), target, mode=_mode(mode))
    click.echo(f"{target}: the workspace of {task_id}")


@mettlebench.command("grade")
@click.argument("task_id")
@click.argument("workspace", type=_Given(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--previous", type=_Given(path_type=Path, exists=True, dir_okay=False), help="A verdict's JSON."
)
@_tasks_option
@_sandbox_option
@_json_option
def grade_command(
    task_id: str,
    workspace: Path,
    previous: Path | None,
    folder: Path,
    mode: str,
    as_json: bool,  # noqa: FBT001
) -> int:
    """Grade a workspace; it stays as it is."""
    task, earlier = load_either(task_id, folder), _previous(previous)
    if isinstance(task, HarborTask):
        verdict = grade_harbor(task, workspace, mode=_mode(mode), previous=earlier)
    else:
        verdict = evaluate(task, workspace, mode=_mode(mode), previous=earlier)
    return _told(verdict, as_json=as_json)


@mettlebench.command("verdict")
@click.argument("task_id")
@click.argument("logs", type=_Given(path_type=Path, exists=True, file_okay=False))
@_tasks_option
@_json_option
def verdict_command(task_id: str, logs: Path, folder: Path, as_json: bool) -> int:  # noqa: FBT001
    """Read the verdict on a Harbor task out of LOGS, the `verifier` folder of a trial of Harbor's."""
    task = load_either(task_id, folder)
    if not isinstance(task, HarborTask):
        raise click.UsageError(f"{task_id} is no Harbor task; an exported one leaves its own verdict.json")
    return _told(read_logs(task, logs), as_json=as_json)


@mettlebench.command("export")
@click.argument("ids", nargs=-1)
@click.option("--format", "form", type=click.Choice(["harbor"]), required=True, help="Whose format.")
@click.option(
    "--out", type=_Given(path_type=Path, file_okay=False), required=True, help="A folder for the tasks."
)
@click.option("--network", is_flag=True, help="Let the exported task's container reach the network.")
@_tasks_option
@_sandbox_option
def export_command(
    ids: Sequence[str],
    form: str,
    out: Path,
    network: bool,  # noqa: FBT001
    folder: Path,
    mode: str,
) -> None:
    """Write the named tasks, or all, as tasks of another framework, each a folder of its own in OUT."""
    chosen = _mode(mode)
    for task in _chosen(folder, ids):
        export_task(task, out / task.id, network=network, mode=chosen)
        click.echo(f"{out / task.id}")


@mettlebench.command("review")
@click.argument("ids", nargs=-1)
@click.option("--model", required=True, help="A model as litellm names it.")
@_tasks_option
@_json_option
def review_command(ids: Sequence[str], model: str, folder: Path, as_json: bool) -> None:  # noqa: FBT001
    """Let a model read tasks as an adversary would: scores from 1 to 5, and never a gate."""
    reviews = [review_task(task, model=model) for task in _chosen(folder, ids)]
    if as_json:
        _emit([each.document() for each in reviews])
        return
    for each in reviews:
        click.echo(f"{each.task_id}: mean {each.mean:.2f}")
        for dimension, (score, remark) in each.scores.items():
            click.echo(f"  {score}  {dimension}: {remark}")
        click.echo(f"  happens in practice: {each.practice}\n  contrived: {each.contrived}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code; errors are told in one line, never a traceback."""
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: Sequence[str]) -> int:
    """The exit code of a command line."""
    try:
        code = mettlebench.main(list(arguments), prog_name="mettlebench", standalone_mode=False)
    except MettleBenchError as error:
        click.echo(f"error: {error}", err=True)
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        if isinstance(error, click.UsageError) and error.ctx is not None:
            click.echo(error.ctx.get_usage(), err=True)
        click.echo(f"error: {error.format_message()}", err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    return code if isinstance(code, int) else 0


def _row(task: Task | HarborTask) -> tuple[str, str, int, str]:
    if isinstance(task, HarborTask):
        return task.id, FAMILY, len(task.tests), task.title
    return task.id, task.family.value, len(task.criteria), task.title


def _show_harbor(task: HarborTask, *, hidden: bool, as_json: bool) -> None:
    if as_json:
        shown: dict[str, Any] = {
            "id": task.id,
            "title": task.title,
            "family": FAMILY,
            "category": task.category,
            "criteria": len(task.tests),
            "instruction": task.instruction,
        }
        _emit({**shown, "tests": list(task.tests)} if hidden else shown)
        return
    click.echo(f"{task.title}\n{task.id}, {FAMILY}, {task.category}\n\n{task.instruction}")
    click.echo(f"works in {task.workdir or 'a place that only its image names'}; ", nl=False)
    click.echo(f"its image is unpacked at {task.root}" if task.root else "its image is not unpacked here")
    if not hidden:
        click.echo(f"{len(task.tests)} criteria in no order, hidden (--hidden names them)")
        return
    for name in task.tests:
        click.echo(name)


def _told(verdict: Verdict, *, as_json: bool) -> int:
    if as_json:
        click.echo(encode_verdict(verdict), nl=False)
    else:
        _show_verdict(verdict)
    return 0 if verdict.accepted else 1


def _chosen(folder: Path, ids: Sequence[str]) -> tuple[Task, ...]:
    return tuple(load_task(task_id, folder) for task_id in (ids or task_ids(folder)))


def _mode(word: str) -> SandboxMode:
    mode = SandboxMode(word)
    if mode is SandboxMode.NONE:
        click.echo(f"warning: {GIVEN_UP_BY_NONE}", err=True)
    require_sandbox(mode)
    return mode


def _previous(path: Path | None) -> Verdict | None:
    if path is None:
        return None
    try:
        return decode_verdict(path.read_bytes())
    except ValueError as error:
        raise click.UsageError(f"{path}: {error}") from error


def _show_verdict(verdict: Verdict) -> None:
    for result in verdict.results:
        click.echo(f"{'pass' if result.passed else 'FAIL'}  {result.id}  {result.detail}")
    if verdict.ordered:
        click.echo(f"prefix {verdict.prefix} of {len(verdict.results)}")
    else:
        click.echo(f"{verdict.passed} of {len(verdict.results)}")
    if verdict.regressions:
        click.echo(f"held before and does not now: {', '.join(verdict.regressions)}")
    click.echo("accepted" if verdict.feedback is None else f"feedback: {verdict.feedback}")


def _document(task: Task, *, hidden: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": task.id,
        "title": task.title,
        "family": task.family.value,
        "category": task.category,
        "licence": task.licence,
        "criteria": len(task.criteria),
        "instruction": task.instruction,
    }
    if hidden:
        shown["checklist"] = [
            {"id": each.id, "category": each.category.value, "intent": each.intent, "feedback": each.feedback}
            for each in task.criteria
        ]
        shown["violation"] = {"fails": task.violation.fails, "why": task.violation.why}
    return shown


def _emit(document: object) -> None:
    click.echo(json.dumps(document, ensure_ascii=False).encode())


if __name__ == "__main__":
    main()
