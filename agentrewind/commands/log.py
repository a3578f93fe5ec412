"""`agentrewind log`: a run's nodes as a tree, or as data."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import click

from agentrewind.commands.output import counted, emit, json_option, say
from agentrewind.commands.session import Session

if TYPE_CHECKING:
    from agentrewind.records import JsonObject
    from agentrewind.timeline import Timeline


@click.command("log")
@click.argument("run", metavar="RUN")
@json_option
@click.pass_obj
def log(session: Session, *, run: str, as_json: bool) -> None:
    """Show a run's tree of nodes.

    The current path stands in one column; what a rewind abandoned is set in beside it. Gaps that damage
    has left are marked where they are.
    """
    found = session.open_run(run)
    timeline = found.timeline()
    if as_json:
        emit(_document(timeline))
        return
    from agentrewind.commands.alive import is_running
    from agentrewind.display import print_tree
    from agentrewind.display_story import story_of

    header = timeline.header
    running = is_running(session.home, timeline)
    say(f"{found.run_id}  {header.harness}, {header.model}", style="strong")
    print_tree(
        story_of(found.segments_read()), width=shutil.get_terminal_size((110, 24)).columns, live=running
    )
    state = "running" if running else timeline.state()
    say(f"{state}: {counted(len(timeline.nodes), 'node')}, {counted(len(timeline.rewinds()), 'rewind')}, "
        f"{counted(len(timeline.segments), 'segment')}")  # fmt: skip
    if timeline.damages:
        say(
            f"{counted(len(timeline.damages), 'damage')}; see `agentrewind verify {found.run_id}`",
            style="bad",
        )


def _document(timeline: Timeline) -> JsonObject:
    from agentrewind.codec import node_json
    from agentrewind.errors import DamagedError
    from agentrewind.records import LlmNode

    nodes: list[JsonObject] = []
    for uid, node in timeline.nodes.items():
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
