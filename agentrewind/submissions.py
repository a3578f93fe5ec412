"""Judges the submissions of one agent process: by the log, or else by the check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentrewind.clock import Clock
from agentrewind.options import RunOptions
from agentrewind.recorder import Recorder
from agentrewind.records import RecordUid, Submission
from agentrewind.submission import Verdict, feedback_text


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionResult:
    """The verdict, and what the agent is to be told. `final`: the run ends here."""

    accepted: bool
    final: bool
    feedback: str


class Submissions:
    """The verdicts that are known, by the node that submitted. The caller holds a lock around `judge`.

    Args:
        known: verdicts that the log holds, in order.
        check: validates the present state; only called for a submission that is not known.
    """

    def __init__(
        self, known: Sequence[Submission], *, check: Callable[[], Verdict], options: RunOptions, clock: Clock
    ) -> None:
        self._history = list(known)
        self._known = {each.record_uid: each for each in known}
        self._check = check
        self._options = options
        self._clock = clock

    def judge(self, record_uid: RecordUid, *, record: Callable[[], Recorder]) -> SubmissionResult:
        """The verdict on what node `record_uid` submitted; `record` gives where a new one is written."""
        found = self._known.get(record_uid)
        if found is None:
            recorder = record()
            recorder.settle(f"submission {record_uid}")
            found = self._check().submission(record_uid, history=self._history, at=self._clock.now())
            recorder.write(found, durable=True)
            self._history.append(found)
            self._known[record_uid] = found
        limit = self._options.repeated_failures
        return SubmissionResult(
            accepted=found.accepted,
            final=found.accepted or found.repeated >= limit,
            feedback=""
            if found.accepted
            else feedback_text(found, can_rewind=self._options.asks_for_rewind(record_uid), limit=limit),
        )
