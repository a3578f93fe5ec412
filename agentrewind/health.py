"""Checks of the machine: what every run needs, and what some of them do."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from agentrewind.adapters import ADAPTERS
from agentrewind.copy_enclosure import obstacle
from agentrewind.durable import make_directory
from agentrewind.errors import AgentRewindError
from agentrewind.records import JsonObject

_ROOM = 1 << 30
_WATCHES = 65_536
_NOT_FOR_USERS = ("dev", "all")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One answer. `state` is `good`, `note` (some runs need it) or `bad` (every run does)."""

    what: str
    state: str
    found: str
    advice: str = ""

    def to_json(self) -> JsonObject:
        return {"what": self.what, "state": self.state, "found": self.found, "advice": self.advice}


def check_up(*, home: Path, environment: Mapping[str, str]) -> list[Finding]:
    """All findings, in an order for people."""
    return [
        _python(),
        _git(environment),
        *_store(home),
        _watches(),
        _namespaces(),
        _sandbox(environment),
        *_harnesses(),
        *_packages(),
    ]


def _python() -> Finding:
    return Finding(what="Python", state="good", found=".".join(map(str, sys.version_info[:3])))


def _git(environment: Mapping[str, str]) -> Finding:
    program = shutil.which("git", path=environment.get("PATH", os.defpath))
    if program is None:
        advice = "snapshots need no git program; the demo, the benchmark and most agents do: install git"
        return Finding(what="git", state="note", found="not installed", advice=advice)
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return Finding(what="git", state="good", found=done.stdout.strip() or "present")


def _store(home: Path) -> Iterator[Finding]:
    try:
        make_directory(home)
        with tempfile.NamedTemporaryFile(dir=home, prefix=".doctor-") as probe:
            probe.write(b"x")
            probe.flush()
            os.fsync(probe.fileno())
    except (AgentRewindError, OSError) as error:
        advice = "set AGENTREWIND_HOME to a folder that you can write"
        yield Finding(what="store", state="bad", found=f"{home} cannot be written: {error}", advice=advice)
        return
    mode = home.stat().st_mode & 0o777
    if mode & 0o077:
        advice = f"chmod 700 {home}: it holds what your agents saw"
        yield Finding(what="store", state="note", found=f"{home} is open to others ({mode:o})", advice=advice)
    else:
        yield Finding(what="store", state="good", found=str(home))
    free = shutil.disk_usage(home).free
    found = f"{free / (1 << 30):.1f} GiB free"
    if free < _ROOM:
        yield Finding(
            what="room", state="note", found=found, advice="`agentrewind gc --budget SIZE` makes room"
        )
    else:
        yield Finding(what="room", state="good", found=found)


def _watches() -> Finding:
    place = Path("/proc/sys/fs/inotify/max_user_watches")
    if not place.exists():
        found = "not on this system; snapshots scan the workspace instead, with the same results"
        return Finding(what="file watching", state="note", found=found)
    number = int(place.read_text())
    if number < _WATCHES:
        advice = f"large workspaces are scanned instead; sysctl fs.inotify.max_user_watches={_WATCHES * 8}"
        return Finding(what="file watching", state="note", found=f"{number} folders", advice=advice)
    return Finding(what="file watching", state="good", found=f"up to {number} folders")


def _namespaces() -> Finding:
    why_not = obstacle(Path("/"))
    if not why_not:
        return Finding(what="mount namespaces", state="good", found="allowed")
    advice = "replay, fork and bisect need root or user namespaces to show a copy at the recorded path"
    return Finding(what="mount namespaces", state="note", found=why_not, advice=advice)


def _sandbox(environment: Mapping[str, str]) -> Finding:
    if shutil.which("bwrap", path=environment.get("PATH", os.defpath)):
        return Finding(what="bubblewrap", state="good", found="installed")
    advice = "the benchmark and backups by a model need it: apt-get install bubblewrap"
    return Finding(what="bubblewrap", state="note", found="not installed", advice=advice)


def _harnesses() -> Iterator[Finding]:
    for name, entry in ADAPTERS.items():
        if importlib.util.find_spec(entry.needs) is not None:
            yield Finding(what=name, state="good", found="installed")
        else:
            advice = f"pip install 'agentrewind[{entry.extra}]'"
            yield Finding(what=name, state="note", found="not installed", advice=advice)


def _packages() -> Iterator[Finding]:
    """What the extras of this package bring besides the harnesses, each once, as its metadata names it."""
    extras: dict[str, list[str]] = {}
    for requirement in metadata.requires("agentrewind") or []:
        found = re.match(r"([\w.-]+).*extra == [\"'](\w+)[\"']", requirement)
        if found and found[2] not in _NOT_FOR_USERS and found[1] not in ADAPTERS:
            extras.setdefault(found[1], []).append(found[2])
    for name, wanted in extras.items():
        try:
            yield Finding(what=name, state="good", found=metadata.version(name))
        except metadata.PackageNotFoundError:
            advice = f"for {' and '.join(wanted)}: pip install 'agentrewind[{wanted[0]}]'"
            yield Finding(what=name, state="note", found="not installed", advice=advice)
