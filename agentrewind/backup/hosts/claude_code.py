"""Claude Code's hook form, and Codex's, which is the same but takes no field that it does not know."""

from __future__ import annotations

from collections.abc import Mapping

from agentrewind.backup.hosts.host import HostCall, Reply, When, call_of, dumped, when_of
from agentrewind.records import Json

_EVENTS = {
    "PreToolUse": When.BEFORE,
    "PostToolUse": When.AFTER,
    "PostToolUseFailure": When.AFTER,
}


class ClaudeCode:
    """PreToolUse and PostToolUse of Claude Code."""

    def read(self, document: Mapping[str, Json]) -> HostCall | None:
        """The call of `tool_name` and `tool_input`; tools of MCP servers are named as we name them."""
        when = when_of(document, _EVENTS, "hook_event_name")
        if when is None:
            return None
        return call_of(
            document,
            name="tool_name",
            arguments="tool_input",
            call_id="tool_use_id",
            session="session_id",
            cwd="cwd",
            when=when,
        )

    def passes(self, note: str) -> Reply:
        """No decision at all: `allow` would pass over the user's own permissions."""
        return Reply(stdout=dumped({"systemMessage": note}) if note else "")

    def blocks(self, reason: str) -> Reply:
        """A denial with its reason, which the model reads."""
        decision: Json = {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
        return Reply(stdout=dumped({"hookSpecificOutput": decision}))


class Codex(ClaudeCode):
    """The same of Codex. A field that it does not know would make the hook fail and the call run."""

    def passes(self, note: str) -> Reply:
        """An empty answer; a note goes to standard error."""
        return Reply(stderr=f"{note}\n" if note else "")
