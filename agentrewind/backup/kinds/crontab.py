"""A user's crontab, whole."""

from __future__ import annotations

import getopt
from hashlib import sha256

from agentrewind.backup.kind import Captured, CaptureError, Outcome, Parameters, Store, UnclearError
from agentrewind.backup.programs import run
from agentrewind.backup.values import Command, Context, Target

_NONE = "no crontab for"


class Crontab:
    """The kind `crontab`."""

    def targets(self, command: Command, parameters: Parameters, context: Context) -> tuple[Target, ...]:
        """The crontab that `crontab FILE`, `-`, `-r` or `-e` changes."""
        if command.host is not None or not all(word.literal for word in command.argv):
            raise UnclearError("whose crontab it is cannot be told from the call")
        words = [word.text for word in command.argv[1:]]
        try:
            options, operands = getopt.getopt(words, "u:lreinsT:V")
        except getopt.GetoptError as error:
            raise UnclearError(f"crontab: {error.msg}") from error
        flags = {name for name, _ in options}
        if flags & {"-l", "-T", "-V", "-n"}:
            return ()
        if not (flags & {"-r", "-e"} or operands or command.stdin is not None or command.redirects):
            # the bare command reads a new crontab from its standard input
            raise UnclearError("the new crontab comes from standard input")
        user = dict(options).get("-u") or command.user
        whose = f"of {user}" if user else "of the present user"
        return (Target(kind="crontab", name=f"crontab {whose}", detail={"user": user}),)

    def capture(self, target: Target, store: Store, context: Context) -> Captured:
        """Its text, or that there is none."""
        text = _text(target, context)
        if text is None:
            return Captured(manifest={"exists": False})
        name = store.put(text)
        if store.get(name) != text:
            raise CaptureError("the copy of the crontab cannot be read back")
        return Captured(manifest={"exists": True, "text": name}, blobs=(name,), bytes=len(text))

    def fingerprint(self, target: Target, context: Context) -> str:
        """Digest of the text, "" where there is none."""
        text = _text(target, context)
        return "" if text is None else sha256(text).hexdigest()

    def restore(self, target: Target, captured: Captured, store: Store, context: Context) -> Outcome:
        """Install the text, or remove what was not there."""
        wanted = store.get(str(captured.manifest["text"])) if captured.manifest["exists"] else None
        if _text(target, context) != wanted:
            if wanted is None:
                run([*_crontab(target), "-r"], context)
            else:
                run([*_crontab(target), "-"], context, stdin=wanted)
        differs = _text(target, context) != wanted
        return Outcome(restored=(target.name,), missing=(target.name,) if differs else ())

    def plan(self, target: Target, captured: Captured, context: Context) -> tuple[str, ...]:
        """One act, or none where nothing differs."""
        text = _text(target, context)
        if not captured.manifest["exists"]:
            return () if text is None else (f"remove the {target.name}",)
        same = text is not None and f"sha256:{sha256(text).hexdigest()}" == captured.manifest["text"]
        return () if same else (f"install the {target.name} as it was",)

    def describe(self, target: Target) -> tuple[str, str]:
        """What is captured and how it comes back."""
        return f"{target.name}, whole (crontab -l)", "installed again (crontab -)"


def _text(target: Target, context: Context) -> bytes | None:
    try:
        return run([*_crontab(target), "-l"], context)
    except CaptureError as error:
        if _NONE in str(error):
            return None
        raise


def _crontab(target: Target) -> list[str]:
    user = target.detail["user"]
    return ["crontab", "-u", str(user)] if user else ["crontab"]
