"""Draws the plots of a report, without a display: the same bytes for the same results."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentrewind.display_text import printable
from runner.cell import Strategy
from runner.report.curves import Point, Tertile, by_length, progress_curve, success_curve
from runner.report.gather import MAIN, NAMES, Gathered, Setting, by_task
from runner.report.ground import steps_of
from runner.report.measures import mean, progress
from runner.report.table import SIMULATION
from runner.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    Strategy.CONTINUE: "#56698f",
    Strategy.RESTART: "#c9802b",
    Strategy.SAFETY: "#7d8f3a",
    Strategy.REWIND: "#b3314f",
}
STYLES = {
    Strategy.CONTINUE: "--",
    Strategy.RESTART: "-.",
    Strategy.SAFETY: ":",
    Strategy.REWIND: "-",
}
_DPI = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """`name` is the stem of its files; `caption` says in words what is drawn."""

    name: str
    title: str
    caption: str
    svg: bytes
    png: bytes


def plots(gathered: Gathered, task: str | None = None) -> list[Plot]:
    """Every plot that there is data for; the execution path is that of `task`, or of the most telling one."""
    found = []
    for number, setting in enumerate(gathered.settings(), start=1):
        suffix = "" if number == 1 else f"-{number}"
        if gathered.strategies(setting, MAIN):
            found.append(_lengths(gathered, setting, f"over-trace-length{suffix}"))
        groups = by_length(gathered, setting)
        if groups:
            found.append(_gains(setting, groups, f"by-horizon{suffix}"))
        chosen = task or most_telling(gathered, setting)
        if chosen and any(result.cell.task == chosen for result in gathered.results):
            found.append(_path(gathered, setting, chosen, f"path{suffix}"))
    return found


def most_telling(gathered: Gathered, setting: Setting) -> str | None:
    """The task in which AgentRewind's progress is furthest above the best other, then the worst."""
    ours = by_task(gathered.of(setting, Strategy.REWIND))
    others = [by_task(gathered.of(setting, each)) for each in gathered.strategies(setting, MAIN[:-1])]
    gains = {}
    for task, results in ours.items():
        theirs = [mean(held[task], progress) for held in others if task in held]
        if theirs:
            reached = mean(results, progress)
            gains[task] = (reached - max(theirs), reached - min(theirs), task)
    return max(gains, key=lambda task: gains[task], default=None)


def _lengths(gathered: Gathered, setting: Setting, name: str) -> Plot:
    def draw(figure: Figure) -> None:
        axes: Sequence[Axes] = figure.subplots(2, 1, sharex=True)
        curves: list[Callable[[Sequence[Result]], list[Point]]] = [success_curve, progress_curve]
        for ax, curve, label in zip(axes, curves, ("task success, %", "checklist progress, %"), strict=True):
            last = max(result.nodes for result in gathered.results)
            for strategy in gathered.strategies(setting, MAIN):
                points = curve(gathered.of(setting, strategy))
                xs = [point.nodes for point in points] + [last]
                ys = [point.share for point in points] + [points[-1].share]
                ax.step(xs, ys, where="post", label=NAMES[strategy], **_style(strategy))
            ax.set_ylabel(label)
            ax.set_ylim(-2, 102)
        axes[0].legend(fontsize=8, frameon=False)
        axes[1].set_xlabel("trace length, LLM and tool calls")

    return _plot(
        name,
        f"Success and progress over trace length: {_of(setting)}",
        "Means over all runs; a run that has ended keeps its last state.",
        draw,
        simulated=setting.simulated,
    )


def _gains(setting: Setting, groups: Sequence[Tertile], name: str) -> Plot:
    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        present = [each for each in MAIN if any(each in group.success for group in groups)]
        width = 0.8 / max(len(present), 1)
        for place, group in enumerate(groups):
            for number, strategy in enumerate(present):
                found = group.success.get(strategy)
                if found is None:
                    continue
                x = place + (number - (len(present) - 1) / 2) * width
                reach = [[found.mean - found.low], [found.high - found.mean]]
                label = NAMES[strategy] if place == 0 else None
                ax.bar(x, found.mean, width * 0.9, color=COLOURS[strategy], label=label)
                ax.errorbar(x, found.mean, yerr=reach, color="#222222", linewidth=1, capsize=2)
            if group.gain is not None:
                ax.text(place, 103, f"{group.gain:+.1f}", ha="center", fontsize=9)
        ax.set_xticks(range(len(groups)), [f"{group.name} ({len(group.tasks)} tasks)" for group in groups])
        ax.set_ylabel("task success, %")
        ax.set_ylim(0, 135)
        ax.set_yticks(range(0, 101, 20))
        ax.legend(fontsize=8, frameon=False, ncols=2, loc="upper center")

    return _plot(
        name,
        f"Success by Continue trace length: {_of(setting)}",
        "Tasks in three groups by the median of their Continue trace lengths. Bars are means over runs, "
        "lines the range of runs, numbers AgentRewind's gain over the best of the others, in points.",
        draw,
        simulated=setting.simulated,
    )


def _path(gathered: Gathered, setting: Setting, task: str, name: str) -> Plot:
    from matplotlib.ticker import MaxNLocator

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        for number, strategy in enumerate(gathered.strategies(setting, MAIN)):
            results = [each for each in gathered.of(setting, strategy) if each.cell.task == task]
            if not results:
                continue
            result = results[0]
            points = steps_of(result)
            # a little apart, or equal paths would hide each other
            xs, ys = [point.nodes for point in points], [point.prefix + number * 0.06 for point in points]
            end = f"{result.prefix}/{result.total}"
            ax.step(xs, ys, where="post", label=f"{NAMES[strategy]}: {end}", **_style(strategy))
            ax.plot(xs[-1:], ys[-1:], "o", color=COLOURS[strategy], markersize=5)
            ax.set_ylim(-0.3, result.total + 0.6)
        ax.set_xlabel("trace length, LLM and tool calls")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_ylabel("criteria satisfied in order")
        ax.legend(fontsize=8, frameon=False)

    return _plot(
        name,
        f"Execution paths of {printable(task)}: {_of(setting)}",
        "The first run of each strategy: criteria that hold, in order, after each node.",
        draw,
        simulated=setting.simulated,
    )


def _style(strategy: Strategy) -> dict[str, Any]:
    return {"color": COLOURS[strategy], "linestyle": STYLES[strategy]}


def _of(setting: Setting) -> str:
    return printable(f"{setting.shown}, {setting.harness}")


def _plot(name: str, title: str, caption: str, draw: Callable[[Figure], None], *, simulated: bool) -> Plot:
    # pyplot keeps every figure and asks for a display; a figure of its own does neither
    import matplotlib as mpl
    from matplotlib.figure import Figure

    heading = (SIMULATION if simulated else "") + title
    with mpl.rc_context(
        {"svg.hashsalt": name, "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    ):
        figure = Figure(figsize=(7.2, 4.4), layout="constrained")
        draw(figure)
        figure.suptitle(heading, fontsize=10, parse_math=False)
        if simulated:
            figure.text(
                0.5,
                0.5,
                "SIMULATION",
                fontsize=44,
                color="#000000",
                alpha=0.06,
                ha="center",
                va="center",
                rotation=20,
            )
        svg, png = io.BytesIO(), io.BytesIO()
        with warnings.catch_warnings():
            # a name in a script that the font lacks is drawn as boxes, and the caption has it as text
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
            figure.savefig(png, format="png", dpi=_DPI, metadata={"Software": None})
    return Plot(name=name, title=heading, caption=caption, svg=svg.getvalue(), png=png.getvalue())
