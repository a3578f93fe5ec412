"""Which programs a repository's own settings and hooks name, so that git commands in it run them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentrewind.backup.kind import CaptureError
from agentrewind.backup.kinds.git_command import GitCommand, start_of
from agentrewind.backup.values import Context

_RUNS = re.compile(
    r"core\.(fsmonitor|hookspath|sshcommand|gitproxy|askpass|editor|pager|alternaterefscommand)|pager\..*|"
    r"diff\.external|diff\..*\.(command|textconv)|(diff|merge|gui)tool\..*\.(cmd|path)|merge\..*\.driver|"
    r"filter\..*\.(clean|smudge|process)|gpg\.(.*\.)?program|gpg\.ssh\.defaultkeycommand|"
    r"credential\.(.*\.)?helper|remote\..*\.(uploadpack|receivepack|vcs)|protocol\.(.*\.)?allow|"
    r"sequence\.editor|interactive\.difffilter|sendemail\..*|trailer\..*\.(command|cmd)|"
    r"(browser|man|tar|hook)\..*\.(cmd|path|command)|web\.browser|init\.templatedir|lfs\..*\.(path|clean|smudge)|"
    r"(uploadpack|receive|uploadarchive)\..*hook"
)
_QUICK = re.compile(
    r"fsmonitor|hookspath|sshcommand|gitproxy|askpass|editor|pager|alternaterefscommand|program|helper|"
    r"uploadpack|receivepack|vcs|templatedir|hook|keycommand|::|=\s*\"?!|"
    r"\[(include|alias|diff|merge|mergetool|guitool|filter|protocol|interactive|sendemail|trailer|browser|man|"
    r"tar|web|lfs)"
)
_HARMLESS = re.compile(r"|true|false|yes|no|on|off|0|1|cat|less( -\w+)*|:|vi|vim|nano|emacs|/dev/null")
_SAFE = re.compile(
    r"user\.(name|email)|author\.\w+|committer\.\w+|init\.defaultbranch|(pull|push|fetch|commit|rebase|tag)\.\w+|"
    r"core\.(autocrlf|safecrlf|eol|filemode|ignorecase|quotepath|symlinks|longpaths|bare|compression|abbrev|"
    r"precomposeunicode|preloadindex|untrackedcache|logallrefupdates|sparsecheckout\w*|excludesfile)|"
    r"color\..*|column\..*|advice\..*|branch\..*|rerere\.\w+|gc\.\w+|log\.\w+|status\.\w+|safe\.directory|"
    r"http\.(.*\.)?(sslverify|extraheader|postbuffer|lowspeed\w+|version)|protocol\.version|merge\.(ff|conflictstyle|"
    r"renames|stat)|diff\.(renames|algorithm|color\w*|context|noprefix|mnemonicprefix)|remote\..*\.(fetch|prune|push)|"
    r"remote\.pushdefault|blame\.\w+|grep\.\w+|pack\.\w+|index\.\w+|feature\.\w+|maintenance\.auto"
)
_ONLY_INDEX = frozenset(["add", "rm", "mv", "restore", "config", "init", "clone", "clean", "apply"])
"""Subcommands that run no hook but the one for a changed index."""


def is_safe_setting(name: str, value: str | None) -> bool:
    """Whether a setting makes git neither run a program nor write elsewhere."""
    key = name.lower()
    if _SAFE.fullmatch(key):
        return True
    return bool(_RUNS.fullmatch(key)) and value is not None and bool(_HARMLESS.fullmatch(value))


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a git command may do more than its subcommand does.

    Attributes:
        reason: in a sentence.
        asking_runs: git, asked what the command would do, might itself run the program in question.
    """

    reason: str
    asking_runs: bool


def programs_in(git: GitCommand, context: Context, *, reads: bool) -> Doubt | None:
    """What the repository of a command makes git run besides."""
    found = directories(git, context)
    if found is None:
        return None
    own, common = found
    try:
        suspect = any(_QUICK.search(text) for text in _texts(own, common))
        settings = tuple(_settings(git, context)) if suspect else ()
    except (OSError, CaptureError) as error:
        return Doubt(f"the repository's settings cannot be read: {error}", asking_runs=True)
    for name, value in settings:
        key = name.lower()
        if key == f"alias.{git.subcommand.lower()}" or _names_program(key, value):
            reason = f"the repository's own setting {name} makes git run {value!r}"
            return Doubt(reason, asking_runs=key != "core.hookspath")
    if any(name.lower() == "core.hookspath" for name, _ in settings):
        return None
    for hook in _hooks(common / "hooks"):
        if hook == "post-index-change" or not (reads or git.subcommand in _ONLY_INDEX):
            return Doubt(f"the repository's own hook {hook} runs with it", asking_runs=False)
    return None


def _names_program(key: str, value: str) -> bool:
    if _RUNS.fullmatch(key):
        return not _HARMLESS.fullmatch(value)
    if key.startswith("remote.") and key.endswith(("url", "proxy")):
        return "::" in value
    if key.startswith("url."):
        return "::" in key
    return key.startswith("submodule.") and value.startswith("!")


def _settings(git: GitCommand, context: Context) -> Iterator[tuple[str, str]]:
    """What the repository itself sets; what the user or the system sets is theirs."""
    fields = git.ask(context, "config", "--list", "--show-scope", "-z").split("\0")
    for scope, setting in zip(fields[::2], fields[1::2], strict=False):
        if scope in ("local", "worktree"):
            name, _, value = setting.partition("\n")
            yield name, value


def _hooks(folder: Path) -> tuple[str, ...]:
    try:
        return tuple(
            sorted(
                each.name
                for each in os.scandir(folder)
                if not each.name.endswith(".sample") and os.access(each.path, os.X_OK) and each.is_file()
            )
        )
    except OSError:
        return ()


def _texts(own: Path, common: Path) -> Iterator[str]:
    modules = common / "modules"
    inner = modules.rglob("config") if modules.is_dir() else ()
    for path in (common / "config", own / "config.worktree", *inner):
        try:
            yield path.read_text(encoding="utf-8", errors="replace").lower()
        except FileNotFoundError:
            continue


def directories(git: GitCommand, context: Context) -> tuple[Path, Path] | None:
    """The repository's own directory and the one that it shares with its other work trees."""
    own = _own(git, context)
    if own is None:
        return None
    try:
        shared = (own / "commondir").read_text(encoding="utf-8").strip()
    except OSError:
        return own, own
    return own, own / shared


def _own(git: GitCommand, context: Context) -> Path | None:
    start = start_of(git)
    given = _given(git, context)
    if given:
        return start / given
    start = start.resolve()
    for folder in (start, *start.parents):
        inner = folder / ".git"
        if inner.is_file():
            named = inner.read_text(encoding="utf-8", errors="replace").removeprefix("gitdir:").strip()
            return folder / named
        if inner.is_dir():
            return inner
        if (folder / "HEAD").is_file() and (folder / "objects").is_dir():
            return folder
    return None


def _given(git: GitCommand, context: Context) -> str:
    """The directory that an option or a variable names."""
    for option, value in zip(git.options, (*git.options[1:], ""), strict=False):
        if option.startswith("--git-dir="):
            return option.partition("=")[2]
        if option == "--git-dir":
            return value
    return git.env.get("GIT_DIR") or context.env.get("GIT_DIR") or ""
