"""Tables of what it took: trace length, tokens, money, time, storage."""

from __future__ import annotations

from runner.report.gather import NAMES, Gathered
from runner.report.measures import average
from runner.report.table import Column, Table, Value
from runner.result import Result

MEGABYTE = 1e6


def cost_tables(gathered: Gathered) -> list[Table]:
    """All of them, those without a row left out."""
    return [table for table in (work(gathered), time_and_storage(gathered)) if table.rows]


def work(gathered: Gathered) -> Table:
    """Trace length, submissions, rewinds, tokens and money, per cell."""
    rows: list[tuple[Value, ...]] = []
    unknown = 0
    for names, results in _arms(gathered):
        unknown += sum(each.cost is None for each in results)
        rows.append(
            (
                *names,
                average([each.nodes for each in results]),
                average([each.llm_nodes for each in results]),
                average([each.tool_nodes for each in results]),
                average([len(each.submissions) for each in results]),
                average([each.rewinds for each in results]),
                average([each.attempts for each in results]),
                average([each.tokens.input / 1000 for each in results]),
                average([each.tokens.cached / 1000 for each in results]),
                average([each.tokens.output / 1000 for each in results]),
                average([each.cost for each in results]),
            )
        )
    columns = (
        *(
            Column("model"),
            Column("harness"),
            Column("strategy"),
            Column("trace length"),
            Column("LLM calls"),
        ),
        *(Column("tool calls"), Column("submissions"), Column("rewinds", 2), Column("attempts", 2)),
        *(Column("k tokens in"), Column("of these cached"), Column("k tokens out"), Column("USD", 4)),
    )
    notes = ["Means per cell."]
    if unknown:
        notes.append(f"The price of {unknown} cells is unknown; they are not in the means of money.")
    return Table(
        name="work",
        title="Trace length, tokens and cost",
        columns=columns,
        rows=tuple(rows),
        notes=tuple(notes),
        simulated=gathered.simulated,
    )


def time_and_storage(gathered: Gathered) -> Table:
    """Wall-clock time and storage, per cell and per node."""
    rows: list[tuple[Value, ...]] = []
    for names, results in _arms(gathered):
        nodes = sum(each.nodes for each in results)
        seconds = sum(each.seconds for each in results)
        storage = sum(each.storage_bytes for each in results)
        rows.append(
            (
                *names,
                average([each.seconds for each in results]),
                seconds / nodes if nodes else None,
                average([each.snapshot_seconds for each in results]),
                storage / len(results) / MEGABYTE,
                storage / nodes / 1000 if nodes else None,
            )
        )
    columns = (
        *(Column("model"), Column("harness"), Column("strategy"), Column("seconds per cell")),
        *(Column("seconds per node", 3), Column("recording per node, s", 4), Column("MB per cell", 2)),
        Column("kB per node"),
    )
    return Table(
        name="time-and-storage",
        title="Time and storage",
        columns=columns,
        rows=tuple(rows),
        notes=(
            "Wall clock on the machines that ran the cells, as busy as they were. Storage is log and "
            "snapshots (1 MB = 1,000,000 bytes).",
        ),
        simulated=gathered.simulated,
    )


def _arms(gathered: Gathered) -> list[tuple[tuple[str, str, str], tuple[Result, ...]]]:
    return [
        ((setting.shown, setting.harness, NAMES[strategy]), gathered.of(setting, strategy))
        for setting in gathered.settings()
        for strategy in gathered.strategies(setting)
    ]
