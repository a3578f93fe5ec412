"""The demo's scripted agent: decides its next move from the conversation alone.

It knows its plans by heart, but not where it is: that it reads from its own calls in the conversation, which
a rewind shortens, and from the note that the rewind brings. Which checkpoint to go back to it reads from the
candidates that the tool answered with.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from agentrewind.errors import UsageError
from harness_adapters.demo.forms import Called, form_of
from harness_adapters.demo.steps import APPLY, BASH, CAREFUL, GROUNDWORK, HASTY, REPAIRS, Move
from harness_adapters.scripted_answer import ScriptedAnswer
from harness_adapters.scripted_policy import NoAnswerError, Policy
from harness_adapters.scripted_request import ScriptedRequest

MODEL_NAME = "scripted-demo"
STRATEGIES = ("rewind", "continue")

CANDIDATES = "backtrack_candidates"
COMMIT = "backtrack_commit"

LESSON = "archive/amounts-as-entered.csv has to be written while orders.amount still exists"
"""The sentence by which the agent knows its own note."""

MEMORY = (
    f"{LESSON}. Running migrations/002_amounts.py first dropped the entries for good (it ends in VACUUM, and "
    "the database is in no commit), and the submission failed at the archive. Parser, report, migration "
    "script, changelog and the figures before the migration are done, committed and right: keep them. Next: "
    "export the entries from orders.amount and commit the file, then migrate, complete the record in "
    "docs/migrations/002.md, tag v2.0.0, submit."
)

LOOK_BACK = Move(
    say="The entries are gone: nothing I can run brings them back. I look where I could go back to.",
    tool=CANDIDATES,
)
GO_BACK = Move(
    say="I go back to just before the migration, with a note on the right order.",
    tool=COMMIT,
)


def policy(strategy: str) -> Policy:
    """The agent's policy. `rewind` uses the rewind tools where they are on offer, `continue` never does.

    With `rewind`, a rewind that is refused, or tools that are not there, leave the agent with what `continue`
    does: four repairs after the first rejection, each submitted.

    Raises:
        UsageError: an unknown strategy.
        NoAnswerError: (by the policy) the script has come to its end, or the candidates do not hold the
            checkpoint that it looks for.
    """
    if strategy not in STRATEGIES:
        raise UsageError(f"the demo has no strategy {strategy!r}; known: {', '.join(STRATEGIES)}")

    def next_answer(request: ScriptedRequest) -> ScriptedAnswer:
        form = form_of(request)
        calls = form.calls(request)
        may_rewind = strategy == "rewind" and form.offers(request) >= {CANDIDATES, COMMIT}
        went_back = _accepted_commit(calls)
        back = went_back is not None or request.told(LESSON)
        move = next_move(_standing_calls(calls, went_back), back=back, may_rewind=may_rewind)
        if move is None:
            raise NoAnswerError("the demo's script ends here: it has no further repair to try")
        return form.say(move.say, move.tool, _arguments(move, calls))

    return next_answer


def rewinding() -> Policy:
    """`policy("rewind")`, for `python -m harness_adapters.scripted --policy`."""
    return policy("rewind")


def continuing() -> Policy:
    """`policy("continue")`, for `python -m harness_adapters.scripted --policy`."""
    return policy("continue")


def next_move(calls: Sequence[Called], *, back: bool, may_rewind: bool) -> Move | None:
    """The first move of the plan that these calls do not hold yet; None at the end of the plan."""
    plan: tuple[Move, ...]
    if back:
        plan = (*GROUNDWORK, *CAREFUL, *REPAIRS)
    elif may_rewind:
        plan = (*GROUNDWORK, *HASTY, LOOK_BACK, GO_BACK, *REPAIRS)
    else:
        plan = (*GROUNDWORK, *HASTY, *REPAIRS)
    done = Counter((call.name, _command(call)) for call in calls)
    for move in plan:
        key = (move.tool, move.command)
        if not done[key]:
            return move
        done[key] -= 1
    return None


def find_checkpoint(candidates: str) -> str:
    """The `record_uid` of the checkpoint just before the migration, from the answer of the candidates tool.

    The migration may have been tried several times; the first try is the one that did the damage.

    Raises:
        NoAnswerError: the answer is not what the tool promises, or names no such checkpoint.
    """
    try:
        entries = json.loads(candidates)["candidates"]
        fitting = [str(entry["record_uid"]) for entry in entries if _leads_to_migration(entry)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NoAnswerError(f"the candidates cannot be read ({error!r}): {candidates[:200]}") from error
    if not fitting:
        raise NoAnswerError(f"none of {len(entries)} candidates is followed by `{APPLY.command}`")
    return fitting[-1]


def _leads_to_migration(entry: Mapping[str, Any]) -> bool:
    wanted = APPLY.command.partition(" && ")[0]
    return any(tool["name"] == BASH and wanted in str(tool["arguments"]) for tool in entry["tools"])


def _command(call: Called) -> str:
    return str(call.arguments.get("command", "")) if call.name == BASH else ""


def _accepted_commit(calls: Sequence[Called]) -> int | None:
    """The place, among the calls, of the last commit that came back as an ordinary result.

    That happens only where the context is not rewound: then the conversation still holds the abandoned calls.
    """
    places = [
        index for index, call in enumerate(calls) if call.name == COMMIT and not _is_error(call.result or "")
    ]
    return places[-1] if places else None


def _is_error(result: str) -> bool:
    try:
        value = json.loads(result)
    except ValueError:
        return "error" in result.casefold()
    return not isinstance(value, dict) or "error" in value


def _standing_calls(calls: Sequence[Called], went_back: int | None) -> Sequence[Called]:
    """The calls whose effects still stand: without those that a rewind of the files alone took back."""
    if went_back is None:
        return calls
    damage = next((i for i, call in enumerate(calls) if _command(call) == APPLY.command), went_back)
    return (*calls[:damage], *calls[went_back + 1 :])


def _arguments(move: Move, calls: Sequence[Called]) -> Mapping[str, str]:
    if move.tool == CANDIDATES:
        return {"reason": "The archive needs the entries, and the migration has destroyed them."}
    if move.tool == COMMIT:
        asked = [call for call in calls if call.name == CANDIDATES]
        record_uid = find_checkpoint(asked[-1].result or "")
        return {"record_uid": record_uid, "memory_summary": MEMORY, "reason": "The migration came too early."}
    return {"command": move.command}
