"""`agentrewind blame`: the node that last wrote each line of a file."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentrewind.commands.output import emit, json_option, paged, say
from agentrewind.commands.session import Session
from agentrewind.display_text import file_name
from agentrewind.errors import UsageError

if TYPE_CHECKING:
    from agentrewind.blaming import Blame
    from agentrewind.file_comparison import Version
    from agentrewind.path_states import State, States
    from agentrewind.records import JsonObject
    from agentrewind.timeline import Timeline
    from agentrewind.workspace.snapshots import SnapshotStore

_NEAREST = 3


@click.command("blame")
@click.argument("run", metavar="RUN")
@click.argument("path", metavar="PATH")
@click.option("--until", metavar="NODE", help="The file as this node left it, abandoned or not.")
@json_option
@click.pass_obj
def blame(session: Session, *, run: str, path: str, until: str | None, as_json: bool) -> None:
    """Show which node last wrote each line of a file, and the answer that led to it.

    PATH is relative to the workspace. Lines that the run found have no node. A file that appears where
    another of much the same contents disappears counts as renamed, and that is said.
    """
    from agentrewind.blaming import blame as work_out
    from agentrewind.run_files import declared_root, open_snapshots, states_along

    timeline = session.open_run(run).timeline()
    name = _within(path, declared_root(timeline))
    with open_snapshots(timeline, session.home) as store:
        states = states_along(timeline, store, until)
        looks = _Looks(store, states.found)
        found = work_out(looks, name, last=len(states.found) - 1)
        if found is None:
            raise UsageError(_unknown(path, looks))
    if found.deleted is not None:
        raise UsageError(_deleted(timeline, path, states.found[found.deleted]))
    if as_json:
        emit(_document(timeline, path, states, found))
        return
    with paged():
        _tell(timeline, path, states, found)


@dataclass(slots=True)
class _Looks:
    """Looks into snapshots."""

    store: SnapshotStore
    states: Sequence[State]
    _seen: dict[tuple[int, bytes], Version | None] = field(default_factory=dict)

    def version(self, place: int, path: bytes) -> Version | None:
        from agentrewind.snapshot_comparison import Side, version

        if (place, path) not in self._seen:
            side = Side(store=self.store, commit=self.states[place].commit)
            self._seen[place, path] = version(side, path)
        return self._seen[place, path]

    def gone(self, place: int) -> list[bytes]:
        changes = self.store.diff(self.states[place - 1].commit, self.states[place].commit)
        return [change.path for change in changes if change.status == "D"]

    def nearest(self, path: str) -> list[str]:
        known = [os.fsdecode(entry.path) for entry in self.store.entries(self.states[-1].commit)]
        return difflib.get_close_matches(path, known, n=_NEAREST, cutoff=0.5)


def _within(path: str, root: Path) -> bytes:
    given = Path(os.path.normpath(root / path))
    if given == root or not given.is_relative_to(root):
        raise UsageError(
            f"{file_name(path)} is no file below the workspace {root}; give a path relative to it"
        )
    return os.fsencode(given.relative_to(root))


def _unknown(path: str, looks: _Looks) -> str:
    near = looks.nearest(path)
    hint = f"; did you mean {', '.join(map(file_name, near))}?" if near else ""
    return f"no state of this path has a file {file_name(path)}{hint}"


def _deleted(timeline: Timeline, path: str, state: State) -> str:
    if state.node is None or state.outside:
        return f"{file_name(path)} is not there any more: it was gone {state.name}"
    parent = getattr(timeline.nodes.get(state.node), "parent", None)
    hint = f"; `--until {parent}` shows it before that" if parent else ""
    return f"{file_name(path)} is not there any more: {state.node} deleted it{hint}"


def _tell(timeline: Timeline, path: str, states: States, found: Blame) -> None:
    from agentrewind.file_comparison import Form

    for rename in found.renames:
        names = " to ".join(file_name(each) for each in (rename.before, rename.after))
        say(f"renamed from {names}, {states.found[rename.place].name}", style="note")
    for skipped in states.skipped:
        say(f"not known {skipped}; what changed there is told of the next state", style="note")
    if found.form is not Form.TEXT:
        written = _who(states, found.written)
        say(f"{file_name(path)} has no lines to tell apart ({found.form}); it was last written {written}")
    width = len(str(len(found.lines)))
    for number, line in enumerate(found.lines, 1):
        who = _mark(states.found[line.place])
        say(f"{who:<11} {number:>{width}}  {line.text.rstrip(chr(10))}")
    for place in _places(found):
        _tell_node(timeline, states.found[place])


def _places(found: Blame) -> list[int]:
    """The states that wrote what is left of the file."""
    return sorted({line.place for line in found.lines} | {found.written or 0})


def _mark(state: State) -> str:
    return "–" if state.node is None else "outside" if state.outside else state.node


def _who(states: States, place: int | None) -> str:
    state = states.found[place or 0]
    return "before the run began" if state.node is None else state.name


def _tell_node(timeline: Timeline, state: State) -> None:
    from agentrewind.display_text import shorten

    if state.node is None:
        return
    if state.outside:
        say(f"outside      changed {state.name}", style="faint")
        return
    does, answer = _deed(timeline, state.node)
    say(f"{state.node}   {shorten(does, 90)}", style="strong")
    if answer is not None:
        say(f"             {answer[0]}: {shorten(answer[1], 90)}", style="faint")


def _deed(timeline: Timeline, uid: str) -> tuple[str, tuple[str, str] | None]:
    """What a node did, and the answer that asked for it."""
    from agentrewind.display_story import called, said
    from agentrewind.records import LlmNode

    node = timeline.node(uid)
    if isinstance(node, LlmNode):
        return said(node.output), None
    parent = timeline.nodes.get(node.parent) if node.parent else None
    answer = (parent.record_uid, said(parent.output)) if isinstance(parent, LlmNode) else None
    return called(node.tool_name, node.arguments), answer


def _document(timeline: Timeline, path: str, states: States, found: Blame) -> JsonObject:
    nodes: JsonObject = {}
    for place in _places(found):
        uid = states.found[place].node
        if uid is not None and not states.found[place].outside:
            does, answer = _deed(timeline, uid)
            nodes[uid] = {
                "does": does,
                "parent": answer[0] if answer else None,
                "answer": answer[1] if answer else None,
            }
    return {
        "run_id": timeline.header.run_id,
        "path": path,
        "form": found.form.value,
        "written": None if found.written is None else states.found[found.written].node,
        "lines": [
            {
                "text": line.text.removesuffix("\n"),
                "record_uid": states.found[line.place].node,
                "outside": states.found[line.place].outside,
            }
            for line in found.lines
        ],
        "renames": [
            {
                "record_uid": states.found[each.place].node,
                "before": each.before.decode("utf-8", "backslashreplace"),
                "after": each.after.decode("utf-8", "backslashreplace"),
            }
            for each in found.renames
        ],
        "nodes": nodes,
        "skipped": list(states.skipped),
    }
