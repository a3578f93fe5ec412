"""Runs a person's command in a scratch copy of a snapshot, at the recorded path where that is possible."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from agentrewind.bisection import Judgement
from agentrewind.clock import Clock
from agentrewind.copy_enclosure import enclosed, obstacle
from agentrewind.errors import UsageError
from agentrewind.records import CommitId
from agentrewind.workspace.restore import restore_into
from agentrewind.workspace.snapshots import SnapshotStore

_TAIL = 20_000


class ScratchChecks:
    """Judges snapshots with a command, each in a fresh copy that is removed afterwards.

    Attributes:
        at_recorded_path: the command sees the copy where the agent saw its workspace, in a mount namespace
            of its own; else in a temporary folder, and `why_not` says why.
    """

    def __init__(
        self,
        store: SnapshotStore,
        *,
        root: Path,
        command: str,
        environment: Mapping[str, str],
        timeout_s: float,
        clock: Clock,
    ) -> None:
        self._store = store
        self._root = root
        self._command = command
        self._environment = dict(environment)
        self._timeout_s = timeout_s
        self._clock = clock
        self.why_not = obstacle(root)
        self.at_recorded_path = not self.why_not
        if not self.at_recorded_path and str(root) in command:
            raise UsageError(
                f"the check names {root}, and a copy cannot be laid over it here ({self.why_not}); write the "
                "check with paths relative to the workspace, in which it is run"
            )

    def judge(self, commit: CommitId) -> Judgement:
        """What the command says of a snapshot: exit code 0 passes, everything else fails, no time left too.

        Raises:
            MissingSnapshotError: the snapshot cannot be read.
        """
        with tempfile.TemporaryDirectory(prefix="agentrewind-check-", ignore_cleanup_errors=True) as folder:
            scratch = Path(folder).resolve() / "workspace"
            restore_into(self._store, commit, scratch)
            began = self._clock.monotonic()
            code, said = self._run(scratch)
            seconds = self._clock.monotonic() - began
        return Judgement(passed=code == 0, exit_code=code, said=said, seconds=seconds)

    def _run(self, scratch: Path) -> tuple[int | None, str]:
        shell = ["/bin/sh", "-c", self._command]
        there = self.at_recorded_path
        # a file and no pipe: a server that the check leaves running would keep a pipe open
        with tempfile.TemporaryFile() as printed:
            process = subprocess.Popen(
                enclosed(scratch, self._root, shell, online=True) if there else shell,
                cwd="/" if there else scratch,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            code: int | None = None
            try:
                code = process.wait(self._timeout_s)
            except subprocess.TimeoutExpired:
                pass
            finally:
                # what it leaves running would go on in a folder that is about to be removed
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            return code, _last_line(printed.fileno())


def _last_line(file: int) -> str:
    size = os.fstat(file).st_size
    data = os.pread(file, _TAIL, max(0, size - _TAIL))
    lines = data.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip() if lines else ""
