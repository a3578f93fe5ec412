"""Large trees that are only moved: the move itself keeps them, nothing is copied, and they are moved back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from agentrewind.backup.kind import Captured, CaptureError, Outcome, Store
from agentrewind.backup.kinds.tree import Item, decode, digest, encode, nothing, scan, show, sizes
from agentrewind.backup.values import Target
from agentrewind.fields import Fields
from agentrewind.records import JsonObject

UNCOPIED = 1 << 30
"""Bytes from which on a move is not preserved by a copy."""


def is_move(target: Target) -> bool:
    """The target is a move of this kind."""
    return "move" in target.detail


def is_large_move(source: Path, into: Path) -> bool:
    """The move is a rename of something large to a place where nothing is."""
    if os.path.lexists(into) or not os.path.lexists(source) or not into.parent.is_dir():
        return False
    try:
        return source.lstat().st_dev == into.parent.stat().st_dev and sum(sizes(source)) >= UNCOPIED
    except CaptureError:
        return False


def capture_move(target: Target, store: Store) -> Captured:
    """The list of paths of both ends, no contents."""
    trees: JsonObject = {}
    for name, path in _ends(target).items():
        trees[name] = store.put(encode(scan(path, nothing)))
    return Captured(
        manifest={"trees": trees},
        blobs=tuple(dict.fromkeys(each for each in trees.values() if isinstance(each, str))),
        notes=(
            "it is kept by the move itself: what is deleted at its new place does not come back from here",
        ),
    )


def fingerprint_move(target: Target) -> str:
    """Of modes, sizes and times at both ends."""
    ends = [digest(scan(path, nothing)) for path in _ends(target).values()]
    return ";".join(ends) if any(ends) else ""


def restore_move(target: Target, captured: Captured, store: Store) -> Outcome:
    """Move it back, where what is to be moved is what had been listed and the place is free."""
    ends = _ends(target)
    stored = Fields(captured.manifest, "manifest").fields("trees")
    wanted = {name: decode(store.get(stored.text(name))) for name in ends}
    for there, back in (("to", "from"), ("from", "to")):
        if wanted[back] and not wanted[there] and not os.path.lexists(ends[back]):
            if not _equal(scan(ends[there], nothing), wanted[back]):
                return Outcome(restored=(), missing=(f"{show(ends[there])} is not what was moved there",))
            ends[there].rename(ends[back])
    wrong = [show(path) for name, path in ends.items() if not _equal(scan(path, nothing), wanted[name])]
    return Outcome(
        restored=() if wrong else (show(ends["from"]),),
        missing=tuple(f"{path}: it is not what it was" for path in wrong),
    )


def _ends(target: Target) -> dict[str, Path]:
    fields = Fields(target.detail, "target").fields("move")
    return {"from": Path(fields.text("from")), "to": Path(fields.text("to"))}


def _equal(one: Sequence[Item], other: Sequence[Item]) -> bool:
    return digest(one) == digest(other)
