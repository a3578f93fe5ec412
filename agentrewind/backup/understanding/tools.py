"""What a tool call is: shell text, a tool that reads, or one that rules have to know by name."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

from agentrewind.backup.values import Context, ToolCall

_SHELLS = frozenset(
    [
        "bash",
        "shell",
        "sh",
        "execute_bash",
        "run_shell_command",
        "run_command",
        "execute_command",
        "exec_command",
        "terminal",
        "local_shell",
        "container.exec",
        "shell_command",
        "run_in_terminal",
        "run_terminal_cmd",
        "developer__shell",
        "exec",
        "unified_exec",
        "str_replace_based_bash",
        "powershell",
        "execute",
    ]
)

_READERS = frozenset(
    [
        "Read",
        "Glob",
        "Grep",
        "LS",
        "NotebookRead",
        "WebFetch",
        "WebSearch",
        "TodoRead",
        "TodoWrite",
        "Task",
        "Agent",
        "ExitPlanMode",
        "EnterPlanMode",
        "AskUserQuestion",
        "BashOutput",
        "TaskOutput",
        "ListMcpResourcesTool",
        "ReadMcpResourceTool",
        "Skill",
        "ToolSearch",
        "read_file",
        "read_many_files",
        "list_directory",
        "glob",
        "search_file_content",
        "grep_search",
        "web_fetch",
        "google_web_search",
        "read",
        "list",
        "ls",
        "grep",
        "glob",
        "webfetch",
        "websearch",
        "todoread",
        "todowrite",
        "view_image",
        "update_plan",
        "list_files",
        "search_files",
        "codebase_search",
        "file_search",
        "list_dir",
        "read_mcp_resource",
        "list_mcp_resources",
        "session_search",
        "skills_list",
        "skill_view",
        "web_search",
        "web_extract",
        "vision_analyze",
        "read_terminal",
        "think",
        "finish",
        "final_answer",
        "submit",
        "task_tracker",
        "update_topic",
        "write_todos",
        "enter_plan_mode",
        "exit_plan_mode",
        "ask_user",
        "list_background_processes",
        "read_background_output",
        "request_user_input",
        "get_goal",
        "backtrack_candidates",
        "backtrack_commit",
    ]
)
"""Tools of the known harnesses that change nothing but the conversation."""

_COMMANDS = ("command", "cmd", "script", "commands")
_DIRECTORIES = ("workdir", "cwd", "working_dir", "directory", "dir_path", "working_directory")


def shell_text(call: ToolCall) -> str | None:
    """The text that a shell tool is given, None for any other tool. A list of words is quoted into a text."""
    if call.name.lower() not in _SHELLS or not isinstance(call.arguments, dict):
        return None
    for name in _COMMANDS:
        value = call.arguments.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            return shlex.join(str(word) for word in value)
    return None


_PATCHES = frozenset({"apply_patch", "ApplyPatch", "applypatch"})
_PATCHED = re.compile(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+?)[ \t]*$", re.MULTILINE)


def patched_paths(call: ToolCall) -> tuple[str, ...]:
    """The paths that a patch of the tool apply_patch adds, changes, deletes or moves; else empty."""
    if call.name not in _PATCHES:
        return ()
    given = call.arguments
    texts = [given] if isinstance(given, str) else list(given.values()) if isinstance(given, dict) else []
    return tuple(path for text in texts if isinstance(text, str) for path in _PATCHED.findall(text))


def call_context(call: ToolCall, context: Context) -> Context:
    """The context of a call that names its own working directory."""
    if not isinstance(call.arguments, dict):
        return context
    for name in _DIRECTORIES:
        value = call.arguments.get(name)
        if isinstance(value, str) and value:
            return replace(context, cwd=context.cwd / Path(value))
    return context


def tool_reads(name: str) -> bool:
    """Whether a harness's own tool changes nothing."""
    return name in _READERS
