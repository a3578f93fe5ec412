"""`record`, `resume` and `replay` as context managers, for an agent that somebody runs himself."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from agentrewind import __version__
from agentrewind.capture.install import install_all
from agentrewind.clock import SystemClock, new_run_id
from agentrewind.commands.session import Session
from agentrewind.copied_runs import refuse_outside
from agentrewind.current import current_gate, current_layer, set_layer
from agentrewind.errors import DivergenceError
from agentrewind.layer import Layer
from agentrewind.opening import Place, live_layer, replay_layer
from agentrewind.options import RunOptions
from agentrewind.records import FORMAT, MAIN_WORKSPACE, Header, RunId, WorkspaceDeclaration
from agentrewind.replayer import OnDivergence
from agentrewind.rewind.signal import EndReason
from agentrewind.run_files import declared_root
from agentrewind.run_store import Run, RunStore
from agentrewind.supervise import finish_pending
from agentrewind.workspace.lock import WorkspaceLock
from agentrewind.workspace.policy import Policy
from agentrewind.workspace.roots import check_root, recorded_root, workspace_directory


@contextmanager
def record(
    workspace: str | os.PathLike[str] = ".",
    run_id: str | None = None,
    home: str | os.PathLike[str] | None = None,
) -> Iterator[Layer]:
    """Record this process as a run of `workspace`. Joined already, it stays as it is joined.

    A rewind leaves as `RewindSignal`; the run is then pending, and `resume` in a fresh process, or
    `agentrewind run --resume`, which starts this very command again, goes on.
    """
    if (joined := current_layer()) is not None:
        yield joined
        return
    session = _session()
    store = Path(home) if home is not None else session.home
    root = check_root(Path(workspace).absolute(), home=store, user_home=session.user_home)
    chosen = RunId(new_run_id(session.clock) if run_id is None else run_id)
    options = RunOptions(task="", command=(sys.executable, *sys.argv))
    with WorkspaceLock.acquire(store, root, owner={"run": chosen, "pid": os.getpid()}):
        declaration = WorkspaceDeclaration(root=str(root), policy=Policy.default().to_json())
        run = RunStore(store).create(
            Header(
                format=FORMAT,
                run_id=chosen,
                segment=0,
                forked_from=None,
                created_at=session.clock.now(),
                workspaces={MAIN_WORKSPACE: declaration},
                harness=None,
                model=None,
                versions={"agentrewind": __version__, "python": sys.version.split()[0]},
                options=options.to_json(),
            )
        )
        with _joined(run, root, store) as layer:
            yield layer


@contextmanager
def resume(run_id: str | None = None, home: str | os.PathLike[str] | None = None) -> Iterator[Layer]:
    """Take up a run in this fresh process: a pending rewind is finished, the kept prefix is served.

    Without a `run_id` the newest run. Raises ProtectedError for a fork in a copy, which this process does
    not see at the recorded path: `agentrewind run --resume` goes on with it.
    """
    if (joined := current_layer()) is not None:
        yield joined
        return
    session = _session()
    store = Path(home) if home is not None else session.home
    run = RunStore(store).open(run_id) if run_id is not None else session.open_run("last")
    refuse_outside(run, session.environment)
    declared = declared_root(run.timeline())
    root = recorded_root(declared, home=store, user_home=session.user_home)
    with WorkspaceLock.acquire(store, root, owner={"run": run.run_id, "pid": os.getpid()}):
        place = Place(run=run, root=root, store=_snapshots(store, root))
        finish_pending(place, session.clock, session.environment)
        with _joined(run, root, store) as layer:
            yield layer


@contextmanager
def replay(
    run_id: str,
    *,
    home: str | os.PathLike[str] | None = None,
    on_divergence: str = "stop",
) -> Iterator[Layer]:
    """Serve everything in this block from the run's log; nothing is called, nothing is written.

    Raises:
        DivergenceError: at the end of the block, where the code asked for something that the log does
            not hold, or did not ask for all that it holds.
    """
    session = _session()
    store = Path(home) if home is not None else session.home
    run = RunStore(store).open(run_id)
    warnings: list[str] = []
    layer = replay_layer(
        run, clock=session.clock, warn=warnings.append, on_divergence=OnDivergence(on_divergence)
    )
    previous = current_layer()
    set_layer(layer)
    install_all(current_gate)
    try:
        yield layer
    except BaseException:
        if layer.latch.error is not None:
            raise layer.latch.error from None
        raise
    finally:
        set_layer(previous)
    if layer.latch.error is not None:
        raise layer.latch.error
    if layer.remaining:
        raise DivergenceError(
            record_uid=None, difference=f"{layer.remaining} recorded LLM call(s) were never asked for"
        )


@contextmanager
def _joined(run: Run, root: Path, store: Path) -> Iterator[Layer]:
    with ExitStack() as stack:
        layer = stack.enter_context(
            live_layer(
                Place(run=run, root=root, store=_snapshots(store, root)),
                supervisor=os.getpid(),
                clock=SystemClock(),
                secrets=(),
                warn=lambda text: print(text, file=sys.stderr),  # noqa: T201 - the caller's own standard error
                environment=dict(os.environ),
            )
        )
        set_layer(layer)
        stack.callback(set_layer, None)
        install_all(current_gate)
        try:
            yield layer
        except BaseException:
            if layer.latch.reason is EndReason.STOP and layer.latch.error is not None:
                raise layer.latch.error from None
            raise
        layer.latch.check()


def _snapshots(store: Path, root: Path) -> Path:
    return workspace_directory(store, root) / "snapshots.git"


def _session() -> Session:
    return Session(environment=dict(os.environ), directory=Path.cwd(), clock=SystemClock())
