"""Brings an environment's distributions back: what was added goes, what was replaced or removed returns."""

from __future__ import annotations

from pathlib import Path

from agentrewind.backup.kind import Captured, CaptureError, Outcome, Store
from agentrewind.backup.kinds.pip_distributions import (
    Distribution,
    Kept,
    known,
    listed,
    remove_files,
    unpack,
)
from agentrewind.backup.programs import run
from agentrewind.backup.values import Context


def plan(python: Path, captured: Captured, context: Context) -> tuple[str, ...]:
    """A line for each distribution that differs."""
    wanted, present = known(captured.manifest), _present(python, context)
    lines = [f"remove {name} {present[name].version}" for name in _added(wanted, present)]
    for name in _changed(wanted, present):
        how = "its saved files" if wanted[name].archive else "the package index"
        lines.append(f"put back {name} {wanted[name].version} from {how}")
    return tuple(lines)


def restore(python: Path, captured: Captured, store: Store, context: Context) -> Outcome:
    """Remove, put back, compare; what could not be brought back is named."""
    wanted, present = known(captured.manifest), _present(python, context)
    done: list[str] = []
    missing: list[str] = []
    for name in _added(wanted, present):
        if not present[name].files:
            missing.append(f"{name} {present[name].version} was added and keeps no record of its files")
            continue
        remove_files(present[name])
        done.append(f"removed {name} {present[name].version}")
    for name in _changed(wanted, present):
        version = wanted[name].version
        if name in present:
            remove_files(present[name])
        try:
            _put_back(python, name, wanted[name], store, context)
        except CaptureError as error:
            missing.append(f"{name} {version}: {error}")
            continue
        done.append(f"put back {name} {version}")
    now = _present(python, context)
    missing += [f"{name} is still there" for name in _added(wanted, now) if name not in "".join(missing)]
    missing += [
        f"{name} {wanted[name].version} differs"
        for name in _changed(wanted, now)
        if wanted[name].archive and name not in "".join(missing)
    ]
    return Outcome(restored=tuple(done), missing=tuple(missing))


def _put_back(python: Path, name: str, kept: Kept, store: Store, context: Context) -> None:
    if kept.archive is not None:
        unpack(kept.archive, store)
        return
    words = [str(python), "-m", "pip", "install", "--no-deps", "--disable-pip-version-check"]
    run([*words, f"{name}=={kept.version}"], context, cwd=Path("/"))


def _present(python: Path, context: Context) -> dict[str, Distribution]:
    return {each.name: each for each in listed(python, context)}


def _added(wanted: dict[str, Kept], present: dict[str, Distribution]) -> list[str]:
    return sorted(present.keys() - wanted.keys())


def _changed(wanted: dict[str, Kept], present: dict[str, Distribution]) -> list[str]:
    def same(name: str) -> bool:
        now = present.get(name)
        then = wanted[name]
        return now is not None and (now.version, now.record) == (then.version, then.record)

    return sorted(name for name in wanted if not same(name))
