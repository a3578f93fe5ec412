"""Checks a submission with the user's command, and counts identical first failures in a row."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentrewind.errors import HarnessError
from agentrewind.options import REPEATED_FAILURES
from agentrewind.records import RecordUid, Submission
from agentrewind.rewind.tools import REJECTION_QUESTION

CANNOT_JUDGE = 125
"""The exit code by which a check says that it has failed itself, so that there is no verdict."""

_MARK = "criterion:"
_SHOWN = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the check said. `criterion` names the first failure; equal output counts as the same one."""

    accepted: bool
    exit_code: int | None
    criterion: str
    feedback: str

    def submission(self, record_uid: RecordUid, *, history: Iterable[Submission], at: str) -> Submission:
        """The verdict as the event on the submission that node `record_uid` made."""
        return Submission(
            record_uid=record_uid,
            accepted=self.accepted,
            exit_code=self.exit_code,
            criterion=self.criterion,
            feedback=self.feedback,
            repeated=repeated(self, history),
            at=at,
        )


def run_check(command: str, *, workspace: Path) -> Verdict:
    """Run the check in the workspace: exit 0 accepts, otherwise its output is the feedback.

    A first line `criterion: ID` names the first unsatisfied criterion and is no part of the feedback.
    The check has no standard input, and a session of its own. Raises HarnessError where it cannot be
    started, and where it ends with code 125, by which it says that it cannot judge.
    """
    # a file and no pipe: a server that the check leaves running would keep a pipe open
    with tempfile.TemporaryFile() as printed:
        try:
            finished = subprocess.run(
                ["/bin/sh", "-c", command],
                cwd=workspace,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                check=False,
            )
        except OSError as error:
            raise HarnessError(f"the check cannot be started in {workspace}: {error.strerror}") from error
        printed.seek(0)
        output = printed.read().decode("utf-8", "replace").strip()
    if finished.returncode == CANNOT_JUDGE:
        raise HarnessError(f"the check could not judge the submission (exit code 125): {output[-2000:]}")
    accepted = finished.returncode == 0
    criterion, feedback = _split(output)
    if accepted:
        criterion = ""
    if not feedback and not accepted:
        feedback = f"The check {_ending(finished.returncode)} and printed nothing."
    return Verdict(
        accepted=accepted,
        exit_code=finished.returncode,
        criterion=criterion,
        feedback=feedback if len(feedback) <= _SHOWN else feedback[:_SHOWN] + "\n… (cut)",
    )


def accept_all() -> Verdict:
    """The verdict where the user gave no check."""
    return Verdict(accepted=True, exit_code=None, criterion="", feedback="")


def repeated(verdict: Verdict, earlier: Iterable[Submission]) -> int:
    """How many rejections in a row, this one included, failed first at the same place; 0 when accepted."""
    if verdict.accepted:
        return 0
    count = 1
    for submission in reversed(list(earlier)):
        if submission.accepted or submission.criterion != verdict.criterion:
            break
        count += 1
    return count


def feedback_text(submission: Submission, *, can_rewind: bool, limit: int = REPEATED_FAILURES) -> str:
    """What the agent reads after a rejection."""
    parts: Sequence[str] = (
        "Your submission was checked and is not accepted yet.",
        submission.feedback,
        f"(The same first problem {submission.repeated} times in a row; the run ends at {limit}.)"
        if submission.repeated > 1
        else "",
        REJECTION_QUESTION if can_rewind else "Repair it and submit again.",
    )
    return "\n\n".join(part for part in parts if part)


def _split(output: str) -> tuple[str, str]:
    first, _, rest = output.partition("\n")
    named = first.strip().lower().startswith(_MARK)
    feedback = rest.strip() if named else output
    if named and (criterion := first.strip()[len(_MARK) :].strip()):
        return criterion, feedback
    return "output " + hashlib.sha256(feedback.encode()).hexdigest()[:12], feedback


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    names = {each.value: each.name for each in signal.Signals}
    return f"was killed by {names.get(-code, f'signal {-code}')}"
