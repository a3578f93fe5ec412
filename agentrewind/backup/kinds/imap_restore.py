"""Puts mail folders back: missing messages appended, flags set, additions removed by their UIDs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from imapclient import IMAPClient

from agentrewind.backup.kind import Outcome, Store
from agentrewind.backup.kinds.imap_folders import Kept, Message, kept_from, overview, scope
from agentrewind.errors import DamagedError
from agentrewind.records import Json, JsonObject


@dataclass(slots=True)
class _Changes:
    """What one folder needs."""

    missing: list[Kept] = field(default_factory=list)
    flags: list[tuple[Message, Kept]] = field(default_factory=list)
    added: list[Message] = field(default_factory=list)

    def lines(self, name: str) -> list[str]:
        found = []
        if self.missing:
            found.append(f"put {len(self.missing)} message(s) back into {name}")
        if self.flags:
            found.append(f"set the flags of {len(self.flags)} message(s) in {name}")
        if self.added:
            found.append(f"remove {len(self.added)} message(s) from {name} that were not there")
        return found


def plan(client: IMAPClient, manifest: JsonObject) -> tuple[str, ...]:
    """What `restore` would do, a line each."""
    lines = []
    present = {each.name for each in scope(client, ())}
    wanted = _folders(manifest, "list")
    lines += [f"make the folder {name}" for name in wanted if name not in present]
    for name, kept in _messages(manifest).items():
        lines += _changes(client, name, kept).lines(name) if name in present else _Changes(kept).lines(name)
    for name in sorted(present - wanted.keys()):
        lines.append(f"delete the folder {name}, which was not there")
    return tuple(lines)


def restore(client: IMAPClient, manifest: JsonObject, store: Store) -> Outcome:
    """Do it, then compare; what differs afterwards is named."""
    done = list(plan(client, manifest))
    wanted = _folders(manifest, "list")
    present = {each.name: each for each in scope(client, ())}
    for name, subscribed in wanted.items():
        if name not in present:
            client.create_folder(name)
        if name not in present or present[name].subscribed != subscribed:
            (client.subscribe_folder if subscribed else client.unsubscribe_folder)(name)
    named = manifest.get("scope")
    named = named if isinstance(named, list) else []
    missing: list[str] = []
    for name, kept in _messages(manifest).items():
        missing += _put_back(client, name, _changes(client, name, kept), store)
    for name in sorted(present.keys() - wanted.keys(), reverse=True):
        # the messages of the folders that the call named, or of all, were preserved before this restore
        if not named or name in named or not client.folder_status(name, ["MESSAGES"])[b"MESSAGES"]:
            client.delete_folder(name)
    left = plan(client, manifest)
    return Outcome(restored=tuple(done), missing=(*missing, *left), notes=_notes(done))


def _put_back(client: IMAPClient, name: str, changes: _Changes, store: Store) -> list[str]:
    for kept in changes.missing:
        message = kept.message
        client.append(name, store.get(kept.body), message.flags, datetime.fromisoformat(message.date))
    if not changes.flags and not changes.added:
        return []
    client.select_folder(name)
    for now, kept in changes.flags:
        client.set_flags([now.uid], kept.message.flags)
    uids = [each.uid for each in changes.added]
    if not uids:
        return []
    if not client.has_capability("UIDPLUS"):
        # a plain EXPUNGE would take whatever others have marked as deleted
        return [f"{len(uids)} message(s) in {name} that were not there: the server cannot expunge by UID"]
    client.delete_messages(uids)
    client.uid_expunge(uids)
    return []


def _changes(client: IMAPClient, name: str, wanted: list[Kept]) -> _Changes:
    """Pairs what is wanted with what is there: by UID where these hold, else by what the message is."""
    [folder] = [each for each in scope(client, (name,)) if each.name == name]
    present = overview(client, folder)
    by_uid = {(each.validity, each.uid): each for each in present}
    by_likeness: defaultdict[tuple[object, ...], list[Message]] = defaultdict(list)
    changes = _Changes()
    pending = []
    for kept in wanted:
        now = by_uid.pop((kept.message.validity, kept.message.uid), None)
        if now is None:
            pending.append(kept)
        elif now.flags != kept.message.flags:
            changes.flags.append((now, kept))
    for each in by_uid.values():
        by_likeness[_same(each)].append(each)
    for kept in pending:
        alike = by_likeness[_same(kept.message)]
        if not alike:
            changes.missing.append(kept)
            continue
        now = alike.pop(0)
        if now.flags != kept.message.flags:
            changes.flags.append((now, kept))
    changes.added = [each for alike in by_likeness.values() for each in alike]
    return changes


def _same(message: Message) -> tuple[object, ...]:
    # without flags, which can be set
    return message.likeness[:-1]


def _folders(manifest: JsonObject, key: str) -> dict[str, bool]:
    listed = manifest.get(key)
    if not isinstance(listed, list):
        raise DamagedError("the backup's list of folders cannot be read")
    return {str(each["name"]): bool(each["subscribed"]) for each in listed if isinstance(each, dict)}


def _messages(manifest: JsonObject) -> dict[str, list[Kept]]:
    folders = manifest.get("folders")
    if not isinstance(folders, dict):
        raise DamagedError("the backup's folders cannot be read")
    found: dict[str, list[Kept]] = {}
    for name, folder in folders.items():
        messages: Json = folder.get("messages") if isinstance(folder, dict) else None
        if not isinstance(messages, list):
            raise DamagedError(f"the backup's messages of {name} cannot be read")
        found[name] = [kept_from(each) for each in messages]
    return found


def _notes(done: list[str]) -> tuple[str, ...]:
    put = any(line.startswith("put ") for line in done)
    return ("messages that were put back have new UIDs",) if put else ()
