"""`agentrewind backup`: the table of its commands, each named by import path and loaded when it is called."""

from __future__ import annotations

import click

from agentrewind.commands.table import CommandTable

COMMANDS = {
    "explain": ("agentrewind.commands.backup_explain:explain", "Say what would be preserved before a call."),
    "log": ("agentrewind.commands.backup_log:log", "List what was preserved, and what became of it."),
    "show": ("agentrewind.commands.backup_log:show", "Show one backup whole."),
    "restore": (
        "agentrewind.commands.backup_restore:restore",
        "Bring back what was preserved.",
    ),
    "undo": ("agentrewind.commands.backup_restore:undo", "Take back the last restore of a backup."),
    "verify": ("agentrewind.commands.backup_log:verify", "Check that every backup is whole."),
    "rules": (
        "agentrewind.commands.backup_rules:rules",
        "List the rules in force, or check a file of rules.",
    ),
    "explore": (
        "agentrewind.commands.backup_learn:explore",
        "Let a model try a tool, and keep what it found.",
    ),
    "proposals": ("agentrewind.commands.backup_learn:proposals", "Show the rules that a model has proposed."),
    "accept": ("agentrewind.commands.backup_learn:accept", "Put proposed rules into your rules file."),
    "reject": ("agentrewind.commands.backup_learn:reject", "Forget proposed rules."),
    "hook": ("agentrewind.commands.backup_hook:hook", "Answer one tool call of another harness."),
    "install": ("agentrewind.commands.backup_hook:install", "Put the hook into a harness's settings."),
    "uninstall": ("agentrewind.commands.backup_hook:uninstall", "Take the hook out of a harness's settings."),
}
"""Name, where it is, and its short help."""


@click.group("backup", cls=CommandTable, table=COMMANDS)
def backup() -> None:
    """Preserve what lies outside the workspace before a call changes it, and bring it back."""
