"""Tables of what was reached: by model, strategy, harness, ablation, recovery, family."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from runner.cell import Strategy
from runner.report.gather import ABLATION, MAIN, NAMES, Gathered, Setting, by_task
from runner.report.measures import average, mean, over_runs, passed, progress, success, uneven
from runner.report.table import Column, Table, Value
from runner.result import Result
from runner.statistics import Spread

_SETTING = (Column("model"), Column("harness"))
_BOTH = (Column("success %"), Column("progress %"))


def outcome_tables(gathered: Gathered) -> list[Table]:
    """All of them, those without a row left out."""
    tables = [
        strategies(gathered),
        continue_by_model(gathered),
        unordered(gathered),
        harnesses(gathered),
        recovery(gathered),
        ablation(gathered),
        families(gathered),
    ]
    return [table for table in tables if table.rows]


def continue_by_model(gathered: Gathered) -> Table:
    """Continue alone: what models reach without going back, and how long their traces are."""
    rows: list[tuple[Value, ...]] = []
    for setting in gathered.settings():
        results = gathered.of(setting, Strategy.CONTINUE)
        if results:
            length = average([result.nodes for result in results])
            rows.append((*_names(setting), *_means(results), length, *_size(results)))
    return Table(
        name="continue-by-model",
        title="Continue across models",
        columns=(*_SETTING, *_BOTH, Column("trace length"), Column("tasks"), Column("runs")),
        rows=tuple(rows),
        simulated=_simulated(gathered, MAIN[:1]),
    )


def strategies(gathered: Gathered) -> Table:
    """The exact values at the end of the runs: mean and sample deviation over runs."""
    rows: list[tuple[Value, ...]] = []
    notes: list[str] = []
    for setting in gathered.settings():
        for strategy in gathered.strategies(setting, MAIN):
            results = gathered.of(setting, strategy)
            rows.append(
                (
                    *_names(setting),
                    NAMES[strategy],
                    *_spread(over_runs(results, success)),
                    *_spread(over_runs(results, progress)),
                    *_size(results),
                )
            )
            lacking = uneven(results)
            if lacking:
                notes.append(f"{setting.shown}, {NAMES[strategy]}: {lacking}.")
    columns = (
        *(*_SETTING, Column("strategy"), Column("success %"), Column("± success")),
        *(Column("progress %"), Column("± progress"), Column("tasks"), Column("runs")),
    )
    return Table(
        name="strategies",
        title="Execution strategies at the end of the runs",
        columns=columns,
        rows=tuple(rows),
        notes=("Means over runs, ± their sample deviation (a dash where there is one run).", *notes),
        simulated=_simulated(gathered, MAIN),
    )


def unordered(gathered: Gathered) -> Table:
    """Criteria that hold in the final state, whatever their order."""
    rows: list[tuple[Value, ...]] = []
    for setting in gathered.settings():
        for strategy in gathered.strategies(setting, MAIN):
            results = gathered.of(setting, strategy)
            values = (_mean(over_runs(results, success)), _mean(over_runs(results, passed)))
            rows.append((*_names(setting), NAMES[strategy], *values))
    return Table(
        name="criteria-passed",
        title="Success, and criteria passed in any order",
        columns=(*_SETTING, Column("strategy"), Column("success %"), Column("criteria passed %")),
        rows=tuple(rows),
        simulated=_simulated(gathered, MAIN),
    )


def harnesses(gathered: Gathered) -> Table:
    """Continue and AgentRewind in each harness, and the difference in points."""
    rows: list[tuple[Value, ...]] = []
    for setting in gathered.settings():
        arms = [gathered.of(setting, each) for each in (Strategy.CONTINUE, Strategy.REWIND)]
        if all(arms):
            before, after = (_means(results) for results in arms)
            gains = [b - a for a, b in zip(before, after, strict=True) if a is not None and b is not None]
            rows.append((setting.harness, setting.shown, *before, *after, *gains))
    columns = (
        *(Column("harness"), Column("model"), Column("Continue: success %"), Column("Continue: progress %")),
        *(Column("AgentRewind: success %"), Column("AgentRewind: progress %")),
        *(Column("gain in success", signed=True), Column("gain in progress", signed=True)),
    )
    return Table(
        name="harnesses",
        title="Continue and AgentRewind by harness",
        columns=columns,
        rows=tuple(rows),
        simulated=_simulated(gathered, (Strategy.CONTINUE, Strategy.REWIND)),
    )


def recovery(gathered: Gathered) -> Table:
    """Paired recoveries from the same failed ends of Continue runs."""
    rows: list[tuple[Value, ...]] = []
    arms = (Strategy.RECOVERY_CONTINUE, Strategy.RECOVERY_REWIND)
    for setting in gathered.settings():
        ends = [{_endpoint(each): each for each in gathered.of(setting, arm)} for arm in arms]
        common = sorted((ends[0].keys() & ends[1].keys()) - {""})
        for arm, held in zip(arms, ends, strict=True):
            if common:
                results = [held[endpoint] for endpoint in common]
                change = 100 * sum((_change(each) for each in results), Fraction(0)) / len(results)
                solved = float(100 * mean(results, success))
                rows.append((*_names(setting), NAMES[arm], len(common), solved, float(change)))
    columns = (
        *(*_SETTING, Column("method"), Column("pairs"), Column("recovered %")),
        Column("change in progress", signed=True),
    )
    return Table(
        name="recovery",
        title="Recovery from paired failed ends of Continue",
        columns=columns,
        rows=tuple(rows),
        notes=("Change in points of checklist progress, from the end that both started from.",),
        simulated=_simulated(gathered, arms),
    )


def _endpoint(result: Result) -> str:
    return "" if result.endpoint is None else f"{result.endpoint.cell}#{result.cell.run}"


def _change(result: Result) -> Fraction:
    assert result.endpoint is not None
    return Fraction(result.prefix - result.endpoint.prefix, result.total)


def ablation(gathered: Gathered) -> Table:
    """AgentRewind without one of its parts each."""
    rows: list[tuple[Value, ...]] = []
    for setting in gathered.settings():
        present = gathered.strategies(setting, ABLATION)
        if len(present) > 1:
            rows += [(*_names(setting), NAMES[each], *_means(gathered.of(setting, each))) for each in present]
    return Table(
        name="ablation",
        title="AgentRewind without one of its parts",
        columns=(*_SETTING, Column("variant"), *_BOTH),
        rows=tuple(rows),
        simulated=_simulated(gathered, ABLATION),
    )


def families(gathered: Gathered) -> Table:
    """Success and progress by the tasks' families."""
    rows: list[tuple[Value, ...]] = []
    for setting in gathered.settings():
        for strategy in gathered.strategies(setting, MAIN):
            for family, results in by_task(gathered.of(setting, strategy), lambda each: each.family).items():
                names = (*_names(setting), NAMES[strategy], family)
                rows.append((*names, *_means(results), _size(results)[0]))
    return Table(
        name="families",
        title="Strategies by family of task",
        columns=(*_SETTING, Column("strategy"), Column("family"), *_BOTH, Column("tasks")),
        rows=tuple(rows),
        simulated=_simulated(gathered, MAIN),
    )


def _names(setting: Setting) -> tuple[str, str]:
    return setting.shown, setting.harness


def _means(results: Sequence[Result]) -> tuple[float | None, float | None]:
    return _mean(over_runs(results, success)), _mean(over_runs(results, progress))


def _mean(found: Spread | None) -> float | None:
    return None if found is None else found.mean


def _spread(found: Spread | None) -> tuple[float | None, float | None]:
    return (None, None) if found is None else (found.mean, found.deviation)


def _size(results: Sequence[Result]) -> tuple[int, int]:
    return len({each.cell.task for each in results}), len({each.cell.run for each in results})


def _simulated(gathered: Gathered, among: Iterable[Strategy]) -> bool:
    wanted = tuple(among)
    return any(each.simulated for each in gathered.results if each.cell.strategy in wanted)
