"""`agentrewind diff`: what differs between two nodes, of one run or two, or where two runs part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from agentrewind.commands.output import counted, emit, json_option, paged, say
from agentrewind.commands.session import Session
from agentrewind.errors import DamagedError, UsageError

if TYPE_CHECKING:
    from agentrewind.comparison import NodeDifference, NodeView, Parting
    from agentrewind.records import JsonObject, Node
    from agentrewind.snapshot_comparison import Differences
    from agentrewind.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """One side: a node of a run."""

    timeline: Timeline
    node: Node

    def to_json(self) -> JsonObject:
        return {"run_id": self.timeline.header.run_id, "record_uid": self.node.record_uid}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    """How the workspaces differ; without `found`, `missing` says why nothing is known."""

    found: Differences | None = None
    missing: str | None = None

    def to_json(self) -> JsonObject:
        found = self.found
        return {
            "files": None if found is None else [each.to_json() for each in found.listed],
            "more": found.more if found else 0,
            "repositories": found.inside if found else 0,
            "missing": self.missing,
        }


@click.command("diff")
@click.argument("places", metavar="RUN A B | RUN A RUN B | RUN RUN", nargs=-1, required=True)
@click.option("--after", is_flag=True, help="The workspaces after the two nodes instead of before them.")
@click.option("--answers", is_flag=True, help="Two runs part only where what the model says or calls does.")
@click.option("--full", is_flag=True, help="Nothing cut short, and the insides of .git folders too.")
@json_option
@click.pass_obj
def diff(session: Session, /, *, places: tuple[str, ...], as_json: bool, **given: bool) -> None:
    """Show what differs between two nodes.

    `diff RUN A B` compares two nodes of a run: what was asked, what came back, and the files of the
    workspace before them. `diff RUN A RUN B` does so with nodes of two runs. `diff RUN RUN` finds the first
    node in which the current paths of two runs part, and compares there; what a replay does not compare
    either makes no difference to it, nor do ids of tool calls and workspaces' own paths.
    """
    after, full = given["after"], given["full"]
    timelines = [session.open_run(places[0]).timeline()]
    if len(places) in (2, 4):
        timelines.append(session.open_run(places[len(places) // 2]).timeline())
    left, right = timelines[0], timelines[-1]
    parting = None
    match places:
        case [_, a, b] | [_, a, _, b]:
            sides = [_Place(timeline=left, node=left.node(a)), _Place(timeline=right, node=right.node(b))]
        case [_, _]:
            parting = _parting(left, right, answers=given["answers"])
            sides = _sides(left, right, parting)
        case _:
            raise UsageError("give RUN A B, RUN A RUN B, or RUN RUN")
    compared = None if len(sides) < 2 else _node_difference(*sides)
    files = None if len(sides) < 2 else _files(session, sides, after=after, full=full)
    if as_json:
        emit(
            {
                "runs": [each.header.run_id for each in (left, right)],
                "parting": parting.to_json() if parting else None,
                "nodes": [each.to_json() for each in sides],
                "difference": compared.to_json() if compared else None,
                "workspace": files.to_json() if files else None,
            }
        )
        return
    with paged():
        if len(places) == 2:
            _tell_parting(left, right, parting)
        if compared is not None and files is not None:
            _tell_nodes(sides, compared, full=full)
            _tell_files(files, moment="after" if after else "before", full=full)


def _parting(left: Timeline, right: Timeline, *, answers: bool) -> Parting | None:
    from agentrewind.comparison import Comparable, parting
    from agentrewind.run_files import declared_root

    made = Comparable()
    paths = [made.path(_views(each), root=str(declared_root(each))) for each in (left, right)]
    return parting(*paths, answers=answers)


def _views(timeline: Timeline) -> Iterator[NodeView]:
    """The current path as it is compared, built as far as it is read."""
    for node in timeline.path():
        yield _view(timeline, node)


def _view(timeline: Timeline, node: Node) -> NodeView:
    from agentrewind.comparison import view_of
    from agentrewind.records import LlmNode

    return view_of(node, timeline.messages(node.record_uid) if isinstance(node, LlmNode) else ())


def _sides(left: Timeline, right: Timeline, found: Parting | None) -> list[_Place]:
    if found is None:
        return []
    return [
        _Place(timeline=timeline, node=timeline.node(uid))
        for timeline, uid in ((left, found.left), (right, found.right))
        if uid is not None
    ]


def _node_difference(left: _Place, right: _Place) -> NodeDifference:
    from agentrewind.comparison import compare_nodes

    return compare_nodes(_view(left.timeline, left.node), _view(right.timeline, right.node))


def _files(session: Session, sides: Sequence[_Place], *, after: bool, full: bool) -> _Files:
    from agentrewind.manual_history import state_at
    from agentrewind.run_files import open_snapshots
    from agentrewind.snapshot_comparison import LISTED, Side, differences

    with ExitStack() as stack:
        try:
            states = [
                Side(
                    store=stack.enter_context(open_snapshots(each.timeline, session.home)),
                    commit=state_at(each.timeline, each.node.record_uid, after=after),
                )
                for each in sides
            ]
            return _Files(found=differences(*states, repositories=full, limit=None if full else LISTED))
        except DamagedError as error:
            return _Files(missing=str(error))


def _tell_parting(left: Timeline, right: Timeline, found: Parting | None) -> None:
    runs = f"{left.header.run_id} and {right.header.run_id}"
    if found is None:
        say(f"the paths of {runs} do not part: {counted(len(left.path()), 'node')}", style="good")
        return
    same = f"{counted(found.common, 'node')} the same"
    verbs = {"asked": "asked otherwise", "answered": "got another outcome"}
    verb = verbs.get(found.what, "go on otherwise")
    where = f" at {found.left or 'the end'} and {found.right or 'the end'}"
    say(f"{runs}: {same}, then they {verb}{where}", style="strong")
    say(f"  {found.difference}", style="bad")
    say()


def _tell_nodes(sides: Sequence[_Place], found: NodeDifference, *, full: bool) -> None:
    from agentrewind.display_difference import node_lines

    for mark, style, side in zip("-+", ("bad", "good"), sides, strict=True):
        say(f"{mark} {side.timeline.header.run_id} {side.node.record_uid}", style=style)
    for text, style in node_lines(found, full=full):
        say(text, style=style)


def _tell_files(files: _Files, *, moment: str, full: bool) -> None:
    from agentrewind.display_difference import files_lines

    say()
    if files.found is None:
        say(f"the workspaces cannot be compared: {files.missing}", style="bad")
        return
    lines = list(files_lines(files.found, full=full))
    for text, style in lines:
        say(text, style=style)
    if not lines:
        say(f"the workspaces {moment} them hold the same", style="faint")
