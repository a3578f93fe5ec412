"""What both arms of a paired recovery are told of the failure that they go on from."""

from __future__ import annotations

MARK = "This line of work has come to its end"

_TOLD = """\
{mark}: it was submitted {times} times in a row and failed each time at the same first problem:

{feedback}

More repairs of the same kind will not help. Work out what this line of work assumed or changed that is \
wrong, and take a different approach from here."""

_MAY_REWIND = """
You can also go back: backtrack_candidates lists the earlier points of this run, and backtrack_commit \
returns to one of them."""


def recovery_text(*, times: int, feedback: str, can_rewind: bool) -> str:
    """The account of a line of work that failed so many times in a row; both arms hear it, one hears more."""
    told = _TOLD.format(mark=MARK, times=times, feedback=feedback)
    return told + (_MAY_REWIND if can_rewind else "")
