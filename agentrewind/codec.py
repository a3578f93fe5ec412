"""Records to sealed lines and back; every field name on disk is written out here and in `codec_*`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import orjson

from agentrewind.codec_events import read_event, unknown, write_event
from agentrewind.codec_parts import (
    read_declaration,
    read_error,
    read_fork_point,
    read_spans,
    uid_or_none,
    write_declaration,
    write_error,
    write_fork_point,
    write_spans,
)
from agentrewind.errors import DamagedError, UnsupportedFormatError
from agentrewind.fields import Fields
from agentrewind.jsonform import (
    dump_plain,
    escape_reference,
    from_plain,
    load_plain,
    may_be_tagged,
    to_json,
    to_plain,
)
from agentrewind.records import (
    FORMAT,
    Header,
    InputId,
    Json,
    JsonObject,
    LlmNode,
    MessageList,
    Metadata,
    Node,
    Record,
    RecordUid,
    RunId,
    ToolNode,
)
from agentrewind.sealed_line import seal, unseal

__all__ = ["decode", "decode_document", "encode", "encode_document", "node_json", "to_json"]

PutBlob = Callable[[bytes], str]
"""Stores bytes and gives their name, `sha256:<64 hex digits>`."""

GetBlob = Callable[[str], bytes]
"""The bytes of a name; raises DamagedError where they are missing or altered."""

BLOB_LIMIT = 32 * 1024
"""Values whose JSON is longer leave the line and become a blob."""

TOOLS_LIMIT = 1024
"""The same for lists of tools, which are repeated with every request."""

_REFERENCE = "blob:sha256:"
_REQUEST_FIELDS = ("model", "messages", "tools", "parameters")


def encode(record: Record, *, put_blob: PutBlob) -> bytes:
    """The record as one line, newline and checksum included; large payloads go to `put_blob` first.

    Raises UsageError that names the place of a value which cannot be recorded.
    """
    match record:
        case Header():
            written = _plain_object(_write_header(record), "header")
        case LlmNode():
            written = _encode_llm(record, put_blob)
        case ToolNode():
            written = _encode_tool(record, put_blob)
        case _:
            written = _plain_object(write_event(record), "event")
    return seal(dump_plain(written, where=str(written["kind"])))


def decode(line: bytes, *, get_blob: GetBlob) -> Record:
    """The record of a line, with or without its newline; inverts `encode`.

    Kinds of lines and events that this version does not know become a Note with the topic
    `unknown`; unknown fields are passed over. Raises UnsupportedFormatError for a header with a
    newer format number, and DamagedError with the reason for everything else that is wrong.
    """
    raw = unseal(line)
    kind = raw.get("kind")
    tagged = may_be_tagged(line)
    if kind in ("llm", "tool"):
        # references are looked up first: afterwards a text that looks like one could not be told apart
        tagged = _fetch_payloads(raw, get_blob) or tagged
    if tagged:
        raw = {key: from_plain(item) for key, item in raw.items()}
    match kind:
        case "llm":
            return _read_llm(Fields(raw))
        case "tool":
            return _read_tool(Fields(raw))
        case "event":
            return read_event(raw)
        case "header":
            return _read_header(Fields(raw))
        case str():
            return unknown(raw)
        case _:
            raise DamagedError("the field kind is missing")


def node_json(node: Node, *, messages: Sequence[JsonObject] | None = None) -> JsonObject:
    """The node as people and programs are shown it: self-contained and printable as plain JSON.

    `messages` is the full list of an LLM node; without it the list stays as it is recorded.
    """
    if isinstance(node, ToolNode):
        return _plain_object(_write_tool(node), node.record_uid)
    shown = _write_llm(node)
    if messages is not None:
        _put(shown, ("input", "messages"), list(messages))
    return _plain_object(shown, node.record_uid)


def encode_document(document: JsonObject, *, kind: str) -> bytes:
    """A small file of one sealed line, such as `rewind-0001.json`."""
    return seal(dump_plain({"kind": kind, "format": FORMAT, "data": to_plain(document, where=kind)}))


def decode_document(data: bytes, *, kind: str) -> JsonObject:
    """Inverts `encode_document`; raises DamagedError with the reason."""
    raw = unseal(data)
    fields = Fields({key: from_plain(item) for key, item in raw.items()})
    if fields.text("kind") != kind:
        raise DamagedError(f"this is a {fields.text('kind')} document, expected {kind}")
    if (found := fields.integer("format")) > FORMAT:
        raise UnsupportedFormatError(found, FORMAT)
    return fields.mapping("data")


# --- header ---


def _write_header(header: Header) -> JsonObject:
    return {
        "kind": "header",
        "format": header.format,
        "run_id": header.run_id,
        "segment": header.segment,
        "forked_from": write_fork_point(header.forked_from),
        "created_at": header.created_at,
        "workspaces": {name: write_declaration(item) for name, item in header.workspaces.items()},
        "harness": header.harness,
        "model": header.model,
        "versions": dict(header.versions),
        "options": header.options,
    }


def _read_header(fields: Fields) -> Header:
    if (found := fields.integer("format")) > FORMAT:
        raise UnsupportedFormatError(found, FORMAT)
    versions = fields.fields("versions")
    return Header(
        format=found,
        run_id=RunId(fields.text("run_id")),
        segment=fields.integer("segment"),
        forked_from=fields.optional("forked_from", read_fork_point),
        created_at=fields.text("created_at"),
        workspaces=fields.each("workspaces", read_declaration),
        harness=fields.text_or_none("harness"),
        model=fields.text_or_none("model"),
        versions={name: versions.text(name) for name in versions.rest()},
        options=fields.mapping("options"),
    )


# --- nodes ---


def _write_llm(node: LlmNode) -> JsonObject:
    request: JsonObject = {"model": node.model}
    # where a name would clash or change the shape of `input`, all stand one level deeper, in their order
    clash = any(name in _REQUEST_FIELDS or not name.isascii() for name in node.parameters)
    if not clash:
        request |= node.parameters
    request |= {"messages": _write_messages(node.messages), "tools": node.tools}
    if clash:
        request["parameters"] = node.parameters
    return {
        "record_uid": node.record_uid,
        "kind": "llm",
        "input_id": node.input_id,
        "input": request,
        "output": node.output,
        "error": write_error(node.error),
        "metadata": _write_metadata(node.metadata),
        "conversation": node.conversation,
        "client": node.client,
    }


def _read_llm(fields: Fields) -> LlmNode:
    request = fields.fields("input")
    messages = request.fields("messages")
    return LlmNode(
        record_uid=RecordUid(fields.text("record_uid")),
        input_id=InputId(fields.text("input_id")),
        conversation=fields.text("conversation"),
        client=fields.text("client"),
        model=request.text("model"),
        parameters={**request.rest(*_REQUEST_FIELDS), **request.mapping("parameters")},
        messages=MessageList(
            base=uid_or_none(messages.text_or_none("base")),
            keep=messages.integer("keep"),
            append=messages.objects("append"),
        ),
        tools=request.get("tools"),
        output=fields.mapping_or_none("output"),
        error=fields.optional("error", read_error),
        metadata=_read_metadata(fields.fields("metadata")),
    )


def _write_tool(node: ToolNode) -> JsonObject:
    return {
        "record_uid": node.record_uid,
        "kind": "tool",
        "input_id": node.input_id,
        "input": {
            "tool_name": node.tool_name,
            "tool_call_id": node.tool_call_id,
            "arguments": node.arguments,
        },
        "output": {"value": node.output} if _has_output(node) else None,
        "error": write_error(node.error),
        "metadata": _write_metadata(node.metadata),
        "parent": node.parent,
        "ordinal": node.ordinal,
        "interrupted": node.interrupted,
    }


def _read_tool(fields: Fields) -> ToolNode:
    request = fields.fields("input")
    output = fields.mapping_or_none("output")
    return ToolNode(
        record_uid=RecordUid(fields.text("record_uid")),
        input_id=InputId(fields.text("input_id")),
        tool_name=request.text("tool_name"),
        tool_call_id=request.text_or_none("tool_call_id"),
        arguments=request.value("arguments"),
        parent=uid_or_none(fields.text_or_none("parent")),
        ordinal=fields.integer("ordinal", 0),
        output=None if output is None else fields.fields("output").value("value"),
        error=fields.optional("error", read_error),
        interrupted=fields.flag("interrupted", False),  # noqa: FBT003 (the field's default)
        metadata=_read_metadata(fields.fields("metadata")),
    )


def _has_output(node: ToolNode) -> bool:
    return node.output is not None or (node.error is None and not node.interrupted)


def _write_messages(messages: MessageList) -> JsonObject:
    return {"base": messages.base, "keep": messages.keep, "append": list(messages.append)}


def _write_metadata(metadata: Metadata) -> JsonObject:
    written: JsonObject = {
        "created_at": metadata.created_at,
        "latency_ms": metadata.latency_ms,
        "attempts": metadata.attempts,
        "filesystem": {"workspaces": write_spans(metadata.workspaces)},
        "external": list(metadata.external),
    }
    if metadata.snapshot_us is not None:
        written["snapshot_us"] = metadata.snapshot_us
    return written


def _read_metadata(fields: Fields) -> Metadata:
    return Metadata(
        created_at=fields.text("created_at"),
        latency_ms=fields.integer("latency_ms"),
        attempts=fields.integer("attempts", 1),
        workspaces=fields.optional("filesystem", read_spans) or {},
        external=fields.objects("external"),
        snapshot_us=fields.integer_or_none("snapshot_us"),
    )


# --- payloads that may stand in a blob ---


def _plain_object(written: JsonObject, where: str) -> JsonObject:
    """Every value in JSON form; our own objects keep their shape, whatever a value looks like."""
    return {name: to_plain(item, where=f"{where}.{name}") for name, item in written.items()}


def _encode_llm(node: LlmNode, put_blob: PutBlob) -> JsonObject:
    bare = replace(node, output=None, tools=None, messages=replace(node.messages, append=()))
    written = _plain_object(_write_llm(bare), node.record_uid)
    _put(written, ("input", "tools"), _payload(node.tools, "input.tools", put_blob, limit=TOOLS_LIMIT))
    append = [
        _payload(message, f"input.messages.append[{index}]", put_blob)
        for index, message in enumerate(node.messages.append)
    ]
    _put(written, ("input", "messages", "append"), append)
    _put(written, ("output",), _payload(node.output, "output", put_blob))
    return written


def _encode_tool(node: ToolNode, put_blob: PutBlob) -> JsonObject:
    written = _plain_object(_write_tool(replace(node, arguments=None, output=None)), node.record_uid)
    _put(written, ("input", "arguments"), _payload(node.arguments, "input.arguments", put_blob))
    if _has_output(node):
        _put(written, ("output",), {"value": _payload(node.output, "output.value", put_blob)})
    return written


def _payload(value: Json, where: str, put_blob: PutBlob, *, limit: int = BLOB_LIMIT) -> Json:
    data = dump_plain(escape_reference(to_plain(value, where=where)), where=where)
    if len(data) > limit:
        return f"blob:{put_blob(data)}"
    return cast("Json", orjson.Fragment(data))


def _put(written: JsonObject, path: Sequence[str], value: Json) -> None:
    *parents, last = path
    for name in parents:
        written = cast("JsonObject", written[name])
    written[last] = value


def _fetch_payloads(raw: JsonObject, get_blob: GetBlob) -> bool:
    """Puts the values of blobs in the place of their references; whether any may hold tags."""
    tagged = False

    def fetch(value: Json) -> Json:
        nonlocal tagged
        if not isinstance(value, str) or not value.startswith(_REFERENCE):
            return value
        data = get_blob(value.removeprefix("blob:"))
        tagged = tagged or may_be_tagged(data)
        return load_plain(data, where=value)

    request, output = raw.get("input"), raw.get("output")
    if isinstance(request, dict):
        name = "tools" if raw["kind"] == "llm" else "arguments"
        request[name] = fetch(request.get(name))
        messages = request.get("messages")
        if isinstance(messages, dict) and isinstance(append := messages.get("append"), list):
            messages["append"] = [fetch(message) for message in append]
    if raw["kind"] == "llm":
        raw["output"] = fetch(output)
    elif isinstance(output, dict):
        output["value"] = fetch(output.get("value"))
    return tagged
