r"""Mail folders on an IMAP server: bodies, flags, keywords, internal dates, subscriptions.

Nothing here sets \Seen, and nothing but messages that were not there before is expunged.
"""

from __future__ import annotations

from hashlib import sha256

import orjson

from agentrewind.backup.kind import Captured, CaptureError, Outcome, Parameters, Store, UnclearError
from agentrewind.backup.kinds import imap_restore as restoring
from agentrewind.backup.kinds.imap_account import account_from, account_of, connected
from agentrewind.backup.kinds.imap_folders import Message, bodies, overview, scope
from agentrewind.backup.values import Command, Context, Target
from agentrewind.records import Json, JsonObject

MOST = 50_000
"""Messages of one call's folders above which they are not fetched before it."""

LARGEST = 4 << 30
"""Bytes of the same."""

_RESIDUE = "messages that are put back get new UIDs, and \\Recent is the server's own"


class ImapFolders:
    r"""The kind `imap`.

    Parameters of a rule, beside the account's: `folders`, a list of folder names, special uses (`\Trash`)
    and `@NAME` for what the tool's argument NAME gives; `default`, the folder where none of these is given.
    """

    def targets(self, command: Command, parameters: Parameters, context: Context) -> tuple[Target, ...]:
        """The folders that a tool's arguments name, and those that the rule adds."""
        account = account_of(parameters, context)
        named: list[Json] = [*_folders(command, parameters)]
        detail: JsonObject = {**account.to_json(), "folders": named}
        shown = ", ".join(map(str, named)) or "every folder"
        return (
            Target(kind="imap", name=f"mail of {account.user} on {account.host}: {shown}", detail=detail),
        )

    def capture(self, target: Target, store: Store, context: Context) -> Captured:
        """Every message of the folders, fetched without marking it read, and the list of all folders."""
        with connected(account_from(target.detail), context) as client:
            folders = scope(client, _names(target))
            found = [(folder, overview(client, folder)) for folder in folders]
            _check_budget([message for _, messages in found for message in messages])
            manifest: dict[str, Json] = {}
            blobs: list[str] = []
            size = 0
            for folder, messages in found:
                kept: list[Json] = []
                for message, body in bodies(client, folder, messages):
                    name = store.put(body)
                    if store.get(name) != body:
                        raise CaptureError(f"a copy of message {message.uid} cannot be read back")
                    blobs.append(name)
                    size += len(body)
                    kept.append(message.to_json(name))
                manifest[folder.name] = {**folder.to_json(), "messages": kept}
            everything: list[Json] = [each.to_json() for each in scope(client, ())]
        return Captured(
            manifest={"folders": manifest, "list": everything, "scope": list(_names(target))},
            blobs=tuple(dict.fromkeys(blobs)),
            bytes=size,
            notes=(_RESIDUE,),
        )

    def fingerprint(self, target: Target, context: Context) -> str:
        """Digest of the list of folders and of what the folders hold, whatever UIDs it has."""
        with connected(account_from(target.detail), context) as client:
            listed: list[Json] = [[each.name, each.subscribed] for each in scope(client, ())]
            held = [
                [folder.name, sorted(repr(message.likeness) for message in overview(client, folder))]
                for folder in scope(client, _names(target))
            ]
        return sha256(orjson.dumps([listed, held])).hexdigest()

    def restore(self, target: Target, captured: Captured, store: Store, context: Context) -> Outcome:
        """Put back what is missing, set flags, remove what was not there, compare."""
        with connected(account_from(target.detail), context) as client:
            return restoring.restore(client, captured.manifest, store)

    def plan(self, target: Target, captured: Captured, context: Context) -> tuple[str, ...]:
        """A line for each folder, and each kind of change in it."""
        with connected(account_from(target.detail), context) as client:
            return restoring.plan(client, captured.manifest)

    def describe(self, target: Target) -> tuple[str, str]:
        """What is captured and how it comes back."""
        return (
            f"{target.name}: bodies, flags, dates",
            "missing messages appended with flags and date, flags set, additions removed by UID",
        )


def _check_budget(messages: list[Message]) -> None:
    size = sum(message.size for message in messages)
    if len(messages) > MOST or size > LARGEST:
        raise CaptureError(
            f"the folders hold {len(messages)} messages of {size >> 20} MiB, more than are fetched before a "
            f"call ({MOST}, {LARGEST >> 20} MiB)"
        )


def _names(target: Target) -> tuple[str, ...]:
    folders = target.detail["folders"]
    return tuple(map(str, folders)) if isinstance(folders, list) else ()


def _folders(command: Command, parameters: Parameters) -> list[str]:
    wanted = parameters.get("folders")
    try:
        arguments = orjson.loads(command.stdin or "{}")
    except orjson.JSONDecodeError as error:
        raise UnclearError("the tool's arguments are no JSON") from error
    found: list[str] = []
    named = False
    for each in wanted if isinstance(wanted, list) else []:
        text = str(each)
        if not text.startswith("@"):
            found.append(text)
            continue
        value = arguments.get(text[1:]) if isinstance(arguments, dict) else None
        if isinstance(value, str) and value:
            found.append(value)
            named = True
    default = parameters.get("default")
    if not named and isinstance(default, str):
        found.insert(0, default)
    return list(dict.fromkeys(found))
