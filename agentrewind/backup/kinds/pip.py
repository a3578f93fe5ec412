"""Installed Python distributions of one environment: pip, `python -m pip` and `uv pip`."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from hashlib import sha256
from pathlib import Path

import orjson

from agentrewind.backup.kind import Captured, CaptureError, Outcome, Parameters, Store, UnclearError
from agentrewind.backup.kinds import pip_restore as restoring
from agentrewind.backup.kinds.pip_distributions import Distribution, listed, manifest_of, packed
from agentrewind.backup.programs import run
from agentrewind.backup.values import Command, Context, Target
from agentrewind.records import Json

LARGEST = 2 << 30
"""Bytes of one environment's files that are copied before a call; the rest is kept by version alone."""

_ELSEWHERE = ("-t", "--target", "--prefix", "--root", "--user")


class PipEnvironment:
    """The kind `pip`."""

    def targets(self, command: Command, parameters: Parameters, context: Context) -> tuple[Target, ...]:
        """The environment into which a command installs, or from which it removes."""
        words = [word.text for word in command.argv]
        if command.host is not None:
            raise UnclearError(f"it runs on {command.host}")
        if "--dry-run" in words or "-h" in words or "--help" in words:
            return ()
        if any(word == each or word.startswith(f"{each}=") for word in words for each in _ELSEWHERE):
            raise UnclearError("it installs into a directory of its own choice")
        python = _python(command, words, context)
        if not python.exists():
            raise UnclearError(f"{python}, which it would use, does not exist")
        prefix = _prefix(python)
        if context.workspace is not None and prefix.is_relative_to(context.workspace.resolve()):
            return ()
        detail: dict[str, Json] = {"python": str(python)}
        return (Target(kind="pip", name=f"Python packages of {prefix}", detail=detail),)

    def capture(self, target: Target, store: Store, context: Context) -> Captured:
        """Every distribution: name, version, and its files as they lie there."""
        found = listed(_interpreter(target), context)
        room = LARGEST
        manifest: dict[str, Json] = {}
        blobs: list[str] = []
        size, notes = 0, []
        for each in sorted(found, key=lambda one: one.bytes):
            if not each.files or each.bytes > room:
                manifest[each.name] = manifest_of(each, None)
                notes.append(f"{each.name} {each.version} by its version alone")
                continue
            room -= each.bytes
            name, stored = packed(each, store)
            manifest[each.name] = manifest_of(each, name)
            blobs.append(name)
            size += stored
        return Captured(
            manifest={"distributions": manifest}, blobs=tuple(blobs), bytes=size, notes=tuple(notes)
        )

    def fingerprint(self, target: Target, context: Context) -> str:
        """Digest of names, versions and the files' own records."""
        found = sorted(
            (each.name, each.version, each.record) for each in listed(_interpreter(target), context)
        )
        return sha256(orjson.dumps(found)).hexdigest()

    def restore(self, target: Target, captured: Captured, store: Store, context: Context) -> Outcome:
        """Remove what was added, put back what was changed or removed, compare."""
        return restoring.restore(_interpreter(target), captured, store, context)

    def plan(self, target: Target, captured: Captured, context: Context) -> tuple[str, ...]:
        """A line for each distribution that differs."""
        return restoring.plan(_interpreter(target), captured, context)

    def describe(self, target: Target) -> tuple[str, str]:
        """What is captured and how it comes back."""
        return (
            f"{target.name}: every distribution with its files",
            "additions removed, replaced and removed ones put back file by file, without a network",
        )


def distributions(target: Target, context: Context) -> list[Distribution]:
    """What is installed in the target's environment. Raises CaptureError."""
    return listed(_interpreter(target), context)


def _interpreter(target: Target) -> Path:
    return Path(str(target.detail["python"]))


def _python(command: Command, words: list[str], context: Context) -> Path:
    program = words[0]
    path = command.assignments["PATH"].text if "PATH" in command.assignments else context.env.get("PATH")
    if command.name.startswith("uv"):
        return _of_uv(command, words, context, path)
    for index, word in enumerate(words):
        if word == "--python" and index + 1 < len(words):
            return _resolve(words[index + 1], command, path)
        if word.startswith("--python="):
            return _resolve(word.partition("=")[2], command, path)
    found = _resolve(program, command, path)
    return _shebang(found, context) if command.name.startswith("pip") else _real(found, context)


def _of_uv(command: Command, words: list[str], context: Context, path: str | None) -> Path:
    for index, word in enumerate(words):
        if word in ("-p", "--python") and index + 1 < len(words):
            return _resolve(words[index + 1], command, path)
    if "--system" in words:
        return _resolve("python3", command, path)
    active = context.env.get("VIRTUAL_ENV")
    if active:
        return Path(active) / "bin" / "python"
    if command.cwd is None:
        raise UnclearError("the directory whose environment uv would use cannot be told")
    for directory in (command.cwd, *command.cwd.parents):
        if (directory / ".venv").is_dir():
            return directory / ".venv" / "bin" / "python"
    raise UnclearError("no environment that uv would use was found")


def _resolve(program: str, command: Command, path: str | None) -> Path:
    if "/" in program:
        if command.cwd is None and not program.startswith("/"):
            raise UnclearError(f"the directory in which {program} lies cannot be told")
        found = (command.cwd or Path("/")) / program
        return found / "bin" / "python" if found.is_dir() else found
    where = shutil.which(program, path=path or os.defpath)
    if where is None:
        raise UnclearError(f"{program} is not found on the PATH")
    return Path(where)


def _shebang(script: Path, context: Context) -> Path:
    """The interpreter of pip's start script."""
    try:
        with script.open("rb") as file:
            lines = [file.readline(), file.readline()]
    except OSError as error:
        raise UnclearError(f"{script} cannot be read: {error.strerror}") from error
    first, second = (line.decode("utf-8", "surrogateescape").strip() for line in lines)
    if not first.startswith("#!"):
        raise UnclearError(f"{script} does not say which Python it belongs to")
    interpreter = first[2:].strip()
    if interpreter == "/bin/sh":
        # where a path is long or has a space, pip writes a shell script whose second line names it
        words = shlex.split(second)
        interpreter = words[1] if len(words) > 1 and words[0] == "exec" else ""
    if not Path(interpreter).name.startswith(("python", "pypy")):
        return _asked(script, context)
    return Path(interpreter)


def _asked(script: Path, context: Context) -> Path:
    """The interpreter of a pip that another script stands for, as pyenv's do."""
    try:
        said = run([str(script), "--version"], context).decode("utf-8", "replace")
    except CaptureError as error:
        raise UnclearError(f"{script} does not say which Python it belongs to: {error}") from error
    found = re.search(r" from (/.*)/lib/(python[0-9.]+)/(?:site|dist)-packages/pip ", said)
    if found is None:
        raise UnclearError(f"{script} does not say which Python it belongs to")
    return Path(found[1]) / "bin" / found[2]


def _real(python: Path, context: Context) -> Path:
    """The interpreter itself where a script stands for it, as pyenv's do."""
    try:
        with python.open("rb") as file:
            if file.read(2) != b"#!":
                return python
        said = run([str(python), "-c", "import sys; print(sys.executable)"], context)
    except (OSError, CaptureError) as error:
        raise UnclearError(f"{python} does not say which Python it stands for: {error}") from error
    return Path(said.decode("utf-8", "surrogateescape").strip())


def _prefix(python: Path) -> Path:
    """The environment of an interpreter; its own links are not followed, as Python does."""
    return python.parent.resolve().parent
