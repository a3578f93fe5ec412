"""Law: decode inverts encode, for every record and every value that it may carry."""

from __future__ import annotations

import json
from typing import get_args

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agentrewind.codec import decode, decode_document, encode, encode_document, node_json
from agentrewind.codec_events import EVENTS
from agentrewind.jsonform import dump_plain, from_plain, load_plain, may_be_tagged, to_json, to_plain
from agentrewind.records import Event, Json, JsonObject, Node, Record
from agentrewind.redact import REDACTED, scrub
from tests.records import event_kinds, llm_nodes, objects, records, same, texts, tool_nodes, values


class Shelf:
    """Blobs in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        name = f"sha256:{len(self.kept):064x}"
        self.kept[name] = data
        return name

    def get(self, name: str) -> bytes:
        return self.kept[name]


def test_every_kind_of_event_has_a_codec_and_a_strategy() -> None:
    kinds = set(get_args(Event))
    assert set(EVENTS) == kinds
    assert set(event_kinds) == kinds


@settings(deadline=None)
@given(records)
def test_decode_inverts_encode(record: Record) -> None:
    shelf = Shelf()
    line = encode(record, put_blob=shelf.put)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert same(decode(line, get_blob=shelf.get), record)


@settings(deadline=None)
@given(records)
def test_a_line_is_plain_json(record: Record) -> None:
    line = encode(record, put_blob=Shelf().put)
    assert isinstance(json.loads(line.decode()), dict)


@settings(deadline=None)
@given(values)
def test_plain_form_is_inverted(value: Json) -> None:
    data = dump_plain(to_plain(value))
    assert same(from_plain(load_plain(data, where="test")), value)
    if not may_be_tagged(data):
        assert same(load_plain(data, where="test"), value)


@settings(deadline=None)
@given(values)
def test_plain_form_of_plain_form_is_inverted_as_well(value: Json) -> None:
    once = to_plain(value)
    assert same(from_plain(to_plain(once)), once)


@settings(deadline=None)
@given(values)
def test_to_json_leaves_plain_data_as_it_is(value: Json) -> None:
    assert same(to_json(value), value)


@settings(deadline=None)
@given(objects)
def test_documents_are_inverted(document: JsonObject) -> None:
    assert same(decode_document(encode_document(document, kind="rewind"), kind="rewind"), document)


@settings(deadline=None)
@given(st.one_of(llm_nodes, tool_nodes), st.none() | st.lists(objects, max_size=2))
def test_shown_nodes_are_plain_json(node: Node, messages: list[JsonObject] | None) -> None:
    shown = node_json(node, messages=messages)
    # bytes, NaN and lone surrogates would not survive this
    assert json.loads(json.dumps(shown, allow_nan=False).encode()) == shown


@settings(deadline=None)
@given(texts, st.text(min_size=6, max_size=20), texts)
def test_a_known_secret_is_in_no_scrubbed_text(before: str, secret: str, after: str) -> None:
    assume(secret not in REDACTED)
    once = scrub(before + secret + after, [secret])
    assert secret not in once.replace(REDACTED, "")
    assert scrub(once, [secret]) == once
