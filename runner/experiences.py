"""What crosses from one attempt of Restart with Experiences to the next: one block per failed attempt."""

from __future__ import annotations

from mettlebench.verdict import Verdict

HEADING = "## What earlier attempts at this task came to"
_EXCERPT = 1500


def block(*, attempt: int, verdict: Verdict, repeated: int, limit: int, excerpt: str) -> str:
    """What one failed attempt leaves behind: the verdict that ended it, counts, and the end of its log.

    `repeated` submissions in a row, over all attempts, failed first at the same criterion; at `limit` of
    them the run ends.
    """
    results = verdict.results
    first = verdict.prefix
    # every criterion is run, but those after the first failure are not the agent's to know
    failed, later = 1, len(results) - first - 1
    regressed = [each for each in verdict.regressions if each <= (verdict.first_failure or "")]
    lines = [
        f"### Attempt {attempt}",
        f"First unsatisfied criterion: {verdict.first_failure}",
        f"What was said about it: {verdict.feedback}",
        f"Satisfied before it: {first} of {len(results)}",
        f"Satisfied at the attempt before and not any more: {', '.join(regressed) or 'none'}",
        f"Criteria: {first} passed, {failed} failed, {later} not run",
        f"Submissions in a row that failed at {verdict.first_failure}: {repeated}; "
        f"{max(limit - repeated, 0)} more and the run ends.",
        f"- Do not repeat a repair that left {verdict.first_failure} unsatisfied.",
        f"- Get {verdict.first_failure} satisfied before you try anything of wider scope.",
    ]
    if excerpt.strip():
        lines += ["The end of its log:", "```", excerpt.strip()[-_EXCERPT:], "```"]
    return "\n".join(lines) + "\n"


def with_experiences(instruction: str, blocks: str) -> str:
    """The first message of the next attempt: the task, then all blocks so far."""
    if not blocks:
        return instruction
    return (
        f"{instruction.rstrip()}\n\n{HEADING}\n\nEach began from the same untouched workspace, as you do. "
        f"Nothing of their work is left; this is all that is known of them.\n\n{blocks}"
    )
