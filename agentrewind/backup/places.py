"""Where the backups of a store are kept."""

from __future__ import annotations

from pathlib import Path


def directory_of(home: Path) -> Path:
    """The directory of the backups of this home; it need not exist."""
    return home / "backup"


def has_backups(home: Path) -> bool:
    """Whether anything was ever preserved here."""
    return (directory_of(home) / "log.jsonl").exists()
