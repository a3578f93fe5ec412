"""Words differences and messages for people: lines, each with the style that tells what it means. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import orjson

from agentrewind.comparison import MessageDifference, NodeDifference
from agentrewind.display_text import file_name
from agentrewind.file_comparison import FileDifference, Form, unified
from agentrewind.records import Json, JsonObject
from agentrewind.snapshot_comparison import Differences

Styled: TypeAlias = tuple[str, str]
"""A text and its style, as `commands.output.say` takes them."""

LINES = 60
"""So many lines of a file's diff are shown where not all are asked for."""

MESSAGES = 6
"""So many of the messages that only one side has."""

TEXT = 2000
"""So many characters of a text."""

_MARKS = {"+": "good", "-": "bad", "@": "rewind"}


def file_lines(difference: FileDifference, *, full: bool = False) -> Iterator[Styled]:
    """A path with its sizes and modes, and the lines of text that differ."""
    yield f"{difference.status} {file_name(difference.path)}{_facts(difference)}", "strong"
    yield from _hunks(difference.lines, full=full)


def files_lines(found: Differences, *, full: bool = False) -> Iterator[Styled]:
    """All that is known of how files differ; nothing where they do not."""
    for each in found.listed:
        yield from file_lines(each, full=full)
    if found.more:
        yield f"and {found.more} more files (--full shows them)", "faint"
    if found.inside:
        paths = "1 path" if found.inside == 1 else f"{found.inside} paths"
        yield f"and {paths} inside .git folders (--full shows them)", "faint"


def node_lines(difference: NodeDifference, *, full: bool = False) -> Iterator[Styled]:
    """What differs between two nodes: messages whole, everything else as a unified diff."""
    yield from _messages(difference.messages, full=full)
    for name, field in difference.fields.items():
        lines = unified(f"{text_of(field.left)}\n", f"{text_of(field.right)}\n")
        yield f"{name}  ({field.first.partition(': ')[0]})" if lines else field.first, "strong"
        yield from _hunks(lines, full=full)
    if not difference.fields and not difference.messages.any:
        yield "asked the same, with the same outcome", "good"


def _messages(found: MessageDifference, *, full: bool) -> Iterator[Styled]:
    if found.common or found.any:
        yield f"messages: {found.common} the same{', then' if found.any else ''}", "faint"
    for mark, messages in (("-", found.only_left), ("+", found.only_right)):
        shown = messages if full else messages[:MESSAGES]
        texts = (text for message in shown for text, _ in message_lines(message, full=full))
        for line in "\n".join(texts).split("\n") if shown else ():
            yield f"  {mark}{line}", _MARKS[mark]
        if hidden := len(messages) - len(shown):
            yield f"  {mark}… {hidden} more messages (--full shows them)", "faint"
    if found.tail:
        yield f"and {found.tail} the same at the end", "faint"


def _hunks(lines: Sequence[str], *, full: bool) -> Iterator[Styled]:
    shown = lines if full else lines[:LINES]
    for line in shown:
        # a carriage return would vanish, and with it what differs
        yield f"  {line.replace(chr(13), '^M')}", _MARKS.get(line[:1], "")
    if hidden := len(lines) - len(shown):
        yield f"  … {hidden} more lines (--full shows them)", "faint"


def message_lines(message: Json, *, full: bool = False) -> Iterator[Styled]:
    """A message: its role, what it says, and the calls it makes."""
    plain: JsonObject = message if isinstance(message, dict) else {"content": message}
    yield f"[{text_of(plain.get('role'))}]", "note"
    yield cut(text_of(plain.get("content")), full=full), ""
    if plain.get("tool_calls"):
        yield cut(text_of(plain["tool_calls"]), full=full), ""


def text_of(value: Json) -> str:
    """A value as people read it: text as it is, a tool's result by its output, everything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and isinstance(output := value.get("output"), str):
        rest: JsonObject = {
            key: item for key, item in value.items() if key != "output" and item not in ("", None)
        }
        return f"{output}\n{text_of(rest)}" if rest else output
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except (TypeError, orjson.JSONEncodeError):
        return repr(value)


def cut(text: str, *, full: bool) -> str:
    """The text, or its beginning and how much more there is."""
    if full or len(text) <= TEXT:
        return text
    return f"{text[:TEXT]}\n… {len(text) - TEXT} more characters (--full shows them)"


def _facts(difference: FileDifference) -> str:
    facts = []
    before, after = difference.mode_before, difference.mode_after
    if None not in (before, after) and before != after and difference.form is not Form.LINK:
        facts.append(f"mode {before:04o} to {after:04o}")
    match difference.form:
        case Form.TEXT:
            facts.append(f"+{difference.added} -{difference.removed}")
        case Form.DIRECTORY:
            facts.append("directory")
        case Form.LINK:
            facts.append("link")
        case Form.BINARY:
            facts.append(f"binary, {_sizes(difference)}")
        case Form.LONG:
            facts.append(f"too long to compare by lines, {_sizes(difference)}")
    return f"  ({'; '.join(facts)})"


def _sizes(difference: FileDifference) -> str:
    sides = [size for size in (difference.size_before, difference.size_after) if size is not None]
    return " to ".join(f"{size} bytes" for size in sides)
