"""`agentrewind verify`: whether logs and snapshots are whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agentrewind.commands.output import counted, emit, json_option, say
from agentrewind.commands.session import Session
from agentrewind.errors import DamagedError

if TYPE_CHECKING:
    from agentrewind.commands.soundness import Finding


@click.command("verify")
@click.argument("run", metavar="[RUN]", required=False)
@json_option
@click.pass_context
def verify(context: click.Context, /, *, run: str | None, as_json: bool) -> None:
    """Check that logs and snapshots are whole: those of RUN, or of all runs.

    Names every damage, every snapshot that cannot be read, and what still serves. Every object of every
    snapshot is read and compared with its name. Exit code 4 when something is damaged.
    """
    session = context.find_object(Session)
    assert session is not None
    from agentrewind.commands.soundness import Examination
    from agentrewind.run_store import RunStore

    runs = [session.open_run(run)] if run is not None else list(RunStore(session.home).runs())
    examination = Examination(session.home)
    findings = [examination.run(each) for each in runs]
    sound = all(each.sound for each in findings)
    if as_json:
        emit({"sound": sound, "runs": [each.to_json() for each in findings]})
    else:
        for finding in findings:
            _tell(finding)
        say(f"{counted(len(findings), 'run')} examined, {'all sound' if sound else 'damage found'}")
    context.exit(0 if sound else DamagedError.exit_code)


def _tell(finding: Finding) -> None:
    word, style = ("sound", "good") if finding.sound else ("damaged", "bad")
    say(f"{finding.run_id}  {word}", style=style)
    for text in finding.log:
        say(f"  log        {text}", style="bad")
    for text in finding.harmless:
        say(f"  harmless   {text}", style="note")
    for each in finding.snapshots:
        users = ", ".join(each.named_by[:6]) + (" …" if len(each.named_by) > 6 else "")
        say(f"  snapshot   {each.commit}, named by {users}: {each.reason}", style="bad")
    if not finding.sound:
        files = f"{finding.restorable} of {counted(finding.nodes, 'node')} can be restored"
        path = "can be replayed" if finding.replayable else "cannot be replayed across the gap"
        say(f"  serves     the files of {files}; the current path {path}")
