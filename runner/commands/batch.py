"""`runner batch`: a whole campaign."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import click

from agentrewind.commands.given_path import GivenPath
from mettlebench.sandbox import GIVEN_UP_BY_NONE, SandboxMode, require_sandbox
from runner.batch import Batch
from runner.campaign import Campaign
from runner.commands.session import Session, session_of
from runner.executors.executor import Executor
from runner.plan import Plan, read_plan
from runner.progress import Progress, console


@click.command("batch")
@click.argument("plan", type=GivenPath(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--out",
    metavar="DIR",
    type=GivenPath(path_type=Path),
    default=Path("campaign"),
    show_default=True,
    help="Where everything is kept.",
)
@click.option(
    "--executor",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Processes of this machine, or Ray (extra `ray`).",
)
@click.option("--address", metavar="HOST:PORT", help="Of a Ray cluster; without, one on this machine.")
@click.option(
    "--jobs", metavar="N", type=click.IntRange(1), help="Cells at a time on one host. [default: the plan's]"
)
@click.option("--dry-run", is_flag=True, help="Print the cells that would be run, and run none.")
@click.pass_context
def batch(
    context: click.Context,
    /,
    *,
    plan: Path,
    out: Path,
    executor: str,
    address: str | None,
    jobs: int | None,
    dry_run: bool,
) -> int:
    """Run every cell of PLAN that has no result yet; called again, it goes on where it was ended.

    Exit codes: 0 every cell has a result of its own, 1 some have not, 2 wrong usage or a malformed plan, 5
    another batch is at work there.
    """
    session = session_of(context)
    found = read_plan(session.directory / plan)
    if dry_run:
        for order in found.orders:
            click.echo(order.cell.id)
        return 0
    _check_sandbox(found)
    campaign = Campaign((session.directory / out).resolve())
    with (
        campaign.owned(),
        _stop_asked() as stopping,
        Progress(console(), planned=len(found.orders)) as progress,
        closing(_executor(executor, address, jobs or found.limits.jobs, campaign, session)) as worker,
    ):
        driver = Batch(found, campaign, worker, told=progress, clock=session.clock, stopping=stopping)
        return 0 if driver.run() else 1


def _check_sandbox(plan: Plan) -> None:
    """Every cell would fail where there is no sandbox, so say it once and first."""
    modes = {order.conditions.sandbox for order in plan.orders}
    for mode in modes:
        require_sandbox(mode)
    if SandboxMode.NONE in modes:
        click.echo(f"warning: {GIVEN_UP_BY_NONE}", err=True)


def _executor(name: str, address: str | None, jobs: int, campaign: Campaign, session: Session) -> Executor:
    if name == "ray":
        from runner.executors.ray import RayExecutor

        digest = hashlib.sha256(str(campaign.root).encode()).hexdigest()[:12]
        return RayExecutor(jobs, address=address, campaign=digest)
    from runner.executors.local import LocalExecutor

    return LocalExecutor(jobs, session.environment)


@contextmanager
def _stop_asked() -> Iterator[Callable[[], bool]]:
    """Tells whether SIGINT or SIGTERM has come; the driver ends in good order then."""
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda number, _frame: came.append(number)) for number in numbers}
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
