"""Runs an agent that a test builds, attempt by attempt, in this process: a rewind makes a fresh agent."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentrewind.capture.install import install_all
from agentrewind.clock import SystemClock
from agentrewind.current import current_gate, set_layer
from agentrewind.layer import Layer
from agentrewind.opening import Place, live_layer, replay_layer
from agentrewind.options import RunOptions
from agentrewind.records import FORMAT, MAIN_WORKSPACE, Header, Node, RunId, WorkspaceDeclaration
from agentrewind.replayer import OnDivergence
from agentrewind.rewind.signal import EndReason, LayerSignal
from agentrewind.run_store import Run, RunStore
from agentrewind.supervise import finish_pending
from agentrewind.workspace.policy import Policy
from agentrewind.workspace.roots import workspace_directory

Act = Callable[[Layer], Any]


@dataclass(kw_only=True)
class Attempts:
    """One run. `act` builds an agent, attaches it and runs it; it is called once for each attempt."""

    base: Path
    options: RunOptions

    def __post_init__(self) -> None:
        self.root = self.base / "ws"
        self.home = self.base / "store"
        self.root.mkdir(parents=True)
        self.clock = SystemClock()
        self.run: Run = RunStore(self.home).create(
            Header(
                format=FORMAT,
                run_id=RunId("run"),
                segment=0,
                forked_from=None,
                created_at=self.clock.now(),
                workspaces={
                    MAIN_WORKSPACE: WorkspaceDeclaration(
                        root=str(self.root), policy=Policy.default().to_json()
                    )
                },
                harness=None,
                model=None,
                versions={},
                options=self.options.to_json(),
            )
        )

    def live(self, act: Act) -> Any:
        """Attempts until one ends for another reason than a rewind; what that one returned."""
        while True:
            finish_pending(self._place(), self.clock, {})
            with (
                live_layer(
                    self._place(),
                    supervisor=os.getpid(),
                    clock=self.clock,
                    secrets=(),
                    warn=lambda text: None,
                ) as layer,
                joined(layer),
            ):
                found = _acted(act, layer)
            if layer.latch.reason is not EndReason.REWIND:
                if layer.latch.error is not None:
                    raise layer.latch.error
                return found

    def replayed(self, act: Act) -> Layer:
        """The layer of a replay after the agent has ended; raises what stopped it."""
        layer = replay_layer(
            self.run, clock=self.clock, warn=lambda text: None, on_divergence=OnDivergence.STOP
        )
        with joined(layer):
            _acted(act, layer)
        if layer.latch.error is not None:
            raise layer.latch.error
        return layer

    @property
    def path(self) -> tuple[Node, ...]:
        return self.run.timeline().path()

    def _place(self) -> Place:
        return Place(
            run=self.run, root=self.root, store=workspace_directory(self.home, self.root) / "snapshots.git"
        )


@contextmanager
def joined(layer: Layer) -> Iterator[None]:
    """This process belongs to the layer while this lasts."""
    set_layer(layer)
    install_all(current_gate)
    try:
        yield
    finally:
        set_layer(None)


def _acted(act: Act, layer: Layer) -> Any:
    try:
        return act(layer)
    except LayerSignal:
        return None
