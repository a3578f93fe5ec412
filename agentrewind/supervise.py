"""Starts, watches, ends and restarts the agent process of a run.

The supervisor outlives every attempt: an attempt that asked for a rewind is followed by a fresh process.
It never imports a harness or a client, so it stays small and starts fast.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Self

from agentrewind import __version__
from agentrewind.adapters import check_harness, warm_modules
from agentrewind.capture.gate import named_calls
from agentrewind.clock import Clock, new_run_id
from agentrewind.durable import storage_error
from agentrewind.errors import DamagedError, ProtectedError, UsageError
from agentrewind.handover import EXIT_REWIND, EXIT_STORAGE
from agentrewind.launch import claim_path, compose
from agentrewind.opening import Place, open_workspace
from agentrewind.options import RunOptions
from agentrewind.processes import (
    Identity,
    Process,
    adopt_orphans,
    descendants,
    end,
    go_on,
    marked,
    stop,
)
from agentrewind.records import (
    FORMAT,
    MAIN_WORKSPACE,
    Finished,
    Header,
    LlmNode,
    Note,
    ProcessesEnded,
    RunId,
    ToolNode,
    WorkspaceDeclaration,
)
from agentrewind.replayer import OnDivergence
from agentrewind.rewind.conduct import count_rewinds
from agentrewind.rewind.perform import Quiet, Rewinding, complete_opening
from agentrewind.run_store import Run, RunStore
from agentrewind.starting import Child, Spawning, Start, Starter, Warm
from agentrewind.submission import run_check
from agentrewind.timeline import Timeline
from agentrewind.workspace.lock import WorkspaceLock
from agentrewind.workspace.policy import Policy
from agentrewind.workspace.roots import check_root, workspace_directory


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
        start: whether attempts are forks of a warm parent; scripts never are.
    """

    home: Path
    user_home: Path | None
    environment: Mapping[str, str]
    clock: Clock
    tell: Callable[[str], None]
    on_created: Callable[[Run], None] = lambda run: None
    start: Start = Start.SPAWN


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """The run that is to be started."""

    root: Path
    harness: str | None
    model: str | None
    options: RunOptions
    policy: Policy


def start_run(new: NewRun, around: Surroundings) -> RunResult:
    """Begin a run and see it through. Raises UsageError, ProtectedError and what a rewind can raise."""
    if new.harness is not None:
        check_harness(new.harness)
    elif not new.options.command:
        raise UsageError("neither a harness nor a command says which agent is to run")
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
        with _Supervisor(_place(around.home, run, root), around) as supervisor:
            return supervisor.see_through()


def resume_run(run_id: str, around: Surroundings, *, on_divergence: OnDivergence | None = None) -> RunResult:
    """Go on with a run after a crash, an interrupted rewind, or a failure of the provider."""
    run = RunStore(around.home).open(run_id)
    timeline = run.timeline()
    if timeline.state() in ("accepted", "rejected") and timeline.pending_rewind() is None:
        raise UsageError(f"run {run.run_id} is finished ({timeline.state()}); there is nothing to resume")
    if timeline.header.harness is not None:
        check_harness(timeline.header.harness)
    else:
        _refuse_unrouted(timeline)
    _refuse_gaps(timeline)
    declared = Path(timeline.header.workspaces[MAIN_WORKSPACE].root)
    root = check_root(declared, home=around.home, user_home=around.user_home)
    with _owning(around, root, run.run_id):
        around.on_created(run)
        place = _place(around.home, run, root)
        with _Supervisor(place, around, on_divergence=on_divergence) as supervisor:
            supervisor.end_leftovers()
            return supervisor.see_through()


def finish_pending(place: Place, clock: Clock) -> None:
    """Finish a rewind that was asked for in a run whose lock the caller holds."""
    around = Surroundings(
        home=place.run.directory.parent.parent,
        user_home=None,
        environment={},
        clock=clock,
        tell=lambda _text: None,
    )
    _Supervisor(place, around).finish_rewind()


