"""Puts the hook into a harness's settings and takes it out again; the change is known before it is made."""

from __future__ import annotations

import difflib
import json
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from agentrewind.backup.hosts import client
from agentrewind.errors import ProtectedError, StorageError, UsageError

_MARK = "agentrewind/backup/hosts/client.py"
"""What tells our entry in a settings file from others."""

COPY = ".before-agentrewind"
"""Suffix of the copy of a settings file as it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A file as it is and as it will be; None for one that is not there."""

    path: Path
    before: str | None
    after: str | None

    @property
    def empty(self) -> bool:
        """Nothing is to be done."""
        return self.before == self.after

    def shown(self) -> str:
        """The change as a unified diff."""
        lines = difflib.unified_diff(
            (self.before or "").splitlines(keepends=True),
            (self.after or "").splitlines(keepends=True),
            str(self.path) if self.before is not None else "/dev/null",
            str(self.path) if self.after is not None else "/dev/null",
        )
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    """Where a harness keeps its hooks, and how it names the two events.

    Attributes:
        path: below the user's home.
        timeout: what the harness waits, in its own unit.
        deadline: seconds after which the hook answers by itself, less than that.
    """

    path: str
    before: str
    after: str
    matcher: str = "*"
    timeout: int = 600
    deadline: int = 540


_JSON = {
    "claude-code": _Settings(path=".claude/settings.json", before="PreToolUse", after="PostToolUse"),
    "codex": _Settings(path=".codex/hooks.json", before="PreToolUse", after="PostToolUse", matcher=".*"),
    "gemini-cli": _Settings(
        path=".gemini/settings.json", before="BeforeTool", after="AfterTool", matcher=".*", timeout=600_000
    ),
    "openhands": _Settings(path=".openhands/hooks.json", before="PreToolUse", after="PostToolUse"),
}
_YAML = _Settings(path=".hermes/config.yaml", before="pre_tool_call", after="post_tool_call", deadline=270)
_FILES = {
    "opencode": {".config/opencode/plugins/agentrewind.js": "opencode.js"},
    "openclaw": {
        ".openclaw/extensions/agentrewind/index.js": "openclaw.js",
        ".openclaw/extensions/agentrewind/openclaw.plugin.json": "openclaw.plugin.json",
    },
}


NOTES = {
    "codex": "Codex runs a hook only once you have trusted it: start codex, and approve it under /hooks. "
    "Until then calls run without it, and `codex exec` says nothing of that.",
    "hermes": "Hermes asks for your consent at a terminal before it runs a hook for the first time.",
    "openhands": "OpenHands reads the hooks of a repository: copy or link the file to .openhands/hooks.json "
    "there.",
    "openclaw": "OpenClaw loads a plugin once it is enabled: openclaw plugins enable agentrewind.",
}
"""What is left to the person after installing."""


def command_of(harness: str, options: Sequence[str], deadline: int) -> list[str]:
    """The words with which a harness starts its hook: this interpreter and the client, by path."""
    words = [sys.executable, "-I", "-S", str(Path(client.__file__)), harness, *options]
    return [*words, "--deadline", str(deadline)]


def install_changes(harness: str, home: Path, options: Sequence[str]) -> list[Change]:
    """What installing would change. Raises UsageError, and ProtectedError for a file better left alone."""
    return _changes(harness, home, options, put=True)


def uninstall_changes(harness: str, home: Path) -> list[Change]:
    """What uninstalling would change."""
    return _changes(harness, home, (), put=False)


def apply(changes: Sequence[Change]) -> list[Path]:
    """Make the changes, each file by rename, with a copy of what was there; the copies that were kept.

    Raises ProtectedError where a file is not what it was when the change was made up, and StorageError.
    """
    kept: list[Path] = []
    for change in changes:
        if _read(change.path) != change.before:
            raise ProtectedError(f"{change.path} was changed meanwhile; look at it and try again")
    for change in (each for each in changes if not each.empty):
        try:
            if change.before is not None and change.after is not None and _MARK not in change.before:
                kept.append(_keep(change.path))
            _write(change)
        except OSError as error:
            raise StorageError(f"{change.path} cannot be written: {error.strerror or error}") from error
    return kept


def _changes(harness: str, home: Path, options: Sequence[str], *, put: bool) -> list[Change]:
    if harness in _JSON:
        return [_json_change(harness, _JSON[harness], home, options, put=put)]
    if harness == "hermes":
        return [_yaml_change(home, options, put=put)]
    if harness in _FILES:
        return [
            _file_change(home / path, name, command_of(harness, options, 540), put=put)
            for path, name in _FILES[harness].items()
        ]
    known = ", ".join([*_JSON, "hermes", *_FILES])
    raise UsageError(f"{harness!r} is no harness that the hook can be put into; known: {known}")


