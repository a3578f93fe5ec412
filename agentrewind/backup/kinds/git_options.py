"""Says which options of a git command run programs or write elsewhere, beyond what its subcommand does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from agentrewind.backup.kinds.files_targets import inside
from agentrewind.backup.kinds.git_command import GitCommand, start_of
from agentrewind.backup.kinds.git_settings import is_safe_setting
from agentrewind.backup.values import Context, Word

_RUNS_ALWAYS = (
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "--extcmd",
    "--open-files-in-pager",
    "--ext-diff",
)
_RUNS = {
    "clone": ("-u", "-c", "--config", "--template"),
    "init": ("--template",),
    "apply": ("--unsafe-paths",),
    "am": ("--unsafe-paths",),
    "archive": ("--remote",),
    "rebase": ("-x",),
    "difftool": ("-x", "--tool", "-t"),
    "mergetool": ("--tool", "-t"),
    "grep": ("-O",),
    "config": ("-e", "--edit", "--rename-section"),
    "filter-branch": ("--setup",),
    "filter-repo": (),
}
_VALUED = {
    "clone": "bojcu",
    "rebase": "xsXCS",
    "grep": "ABCefmO",
    "config": "f",
    "archive": "o",
    "format-patch": "ov",
    "bugreport": "os",
    "difftool": "xt",
    "mergetool": "t",
}
"""Short options that take the rest of their cluster or the next word."""
_WRITES = {
    "checkout-index": ("--prefix",),
    "read-tree": ("--index-output",),
    "fast-import": ("--export-marks", "--export-pack-edges", "--relative-marks"),
    "fast-export": ("--export-marks",),
    "apply": ("--build-fake-ancestor", "--directory"),
    "am": ("--directory",),
    "archive": ("-o", "--output"),
    "format-patch": ("-o", "--output-directory", "--output"),
    "bugreport": ("-o", "--output-directory"),
    "diff": ("--output",),
    "log": ("--output",),
    "show": ("--output",),
}
_NETWORK = frozenset(
    (
        "fetch",
        "pull",
        "clone",
        "push",
        "ls-remote",
        "remote",
        "submodule",
        "archive",
        "fetch-pack",
        "send-pack",
    )
)
_SENSITIVE = frozenset(_RUNS) | frozenset(_WRITES) | _NETWORK | {"bundle", "bisect", "maintenance"}
_WORDS = {
    ("bisect", "run"): "runs a program of its own",
    ("submodule", "foreach"): "runs a command in every submodule",
    ("maintenance", "start"): "changes the user's settings and timers",
    ("maintenance", "stop"): "changes the user's settings and timers",
    ("maintenance", "register"): "changes the user's settings",
    ("maintenance", "unregister"): "changes the user's settings",
    ("config", "edit"): "runs an editor",
    ("config", "rename-section"): "renames a whole section of settings",
}


def runs_or_writes(git: GitCommand, context: Context, *, open_ended: bool, reads: bool) -> str:
    """Why a git command may do more than its subcommand; empty where it does not."""
    before = _before(git)
    if before or (reads and not open_ended):
        return before
    if git.subcommand in _SENSITIVE and (open_ended or any(_may_be_option(word) for word in git.rest)):
        return "which options it gets is known only when it runs"
    texts = [word.text for word in git.rest]
    return (
        _by_words(git.subcommand, texts)
        or _by_options(git.subcommand, texts)
        or _written(git, texts, context)
    )


def _by_words(name: str, texts: list[str]) -> str:
    operands = [text for text in texts if not text.startswith("-")]
    if operands and (name, operands[0]) in _WORDS:
        return f"git {name} {operands[0]} {_WORDS[name, operands[0]]}"
    if name in _NETWORK and any(re.match(r"[\w-]+::", text) for text in texts):
        return "a helper of its own brings the data"
    filtering = name in ("filter-branch", "filter-repo")
    if filtering and any("filter" in text or "callback" in text for text in texts):
        return "its filters are programs"
    return ""


def _by_options(name: str, texts: list[str]) -> str:
    for text in texts:
        if text == "--" and name not in ("submodule", "bisect"):
            break
        option = _running(name, text)
        harmless = name == "clone" and option in ("-c", "--config") and _is_safe(text, texts)
        if option and not harmless:
            return f"its option {option} may run a program or change what git runs"
    return ""


def _before(git: GitCommand) -> str:
    """What stands between `git` and the subcommand."""
    rest = iter(git.options)
    for option in rest:
        if option == "-c":
            setting = next(rest, "")
            name, equals, value = setting.partition("=")
            if not is_safe_setting(name, value if equals else "true"):
                return f"the setting {setting!r} may make git run a program"
        elif option.startswith(("--exec-path=", "--config-env", "-c")):
            return f"the option {option} may make git run a program"
    return ""


def _is_safe(text: str, texts: list[str]) -> bool:
    following = texts[texts.index(text) + 1 : texts.index(text) + 2]
    setting = text.partition("=")[2] if text.startswith("--") and "=" in text else "".join(following)
    if not text.startswith("--") and len(text) > 2:
        setting = text[2:]
    name, equals, value = setting.partition("=")
    return is_safe_setting(name, value if equals else "true")


def _may_be_option(word: Word) -> bool:
    """Whether a word may turn out to be an option that is not written."""
    if word.literal and not word.glob:
        return False
    return word.text[:1] in ("$", "`", "*", "?", "[", "-", "")


def _running(name: str, text: str) -> str:
    """The option of a word that runs something, in any spelling."""
    mine = _RUNS.get(name, ())
    if text.startswith("--"):
        given = text.partition("=")[0]
        options = [each for each in (*_RUNS_ALWAYS, *mine) if each.startswith("--")]
        return next((each for each in options if len(given) > 2 and each.startswith(given)), "")
    if not text.startswith("-"):
        return ""
    return next((option for option, _ in _letters(name, text) if option in mine), "")


def _letters(name: str, text: str) -> Iterator[tuple[str, str]]:
    """The short options in a cluster, with what is attached to the last."""
    for place, letter in enumerate(text[1:], 1):
        if letter in _VALUED.get(name, ""):
            yield f"-{letter}", text[place + 1 :]
            return
        yield f"-{letter}", ""


def _written(git: GitCommand, texts: list[str], context: Context) -> str:
    """A file outside the workspace that an option names."""
    for at, text in enumerate(texts):
        value = _file_of(git.subcommand, text, texts[at + 1] if at + 1 < len(texts) else "")
        if value is not None and not _lies_inside(git, value, context):
            return f"its option {text.partition('=')[0]} writes to {value!r}"
    if git.subcommand == "bundle" and "create" in texts:
        rest = texts[texts.index("create") + 1 :]
        named = [text for text in rest if not text.startswith("-")]
        # an option before the file may take the next word
        if rest[:1] != named[:1] and not all(_lies_inside(git, text, context) for text in named):
            return "which file it writes cannot be told"
        if named and not _lies_inside(git, named[0], context):
            return f"it writes to {named[0]!r}"
    return ""


def _file_of(name: str, text: str, following: str) -> str | None:
    """The file that an option writes, None where it writes none."""
    options = _WRITES.get(name, ())
    if text.startswith("--") and len(text) > 2:
        given, equals, attached = text.partition("=")
        named = any(each.startswith(given) for each in options)
        return (attached if equals else following) if named else None
    if not text.startswith("-"):
        return None
    return next((value or following for option, value in _letters(name, text) if option in options), None)


def _lies_inside(git: GitCommand, value: str, context: Context) -> bool:
    try:
        # a prefix is put before names: `../x` and `/x/` lead away, whatever it ends with
        path = Path(start_of(git) / value)
        return inside(path.resolve(), context.workspace) and inside(path.parent.resolve(), context.workspace)
    except (OSError, RuntimeError):
        return False
