"""A run on a real disk for tests: a workspace, a store, and the layer of one process after another."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agentrewind.clock import SystemClock
from agentrewind.layer import Layer
from agentrewind.opening import Place, live_layer, opened_workspace, replay_layer
from agentrewind.options import RunOptions
from agentrewind.records import (
    FORMAT,
    MAIN_WORKSPACE,
    Header,
    JsonObject,
    Record,
    RunId,
    WorkspaceDeclaration,
)
from agentrewind.replayer import OnDivergence
from agentrewind.rewind.perform import MakeQuiet, Quiet, Rewinding, complete_opening
from agentrewind.run_store import Run, RunStore
from agentrewind.timeline import Timeline
from agentrewind.workspace.policy import Policy

CLOCK = SystemClock()


def nothing_runs(_keep: object) -> Quiet:
    """For rewinds in tests that start no processes."""
    return Quiet(ended=(), kept=(), go_on=lambda: None)


@dataclass
class Stage:
    """One run in a directory of its own."""

    root: Path
    run: Run
    store: Path
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def create(cls, directory: Path, *, options: RunOptions | None = None) -> Stage:
        root = directory / "workspace"
        root.mkdir(parents=True)
        run = RunStore(directory / "home").create(
            Header(
                format=FORMAT,
                run_id=RunId("20260131-080000-1f3a9c"),
                segment=0,
                forked_from=None,
                created_at=CLOCK.now(),
                workspaces={
                    MAIN_WORKSPACE: WorkspaceDeclaration(root=str(root), policy=Policy.default().to_json())
                },
                harness="tests",
                model="m",
                versions={},
                options=(options or RunOptions(task="mend")).to_json(),
            )
        )
        return cls(root=root, run=run, store=directory / "snapshots.git")

    @property
    def place(self) -> Place:
        return Place(run=self.run, root=self.root, store=self.store)

    @property
    def timeline(self) -> Timeline:
        return self.run.timeline()

    @property
    def records(self) -> tuple[Record, ...]:
        """Nodes and events of the current segment as they were written."""
        return self.timeline.records()

    @property
    def bytes_on_disk(self) -> bytes:
        """Everything that the run keeps, in one piece."""
        files = sorted(path for path in self.run.directory.rglob("*") if path.is_file())
        return b"".join(path.read_bytes() for path in files)

    @contextmanager
    def live(
        self, *, secrets: Collection[str] = (), on_divergence: OnDivergence | None = None
    ) -> Iterator[Layer]:
        """The layer of a process that serves what is recorded and then goes live."""
        with live_layer(
            self.place,
            supervisor=os.getpid(),
            clock=CLOCK,
            secrets=secrets,
            warn=self.warnings.append,
            on_divergence=on_divergence,
        ) as layer:
            yield layer

    def replay(self, on_divergence: OnDivergence = OnDivergence.STOP) -> Layer:
        """The layer of a process in which nothing may go live."""
        return replay_layer(self.run, clock=CLOCK, warn=self.warnings.append, on_divergence=on_divergence)

    def rewind(self, make_quiet: MakeQuiet = nothing_runs) -> JsonObject:
        """Finish the rewind that was asked for, as a supervisor does between two processes."""
        complete_opening(self.run, self.timeline, CLOCK)
        return self.rewinding(make_quiet, lambda rewinding: rewinding.perform())

    def rewinding(self, make_quiet: MakeQuiet, action: Callable[[Rewinding], JsonObject]) -> JsonObject:
        timeline = self.timeline
        asked = timeline.pending_rewind()
        assert asked is not None
        with opened_workspace(self.place, timeline, clock=CLOCK) as files:
            return action(
                Rewinding(
                    run=self.run,
                    timeline=timeline,
                    asked=asked,
                    files=files,
                    options=RunOptions.from_json(timeline.header.options),
                    make_quiet=make_quiet,
                    clock=CLOCK,
                )
            )
