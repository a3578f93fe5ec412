"""Tables of single cells: all results, what is left out, what is missing, what looks suspicious."""

from __future__ import annotations

from runner.report.gather import NAMES, Gathered
from runner.report.table import Column, Table, Value


def cell_tables(gathered: Gathered) -> list[Table]:
    """What a reader has to know about cells, those tables without a row left out."""
    tables = [left_out(gathered), missing(gathered), suspicions(gathered)]
    return [table for table in tables if table.rows]


def all_cells(gathered: Gathered) -> Table:
    """One row for each result that counts."""
    rows: list[tuple[Value, ...]] = []
    for each in gathered.results:
        cell = each.cell
        rows.append(
            (
                *(cell.task, each.family, cell.model, cell.harness, cell.strategy.value, cell.run),
                *("yes" if each.success else "no", each.exit.value, each.prefix, each.total),
                *(each.nodes, each.llm_nodes, each.tool_nodes, len(each.submissions), each.rewinds),
                *(each.attempts, each.tries, each.tokens.input, each.tokens.cached, each.tokens.output),
                *(each.cost, each.seconds, each.step_seconds, each.snapshot_seconds, each.storage_bytes),
                *(len(each.suspicions), "yes" if each.clean else "no", each.task_digest),
            )
        )
    heads = (
        *("task", "family", "model", "harness", "strategy", "run", "success", "exit", "prefix", "total"),
        *("nodes", "llm_nodes", "tool_nodes", "submissions", "rewinds", "attempts", "tries"),
        *("tokens_in", "tokens_cached", "tokens_out", "cost_usd", "seconds", "step_seconds"),
        *("snapshot_seconds", "storage_bytes", "suspicions", "clean", "task_digest"),
    )
    return Table(
        name="cells",
        title="All results",
        columns=tuple(Column(head) for head in heads),
        rows=tuple(rows),
        simulated=gathered.simulated,
    )


def left_out(gathered: Gathered) -> Table:
    """Cells that ended abnormally: in no aggregate, and run again by the next batch."""
    return Table(
        name="left-out",
        title="Cells left out for an abnormal end",
        columns=(Column("cell"), Column("end"), Column("detail")),
        rows=tuple((each.cell.id, each.exit, each.detail) for each in gathered.left_out),
        notes=("These are in none of the figures. `runner batch` with the same plan runs them again.",),
        simulated=any(each.cell.simulated for each in gathered.left_out),
    )


def missing(gathered: Gathered) -> Table:
    """Planned cells without a result, by their arm."""
    counts: dict[str, int] = {}
    for cell in gathered.missing:
        arm = "/".join(cell.split("/")[1:4])
        counts[arm] = counts.get(arm, 0) + 1
    return Table(
        name="missing",
        title="Planned cells without a result",
        columns=(Column("model/harness/strategy"), Column("cells")),
        rows=tuple(sorted(counts.items())),
        notes=("The campaign is not finished: figures are of what there is.",),
        simulated=gathered.simulated,
    )


def suspicions(gathered: Gathered) -> Table:
    """What stands in traces and cannot come from honest work."""
    rows = tuple(
        (each.cell.id, NAMES[each.cell.strategy], found.kind, found.record_uid, found.text)
        for each in gathered.results
        for found in each.suspicions
    )
    return Table(
        name="suspicions",
        title="Suspicious traces",
        columns=(Column("cell"), Column("strategy"), Column("kind"), Column("node"), Column("what")),
        rows=rows,
        notes=("These cells are in the figures; look at them before you publish any.",),
        simulated=gathered.simulated,
    )