class _Supervisor:
    """One run under supervision; its workspace lock is held by the caller, who closes it."""

    def __init__(
        self, place: Place, around: Surroundings, *, on_divergence: OnDivergence | None = None
    ) -> None:
        self._place = place
        self._run = place.run
        self._environment = around.environment
        self._clock = around.clock
        self._on_divergence = on_divergence
        self._stop_asked = False
        self._starter = self._chosen_starter(around)
        adopt_orphans()

    def _chosen_starter(self, around: Surroundings) -> Starter:
        harness = self._run.timeline().header.harness
        if around.start is Start.WARM and harness is not None:
            return Warm(warm_modules(harness), around.tell)
        return Spawning()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._starter.close()

    def see_through(self) -> RunResult:
        """Attempts and rewinds, one after the other, until one ends for another reason."""
        while True:
            self.finish_rewind()
            code = self._attempt()
            if code == EXIT_REWIND and self._run.timeline().pending_rewind() is None:
                raise DamagedError("the agent process ended for a rewind that is not in the log")
            if self._run.timeline().pending_rewind() is None:
                return self._result(code)

    def end_leftovers(self) -> None:
        """After a crash of the supervisor: end what belonged to the call that was interrupted."""
        self._end_unfinished(lambda: marked(self._run.run_id), why="left over from a crash")
        # a supervisor that was killed while files moved has left the jobs of the prefix suspended
        go_on(marked(self._run.run_id))

    def _end_unfinished(self, find: Callable[[], list[Process]], *, why: str) -> None:
        """End a stale agent process and what the unfinished call started; finished calls' jobs live on."""
        timeline = self._run.timeline()
        unfinished = [each for each in timeline.started_unfinished() if each.tool_name is not None]
        keep = frozenset(unfinished[0].processes) if unfinished else None

        def belongs(process: Process) -> bool:
            if process.pid in self._starter.own:
                return False
            if "agentrewind.attempt" in process.command or "agentrewind.warm" in process.command:
                return True
            return keep is not None and process.identity not in keep

        ended = end(lambda: [each for each in find() if belongs(each)])
        if ended:
            names = tuple(f"{each}, {why}" for each in ended)
            with self._run.writer(timeline.head) as writer:
                writer.append(ProcessesEnded(ended=names, kept=(), at=self._clock.now()), durable=True)

    def _attempt(self) -> int:
        timeline = self._run.timeline()
        script = self._options(timeline).command
        start = compose(
            self._place,
            segment=timeline.head,
            script=script,
            environment=self._environment,
            on_divergence=self._on_divergence,
        )
        claim_path(self._place).unlink(missing_ok=True)
        with self._agent_log() as log:
            child = self._starter.start(start, log)
            with self._forwarding(child):
                code = child.wait()
        if code < 0:
            self._killed(code)
        elif script and self._run.timeline().pending_rewind() is None:
            self._judge_script(code)
        return code

    def _agent_log(self) -> BinaryIO:
        path = self._run.directory / "agent.log"
        try:
            return open(path, "ab", opener=_private)
        except OSError as error:
            raise storage_error("write", path, error) from error

    def _judge_script(self, code: int) -> None:
        """A script has ended by itself: its end is its submission, and nobody is left to be told."""
        timeline = self._run.timeline()
        options = self._options(timeline)
        finished = Finished(state="accepted", detail="the command ended with code 0", at=self._clock.now())
        with self._run.writer(timeline.head) as writer:
            if not claim_path(self._place).exists():
                detail = "the command started no Python process that could be joined; nothing was recorded"
                finished = replace(finished, state="error", detail=detail)
            elif code != 0:
                finished = replace(finished, state="error", detail=f"the command ended with code {code}")
            elif options.check is not None and timeline.nodes:
                verdict = run_check(options.check, workspace=self._place.root)
                submission = verdict.submission(
                    max(timeline.nodes), history=timeline.submissions(), at=self._clock.now()
                )
                writer.append(submission, durable=True)
                if not verdict.accepted:
                    finished = replace(finished, state="rejected", detail=verdict.feedback[:2000])
            writer.append(finished, durable=True)

    @staticmethod
    def _options(timeline: Timeline) -> RunOptions:
        return RunOptions.from_json(timeline.header.options)

    def _killed(self, code: int) -> None:
        """The agent process was killed: end what its unfinished call left running."""
        timeline = self._run.timeline()
        if timeline.pending_rewind() is not None:
            return
        text = f"the agent process was ended by {signal.Signals(-code).name}"
        with self._run.writer(timeline.head) as writer:
            writer.append(Note(topic="killed", text=text, at=self._clock.now()), durable=True)
        self._end_unfinished(lambda: descendants(os.getpid()), why="started by the unfinished call")

    def finish_rewind(self) -> None:
        """Finish a rewind that was asked for, whatever was killed before."""
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
                options=self._options(timeline),
                make_quiet=self._make_quiet,
                clock=self._clock,
            ).perform()

    def _make_quiet(self, keep: frozenset[Identity]) -> Quiet:
        def mine() -> list[Process]:
            below = {each.identity: each for each in descendants(os.getpid())}
            below.update({each.identity: each for each in marked(self._run.run_id)})
            return [each for each in below.values() if each.pid not in self._starter.own]

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
        elif code == EXIT_STORAGE:
            state, detail = "error", _no_room(self._run.directory)
        elif finished is None or timeline.state() == "interrupted":
            log = self._run.directory / "agent.log"
            state, detail = "error", f"the agent process ended with code {code}; its last words are in {log}"
        else:
            state, detail = finished.state, finished.detail
        return summarise(timeline, state=state, detail=detail, exit_code=_exit_code(state, code))

    @contextmanager
    def _forwarding(self, child: Child) -> Iterator[None]:
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
    return code if code > 0 and code != EXIT_STORAGE else 1


