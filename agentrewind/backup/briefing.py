"""What the agent is told of backups, and the tag by which it asks for one."""

from __future__ import annotations

from agentrewind.records import Json

TAG = "[BACKUP NEEDED]"

BRIEFING = f"""\
## State outside the workspace

The files of your workspace are snapshotted for you. What lies elsewhere (files in other folders, databases, \
installed packages, remote repositories, clusters, mailboxes) is preserved before a call that changes it, \
as far as the call can be understood. Do not make such copies yourself.

Where a call is about to change or delete something outside the workspace and its text does not show it \
(a script, a migration, a form in a browser), write {TAG} in the text of your answer, or in the call's own \
field for a reason if it has one, with a word on what is at stake. Never write it into the command itself. \
A call that is answered with "blocked" did not run."""

_REASONS = ("reason", "description", "explanation", "justification", "purpose", "thought")


def is_tagged(arguments: Json) -> bool:
    """Whether the agent asked for a backup in the call's own field for a reason."""
    if not isinstance(arguments, dict):
        return False
    return any(isinstance(text, str) and TAG in text for text in map(arguments.get, _REASONS))
