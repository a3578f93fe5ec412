"""Picks nodes of a run by what they say, did, changed or failed at. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from agentrewind.records import Json, Node, RecordUid, ToolNode
from agentrewind.rewind.candidates import exit_code
from agentrewind.timeline import Timeline

_HEARD = ("tool", "assistant", "function")
"""Roles of messages that other nodes have said already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a node must be like; all that is given has to hold.

    Attributes:
        text: stands, in upper or lower case, in what the node says, calls, gives or was newly told.
        path: a pattern of the shell that fits a path changed by it, or the last name of one.
        tool: the name of the tool that it is a call of.
        failed: it broke, was interrupted, ended with another exit code than 0, or was rejected.
    """

    text: str | None = None
    path: str | None = None
    tool: str | None = None
    failed: bool = False

    def __bool__(self) -> bool:
        return self.failed or any(each is not None for each in (self.text, self.path, self.tool))


def selected(
    timeline: Timeline, selection: Selection, *, changed: Callable[[Node], tuple[bytes, ...]]
) -> frozenset[RecordUid]:
    """The nodes that are like that; `changed` gives the paths that a node changed, all of them."""
    rejected = frozenset(each.record_uid for each in timeline.submissions() if not each.accepted)
    wanted = None if selection.text is None else selection.text.casefold()

    def fits(node: Node) -> bool:
        return (
            (selection.tool is None or (isinstance(node, ToolNode) and node.tool_name == selection.tool))
            and (not selection.failed or failed(node) or node.record_uid in rejected)
            and (wanted is None or any(wanted in text.casefold() for text in _said(node)))
            and (selection.path is None or any(_fits(path, selection.path) for path in changed(node)))
        )

    return frozenset(uid for uid, node in timeline.nodes.items() if fits(node))


def failed(node: Node) -> bool:
    """Whether the call itself did: an error, an unknown end, or an exit code other than 0."""
    if node.error is not None:
        return True
    return isinstance(node, ToolNode) and (node.interrupted or exit_code(node) not in (None, 0))


def _fits(path: bytes, pattern: str) -> bool:
    text = path.decode("utf-8", "backslashreplace")
    return fnmatchcase(text, pattern) or fnmatchcase(text.rpartition("/")[2], pattern)


def _said(node: Node) -> Iterator[str]:
    """Every text of a node that is its own."""
    if node.error is not None:
        yield node.error.message
    if isinstance(node, ToolNode):
        yield node.tool_name
        yield from texts(node.arguments)
        yield from texts(node.output)
        return
    output = node.output or {}
    yield from texts(output.get("content"))
    yield from texts(output.get("tool_calls"))
    for message in node.messages.append:
        if message.get("role") not in _HEARD:
            yield from texts(message.get("content"))


def texts(value: Json) -> Iterator[str]:
    """Every text within a value, keys of objects aside."""
    match value:
        case str():
            yield value
        case bytes():
            yield value.decode("utf-8", "replace")
        case list():
            for item in value:
                yield from texts(item)
        case dict():
            for item in value.values():
                yield from texts(item)
        case _:
            return