def _no_room(directory: Path) -> str:
    free = shutil.disk_usage(directory).free
    return (
        f"the store cannot be written, {free} bytes of space are free in {directory}; "
        "make room or mend its permissions, then resume the run"
    )


def _refuse_unrouted(timeline: Timeline) -> None:
    """Refuse to start a script again whose tools pass the layer by: they would run a second time."""
    path = timeline.path()
    asked = any(isinstance(node, LlmNode) and named_calls(node) for node in path)
    if asked and not any(isinstance(node, ToolNode) for node in path):
        raise ProtectedError(
            "the agent's tools do not pass the layer, so they would all run again in the workspace; route "
            "them through agentrewind.call_tool. `replay` and `restore` work as they are"
        )


def _refuse_gaps(timeline: Timeline) -> None:
    """Refuse to replay across damage: on the whole path, or up to the target of a rewind that is pending."""
    asked = timeline.pending_rewind()
    gap = timeline.gap_on_path(until=asked.target if asked else None)
    if gap is not None:
        raise DamagedError(
            f"the log is damaged on the current path ({gap}); it cannot be replayed across the gap. "
            "`agentrewind restore` still brings back the files of any node that is listed"
        )


def _place(home: Path, run: Run, root: Path) -> Place:
    return Place(run=run, root=root, store=workspace_directory(home, root) / "snapshots.git")


@contextmanager
def _owning(around: Surroundings, root: Path, run_id: str) -> Iterator[None]:
    with WorkspaceLock.acquire(around.home, root, owner={"run": run_id, "pid": os.getpid()}) as lock:
        if lock.taken_over:
            around.tell(f"took over the workspace from {lock.taken_over}")
        yield


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _versions() -> Mapping[str, str]:
    return {"agentrewind": __version__, "python": sys.version.split()[0]}
