"""Folders and messages of an IMAP account, read without changing a flag."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from imapclient import IMAPClient

from agentrewind.backup.kind import CaptureError
from agentrewind.errors import DamagedError
from agentrewind.records import Json, JsonObject

_AT_ONCE = 100
_MESSAGE_ID = "BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)]"
_MESSAGE_ID_KEY = b"BODY[HEADER.FIELDS (MESSAGE-ID)]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    r"""One folder. `uses` are its special uses, such as `\Trash`."""

    name: str
    subscribed: bool
    uses: tuple[str, ...]

    def to_json(self) -> JsonObject:
        return {"name": self.name, "subscribed": self.subscribed}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    r"""One message as its folder lists it; flags without `\Recent`, date as ISO 8601."""

    uid: int
    validity: int
    size: int
    flags: tuple[str, ...]
    date: str
    message_id: str

    @property
    def likeness(self) -> tuple[object, ...]:
        """What is equal for the same message after it was put back."""
        return (self.message_id, self.size, datetime.fromisoformat(self.date).timestamp(), self.flags)

    def to_json(self, body: str) -> JsonObject:
        flags: list[Json] = [*self.flags]
        return {
            "uid": self.uid,
            "validity": self.validity,
            "size": self.size,
            "flags": flags,
            "date": self.date,
            "message_id": self.message_id,
            "body": body,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A message of a backup; `body` names its bytes."""

    message: Message
    body: str


def kept_from(value: Json) -> Kept:
    """The message that `Message.to_json` wrote. Raises DamagedError."""
    if not isinstance(value, dict) or not isinstance(value.get("flags"), list):
        raise DamagedError("the backup's record of a message cannot be read")
    flags = value["flags"]
    assert isinstance(flags, list)
    message = Message(
        uid=int(str(value["uid"])),
        validity=int(str(value["validity"])),
        size=int(str(value["size"])),
        flags=tuple(map(str, flags)),
        date=str(value["date"]),
        message_id=str(value["message_id"]),
    )
    return Kept(message=message, body=str(value["body"]))


def scope(client: IMAPClient, names: Sequence[str]) -> list[Folder]:
    """The account's folders that hold messages, with these names or special uses; all where none is given."""
    subscribed = {str(name) for _, _, name in client.list_sub_folders()}
    found = []
    for flags, _, raw in client.list_folders():
        name, uses = str(raw), tuple(flag.decode("ascii", "replace") for flag in flags)
        if {"\\Noselect", "\\NonExistent"} & set(uses):
            continue  # only a name above others, which is there as long as they are
        folder = Folder(name=name, subscribed=name in subscribed, uses=uses)
        if not names or _is_named(folder, names):
            found.append(folder)
    return sorted(found, key=lambda each: each.name)


def overview(client: IMAPClient, folder: Folder) -> list[Message]:
    """All its messages, in order of UIDs, without their bodies."""
    chosen = client.select_folder(folder.name, readonly=True)
    validity = int(chosen[b"UIDVALIDITY"])
    found: list[Message] = []
    for uids in _parts(client.search("ALL")):
        for uid, row in client.fetch(uids, ["FLAGS", "INTERNALDATE", "RFC822.SIZE", _MESSAGE_ID]).items():
            found.append(
                Message(
                    uid=uid,
                    validity=validity,
                    size=int(row[b"RFC822.SIZE"]),
                    flags=flags_of(row[b"FLAGS"]),
                    date=row[b"INTERNALDATE"].isoformat(),
                    message_id=_header(row.get(_MESSAGE_ID_KEY, b"")),
                )
            )
    return sorted(found, key=lambda each: each.uid)


def bodies(
    client: IMAPClient, folder: Folder, messages: Sequence[Message]
) -> Iterator[tuple[Message, bytes]]:
    """Each message with its bytes, fetched without marking it as read. Raises CaptureError."""
    if not messages:
        return
    client.select_folder(folder.name, readonly=True)
    by_uid = {message.uid: message for message in messages}
    for uids in _parts(by_uid):
        rows = client.fetch(uids, ["BODY.PEEK[]"])
        for uid in uids:
            body = rows.get(uid, {}).get(b"BODY[]")
            if body is None or len(body) != by_uid[uid].size:
                raise CaptureError(f"message {uid} of {folder.name} went or changed while it was fetched")
            yield by_uid[uid], body


def flags_of(flags: Iterable[bytes]) -> tuple[str, ...]:
    r"""Flags and keywords, sorted, without the server's own `\Recent`."""
    return tuple(sorted(flag.decode("ascii", "replace") for flag in flags if flag != b"\\Recent"))


def _is_named(folder: Folder, names: Sequence[str]) -> bool:
    if folder.name in names or any(use in names for use in folder.uses):
        return True
    # the one folder whose name has no case
    return folder.name.upper() == "INBOX" and any(name.upper() == "INBOX" for name in names)


def _header(raw: bytes) -> str:
    return " ".join(raw.decode("utf-8", "replace").partition(":")[2].split())


def _parts(uids: Iterable[int]) -> Iterator[list[int]]:
    ordered = sorted(uids)
    for start in range(0, len(ordered), _AT_ONCE):
        yield ordered[start : start + _AT_ONCE]
