"""Tables of tests: AgentRewind against each baseline, two sensitivity checks, agreement of runs."""

from __future__ import annotations

from dataclasses import dataclass

from runner.cell import Strategy
from runner.report.gather import BASELINES, MAIN, NAMES, Gathered, Setting, by_task
from runner.report.measures import MEASURES, Pairing, pair, success
from runner.report.table import Column, Table, Value
from runner.statistics import agreement, discordance, holm, signed_rank


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """AgentRewind and one baseline, paired over the same runs."""

    setting: Setting
    baseline: Strategy
    pairing: Pairing

    @property
    def names(self) -> tuple[str, str, str]:
        return self.setting.shown, self.setting.harness, NAMES[self.baseline]


def comparisons(gathered: Gathered) -> list[Comparison]:
    """Every baseline that AgentRewind can be compared with, in the order of tables."""
    found = []
    for setting in gathered.settings():
        ours = gathered.of(setting, Strategy.REWIND)
        for baseline in gathered.strategies(setting, BASELINES):
            pairing = pair(ours, gathered.of(setting, baseline))
            if pairing.tasks:
                found.append(Comparison(setting=setting, baseline=baseline, pairing=pairing))
    return found


def significance_tables(gathered: Gathered) -> list[Table]:
    """All of them, those without a row left out."""
    tables = [significance(gathered), by_runs(gathered), mcnemar_table(gathered), agreement_table(gathered)]
    return [table for table in tables if table.rows]


def significance(gathered: Gathered) -> Table:
    """Wilcoxon's signed-rank test over tasks, corrected by Holm over the whole table."""
    found = comparisons(gathered)
    tests = [
        (measure, each, signed_rank(each.pairing.differences(how)))
        for measure, how in MEASURES.items()
        for each in found
    ]
    known = [test.p for _, _, test in tests if test.p is not None]
    corrected = iter(holm(known))
    rows: list[tuple[Value, ...]] = []
    for measure, each, test in tests:
        p_holm = None if test.p is None else next(corrected)
        facts = (test.pairs, test.nonzero, None if test.p is None else test.w, test.p, p_holm, test.effect)
        rows.append((measure, *each.names, *facts))
    unpaired = sum(each.pairing.unpaired for each in found)
    notes = [
        "Two-sided, paired over tasks; runs of a task are averaged first, over the runs that both have. "
        f"{len(known)} tests are corrected together. A dash: no difference, so no test. r above 0 favours "
        "AgentRewind."
    ]
    if unpaired:
        notes.append(f"{unpaired} tasks have no run in common with the other arm and are not in the tests.")
    columns = (
        *(Column("measure"), Column("model"), Column("harness"), Column("baseline"), Column("pairs")),
        *(
            Column("n≠"),
            Column("W"),
            Column("p", 4, floor=True),
            Column("p Holm", 4, floor=True),
            Column("r", 2, signed=True),
        ),
    )
    return Table(
        name="significance",
        title="AgentRewind against each baseline: Wilcoxon's signed-rank test",
        columns=columns,
        rows=tuple(rows),
        notes=tuple(notes),
        simulated=any(each.setting.simulated for each in found),
    )


def by_runs(gathered: Gathered) -> Table:
    """The same with every run a pair of its own: too ready to find a difference, so a check alone."""
    rows: list[tuple[Value, ...]] = []
    found = comparisons(gathered)
    for measure, how in MEASURES.items():
        for each in found:
            test = signed_rank([how(ours) - how(other) for ours, other in each.pairing.runs()])
            facts = (test.pairs, test.nonzero, None if test.p is None else test.w, test.p, test.effect)
            rows.append((measure, *each.names, *facts))
    columns = (
        *(Column("measure"), Column("model"), Column("harness"), Column("baseline"), Column("pairs")),
        *(Column("n≠"), Column("W"), Column("p", 4, floor=True), Column("r", 2, signed=True)),
    )
    return Table(
        name="sensitivity-runs",
        title="Sensitivity: the same test with runs for pairs",
        columns=columns,
        rows=tuple(rows),
        notes=("Runs of one task are not independent: p is too small here, and is not corrected.",),
        simulated=any(each.setting.simulated for each in found),
    )


def mcnemar_table(gathered: Gathered) -> Table:
    """McNemar's exact test of success, over pooled runs."""
    rows: list[tuple[Value, ...]] = []
    found = comparisons(gathered)
    for each in found:
        test = discordance((ours.success, other.success) for ours, other in each.pairing.runs())
        rows.append((*each.names, test.pairs, test.only_first, test.only_second, test.p))
    columns = (
        *(Column("model"), Column("harness"), Column("baseline"), Column("pairs of runs")),
        *(Column("only AgentRewind"), Column("only the baseline"), Column("p", 4, floor=True)),
    )
    return Table(
        name="sensitivity-mcnemar",
        title="Sensitivity: McNemar's exact test of success",
        columns=columns,
        rows=tuple(rows),
        simulated=any(each.setting.simulated for each in found),
    )


def agreement_table(gathered: Gathered) -> Table:
    """How often the runs of a task, model and strategy all succeed or all fail."""
    rows: list[tuple[Value, ...]] = []
    runs = max((result.cell.run for result in gathered.results), default=0)
    for setting in gathered.settings():
        for strategy in gathered.strategies(setting, MAIN):
            tasks = by_task(gathered.of(setting, strategy)).values()
            found = agreement(([bool(success(each)) for each in results] for results in tasks), runs=runs)
            share = None if found.share is None else 100 * found.share
            names = (setting.shown, setting.harness, NAMES[strategy])
            rows.append((*names, found.groups, found.agreeing, share, found.left_out))
    columns = (
        *(Column("model"), Column("harness"), Column("strategy"), Column("tasks"), Column("agreeing")),
        *(Column("agreeing %"), Column("left out")),
    )
    return Table(
        name="agreement",
        title=f"Tasks whose {runs} runs ended alike",
        columns=columns,
        rows=tuple(rows) if runs > 1 else (),
        notes=("Left out: tasks of which not every run has a result.",),
        simulated=gathered.simulated,
    )
