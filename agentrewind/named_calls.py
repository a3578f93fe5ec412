"""The tool calls that a recorded answer asks for."""

from __future__ import annotations

from agentrewind.records import LlmNode, RecordUid


def named_calls(node: LlmNode) -> list[tuple[str, str]]:
    """The tool calls that an answer asks for, in order, each as name and id."""
    calls = (node.output or {}).get("tool_calls")
    found: list[tuple[str, str]] = []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(call, dict) and isinstance(function, dict) and isinstance(call.get("id"), str):
            found.append((str(function.get("name")), str(call["id"])))
    return found


def parent_of(node: LlmNode) -> dict[str, RecordUid]:
    """The tool call ids that an answer names, each with the node as its parent."""
    calls = (node.output or {}).get("tool_calls")
    found: dict[str, RecordUid] = {}
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict) and isinstance(call.get("id"), str):
            found[str(call["id"])] = node.record_uid
    return found
