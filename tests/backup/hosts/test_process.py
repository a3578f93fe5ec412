"""The hook's processes: with a helper and without one, slow, crashed, out of date, and beside the layer."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrewind.backup.hosts.request import ACTIVE, Request, decode, encode
from tests.backup.hosts.conftest import ENTRY, Place, claude


def _helpers(place: Place) -> list[int]:
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                words = (each / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"agentrewind.backup.hosts.helper" in words and any(
                str(place.run).encode() in word for word in words
            ):
                found.append(int(each.name))
    return found


def test_a_deletion_is_preserved_and_compared_afterwards(place: Place) -> None:
    assert place.ask("claude-code", claude("rm @HOME/notes.txt")).stdout == ""
    place.file.unlink()
    assert place.ask("claude-code", claude("rm @HOME/notes.txt", event="PostToolUse")).stdout == ""
    entry = next(iter(place.log.read().entries.values()))
    assert (entry.state, entry.after) == ("preserved", "")
    assert entry.restorable


def test_with_a_helper_the_answers_are_the_same(served: Place) -> None:
    cases: list[tuple[object, tuple[str, ...]]] = [
        (claude("ls"), ()),
        (claude("rm @HOME/notes.txt"), ()),
        (claude("make"), ("--on-unknown", "block")),
        ({**claude("ls"), "tool_input": 5}, ("--on-failure", "warn")),
        ("{", ("--nonsense", "1")),
        ("", ("--deadline",)),
        ("x" * 300_000, ()),
    ]
    for document, options in cases:
        by_helper = served.ask("claude-code", document, *options)
        alone = served.ask("claude-code", document, *options, program=ENTRY)
        assert by_helper == alone, (document, options)
    assert served.sockets
    assert served.ask("nobody", claude("ls")) == served.ask("nobody", claude("ls"), program=ENTRY)


def test_the_helper_is_the_users_alone(served: Place) -> None:
    path = served.sockets[0]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert len(_helpers(served)) == 1


def test_a_directory_that_others_may_write_is_not_used(served: Place) -> None:
    directory = served.sockets[0].parent
    directory.chmod(0o777)
    try:
        assert served.ask("claude-code", claude("rm @HOME/notes.txt")).code == 0
    finally:
        directory.chmod(0o700)
    assert served.states() == [("@HOME/notes.txt", "preserved")]


def test_a_killed_helper_is_missed_by_nobody(served: Place) -> None:
    for process in _helpers(served):
        os.kill(process, signal.SIGKILL)
    assert served.ask("claude-code", claude("rm @HOME/notes.txt")).code == 0
    assert served.states() == [("@HOME/notes.txt", "preserved")]
    for _ in range(200):
        if _helpers(served):
            break
        time.sleep(0.05)
    assert served.ask("claude-code", claude("ls")).code == 0


@pytest.mark.parametrize("said", [b"", b"nonsense", b"0 5 0\nabc", b"0 5 0\n", b"x y z\nabc"])
def test_a_helper_that_answers_nonsense_is_passed_over(place: Place, said: bytes) -> None:
    place.helper = True
    place.ask("claude-code", claude("ls"))
    path = place.wait_for_helper()
    path.unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        place.helper = False

        def speak() -> None:
            connection, _ = listener.accept()
            with connection:
                while connection.recv(1 << 16):
                    pass
                connection.sendall(said)

        speaker = threading.Thread(target=speak)
        speaker.start()
        reply = place.ask("claude-code", claude("rm @HOME/notes.txt"))
        speaker.join()
    assert reply.code == 0
    assert place.states() == [("@HOME/notes.txt", "preserved")]


def test_a_helper_that_does_not_answer_blocks_or_warns(place: Place) -> None:
    place.helper = True
    place.ask("claude-code", claude("ls"))
    path = place.wait_for_helper()
    path.unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        blocked = place.ask("claude-code", claude("ls"), "--deadline", "0")
        warned = place.ask("claude-code", claude("ls"), "--deadline", "0", "--on-failure", "warn")
    assert (blocked.code, warned.code) == (2, 0)
    assert "blocked" in blocked.stderr
    assert "without a backup" in warned.stderr


def test_the_helper_ends_when_its_socket_is_taken_away(served: Place) -> None:
    served.sockets[0].unlink()
    for _ in range(200):
        if not _helpers(served):
            return
        time.sleep(0.05)
    raise AssertionError("it is still there")


def test_a_slow_backup_is_answered_before_the_harness_gives_up(place: Place) -> None:
    slow = place.base / "programs"
    slow.mkdir()
    (slow / "crontab").write_text("#!/bin/sh\nsleep 30\n", encoding="utf-8")
    (slow / "crontab").chmod(0o755)
    place.more["PATH"] = f"{slow}:{os.environ['PATH']}"
    began = time.monotonic()
    blocked = place.ask("claude-code", claude("crontab -r"), "--deadline", "1")
    warned = place.ask("claude-code", claude("crontab -r"), "--deadline", "1", "--on-failure", "warn")
    assert time.monotonic() - began < 25
    assert (
        "took longer than 1 s"
        in orjson.loads(blocked.stdout)["hookSpecificOutput"]["permissionDecisionReason"]
    )
    assert "took longer than 1 s" in orjson.loads(warned.stdout)["systemMessage"]


def test_it_stands_aside_while_the_layer_preserves(place: Place) -> None:
    place.more[ACTIVE] = "1"
    assert place.ask("claude-code", claude("rm @HOME/notes.txt")).stdout == ""
    assert place.states() == []


def test_a_store_that_cannot_be_written_blocks_the_call(place: Place) -> None:
    (place.base / "store" / "backup").write_text("in the way", encoding="utf-8")
    reply = place.ask("claude-code", claude("rm @HOME/notes.txt"))
    assert orjson.loads(reply.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert place.ask("claude-code", claude("ls")).stdout == ""


def test_rules_that_cannot_be_read_block_the_call_and_name_the_line(place: Place) -> None:
    rules = place.base / "store" / "backup" / "rules.toml"
    rules.parent.mkdir()
    rules.write_text("[[rule]]\nid = 5\n", encoding="utf-8")
    reply = place.ask("claude-code", claude("rm @HOME/notes.txt"))
    assert (
        "rules.toml:2: id must be"
        in orjson.loads(reply.stdout)["hookSpecificOutput"]["permissionDecisionReason"]
    )


# what the system gives as text holds any bytes, and no other half of a pair
_TEXT = st.binary(max_size=20).map(lambda data: data.replace(b"\0", b"").decode("utf-8", "surrogateescape"))


@given(
    st.lists(_TEXT, max_size=4),
    _TEXT,
    st.dictionaries(_TEXT.filter(lambda name: "=" not in name), _TEXT, max_size=4),
    st.binary(max_size=60),
)
def test_a_request_is_read_as_it_was_written(
    words: list[str], directory: str, environment: dict[str, str], document: bytes
) -> None:
    request = Request(words=tuple(words), directory=directory, environment=environment, document=document)
    assert decode(encode(request)) == request
