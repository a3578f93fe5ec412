"""The table of kinds of external state, by import path: a hook loads only what its call touches."""

from __future__ import annotations

import importlib
from typing import cast

from agentrewind.backup.kind import Kind
from agentrewind.errors import DamagedError

KINDS = {
    "files": "agentrewind.backup.kinds.files:Files",
    "git": "agentrewind.backup.kinds.git:GitRepository",
    "git-remote": "agentrewind.backup.kinds.git_remote:GitRemote",
    "pip": "agentrewind.backup.kinds.pip:PipEnvironment",
    "npm": "agentrewind.backup.kinds.npm:NpmPackages",
    "dpkg": "agentrewind.backup.kinds.dpkg:DebianPackages",
    "crontab": "agentrewind.backup.kinds.crontab:Crontab",
    "postgresql": "agentrewind.backup.kinds.postgresql:PostgresDatabase",
    "sqlite": "agentrewind.backup.kinds.sqlite:SqliteDatabase",
    "database": "agentrewind.backup.kinds.database:MigratedDatabase",
    "kubernetes": "agentrewind.backup.kinds.kubernetes:KubernetesObjects",
    "imap": "agentrewind.backup.kinds.imap:ImapFolders",
    "command": "agentrewind.backup.kinds.command:CommandOutput",
    "saved": "agentrewind.backup.kinds.saved:SavedState",
}


def kind_of(name: str) -> Kind:
    """The kind of this name. Raises DamagedError where a log or rule names one that does not exist."""
    path = KINDS.get(name)
    if path is None:
        raise DamagedError(f"{name!r} is no kind of external state; known: {', '.join(KINDS)}")
    module, _, attribute = path.partition(":")
    return cast(Kind, getattr(importlib.import_module(module), attribute)())
