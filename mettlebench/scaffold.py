"""Makes a new task: a copy of a small complete one under another id."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import click

from mettlebench.load import read_task
from mettlebench.task import Task

TEMPLATE = Path(__file__).parent / "template"

_ID = "@TASK-ID@"
_CANARY = "@CANARY@"


def new_task(place: Path) -> Task:
    """Make a task at `place`, whose last part is its id; click.UsageError where something is there."""
    if place.exists():
        raise click.UsageError(f"{place} exists; name a place where nothing is yet")
    shutil.copytree(TEMPLATE, place)
    # derived from the id, so that making a task twice gives the same files
    canary = f"mettlebench-canary-{hashlib.sha256(place.name.encode()).hexdigest()[:32]}"
    for path in place.iterdir():
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            path.write_text(text.replace(_ID, place.name).replace(_CANARY, canary), encoding="utf-8")
    try:
        return read_task(place)
    except Exception:
        shutil.rmtree(place)
        raise
