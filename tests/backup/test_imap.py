"""Mail folders come back: bodies byte for byte, flags, keywords, dates, subscriptions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from email.message import EmailMessage
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from agentrewind.backup.kind import CaptureError, UnclearError
from agentrewind.backup.kinds.table import kind_of
from agentrewind.backup.rules.loading import load_rules
from agentrewind.backup.store import BackupStore
from agentrewind.backup.values import Command, Context, Word
from tests.backup.services.dovecot import Dovecot, dovecot
from tests.backup.trial import preserve

Client = Any
_users = count()


@pytest.fixture(scope="module")
def mail_server() -> Iterator[Dovecot]:
    with dovecot() as running:
        yield running


@pytest.fixture
def user(mail_server: Dovecot) -> str:
    """An account with read, flagged, tagged and undated-looking mail, and attachments."""
    name = f"user{next(_users)}"
    zone = timezone(timedelta(hours=5, minutes=30))
    with mail_server.client(name) as client:
        client.create_folder("Projects/2026 é")
        client.subscribe_folder("Projects/2026 é")
        for number in range(6):
            flags = [["\\Seen"], ["\\Flagged", "work"], [], ["\\Answered", "\\Seen", "$Later"]][number % 4]
            moment = datetime(2026, 1 + number, 3, 4, 5, 6, tzinfo=zone)
            client.append("INBOX", message(number), flags, moment)
        client.append("Projects/2026 é", message(70), ["\\Seen"], datetime(2025, 5, 5, tzinfo=UTC))
        client.append("Drafts", message(80), ["\\Draft"], datetime(2025, 6, 6, tzinfo=UTC))
    return name


@pytest.fixture
def context(mail_server: Dovecot, user: str, tmp_path: Path, clean_env: dict[str, str]) -> Context:
    return Context(cwd=tmp_path, env={**clean_env, **mail_server.env(user)}, home=tmp_path)


def _delete(client: Client) -> None:
    client.select_folder("INBOX")
    client.delete_messages([1, 2, 5])
    client.expunge()


def _delete_all(client: Client) -> None:
    client.select_folder("INBOX")
    client.delete_messages(client.search("ALL"))
    client.expunge()


def _move(client: Client) -> None:
    client.select_folder("INBOX")
    client.move([2, 3], "Trash")


def _move_to_a_new_folder(client: Client) -> None:
    client.create_folder("Old")
    client.select_folder("INBOX")
    client.move([4], "Old")


def _flags(client: Client) -> None:
    client.select_folder("INBOX")
    client.set_flags([1, 2, 3], ["\\Seen"])
    client.add_flags([4], ["urgent"])


def _read(client: Client) -> None:
    client.select_folder("INBOX")
    client.fetch([3], ["RFC822"])


def _draft(client: Client) -> None:
    client.append("Drafts", message(81), ["\\Draft"])


def _replace_draft(client: Client) -> None:
    client.select_folder("Drafts")
    client.delete_messages([1])
    client.expunge()
    client.append("Drafts", message(82), ["\\Draft"])


def _drop_folder(client: Client) -> None:
    client.delete_folder("Projects/2026 é")


def _rename_folder(client: Client) -> None:
    client.rename_folder("Projects/2026 é", "Archive")


def _new_folder(client: Client) -> None:
    client.create_folder("New")
    client.subscribe_folder("New")


LOSSES: dict[str, tuple[str, dict[str, object], Callable[[Client], None]]] = {
    "some messages": ("mcp__email__delete_emails", {"email_ids": ["1", "2", "5"]}, _delete),
    "all messages": ("mcp__email__delete_emails", {"mailbox": "INBOX"}, _delete_all),
    "a move": ("mcp__email__move_emails", {"source": "INBOX", "destination": "Trash"}, _move),
    "a move to a new folder": (
        "mcp__email__move_emails",
        {"source": "INBOX", "destination": "Old"},
        _move_to_a_new_folder,
    ),
    "flags and keywords": ("mcp__email__set_email_flags", {"mailbox": "INBOX"}, _flags),
    "an unread message": ("mcp__email__mark_emails_as_read", {}, _read),
    "a new draft": ("mcp__email__save_draft", {}, _draft),
    "a replaced draft": ("mcp__email__update_draft", {}, _replace_draft),
    "a folder": ("mcp__email__delete_mailbox", {"name": "Projects/2026 é"}, _drop_folder),
    "a folder's name": ("mcp__email__rename_folder", {"name": "Projects/2026 é"}, _rename_folder),
    "an added folder": ("mcp__email__create_mailbox", {"name": "New"}, _new_folder),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_mail_comes_back(
    loss: str, mail_server: Dovecot, user: str, store: BackupStore, context: Context
) -> None:
    tool, arguments, lose = LOSSES[loss]
    before = _everything(mail_server, user)
    rule = load_rules(None).for_tool(tool)[0]
    kept = preserve(rule.kind, _call(tool, arguments), store, context, **dict(rule.parameters))
    assert _everything(mail_server, user) == before, "capturing changed a flag"
    [fingerprint] = kept.fingerprints()
    assert kept.plan() == []

    with mail_server.client(user) as client:
        lose(client)

    assert _everything(mail_server, user) != before
    assert kept.fingerprints() != [fingerprint]
    assert kept.plan()
    [outcome] = kept.restore()
    assert outcome.missing == ()
    assert _everything(mail_server, user) == before
    assert kept.fingerprints() == [fingerprint]
    assert kept.plan() == []


def test_messages_that_somebody_else_marked_as_deleted_are_not_expunged(
    mail_server: Dovecot, user: str, store: BackupStore, context: Context
) -> None:
    with mail_server.client(user) as client:
        client.select_folder("INBOX")
        client.add_flags([6], ["\\Deleted"])
    call = _call("mcp__email__save", {})
    kept = preserve("imap", call, store, context, folders=["INBOX"])
    with mail_server.client(user) as client:
        client.append("INBOX", message(99))

    kept.restore()

    with mail_server.client(user) as client:
        client.select_folder("INBOX", readonly=True)
        assert client.search("DELETED") == [6]


def test_without_an_account_it_is_unclear(tmp_path: Path, clean_env: dict[str, str]) -> None:
    nowhere = Context(cwd=tmp_path, env=clean_env, home=tmp_path)
    with pytest.raises(UnclearError, match="password_env"):
        kind_of("imap").targets(_call("mcp__email__delete_emails", {}), {}, nowhere)


def test_the_password_is_in_no_target_and_no_manifest(
    mail_server: Dovecot, store: BackupStore, context: Context
) -> None:
    own = Context(cwd=context.cwd, env={**context.env, "MY_MAIL": "secret"}, home=context.home)
    parameters: dict[str, Any] = {"password_env": "MY_MAIL", "folders": ["INBOX"]}
    kept = preserve("imap", _call("x", {}), store, own, **parameters)
    assert "secret" not in repr(kept.entries)


def test_a_wrong_password_is_an_error(store: BackupStore, context: Context) -> None:
    wrong = Context(cwd=context.cwd, env={**context.env, "IMAP_PASSWORD": "wrong"}, home=context.home)
    with pytest.raises(CaptureError, match="refused"):
        preserve("imap", _call("x", {}), store, wrong, folders=["INBOX"])


def _call(tool: str, arguments: dict[str, object]) -> Command:
    return Command(argv=(Word(tool),), stdin=json.dumps(arguments))


def message(number: int) -> bytes:
    message = EmailMessage()
    message["From"] = "ann@example.org"
    message["To"] = "bob@example.org"
    message["Subject"] = f"Number {number} — with a dash"
    message["Message-ID"] = f"<{number}@example.org>"
    message.set_content(f"Hello {number}\n")
    message.add_attachment(bytes(range(256)) * 8, maintype="application", subtype="pdf", filename="a é.pdf")
    return message.as_bytes().replace(b"\n", b"\r\n")


def _everything(server: Dovecot, user: str) -> dict[str, object]:
    """Folders, subscriptions, and messages but for their UIDs."""
    found: dict[str, object] = {}
    with server.client(user) as client:
        subscribed = {name for _, _, name in client.list_sub_folders()}
        for flags, _, name in client.list_folders():
            if {b"\\NonExistent", b"\\Noselect"} & set(flags):
                continue
            client.select_folder(name, readonly=True)
            rows = client.fetch(client.search("ALL"), ["FLAGS", "INTERNALDATE", "BODY.PEEK[]"]) or {}
            found[name] = (
                name in subscribed,
                sorted(
                    (
                        row[b"BODY[]"],
                        tuple(sorted(flag for flag in row[b"FLAGS"] if flag != b"\\Recent")),
                        row[b"INTERNALDATE"].isoformat(),
                    )
                    for row in rows.values()
                ),
            )
    return found
