"""The hook forms of Hermes, Gemini CLI and OpenHands, and the plain one that our plugins for the rest use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agentrewind.backup.hosts.host import HostCall, Reply, When, call_of, dumped, text, when_of
from agentrewind.backup.values import ToolCall
from agentrewind.records import Json


class Hermes:
    """`pre_tool_call` and `post_tool_call` of Hermes' shell hooks."""

    def read(self, document: Mapping[str, Json]) -> HostCall | None:
        """The call; its id stands in `extra`."""
        events = {"pre_tool_call": When.BEFORE, "post_tool_call": When.AFTER}
        when = when_of(document, events, "hook_event_name")
        if when is None:
            return None
        extra = document.get("extra")
        flat = {**(extra if isinstance(extra, dict) else {}), **document}
        return call_of(
            flat,
            name="tool_name",
            arguments="tool_input",
            call_id="tool_call_id",
            session="session_id",
            cwd="cwd",
            when=when,
        )

    def passes(self, note: str) -> Reply:
        """An empty object; a note goes to standard error."""
        return Reply(stdout="{}\n", stderr=f"{note}\n" if note else "")

    def blocks(self, reason: str) -> Reply:
        """`block`, not `approve`, which would ask a person."""
        return Reply(stdout=dumped({"action": "block", "message": reason}))


class GeminiCli:
    """`BeforeTool` and `AfterTool` of Gemini CLI."""

    def read(self, document: Mapping[str, Json]) -> HostCall | None:
        """The call; a tool of an MCP server is named by `mcp_context`."""
        events = {"BeforeTool": When.BEFORE, "AfterTool": When.AFTER}
        when = when_of(document, events, "hook_event_name")
        if when is None:
            return None
        found = call_of(
            document,
            name="tool_name",
            arguments="tool_input",
            call_id="",
            session="session_id",
            cwd="cwd",
            when=when,
        )
        server = document.get("mcp_context")
        if not isinstance(server, dict) or not text(server, "server_name"):
            return found
        name = f"mcp__{text(server, 'server_name')}__{text(server, 'tool_name') or found.call.name}"
        return replace(
            found, call=ToolCall(name=name, arguments=found.call.arguments, tagged=found.call.tagged)
        )

    def passes(self, note: str) -> Reply:
        """An empty object: no decision, so that the usual confirmation is asked for."""
        return Reply(stdout=dumped({"systemMessage": note}) if note else "{}\n")

    def blocks(self, reason: str) -> Reply:
        """A denial, which goes back to the model as the tool's error."""
        return Reply(stdout=dumped({"decision": "deny", "reason": reason}))


class OpenHands:
    """PreToolUse and PostToolUse of OpenHands."""

    def read(self, document: Mapping[str, Json]) -> HostCall | None:
        """The call; the event is named `event_type` or, as Claude Code does, `hook_event_name`."""
        events = {"PreToolUse": When.BEFORE, "PostToolUse": When.AFTER}
        when = when_of(document, events, "event_type", "hook_event_name")
        if when is None:
            return None
        cwd = "working_dir" if text(document, "working_dir") else "cwd"
        return call_of(
            document,
            name="tool_name",
            arguments="tool_input",
            call_id="tool_use_id",
            session="session_id",
            cwd=cwd,
            when=when,
        )

    def passes(self, note: str) -> Reply:
        """An empty object; a note goes to standard error."""
        return Reply(stdout="{}\n", stderr=f"{note}\n" if note else "")

    def blocks(self, reason: str) -> Reply:
        """A denial and code 2, whichever of the two the version in use looks at."""
        return Reply(stdout=dumped({"decision": "deny", "reason": reason}), stderr=f"{reason}\n", code=2)


class Plugin:
    """The form in which our plugins for opencode and OpenClaw ask."""

    def read(self, document: Mapping[str, Json]) -> HostCall | None:
        """`when` (before, after), `tool`, `arguments`, `call_id`, `session`, `cwd`."""
        when = when_of(document, {each.value: each for each in When}, "when", tool="tool")
        if when is None:
            return None
        return call_of(
            document,
            name="tool",
            arguments="arguments",
            call_id="call_id",
            session="session",
            cwd="cwd",
            when=when,
        )

    def passes(self, note: str) -> Reply:
        """`block` empty."""
        return Reply(stdout=dumped({"block": "", "note": note}))

    def blocks(self, reason: str) -> Reply:
        """`block` holds the reason."""
        return Reply(stdout=dumped({"block": reason, "note": ""}))
