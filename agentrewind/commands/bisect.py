"""`agentrewind bisect`: the first node after which a check fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agentrewind.commands.given_number import GivenNumber
from agentrewind.commands.output import counted, emit, json_option, say
from agentrewind.commands.session import Session

if TYPE_CHECKING:
    from agentrewind.bisection import Bisection, Judgement
    from agentrewind.path_states import State, States
    from agentrewind.records import JsonObject
    from agentrewind.scratch_check import ScratchChecks
    from agentrewind.timeline import Timeline


@click.command("bisect")
@click.argument("run", metavar="RUN")
@click.option("--check", "command", metavar="CMD", required=True, help="Exit 0 passes, all else fails.")
@click.option("--until", metavar="NODE", help="Judge the path that ends with this node, abandoned or not.")
@click.option("--all", "every", is_flag=True, help="Judge every state, and show where the check turns.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=GivenNumber(min=0, min_open=True),
    default=300.0,
    show_default=True,
    help="A check that takes longer is ended and fails.",
)
@json_option
@click.pass_context
def bisect(context: click.Context, /, *, run: str, as_json: bool, **given: Any) -> None:
    """Find the first node after which a check fails.

    The workspace's states along the current path are put into scratch copies, in which the check runs by
    /bin/sh; it sees the copy at the recorded path where the system allows that. States are halved between
    the first and the last one, which is right for a check that goes on failing; --all takes nothing for
    granted. Exit code 1 where no node is found: the check fails from the start, or never.
    """
    from agentrewind.bisection import bisect as search
    from agentrewind.run_files import declared_root, open_snapshots, states_along
    from agentrewind.scratch_check import ScratchChecks

    session = context.find_object(Session)
    assert session is not None
    timeline = session.open_run(run).timeline()
    with open_snapshots(timeline, session.home) as store:
        states = states_along(timeline, store, given["until"])
        checks = ScratchChecks(
            store,
            root=declared_root(timeline),
            command=given["command"],
            environment=session.environment,
            timeout_s=given["timeout"],
            clock=session.clock,
        )
        if not as_json:
            _announce(states, checks)

        def judge(state: State) -> Judgement:
            found = checks.judge(state.commit)
            if not as_json:
                say(_judged(state, found), style="" if found.passed else "bad")
            return found

        result = search(states.found, judge, every=given["every"])
    if as_json:
        emit(_document(timeline, states, result, checks))
    else:
        _tell(timeline, result)
    context.exit(0 if result.first is not None else 1)


def _announce(states: States, checks: ScratchChecks) -> None:
    where = "at the recorded path" if checks.at_recorded_path else "in temporary folders"
    say(
        f"{counted(len(states.found), 'different state')} of the workspace, judged in copies {where}",
        style="faint",
    )
    if checks.why_not:
        say(f"  a copy cannot be laid over the recorded path: {checks.why_not}", style="note")
    for skipped in states.skipped:
        say(f"  left out: {skipped}", style="note")


def _judged(state: State, found: Judgement) -> str:
    return f"  {'pass' if found.passed else 'fail'}  {state.name}  {_ending(found)}"


def _ending(found: Judgement) -> str:
    from agentrewind.display_text import shorten

    code = "out of time" if found.exit_code is None else f"exit {found.exit_code}"
    said = f": {shorten(found.said, 80)}" if found.said and not found.passed else ""
    return f"{code}, {found.seconds:.1f} s{said}"


def _tell(timeline: Timeline, result: Bisection) -> None:
    from agentrewind.bisection import Outcome

    match result.outcome:
        case Outcome.FAILS_AT_START:
            say("the check fails in the first state already: no node is the first", style="bad")
        case Outcome.NEVER_FAILS:
            where = "in no state" if result.complete else "neither in the first state nor in the last one"
            hint = "" if result.complete else "; --all judges those between as well"
            say(f"the check fails {where}{hint}", style="good")
        case Outcome.FOUND:
            _tell_first(timeline, result)
    if result.turns:
        say(
            f"the check is not monotone: it passes again {counted(result.turns, 'time')} after it has failed",
            style="note",
        )


def _tell_first(timeline: Timeline, result: Bisection) -> None:
    from agentrewind.display_story import called, said
    from agentrewind.display_text import shorten
    from agentrewind.records import LlmNode

    state = result.first
    assert state is not None
    assert state.node is not None
    say(f"the check fails first {state.name}", style="strong")
    if state.outside:
        say("  no node did that: the workspace was changed while no tool call ran", style="note")
        return
    node = timeline.node(state.node)
    if isinstance(node, LlmNode):
        say(f"  {node.record_uid}  {shorten(said(node.output), 100)}")
    else:
        parent = timeline.nodes.get(node.parent) if node.parent else None
        if isinstance(parent, LlmNode):
            say(f"  {parent.record_uid}  {shorten(said(parent.output), 100)}")
        say(f"  {node.record_uid}  {shorten(called(node.tool_name, node.arguments), 100)}")
    say(f"  agentrewind show {timeline.header.run_id} {node.record_uid}", style="faint")


def _document(timeline: Timeline, states: States, result: Bisection, checks: ScratchChecks) -> JsonObject:
    from agentrewind.records import ToolNode

    first = result.first
    node = timeline.nodes.get(first.node) if first is not None and first.node is not None else None
    return {
        "run_id": timeline.header.run_id,
        "outcome": result.outcome.value,
        "first": first.node if first is not None else None,
        "outside": first.outside if first is not None else False,
        "parent": node.parent if isinstance(node, ToolNode) else None,
        "judged": [
            {
                "after": state.node,
                "outside": state.outside,
                "commit": state.commit,
                "passed": found.passed,
                "exit_code": found.exit_code,
                "said": found.said,
                "seconds": round(found.seconds, 3),
            }
            for state, found in result.judged
        ],
        "states": len(states.found),
        "complete": result.complete,
        "turns": result.turns,
        "skipped": list(states.skipped),
        "at_recorded_path": checks.at_recorded_path,
        "why_not": checks.why_not or None,
    }
