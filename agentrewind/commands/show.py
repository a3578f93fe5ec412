"""`agentrewind show`: one node whole, with the state of the workspace around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agentrewind.commands.output import counted, emit, json_option, paged, say
from agentrewind.commands.session import Session
from agentrewind.display_text import file_name
from agentrewind.errors import DamagedError

if TYPE_CHECKING:
    from agentrewind.records import JsonObject, LlmNode, Node, ToolNode, WorkspaceSpan
    from agentrewind.snapshot_comparison import Differences
    from agentrewind.timeline import Timeline


@click.command("show")
@click.argument("run", metavar="RUN")
@click.argument("node", metavar="NODE")
@click.option("--full", is_flag=True, help="Nothing cut short, the whole request, the insides of .git.")
@click.option("--after", is_flag=True, help="Name the workspace after the node instead of before it.")
@json_option
@click.pass_obj
def show(session: Session, *, run: str, node: str, full: bool, after: bool, as_json: bool) -> None:
    """Show one node whole.

    Of an LLM call the messages that are new in it and the answer, of a tool call its arguments and what it
    gave; of both how the files changed. With --json the messages of an LLM call are always given in full.
    """
    timeline = session.open_run(run).timeline()
    found = timeline.node(node)
    files, missing = _files(session, timeline, found, full=full)
    if as_json:
        emit(_document(timeline, found, files, missing, after=after))
        return
    with paged():
        _tell(timeline, found, full=full)
        _tell_workspace(found, full=full, after=after)
        _tell_files(found, files, missing, full=full)


def _document(
    timeline: Timeline,
    node: Node,
    files: Differences | None,
    missing: str | None,
    *,
    after: bool,
) -> JsonObject:
    from agentrewind.codec import node_json
    from agentrewind.graph_steps import step_of
    from agentrewind.records import LlmNode

    messages, gap = _messages(timeline, node) if isinstance(node, LlmNode) else (None, None)
    step = step_of(timeline, node.record_uid)
    return {
        **node_json(node, messages=messages),
        "segment": timeline.segment_of(node.record_uid),
        "on_path": timeline.on_path(node.record_uid),
        "commit": _commit(node, after=after),
        "graph": None if step is None else {"step": step.step, "place": list(step.place)},
        "new_from": node.messages.keep if isinstance(node, LlmNode) else None,
        "messages_missing": gap,
        "files": None if files is None else [each.to_json() for each in files.listed],
        "files_more": files.more if files else 0,
        "files_missing": missing,
    }


def _messages(timeline: Timeline, node: LlmNode) -> tuple[tuple[JsonObject, ...] | None, str | None]:
    """The full list; None, and why, where damage before the node has made it unknown."""
    try:
        return timeline.messages(node.record_uid), None
    except DamagedError as error:
        return None, str(error)


def _files(
    session: Session, timeline: Timeline, node: Node, *, full: bool
) -> tuple[Differences | None, str | None]:
    """How the node changed files; None, and why, where that cannot be told."""
    from agentrewind.manual_history import state_at
    from agentrewind.run_files import open_snapshots
    from agentrewind.snapshot_comparison import LISTED, Differences, Side, differences

    span = _span(node)
    if span is not None and span.changed is False and not span.partial:
        return Differences(listed=(), more=0, inside=0), None
    try:
        before = state_at(timeline, node.record_uid, after=False)
        after = state_at(timeline, node.record_uid, after=True)
        with open_snapshots(timeline, session.home) as store:
            sides = Side(store=store, commit=before), Side(store=store, commit=after)
            return differences(*sides, repositories=full, limit=None if full else LISTED), None
    except DamagedError as error:
        return None, str(error)


def _commit(node: Node, *, after: bool) -> str | None:
    span = _span(node)
    return None if span is None else span.after_commit if after else span.before_commit


def _span(node: Node) -> WorkspaceSpan | None:
    from agentrewind.records import MAIN_WORKSPACE

    return node.metadata.workspaces.get(MAIN_WORKSPACE)


def _tell(timeline: Timeline, node: Node, *, full: bool) -> None:
    from agentrewind.graph_steps import step_of
    from agentrewind.records import LlmNode
    from agentrewind.usage import usage_of

    where = "on the current path" if timeline.on_path(node.record_uid) else "abandoned"
    kind = "LLM call" if isinstance(node, LlmNode) else "tool call"
    say(
        f"{file_name(node.record_uid)}  {kind}, segment {timeline.segment_of(node.record_uid)}, {where}",
        style="strong",
    )
    usage = usage_of([node])
    took = "" if usage.tokens_in is None else f", {usage.tokens_in} tokens in, {usage.tokens_out} out"
    say(f"{node.metadata.created_at}, {node.metadata.latency_ms} ms{took}", style="faint")
    if (step := step_of(timeline, node.record_uid)) is not None:
        say(f"in step {step.step} of the graph, {'/'.join(step.place)}", style="faint")
    if isinstance(node, LlmNode):
        _tell_answer(timeline, node, full=full)
    else:
        _tell_call(timeline, node, full=full)
    if node.error is not None:
        say(f"{node.error.type}: {node.error.message}", style="bad")


def _tell_call(timeline: Timeline, node: ToolNode, *, full: bool) -> None:
    from agentrewind.display_difference import cut, text_of
    from agentrewind.display_story import called

    if node.parent:
        say(f"asked for by {node.parent}", style="faint")
    say(cut(called(node.tool_name, node.arguments), full=full))
    say()
    if node.interrupted:
        say("interrupted, effect unknown", style="bad")
    elif node.error is None:
        say(cut(text_of(node.output), full=full))
    for each in timeline.submissions():
        if each.record_uid == node.record_uid:
            style = "good" if each.accepted else "bad"
            say(
                f"submission {'accepted' if each.accepted else f'rejected at {file_name(each.criterion)}'}",
                style=style,
            )
            say(cut(each.feedback, full=full))


def _tell_answer(timeline: Timeline, node: LlmNode, *, full: bool) -> None:
    from agentrewind.display_difference import cut, message_lines, text_of
    from agentrewind.display_story import said

    messages, gap = _messages(timeline, node)
    count = "messages not all known" if messages is None else counted(len(messages), "message")
    say(f"{node.model} by {node.client}, {count}", style="faint")
    if gap is not None:
        say(f"gap in the log: {gap}; what is new in this request follows", style="bad")
    whole = full and messages is not None
    if node.messages.keep and not whole and gap is None:
        earlier = counted(node.messages.keep, "message")
        say(f"… {earlier} as {node.messages.base} had them (--full shows them)", style="faint")
    for message in messages if whole and messages is not None else node.messages.append:
        for text, style in message_lines(message, full=full):
            say(text, style=style)
    say("[answer]", style="good")
    say(cut(said(node.output), full=full))
    if node.output and node.output.get("tool_calls"):
        say(cut(text_of(node.output["tool_calls"]), full=full))


def _tell_workspace(node: Node, *, full: bool, after: bool) -> None:
    span = _span(node)
    if span is None:
        return
    say()
    moment = "after" if after else "before"
    say(f"workspace {moment}: {_commit(node, after=after) or 'not known'}", style="faint")
    for path in span.partial:
        say(f"  not captured: {path}", style="bad")
    for path in span.left_out if full else span.left_out[:5]:
        say(f"  left out: {path}", style="note")


def _tell_files(node: Node, files: Differences | None, missing: str | None, *, full: bool) -> None:
    from agentrewind.display_difference import files_lines

    span = _span(node)
    if files is None:
        say(f"how the files changed cannot be told: {missing}", style="note")
        for change in span.diff_summary if span else ():
            say(f"  {change.status} {file_name(change.path)}")
        return
    for text, style in files_lines(files, full=full):
        say(text, style=style)
