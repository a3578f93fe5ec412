"""Follows the git commands of one call and says which may do more than their subcommand says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from agentrewind.backup.kind import UnclearError
from agentrewind.backup.kinds.git_command import GitCommand, read_git
from agentrewind.backup.kinds.git_options import runs_or_writes
from agentrewind.backup.kinds.git_settings import Doubt, directories, is_safe_setting, programs_in
from agentrewind.backup.understanding.reading import reads
from agentrewind.backup.values import Command, Context

_INSIDE_GIT = re.compile(r"(^|[/=])[^/]*\.git(/|$)|(^|/)\.git(modules|config)$")
_ASKS_NOTHING = ("version", "help", "rev-parse", "check-ref-format")
_UNPACKS = frozenset(("tar", "bsdtar", "unzip", "7z", "7za", "cpio", "patch"))
_COPIES = frozenset(("cp", "mv", "ln", "rsync", "install"))


def git_doubts(commands: Iterable[Command], context: Context) -> dict[str, Doubt]:
    """Which git commands of a call may do more than their subcommand does, by their `repr`.

    One that is written twice is judged each time: what is between may change what it does.
    """
    watch = GitWatch(context)
    found: dict[str, Doubt] = {}
    for command in commands:
        doubt = watch.doubt(command)
        # all but a push is asked of git by commands that run nothing
        if doubt and doubt.asking_runs and not any(word.text == "push" for word in command.argv):
            doubt = replace(doubt, asking_runs=False)
        if doubt and (doubt.asking_runs or repr(command) not in found):
            found[repr(command)] = doubt
    return found


@dataclass(slots=True)
class GitWatch:
    """What the commands of a call so far have done to the settings of repositories."""

    context: Context
    changed: str = ""
    copied: bool = False

    def doubt(self, command: Command) -> Doubt | None:
        """Why a command may do more than its subcommand does; None where it does not, or is not git."""
        if command.name != "git":
            self._note(command)
            return None
        reading = reads(replace(command, redirects=()))
        try:
            git = read_git(command)
        except UnclearError as error:
            return Doubt(str(error), asking_runs=True) if reading and command.host is None else None
        try:
            return self._git(git, command, reading=reading)
        except (OSError, RuntimeError) as error:
            return Doubt(f"the repository cannot be looked at: {error}", asking_runs=True)

    def _git(self, git: GitCommand, command: Command, *, reading: bool) -> Doubt | None:
        if reading and git.subcommand in ("", *_ASKS_NOTHING):
            return None
        if self.changed:
            reason = f"{self.changed} may change what git runs and where it writes"
            return Doubt(reason, asking_runs=False)
        option = runs_or_writes(git, self.context, open_ended=command.open_ended, reads=reading)
        if git.subcommand == "config":
            if not reading:
                self._config(git)
            return Doubt(option, asking_runs=True) if option else None
        if option:
            return Doubt(option, asking_runs=True)
        if self.copied and directories(git, self.context) is None:
            return Doubt("its repository comes with the same call, and may name programs", asking_runs=True)
        return programs_in(git, self.context, reads=reading)

    def _config(self, git: GitCommand) -> None:
        texts = [word.text for word in git.rest]
        operands = [text for text in texts if not text.startswith("-") and text not in ("set", "unset")]
        value = operands[1] if len(operands) > 1 else None
        sure = all(word.literal and not word.glob for word in git.rest)
        if not sure or not operands or not is_safe_setting(operands[0], value):
            self.changed = f"git config {' '.join(texts)}"[:80]

    def _note(self, command: Command) -> None:
        """Something other than git that writes into a repository's settings or hooks."""
        if reads(command):
            return
        written = [each.target for each in command.redirects if ">" in each.operator]
        if command.name not in ("rm", "unlink"):
            written += command.argv[1:]
        here = command.cwd is not None and _INSIDE_GIT.search(str(command.cwd))
        name = command.name or "a redirection"
        if command.name in _UNPACKS:
            self.changed = f"what {name} unpacks"
        elif here or any(_INSIDE_GIT.search(word.text) for word in written):
            self.changed = f"what {name} does in the repository's own folder"
        elif command.name in _COPIES:
            self.copied = True
            if any(self._holds_repository(word.text, command) for word in command.argv[1:]):
                self.changed = f"the repository that {name} brings"

    def _holds_repository(self, text: str, command: Command) -> bool:
        return command.cwd is None or (command.cwd / text / ".git").exists()
