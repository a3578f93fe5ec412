"""State that a subagent's commands save, verify, observe and put back."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from agentrewind.backup.enclosure import SCRATCH, Enclosure, Ran
from agentrewind.backup.kind import Captured, CaptureError, Outcome, Parameters, Store, UnclearError
from agentrewind.backup.programs import run
from agentrewind.backup.values import Command, Context, Target
from agentrewind.errors import DamagedError
from agentrewind.records import Json

SECONDS = 300.0
"""What one of the commands may take."""

LARGEST = 1 << 30
"""Bytes of one backup."""


class SavedState:
    """The kind `saved`. No rule names it: a subagent makes its targets, once for a call.

    All commands but the one that restores run where they can write into the backup's directory alone.
    """

    def targets(self, command: Command, parameters: Parameters, context: Context) -> tuple[Target, ...]:
        """Never found by a rule."""
        raise UnclearError("only a subagent can say what it saves")

    def capture(self, target: Target, store: Store, context: Context) -> Captured:
        """What the saving command writes, once the verifying one has passed; every file is read back.

        Where the observing command says that the state is gone, that is what is captured.
        """
        if not self.fingerprint(target, context):
            return Captured(manifest={"gone": True})
        directory = store.scratch()
        (directory / SCRATCH).mkdir()
        enclosure = Enclosure(directory, context)
        _passed(enclosure.run(str(target.detail["save"]), seconds=SECONDS), "saves the state")
        files = files_in(directory)
        size = sum(path.stat().st_size for path in files)
        if not size:
            raise CaptureError("the subagent's command that saves the state wrote nothing")
        if size > LARGEST:
            raise CaptureError(f"it saved {size >> 20} MiB, more than the {LARGEST >> 20} MiB it may")
        verified = enclosure.run(str(target.detail["verify"]), seconds=SECONDS, writable=False)
        _passed(verified, "verifies what was saved")
        return _packed(directory, files, store)

    def fingerprint(self, target: Target, context: Context) -> str:
        """Digest of what the observing command prints; "" where it fails, as for a state that is gone."""
        # nothing is written: the directory only has to exist
        ran = Enclosure(context.home, context).run(
            str(target.detail["observe"]), seconds=SECONDS, writable=False
        )
        return sha256(ran.written).hexdigest() if ran.code == 0 else ""

    def restore(self, target: Target, captured: Captured, store: Store, context: Context) -> Outcome:
        """Run the restoring command with the saved files; what is there then is compared by the engine."""
        command, instructions = str(target.detail["restore"]), str(target.detail["instructions"])
        notes = (instructions,) if instructions else ()
        if captured.manifest.get("gone"):
            missing = f"{target.name}: it was gone, and only a person can remove it"
            return Outcome(restored=(), missing=(missing,), notes=notes)
        if not command:
            return Outcome(
                restored=(), missing=(f"{target.name}: only a person can put it back",), notes=notes
            )
        run(["bash", "-c", command], context, env={"BACKUP_DIR": str(_unpacked(captured, store))})
        return Outcome(restored=(target.name,), notes=notes)

    def plan(self, target: Target, captured: Captured, context: Context) -> tuple[str, ...]:
        """The subagent's command, or its instructions."""
        return (str(target.detail["restore"] or target.detail["instructions"]),)

    def describe(self, target: Target) -> tuple[str, str]:
        """What was saved and how it comes back."""
        command, instructions = str(target.detail["restore"]), str(target.detail["instructions"])
        return f"{target.name}, by a subagent's command", command or f"by a person: {instructions}"


def files_in(directory: Path) -> list[Path]:
    """The files of a backup, in order; links and scratch are no part of it."""
    return [
        path
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not path.is_symlink() and SCRATCH not in path.relative_to(directory).parts
    ]


def _passed(ran: Ran, what: str) -> None:
    if ran.code != 0:
        raise CaptureError(f"the subagent's command that {what} failed: {ran.shown[-400:].strip()}")


def _packed(directory: Path, files: list[Path], store: Store) -> Captured:
    manifest: dict[str, Json] = {}
    size = 0
    for path in files:
        name = store.put_file(path)
        store.get(name)
        manifest[str(path.relative_to(directory))] = name
        size += path.stat().st_size
    blobs = tuple(dict.fromkeys(map(str, manifest.values())))
    return Captured(manifest={"files": manifest}, blobs=blobs, bytes=size)


def _unpacked(captured: Captured, store: Store) -> Path:
    files = captured.manifest.get("files")
    if not isinstance(files, dict):
        raise DamagedError("the backup's list of files cannot be read")
    directory = store.scratch()
    for name, blob in files.items():
        path = directory / name
        if not path.resolve().is_relative_to(directory.resolve()):
            raise DamagedError(f"the backup's file {name!r} would lie outside of it")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(store.get(str(blob)))
    return directory
