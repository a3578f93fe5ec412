"""What came of a replay, read from the report that the agent process has left."""

from __future__ import annotations

from dataclasses import dataclass

from agentrewind.display_text import shorten
from agentrewind.errors import DamagedError, DivergenceError, HarnessError
from agentrewind.records import JsonObject, LlmNode, RecordUid, ToolNode
from agentrewind.timeline import Timeline

_WORDS = 300
_ENDED = ("accepted", "rejected")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What came of a replay.

    Attributes:
        served: how many times the harness was answered from the log; `nodes` names the nodes, in order.
        unserved: nodes of the path, before the one at which it was to stop, that it never asked for.
        reached: the node before which it was told to stop.
        error: what the harness ended with where the log ends, as in a failure of the provider.
        opened: the debugger was opened; `left`: the node at which the replay was ended there.
    """

    served: int
    divergence: DivergenceError | None
    state: str | None
    remaining: int
    warnings: tuple[str, ...]
    reached: RecordUid | None = None
    nodes: tuple[RecordUid, ...] = ()
    unserved: tuple[RecordUid, ...] = ()
    error: str | None = None
    opened: bool = False
    left: RecordUid | None = None

    def to_json(self) -> JsonObject:
        """As `replay --json` prints it."""
        found = self.divergence
        return {
            "served": self.served,
            "live": 0,
            "divergence": None
            if found is None
            else {"record_uid": found.record_uid, "difference": found.difference},
            "state": self.state,
            "remaining": self.remaining,
            "until": self.reached,
            "warnings": list(self.warnings),
            "nodes": list(self.nodes),
            "unserved": list(self.unserved),
            "left": self.left,
            "error": self.error,
        }


def read_report(
    report: JsonObject,
    timeline: Timeline,
    *,
    nodes: list[LlmNode | ToolNode],
    stop: RecordUid | None,
    words: str,
) -> Replay:
    """The outcome of replaying `nodes`, which ended before `stop` where that is given.

    `words` is the last line that the harness printed, told where nothing else says why it ended.

    Raises HarnessError where the harness failed by itself, before the log had ended, and DamagedError where
    the log did not hold what it should.
    """
    if report.get("damaged") is True:
        raise DamagedError(f"the log cannot be replayed: {report.get('error')!s}")
    served, remaining = _count(report, "served"), _count(report, "remaining")
    left, error = report.get("left"), report.get("error")
    divergence = _divergence(report)
    unfinished = stop is not None or timeline.state() not in _ENDED
    if divergence is not None and divergence.record_uid is None and remaining == 0 and unfinished:
        # what the harness asked for next is what the log, as far as it goes, does not hold
        divergence = None
    elif divergence is None and remaining and left is None:
        divergence = _stopped_short(nodes, remaining, error if isinstance(error, str) else words)
    # a path that was cut off ends in the error that the harness met, or meets now where the log ends
    if isinstance(error, str) and divergence is None and not (remaining == 0 and unfinished):
        raise HarnessError(f"the harness failed in the replay: {error}")
    warnings, state = report.get("warnings"), report.get("state")
    named = report.get("nodes")
    nodes_served = [RecordUid(str(uid)) for uid in named] if isinstance(named, list) else []
    return Replay(
        served=served,
        divergence=divergence,
        state=state if isinstance(state, str) else None,
        remaining=remaining,
        warnings=tuple(str(each) for each in warnings) if isinstance(warnings, list) else (),
        reached=stop,
        nodes=tuple(nodes_served),
        unserved=tuple(node.record_uid for node in nodes if node.record_uid not in nodes_served),
        error=error if isinstance(error, str) and divergence is None else None,
        opened=report.get("opened") is True,
        left=RecordUid(left) if isinstance(left, str) else None,
    )


def _divergence(report: JsonObject) -> DivergenceError | None:
    found = report.get("divergence")
    if not isinstance(found, dict):
        return None
    uid = found.get("record_uid")
    return DivergenceError(
        record_uid=uid if isinstance(uid, str) else None, difference=str(found.get("difference"))
    )


def _stopped_short(nodes: list[LlmNode | ToolNode], remaining: int, why: str) -> DivergenceError:
    answers = [node for node in nodes if isinstance(node, LlmNode)]
    reason = f" ({shorten(why, _WORDS)})" if why.strip() else ""
    return DivergenceError(
        record_uid=answers[-remaining].record_uid,
        difference=f"the harness ended{reason}, and {remaining} recorded call(s) were never asked for",
    )


def _count(report: JsonObject, name: str) -> int:
    value = report.get(name)
    return value if isinstance(value, int) else 0
