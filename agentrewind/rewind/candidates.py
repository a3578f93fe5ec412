"""What an agent sees when it asks where it could go back to, and whether a target is valid. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from agentrewind.identity import canonical_bytes
from agentrewind.records import (
    MAIN_WORKSPACE,
    Change,
    Json,
    JsonObject,
    LlmNode,
    Node,
    RecordUid,
    RewindAsked,
    ToolNode,
)

SHOWN = 80
"""Checkpoints shown at most (paper, Table 10)."""

_SUMMARY = 400
_ARGUMENTS = 240
_FILES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the candidates are made from.

    Attributes:
        path: the nodes of the current path.
        asking: the LLM node whose answer asks; it is not a target of its own question.
        known: every node of the run, for telling abandoned from unknown.
        notes: all rewinds so far, oldest first.
        stands_for: abandoned checkpoints and the node of the current path that took their place.
        whole: the LLM nodes with a whole snapshot of every workspace before them.
        not_restored: what a rewind leaves as it is, ready to print.
    """

    path: Sequence[Node]
    asking: RecordUid | None
    known: Mapping[RecordUid, Node]
    notes: Sequence[RewindAsked]
    stands_for: Mapping[RecordUid, RecordUid]
    whole: Collection[RecordUid]
    not_restored: Sequence[str] = ()


def checkpoints(view: View) -> list[LlmNode]:
    """The valid targets, oldest first: whole checkpoints before the answer that asks."""
    found: list[LlmNode] = []
    for node in view.path:
        if node.record_uid == view.asking:
            break
        if isinstance(node, LlmNode) and node.error is None and node.record_uid in view.whole:
            found.append(node)
    return found


def listing(view: View) -> JsonObject:
    """The answer of `backtrack_candidates`: at most 80 entries, newest first."""
    targets = {node.record_uid for node in checkpoints(view)}
    entries: list[Json] = []
    step = 0
    for index, node in enumerate(view.path):
        if isinstance(node, LlmNode):
            step += 1
            if node.record_uid in targets:
                entries.append(_entry(view, index, node, step))
    entries.reverse()
    answer: JsonObject = {"candidates": entries[:SHOWN]}
    if len(entries) > SHOWN:
        answer["older_not_shown"] = len(entries) - SHOWN
    if view.not_restored:
        answer["left_as_is_by_a_rewind"] = list(view.not_restored)
    if not entries:
        answer["note"] = _nothing_to_offer(view)
    return answer


def _nothing_to_offer(view: View) -> str:
    first = next((node.record_uid for node in view.path if isinstance(node, LlmNode)), view.asking)
    if first == view.asking:
        return "There is no earlier point yet: this is the first answer of the run."
    return "There is no earlier point with a whole snapshot of the workspace, so none can be gone back to."


def refusal(view: View, target: str) -> str | None:
    """Why `target` cannot be gone back to, naming valid targets; None when it can."""
    valid = [node.record_uid for node in checkpoints(view)]
    if target in valid:
        return None
    choice = (
        f"Valid targets, newest first: {', '.join(reversed(valid[-12:]))}." if valid else "None is valid yet."
    )
    return f"{_reason(view, target)} {choice}"


def _reason(view: View, target: str) -> str:
    node = view.known.get(RecordUid(target))
    if node is None:
        return f"There is no record {target!r} in this run."
    if isinstance(node, ToolNode):
        parent = f" It belongs to {node.parent}." if node.parent else ""
        return f"{target} is a tool call; only your own answers (kind llm) can be gone back to.{parent}"
    if target == view.asking:
        return f"{target} is the answer that you are giving now; nothing lies between it and here."
    if all(node.record_uid != target for node in view.path):
        return f"{target} lies on a branch that was abandoned by an earlier rewind."
    if node.error is not None:
        return f"{target} is a call that failed; there is no answer to be given anew."
    return f"{target} has no whole snapshot of the workspace before it and is no checkpoint."


def _entry(view: View, index: int, node: LlmNode, step: int) -> JsonObject:
    tools: list[Json] = []
    files: dict[bytes, str] = {}
    external: list[Json] = []
    for follower in view.path[index + 1 :]:
        if not isinstance(follower, ToolNode):
            break
        tools.append(_tool(follower))
        external.extend(follower.metadata.external)
        span = follower.metadata.workspaces.get(MAIN_WORKSPACE)
        for change in span.diff_summary if span else ():
            _note_change(files, change)
    shown: list[Json] = [
        {"status": status, "path": path.decode("utf-8", "backslashreplace")}
        for path, status in list(files.items())[:_FILES]
    ]
    if len(files) > _FILES:
        shown.append({"status": "…", "path": f"and {len(files) - _FILES} more"})
    return {
        "record_uid": node.record_uid,
        "step": step,
        "summary": _cut(answer_text(node).strip(), _SUMMARY),
        "tools": tools,
        "files": shown,
        "memories": [note.memory for note in view.notes if _leads_to(view, note.target) == node.record_uid],
        "external": external,
    }


def _note_change(files: dict[bytes, str], change: Change) -> None:
    """One entry a file, but one for all that changed inside a repository's own folder."""
    repository, inner, _ = change.path.partition(b".git/")
    if inner and (not repository or repository.endswith(b"/")):
        files[repository + inner] = "M"
        return
    # of several changes the one between the checkpoint and now counts
    match files.pop(change.path, None), change.status:
        case "A", "D":
            return
        case "A", _:
            files[change.path] = "A"
        case "D", "A":
            files[change.path] = "M"
        case _:
            files[change.path] = change.status


def _leads_to(view: View, target: RecordUid) -> RecordUid:
    seen: set[RecordUid] = set()
    while target in view.stands_for and target not in seen:
        seen.add(target)
        target = view.stands_for[target]
    return target


def _tool(node: ToolNode) -> JsonObject:
    entry: JsonObject = {
        "name": node.tool_name,
        "arguments": _cut(canonical_bytes(node.arguments).decode(), _ARGUMENTS),
    }
    code = exit_code(node)
    if code is not None:
        entry["exit_code"] = code
    if node.error is not None:
        entry["error"] = _cut(f"{node.error.type}: {node.error.message}", _ARGUMENTS)
    if node.interrupted:
        entry["interrupted"] = True
    return entry


def exit_code(node: ToolNode) -> int | None:
    """The exit code that a tool's result carries under its usual names, if any."""
    if isinstance(node.output, dict):
        for name in ("returncode", "exit_code"):
            code = node.output.get(name)
            if isinstance(code, int) and not isinstance(code, bool):
                return code
    return None


def answer_text(node: LlmNode) -> str:
    """What an answer says in words, empty where it holds tool calls alone."""
    content = (node.output or {}).get("content")
    if isinstance(content, list):
        content = " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
