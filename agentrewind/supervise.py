"""Starts, watches, ends and restarts the agent process of a run.

The supervisor outlives every attempt: an attempt that asked for a rewind is followed by a fresh process.
It never imports a harness or a client, so it stays small and starts fast.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Self

from agentrewind.adapters import warm_modules
from agentrewind.backup.places import has_backups
from agentrewind.backup.rewinding import External
from agentrewind.clock import Clock
from agentrewind.display_text import shorten
from agentrewind.durable import storage_error
from agentrewind.errors import DamagedError, MissingSnapshotError
from agentrewind.handover import EXIT_REWIND, EXIT_STORAGE, claimant
from agentrewind.launch import claim_path, compose
from agentrewind.lost_snapshots import newest_checkpoint
from agentrewind.opening import Place, opened_workspace
from agentrewind.options import RunOptions
from agentrewind.outcome import RunResult, exit_code_of, no_room, summarise
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
    Finished,
    Note,
    ProcessesEnded,
    Submission,
)
from agentrewind.replayer import OnDivergence
from agentrewind.rewind.perform import Quiet, Rewinding, complete_opening
from agentrewind.run_store import Run
from agentrewind.starting import Child, Spawning, Start, Starter, Warm
from agentrewind.submission import Verdict, run_check
from agentrewind.timeline import Timeline

_LAST_BYTES = 4096
_LAST_WIDTH = 300


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


def finish_pending(place: Place, clock: Clock, environment: Mapping[str, str]) -> None:
    """Finish a rewind that was asked for in a run whose lock the caller holds."""
    around = Surroundings(
        home=place.run.directory.parent.parent,
        user_home=None,
        environment=environment,
        clock=clock,
        tell=lambda _text: None,
    )
    Supervisor(place, around).finish_rewind()


class Supervisor:
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
        script = claimant(claim_path(self._place))

        def belongs(process: Process) -> bool:
            if process.pid in self._starter.own:
                return False
            if process.identity == script:
                return True
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
        options = self._options(timeline)
        script = options.command
        start = compose(
            self._place,
            segment=timeline.head,
            script=script,
            environment=self._environment,
            on_divergence=self._on_divergence,
            preserves=options.backup is not None,
        )
        claim_path(self._place).unlink(missing_ok=True)
        with self._agent_log() as log:
            printed_from = log.tell()
            child = self._starter.start(start, log)
            with self._forwarding(child):
                code = child.wait()
        if code < 0:
            self._killed(code)
        elif script and self._run.timeline().pending_rewind() is None:
            self._judge_script(code, printed_from)
        return code

    def _agent_log(self) -> BinaryIO:
        path = self._run.directory / "agent.log"
        try:
            return open(path, "ab", opener=_private)
        except OSError as error:
            raise storage_error("write", path, error) from error

    def _judge_script(self, code: int, printed_from: int) -> None:
        """A script has ended by itself: its end is its submission, and nobody is left to be told."""
        timeline = self._run.timeline()
        options = self._options(timeline)
        finished = Finished(state="accepted", detail="the command ended with code 0", at=self._clock.now())
        with self._run.writer(timeline.head) as writer:
            if not claim_path(self._place).exists():
                detail = "the command started no Python process that could be joined; nothing was recorded"
                finished = replace(finished, state="error", detail=detail)
            elif code != 0:
                detail = f"the command ended with code {code}{self._last_words(printed_from)}"
                finished = replace(finished, state="error", detail=detail)
            elif options.check is not None:
                verdict = run_check(options.check, workspace=self._place.root)
                writer.append(self._verdict(verdict, timeline), durable=True)
                if not verdict.accepted:
                    finished = replace(finished, state="rejected", detail=verdict.feedback[:2000])
            writer.append(finished, durable=True)

    def _verdict(self, verdict: Verdict, timeline: Timeline) -> Submission | Note:
        """What is recorded of a check: on the last node, or as a note where the script made no call."""
        now = self._clock.now()
        if timeline.nodes:
            return verdict.submission(max(timeline.nodes), history=timeline.submissions(), at=now)
        return Note(
            topic="check",
            text=f"the command made no call; the check {'accepts' if verdict.accepted else 'rejects'} it",
            data={
                "exit_code": verdict.exit_code,
                "criterion": verdict.criterion,
                "feedback": verdict.feedback,
            },
            at=now,
        )

    def _last_words(self, printed_from: int) -> str:
        """The last line that an attempt printed, and where the rest is."""
        path = self._run.directory / "agent.log"
        with path.open("rb") as log:
            log.seek(max(printed_from, path.stat().st_size - _LAST_BYTES))
            lines = [line for line in log.read().decode("utf-8", "replace").splitlines() if line.strip()]
        return f": {shorten(lines[-1], _LAST_WIDTH)} (all that it printed: {path})" if lines else ""

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
        refuse_gaps(timeline)
        with opened_workspace(self._place, timeline, clock=self._clock) as files:
            rewinding = Rewinding(
                run=self._run,
                timeline=timeline,
                asked=asked,
                files=files,
                options=self._options(timeline),
                make_quiet=self._make_quiet,
                clock=self._clock,
                external=self._external(),
            )
            try:
                rewinding.perform()
            except MissingSnapshotError as error:
                kept = newest_checkpoint(timeline, files)
                raise DamagedError(
                    f"the rewind to {asked.target} cannot be carried out: {error}; "
                    + (
                        f"`agentrewind fork {self._run.run_id} {kept}` goes on in a copy from the newest "
                        "checkpoint that is whole"
                        if kept
                        else "no checkpoint is whole"
                    )
                ) from error

    def _external(self) -> External | None:
        home = self._run.directory.parent.parent
        if not has_backups(home):
            return None
        return External(
            home=home,
            run_id=self._run.run_id,
            workspace=self._place.root,
            environment=self._environment,
            clock=self._clock,
        )

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
            with self._run.writer(timeline.head) as writer:
                writer.append(Finished(state=state, detail=detail, at=self._clock.now()), durable=True)
        elif code < 0:
            state, detail = "error", f"the agent process was ended by {signal.Signals(-code).name}"
        elif code == EXIT_STORAGE:
            state, detail = "error", no_room(self._run.directory)
        elif finished is None or timeline.state() == "interrupted":
            log = self._run.directory / "agent.log"
            state, detail = "error", f"the agent process ended with code {code}; its last words are in {log}"
        else:
            state, detail = finished.state, finished.detail
        return summarise(timeline, state=state, detail=detail, exit_code=exit_code_of(state, code))

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


def refuse_gaps(timeline: Timeline) -> None:
    """Refuse to replay across damage: on the whole path, or up to the target of a rewind that is pending."""
    asked = timeline.pending_rewind()
    gap = timeline.gap_on_path(until=asked.target if asked else None)
    if gap is not None:
        raise DamagedError(
            f"the log is damaged on the current path ({gap}); it cannot be replayed across the gap. "
            "`agentrewind restore` still brings back the files of any node that is listed"
        )


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
