"""The table of harnesses that BackUpper can be a hook of, by import path."""

from __future__ import annotations

import importlib
from typing import cast

from agentrewind.backup.hosts.host import Host
from agentrewind.errors import UsageError

HOSTS = {
    "claude-code": "agentrewind.backup.hosts.claude_code:ClaudeCode",
    "codex": "agentrewind.backup.hosts.claude_code:Codex",
    "hermes": "agentrewind.backup.hosts.others:Hermes",
    "gemini-cli": "agentrewind.backup.hosts.others:GeminiCli",
    "opencode": "agentrewind.backup.hosts.others:Plugin",
    "openhands": "agentrewind.backup.hosts.others:OpenHands",
    "openclaw": "agentrewind.backup.hosts.others:Plugin",
}


def host_of(name: str) -> Host:
    """The form of the harness of this name. Raises UsageError."""
    path = HOSTS.get(name)
    if path is None:
        raise UsageError(f"{name!r} is no harness that has a hook here; known: {', '.join(HOSTS)}")
    module, _, attribute = path.partition(":")
    return cast(Host, getattr(importlib.import_module(module), attribute)())
