"""`agentrewind show`: one node whole, with the state of the workspace around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import orjson

from agentrewind.commands.output import emit, json_option, say
from agentrewind.commands.session import Session

if TYPE_CHECKING:
    from agentrewind.records import Json, JsonObject, LlmNode, Node, WorkspaceSpan
    from agentrewind.timeline import Timeline

_MESSAGES = 3
_TEXT = 2000


@click.command("show")
@click.argument("run", metavar="RUN")
@click.argument("node", metavar="NODE")
@click.option("--full", is_flag=True, help="Nothing cut short, and all messages of the request.")
@click.option("--after", is_flag=True, help="Name the workspace after the node instead of before it.")
@json_option
@click.pass_obj
def show(session: Session, *, run: str, node: str, full: bool, after: bool, as_json: bool) -> None:
    """Show one node whole.

    With --json the messages of an LLM call are always given in full.
    """
    timeline = session.open_run(run).timeline()
    found = timeline.node(node)
    if as_json:
        emit(_document(timeline, found, after=after))
        return
    _tell(timeline, found, full=full, after=after)


def _document(timeline: Timeline, node: Node, *, after: bool) -> JsonObject:
    from agentrewind.codec import node_json
    from agentrewind.graph_steps import step_of
    from agentrewind.records import LlmNode

    step = step_of(timeline, node.record_uid)

    messages = timeline.messages(node.record_uid) if isinstance(node, LlmNode) else None
    return {
        **node_json(node, messages=messages),
        "segment": timeline.segment_of(node.record_uid),
        "on_path": timeline.on_path(node.record_uid),
        "commit": _commit(node, after=after),
        "graph": None if step is None else {"step": step.step, "place": list(step.place)},
    }


def _commit(node: Node, *, after: bool) -> str | None:
    span = _span(node)
    return None if span is None else span.after_commit if after else span.before_commit


def _span(node: Node) -> WorkspaceSpan | None:
    from agentrewind.records import MAIN_WORKSPACE

    return node.metadata.workspaces.get(MAIN_WORKSPACE)


def _tell(timeline: Timeline, node: Node, *, full: bool, after: bool) -> None:
    from agentrewind.display_story import called
    from agentrewind.graph_steps import step_of
    from agentrewind.records import LlmNode

    where = "on the current path" if timeline.on_path(node.record_uid) else "abandoned"
    kind = "LLM call" if isinstance(node, LlmNode) else "tool call"
    say(f"{node.record_uid}  {kind}, segment {timeline.segment_of(node.record_uid)}, {where}", style="strong")
    metadata = node.metadata
    say(f"{metadata.created_at}, {metadata.latency_ms} ms", style="faint")
    if (step := step_of(timeline, node.record_uid)) is not None:
        say(f"in step {step.step} of the graph, {'/'.join(step.place)}", style="faint")
    if isinstance(node, LlmNode):
        _tell_answer(timeline, node, full=full)
    else:
        if node.parent:
            say(f"asked for by {node.parent}", style="faint")
        say(_cut(called(node.tool_name, node.arguments), full=full))
        say()
        say("interrupted, effect unknown" if node.interrupted else _cut(_text(node.output), full=full))
    if node.error is not None:
        say(f"{node.error.type}: {node.error.message}", style="bad")
    _tell_files(node, full=full, after=after)


def _tell_answer(timeline: Timeline, node: LlmNode, *, full: bool) -> None:
    from agentrewind.display_story import said

    messages = timeline.messages(node.record_uid)
    say(f"{node.model} by {node.client}, {len(messages)} messages", style="faint")
    shown = messages if full else messages[-_MESSAGES:]
    if len(shown) < len(messages):
        say(f"… {len(messages) - len(shown)} earlier messages (--full shows them)", style="faint")
    for message in shown:
        say(f"[{_text(message.get('role'))}]", style="note")
        say(_cut(_text(message.get("content")), full=full))
        if message.get("tool_calls"):
            say(_cut(_text(message["tool_calls"]), full=full))
    say("[answer]", style="good")
    say(_cut(said(node.output), full=full))
    if node.output and node.output.get("tool_calls"):
        say(_cut(_text(node.output["tool_calls"]), full=full))


def _tell_files(node: Node, *, full: bool, after: bool) -> None:
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
    changes = span.diff_summary if full else span.diff_summary[:20]
    for change in changes:
        say(f"  {change.status} {change.path.decode('utf-8', 'backslashreplace')}")
    if span.diff_total > len(changes):
        say(f"  … {span.diff_total - len(changes)} more")


def _text(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and isinstance(output := value.get("output"), str):
        rest: JsonObject = {
            key: item for key, item in value.items() if key != "output" and item not in ("", None)
        }
        return f"{output}\n{_text(rest)}" if rest else output
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except (TypeError, orjson.JSONEncodeError):
        return repr(value)


def _cut(text: str, *, full: bool) -> str:
    if full or len(text) <= _TEXT:
        return text
    return f"{text[:_TEXT]}\n… {len(text) - _TEXT} more characters (--full shows them)"
