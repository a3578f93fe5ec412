"""Starts, watches, ends and restarts the agent process of a run.

The supervisor outlives every attempt: an attempt that asked for a rewind is followed by a fresh process.
It never imports a harness or a client, so it stays small and starts fast.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentrewind import __version__
from agentrewind.adapters import check_harness
from agentrewind.attempt import (
    EXIT_REWIND,
    HASH_SEED,
    REWIND_FILE,
    RUN_DIRECTORY,
    SNAPSHOT_STORE,
    SUPERVISOR,
)
from agentrewind.clock import Clock, new_run_id
from agentrewind.errors import DamagedError, UsageError
from agentrewind.opening import Place, open_workspace
from agentrewind.options import RunOptions
from agentrewind.processes import (
    RUN_VARIABLE,
    Identity,
    Process,
    adopt_orphans,
    descendants,
    end,
    go_on,
    marked,
    stop,
)
from agentrewind.record import (
    FORMAT,
    MAIN_WORKSPACE,
    Header,
    Note,
    ProcessesEnded,
    RunId,
    WorkspaceDeclaration,
)
from agentrewind.replayer import OnDivergence
from agentrewind.rewind.conduct import count_rewinds
from agentrewind.rewind.perform import Quiet, Rewinding, complete_opening
from agentrewind.run_store import Run, RunStore
from agentrewind.timeline import Timeline
from agentrewind.workspace.lock import WorkspaceLock
from agentrewind.workspace.policy import Policy
from agentrewind.workspace.roots import check_root, workspace_directory

OFFLINE_SETTINGS = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LANGSMITH_TRACING": "false",
    "MSWEA_COST_TRACKING": "ignore_errors",
    "MSWEA_SILENT_STARTUP": "1",
}
"""Set for the agent process unless the user has set them: without them imports reach for the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How a run stands after its supervisor has finished. `state`: accepted, rejected, stopped or error."""

    run_id: str
    state: str
    detail: str
    rewinds: int
    nodes: int
    submissions: int
    segments: int
    exit_code: int

    @property
    def accepted(self) -> bool:
        """The last submission was accepted."""
        return self.state == "accepted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a supervisor is given of the machine.

    Attributes:
        home: where runs and snapshots are kept.
        user_home: the user's home directory, never taken as a workspace; None where there is none.
        environment: the agent process's environment, before what the layer adds.
        tell: receives what a person at the terminal should know while the run goes on.
        on_created: called once with the run, before its first attempt.
    """

    home: Path
    user_home: Path | None
    environment: Mapping[str, str]
    clock: Clock
    tell: Callable[[str], None]
    on_created: Callable[[Run], None] = lambda run: None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """The run that is to be started."""

    root: Path
    harness: str
    model: str
    options: RunOptions
    policy: Policy


def start_run(new: NewRun, around: Surroundings) -> RunResult:
    """Begin a run and see it through. Raises UsageError, ProtectedError and what a rewind can raise."""
    check_harness(new.harness)
    root = check_root(new.root, home=around.home, user_home=around.user_home)
    run_id = RunId(new_run_id(around.clock))
    with _owning(around, root, run_id):
        declaration = WorkspaceDeclaration(root=str(root), policy=new.policy.to_json())
        run = RunStore(around.home).create(
            Header(
                format=FORMAT,
                run_id=run_id,
                segment=0,
                forked_from=None,
                created_at=around.clock.now(),
                workspaces={MAIN_WORKSPACE: declaration},
                harness=new.harness,
                model=new.model,
                versions=_versions(),
                options=new.options.to_json(),
            )
        )
        around.on_created(run)
        return _Supervisor(_place(around.home, run, root), around).see_through()