def _json_change(
    harness: str, settings: _Settings, home: Path, options: Sequence[str], *, put: bool
) -> Change:
    path = home / settings.path
    before = _read(path)
    document = _parsed(path, before)
    hooks = document.setdefault("hooks", {})
    if not isinstance(hooks, dict):
        raise ProtectedError(f"{path}: hooks is no object; put the hook in by hand")
    command = shlex.join(command_of(harness, options, settings.deadline))
    ours = {"type": "command", "command": command, "timeout": settings.timeout}
    for event in (settings.before, settings.after):
        groups = _groups(path, event, hooks.get(event, []))
        if put:
            groups.append({"matcher": settings.matcher, "hooks": [ours]})
        hooks[event] = groups
        if not groups:
            del hooks[event]
    if not hooks:
        del document["hooks"]
    if document == _parsed(path, before):
        return Change(path=path, before=before, after=before)
    return Change(path=path, before=before, after=_written(path, document))


def _written(path: Path, document: dict[str, Any]) -> str | None:
    """The document as text: the user's own where it says the same again, None where nothing is left."""
    original = _read(path.with_name(path.name + COPY))
    try:
        if original is not None and json.loads(original) == document:
            return original
    except json.JSONDecodeError:
        pass
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n" if document else None


def _groups(path: Path, event: str, groups: Any) -> list[Any]:
    """The groups of an event without our entry."""
    if not isinstance(groups, list):
        raise ProtectedError(f"{path}: hooks.{event} is no array; put the hook in by hand")
    return [rest for group in groups for rest in _without_ours(group)]


def _without_ours(group: Any) -> list[Any]:
    """A group of hooks without ours; none where nothing is left of it."""
    if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
        return [group]
    rest = [each for each in group["hooks"] if not (isinstance(each, dict) and _is_ours(each))]
    if len(rest) == len(group["hooks"]):
        return [group]
    return [{**group, "hooks": rest}] if rest else []


def _is_ours(hook: dict[str, Any]) -> bool:
    return _MARK in str(hook.get("command"))


def _parsed(path: Path, before: str | None) -> dict[str, Any]:
    try:
        document = json.loads(before) if before and before.strip() else {}
    except json.JSONDecodeError as error:
        raise ProtectedError(f"{path} is not plain JSON ({error}); put the hook in by hand") from error
    if not isinstance(document, dict):
        raise ProtectedError(f"{path} holds no object; put the hook in by hand")
    return document


_BEGIN = "# begin of agentrewind's hooks\n"
_END = "# end of agentrewind's hooks\n"


def _yaml_change(home: Path, options: Sequence[str], *, put: bool) -> Change:
    """Hermes' YAML is not parsed: ours is a block of its own at the end, if no other `hooks` are there."""
    path = home / _YAML.path
    before = _read(path)
    text = before or ""
    if _BEGIN in text and _END in text:
        head, _, rest = text.partition(_BEGIN)
        text = head + rest.partition(_END)[2]
    if put:
        if any(line.startswith("hooks:") for line in text.splitlines()):
            raise ProtectedError(f"{path} has hooks of its own; add to them by hand:\n{_yaml_block(options)}")
        text += ("" if not text or text.endswith("\n") else "\n") + _yaml_block(options)
    return Change(path=path, before=before, after=text if text or (before is not None and put) else None)


def _yaml_block(options: Sequence[str]) -> str:
    # a JSON string is a YAML string
    command = json.dumps(shlex.join(command_of("hermes", options, _YAML.deadline)))
    lines = ["hooks:"]
    for event in (_YAML.before, _YAML.after):
        lines += [f"  {event}:", f"    - command: {command}", "      timeout: 300"]
        lines += ["      fail_closed: true"] if event == _YAML.before else []
    return _BEGIN + "\n".join(lines) + "\n" + _END


def _file_change(path: Path, name: str, command: Sequence[str], *, put: bool) -> Change:
    before = _read(path)
    if before is not None and _MARK not in before and name.endswith(".js"):
        raise ProtectedError(f"{path} is there already and is not ours; move it away first")
    source = resources.files(__package__).joinpath("plugins", name).read_text("utf-8")
    after = source.replace("__COMMAND__", json.dumps(list(command))) if put else None
    return Change(path=path, before=before, after=after)


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ProtectedError(f"{path} cannot be read: {error}; put the hook in by hand") from error


def _keep(path: Path) -> Path:
    """Copy a settings file beside itself, once: the first copy is what the user had."""
    copy = path.with_name(path.name + COPY)
    if not copy.exists():
        data = path.read_bytes()
        file = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, path.stat().st_mode & 0o777)
        with os.fdopen(file, "wb") as kept:
            kept.write(data)
    return copy


def _write(change: Change) -> None:
    if change.after is None:
        change.path.unlink(missing_ok=True)
        return
    real = change.path.resolve()
    real.parent.mkdir(parents=True, exist_ok=True)
    mode = real.stat().st_mode & 0o777 if real.exists() else 0o600
    fresh = real.with_name(f"{real.name}.agentrewind")
    with os.fdopen(
        os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8"
    ) as file:
        file.write(change.after)
        file.flush()
        os.fsync(file.fileno())
    fresh.chmod(mode)
    fresh.replace(real)
