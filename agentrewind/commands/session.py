"""What a command is told of its surroundings: where the store is, and which run is meant."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentrewind.clock import Clock
from agentrewind.errors import UnknownRunError, UsageError

if TYPE_CHECKING:
    from agentrewind.run_store import Run

HOME = "AGENTREWIND_HOME"
LAST = "last"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The surroundings of one call; `cli` makes it, as the only one who looks at the environment."""

    environment: Mapping[str, str]
    directory: Path
    clock: Clock

    @property
    def user_home(self) -> Path | None:
        """The user's own home directory, where the environment names one."""
        named = self.environment.get("HOME", "")
        return Path(named) if named.startswith("/") else None

    @property
    def home(self) -> Path:
        """Where runs and snapshots are kept. Raises UsageError where nothing says so."""
        if named := self.environment.get(HOME):
            return self.directory / named
        state = self.environment.get("XDG_STATE_HOME", "")
        if state.startswith("/"):  # a relative one is invalid by its own specification
            return Path(state) / "agentrewind"
        if self.user_home is None:
            raise UsageError(
                f"nothing says where runs are kept: HOME is not set; set {HOME} to a folder of yours"
            )
        return self.user_home / ".local" / "state" / "agentrewind"

    def open_run(self, name: str) -> Run:
        """The run of this id, of this unique beginning of one, or the newest for `last`."""
        from agentrewind.run_store import RunStore

        store = RunStore(self.home)
        if name != LAST:
            try:
                return store.open(name)
            except UnknownRunError:
                self._refuse_kept(name)
                raise
        runs = store.runs()
        if not runs:
            raise UnknownRunError(name)
        return runs[0]

    def _refuse_kept(self, name: str) -> None:
        """Say what to do with the folder of a kept run, where a run of the store is asked for."""
        from agentrewind.kept_runs import is_kept

        if (self.directory / name).is_dir() and is_kept(self.directory / name):
            raise UsageError(
                f"{name} is a folder that `agentrewind keep` made; bring the run in it into the store first: "
                f"agentrewind import {shlex.quote(name)}"
            )