def resume_run(run_id: str, around: Surroundings, *, on_divergence: OnDivergence | None = None) -> RunResult:
    """Go on with a run after a crash, an interrupted rewind, or a failure of the provider."""
    run = RunStore(around.home).open(run_id)
    timeline = run.timeline()
    if timeline.state() in ("accepted", "rejected") and timeline.pending_rewind() is None:
        raise UsageError(f"run {run.run_id} is finished ({timeline.state()}); there is nothing to resume")
    check_harness(timeline.header.harness or "")
    _refuse_gaps(timeline)
    declared = Path(timeline.header.workspaces[MAIN_WORKSPACE].root)
    root = check_root(declared, home=around.home, user_home=around.user_home)
    with _owning(around, root, run.run_id):
        around.on_created(run)
        supervisor = _Supervisor(_place(around.home, run, root), around, on_divergence=on_divergence)
        supervisor.end_leftovers()
        return supervisor.see_through()


class _Supervisor:
    """One run under supervision; its workspace lock is held by the caller."""

    def __init__(
        self, place: Place, around: Surroundings, *, on_divergence: OnDivergence | None = None
    ) -> None:
        self._place = place
        self._run = place.run
        self._environment = around.environment
        self._clock = around.clock
        self._on_divergence = on_divergence
        self._stop_asked = False
        adopt_orphans()

    def see_through(self) -> RunResult:
        """Attempts and rewinds, one after the other, until one ends for another reason."""
        while True:
            self._finish_rewind()
            code = self._attempt()
            if code == EXIT_REWIND and self._run.timeline().pending_rewind() is None:
                raise DamagedError("the agent process ended for a rewind that is not in the log")
            if self._run.timeline().pending_rewind() is None:
                return self._result(code)

    def end_leftovers(self) -> None:
        """After a crash of the supervisor: end what belonged to the call that was interrupted."""
        self._end_unfinished(lambda: marked(self._run.run_id), why="left over from a crash")

    def _end_unfinished(self, find: Callable[[], list[Process]], *, why: str) -> None:
        """End a stale agent process and what the unfinished call started; finished calls' jobs live on."""
        timeline = self._run.timeline()
        unfinished = [each for each in timeline.started_unfinished() if each.tool_name is not None]
        keep = frozenset(unfinished[0].processes) if unfinished else None

        def belongs(process: Process) -> bool:
            if "agentrewind.attempt" in process.command:
                return True
            return keep is not None and process.identity not in keep

        ended = end(lambda: [each for each in find() if belongs(each)])
        if ended:
            names = tuple(f"{each}, {why}" for each in ended)
            with self._run.writer(timeline.head) as writer:
                writer.append(ProcessesEnded(ended=names, kept=(), at=self._clock.now()), durable=True)

    def _attempt(self) -> int:
        timeline = self._run.timeline()
        command = [sys.executable, "-P", "-m", "agentrewind.attempt"]
        if self._on_divergence is not None:
            command += ["--on-divergence", self._on_divergence.value]
        with open(self._run.directory / "agent.log", "ab", opener=_private) as log:  # noqa: PTH123 - Path has no opener
            child = subprocess.Popen(
                command,
                env=self._composed(timeline),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            with self._forwarding(child):
                code = child.wait()
        if code < 0:
            self._killed(code)
        return code

    def _killed(self, code: int) -> None:
        """The agent process was killed: end what its unfinished call left running."""
        timeline = self._run.timeline()
        if timeline.pending_rewind() is not None:
            return
        text = f"the agent process was ended by {signal.Signals(-code).name}"
        with self._run.writer(timeline.head) as writer:
            writer.append(Note(topic="killed", text=text, at=self._clock.now()), durable=True)
        self._end_unfinished(lambda: descendants(os.getpid()), why="started by the unfinished call")

    def _composed(self, timeline: Timeline) -> dict[str, str]:
        environment = {**OFFLINE_SETTINGS, **self._environment}
        environment[HASH_SEED] = environment.get("PYTHONHASHSEED", "")
        environment["PYTHONHASHSEED"] = environment["PYTHONHASHSEED"] if environment[HASH_SEED] else "0"
        environment[RUN_VARIABLE] = self._run.run_id
        environment[SUPERVISOR] = str(os.getpid())
        environment[SNAPSHOT_STORE] = str(self._place.store)
        environment.pop(RUN_DIRECTORY, None)
        environment.pop(REWIND_FILE, None)
        if self._run.rewind_path(timeline.head).exists():
            environment[REWIND_FILE] = str(self._run.rewind_path(timeline.head))
        else:
            environment[RUN_DIRECTORY] = str(self._run.directory)
        if not environment.get("HOME"):
            # harnesses make their folder of settings at import, wherever HOME points
            environment["HOME"] = str(self._run.directory)
        return environment

    def _finish_rewind(self) -> None:
        timeline = self._run.timeline()
        complete_opening(self._run, timeline, self._clock)
        asked = timeline.pending_rewind()
        if asked is None:
            return
        _refuse_gaps(timeline)
        with ExitStack() as stack:
            files = open_workspace(self._place, timeline, clock=self._clock)
            stack.callback(files.close)
            Rewinding(
                run=self._run,
                timeline=timeline,
                asked=asked,
                files=files,
                options=RunOptions.from_json(timeline.header.options),
                make_quiet=self._make_quiet,
                clock=self._clock,
            ).perform()

    def _make_quiet(self, keep: frozenset[Identity]) -> Quiet:
        def mine() -> list[Process]:
            below = {each.identity: each for each in descendants(os.getpid())}
            below.update({each.identity: each for each in marked(self._run.run_id)})
            return list(below.values())

        ended = end(lambda: [each for each in mine() if each.identity not in keep])
        kept = [each for each in mine() if each.identity in keep]
        stopped = stop(kept)
        return Quiet(ended=ended, kept=kept, go_on=lambda: go_on(stopped))

    def _result(self, code: int) -> RunResult:
        timeline = self._run.timeline()
        finished = timeline.last_finished()
        if self._stop_asked and (finished is None or code < 0):
            state, detail = "stopped", "stopped by a person"
        elif code < 0:
            state, detail = "error", f"the agent process was ended by {signal.Signals(-code).name}"
        elif finished is None or timeline.state() == "interrupted":
            log = self._run.directory / "agent.log"
            state, detail = "error", f"the agent process ended with code {code}; its last words are in {log}"
        else:
            state, detail = finished.state, finished.detail
        return summarise(timeline, state=state, detail=detail, exit_code=_exit_code(state, code))

    @contextmanager
    def _forwarding(self, child: subprocess.Popen[bytes]) -> Iterator[None]:
        """While this lasts, a request to stop goes to the agent process, and the run stays resumable."""

        def forward(_number: int, _frame: object) -> None:
            again, self._stop_asked = self._stop_asked, True
            child.send_signal(signal.SIGKILL if again else signal.SIGTERM)

        previous = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


def summarise(timeline: Timeline, *, state: str, detail: str, exit_code: int) -> RunResult:
    """The figures of a run, as `run --json` prints them."""
    return RunResult(
        run_id=timeline.header.run_id,
        state=state,
        detail=detail,
        rewinds=count_rewinds(timeline),
        nodes=len(timeline.nodes),
        submissions=len(timeline.submissions()),
        segments=len(timeline.segments),
        exit_code=exit_code,
    )


def _exit_code(state: str, code: int) -> int:
    if state == "accepted":
        return 0
    return code if code > 0 else 1


def _refuse_gaps(timeline: Timeline) -> None:
    gaps = timeline.gaps()
    if gaps:
        raise DamagedError(
            f"the log is damaged on the current path ({gaps[0]}); it cannot be replayed across the gap. "
            "`agentrewind restore` still brings back the files of any node that is listed"
        )


def _place(home: Path, run: Run, root: Path) -> Place:
    return Place(run=run, root=root, store=workspace_directory(home, root) / "snapshots.git")


@contextmanager
def _owning(around: Surroundings, root: Path, run_id: str) -> Iterator[None]:
    with WorkspaceLock.acquire(around.home, root, owner={"run_id": run_id}) as lock:
        if lock.taken_over:
            around.tell(f"took over the workspace from {lock.taken_over}")
        yield


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _versions() -> Mapping[str, str]:
    return {"agentrewind": __version__, "python": sys.version.split()[0]}
