"""Tables of progress after every node: where runs lost ground, and where they became hopeless."""

from __future__ import annotations

from runner.report.gather import NAMES, Gathered, setting_of
from runner.report.ground import Ground, Loss, ground_of
from runner.report.measures import average
from runner.report.table import Column, Table, Value


def ground_tables(gathered: Gathered) -> list[Table]:
    """All of them, those without a row left out."""
    return [table for table in (by_strategy(gathered), by_run(gathered)) if table.rows]


def by_strategy(gathered: Gathered) -> Table:
    """How many runs lost ground, how much, and when the failed ones became hopeless."""
    rows: list[tuple[Value, ...]] = []
    for setting in gathered.settings():
        for strategy in gathered.strategies(setting):
            results = gathered.of(setting, strategy)
            grounds = [ground_of(each) for each in results]
            losses = [loss for ground in grounds for loss in ground.losses]
            hopeless = [
                100 * ground.hopeless / each.nodes
                for ground, each in zip(grounds, results, strict=True)
                if ground.hopeless is not None and each.nodes
            ]
            rows.append(
                (
                    *(setting.shown, setting.harness, NAMES[strategy], len(results)),
                    sum(bool(ground.losses) for ground in grounds),
                    average([loss.before - loss.after for loss in losses]),
                    100 * sum(loss.regained for loss in losses) / len(losses) if losses else None,
                    len(hopeless),
                    average(hopeless),
                )
            )
    columns = (
        *(Column("model"), Column("harness"), Column("strategy"), Column("runs"), Column("that lost ground")),
        *(Column("criteria lost at a time"), Column("regained %"), Column("hopeless runs")),
        Column("hopeless from, % of the trace"),
    )
    return Table(
        name="ground",
        title="Ground lost and regained",
        columns=columns,
        rows=tuple(rows),
        notes=(
            "Lost: the satisfied prefix got shorter from one node to the next; regained: it was that long "
            "again later. Hopeless: a failed run never held again what it had held before this node. Where "
            "progress was not graded after every node, submissions stand in for it.",
        ),
        simulated=gathered.simulated,
    )


def by_run(gathered: Gathered) -> Table:
    """Each run that lost ground or failed: its peak, its losses, and from where it was hopeless."""
    rows: list[tuple[Value, ...]] = []
    for result in gathered.results:
        ground = ground_of(result)
        if result.success and not ground.losses:
            continue
        names = (result.cell.task, setting_of(result).shown, result.cell.harness)
        rows.append(
            (
                *(*names, NAMES[result.cell.strategy], result.cell.run, result.nodes),
                *(f"{ground.peak.prefix}/{result.total}", ground.peak.nodes, _losses(ground)),
                *(ground.hopeless, f"{result.prefix}/{result.total}"),
            )
        )
    columns = (
        *(Column("task"), Column("model"), Column("harness"), Column("strategy"), Column("run")),
        *(Column("trace length"), Column("peak"), Column("first at node"), Column("lost at node")),
        *(Column("hopeless from node"), Column("end")),
    )
    return Table(
        name="ground-by-run",
        title="Runs that lost ground or failed",
        columns=columns,
        rows=tuple(rows),
        notes=("`17: 8→3` is a loss after 17 nodes; brackets mark what was regained.",),
        simulated=gathered.simulated,
    )


def _losses(ground: Ground) -> str:
    return ", ".join(_loss(loss) for loss in ground.losses) or "–"


def _loss(loss: Loss) -> str:
    text = f"{loss.nodes}: {loss.before}→{loss.after}"
    return f"({text})" if loss.regained else text
