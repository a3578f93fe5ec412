"""`agentrewind log`: a run's nodes as a tree, or as data."""

from __future__ import annotations

import shutil
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import click

from agentrewind.commands.output import counted, emit, json_option, paged, say
from agentrewind.commands.session import Session

if TYPE_CHECKING:
    from agentrewind.records import JsonObject, RecordUid
    from agentrewind.run_store import Run
    from agentrewind.selection import Selection
    from agentrewind.timeline import Timeline


@click.command("log")
@click.argument("run", metavar="RUN")
@click.option("--grep", metavar="TEXT", help="Only nodes that say, call, give or were told this.")
@click.option("--path", metavar="GLOB", help="Only nodes that changed such a path or a file of such a name.")
@click.option("--tool", metavar="NAME", help="Only calls of this tool.")
@click.option("--failed", is_flag=True, help="Only nodes that failed or whose submission was rejected.")
@json_option
@click.pass_obj
def log(session: Session, /, *, run: str, as_json: bool, **wanted: Any) -> None:
    """Show a run's tree of nodes.

    The current path stands in one column; what a rewind abandoned is set in beside it. Gaps that damage
    has left are marked where they are. Of several filters all have to fit.
    """
    from agentrewind.selection import Selection

    found = session.open_run(run)
    timeline = found.timeline()
    selection = Selection(
        text=wanted["grep"], path=wanted["path"], tool=wanted["tool"], failed=wanted["failed"]
    )
    only = _selected(session, timeline, selection) if selection else None
    if as_json:
        emit(_document(timeline, only))
        return
    with paged():
        _tell(session, found, timeline, only)


def _selected(session: Session, timeline: Timeline, selection: Selection) -> frozenset[RecordUid]:
    from agentrewind.errors import DamagedError
    from agentrewind.run_files import changed_paths, open_snapshots
    from agentrewind.selection import selected

    with ExitStack() as stack:
        store = None
        if selection.path is not None:
            with suppress(DamagedError):  # told where a node cannot be judged without it
                store = stack.enter_context(open_snapshots(timeline, session.home))
        return selected(timeline, selection, changed=lambda node: changed_paths(node, store))


def _tell(session: Session, run: Run, timeline: Timeline, only: frozenset[RecordUid] | None) -> None:
    from agentrewind.agent_name import agent_of, models_of
    from agentrewind.commands.alive import is_running
    from agentrewind.display import print_tree
    from agentrewind.display_story import story_of

    running = is_running(session.home, timeline)
    say(f"{run.run_id}  {agent_of(timeline)}, {models_of(timeline) or 'no model yet'}", style="strong")
    width = shutil.get_terminal_size((110, 24)).columns
    print_tree(story_of(run.segments_read()), width=width, live=running, only=only)
    state = "running" if running else timeline.state()
    counts = f"{counted(len(timeline.nodes), 'node')}, {counted(len(timeline.rewinds()), 'rewind')}, "
    shown = "" if only is None else f"; {counted(len(only), 'node')} shown"
    say(f"{state}: {counts}{counted(len(timeline.segments), 'segment')}{shown}")
    if timeline.damages:
        say(f"{counted(len(timeline.damages), 'damage')}; see `agentrewind verify {run.run_id}`", style="bad")


def _document(timeline: Timeline, only: frozenset[RecordUid] | None) -> JsonObject:
    from agentrewind.codec import node_json
    from agentrewind.errors import DamagedError
    from agentrewind.records import LlmNode

    nodes: list[JsonObject] = []
    for uid, node in timeline.nodes.items():
        if only is not None and uid not in only:
            continue
        messages = None
        if isinstance(node, LlmNode):
            try:
                messages = timeline.messages(uid)
            except DamagedError:
                messages = None  # shown by reference, as it is recorded; the gap is among the damages
        shown = node_json(node, messages=messages)
        nodes.append({**shown, "segment": timeline.segment_of(uid), "on_path": timeline.on_path(uid)})
    return {
        "run_id": timeline.header.run_id,
        "state": timeline.state(),
        "segments": [_segment(timeline, number) for number in timeline.segments],
        "nodes": list(nodes),
        "damages": [
            {
                "segment": each.segment,
                "offset": each.offset,
                "length": each.length,
                "reason": each.reason,
                "lost": each.lost,
                "record_uid": each.record_uid,
            }
            for each in timeline.damages
        ],
    }


def _segment(timeline: Timeline, number: int) -> JsonObject:
    header = timeline.headers[number]
    fork = header.forked_from
    return {
        "segment": number,
        "created_at": header.created_at,
        "forked_from": None
        if fork is None
        else {
            "run_id": fork.run_id,
            "segment": fork.segment,
            "record_uid": fork.record_uid,
            "inclusive": fork.inclusive,
        },
        "nodes": [node.record_uid for node in timeline.own_nodes(number)],
        "damaged": timeline.header_of(number) is None,
    }
