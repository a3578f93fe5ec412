"""A run in forms that others read: self-contained lines, OpenTelemetry spans, ATIF trajectories. Pure.

Sources: the GenAI semantic conventions of OpenTelemetry 1.41 (in development there) as an OTLP JSON document;
the Agent Trajectory Interchange Format of Harbor, version 1.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import sha256

import orjson

from agentrewind import __version__
from agentrewind.codec import node_json
from agentrewind.records import Json, JsonObject, LlmNode, Node, RecordUid, ToolNode
from agentrewind.timeline import Timeline
from agentrewind.usage import usage_of

ATIF = "ATIF-v1.4"


def lines(timeline: Timeline) -> Iterator[JsonObject]:
    """Every node whole, with the list of messages in full, its segment, and whether it is on the path."""
    for uid, node in timeline.nodes.items():
        messages = timeline.messages(uid) if isinstance(node, LlmNode) else None
        yield {
            **node_json(node, messages=messages),
            "run_id": timeline.header.run_id,
            "segment": timeline.segment_of(uid),
            "on_path": timeline.on_path(uid),
        }


def otel(timeline: Timeline) -> JsonObject:
    """One OTLP document: a span for the run, and one below it for each node; times are nanoseconds."""
    trace = sha256(timeline.header.run_id.encode()).hexdigest()[:32]
    root = _span_id(timeline.header.run_id)
    nodes = list(timeline.nodes.items())
    ends = [_end(node) for _, node in nodes]
    began = _nanoseconds(timeline.header.created_at)
    agent = timeline.header.harness or "command"
    spans: list[Json] = [
        {
            "traceId": trace,
            "spanId": root,
            "name": f"invoke_agent {agent}",
            "kind": 1,
            "startTimeUnixNano": str(began),
            "endTimeUnixNano": str(max([began, *ends])),
            "attributes": _attributes(
                {
                    "gen_ai.operation.name": "invoke_agent",
                    "gen_ai.agent.name": agent,
                    "gen_ai.conversation.id": timeline.header.run_id,
                    "gen_ai.request.model": timeline.header.model,
                }
            ),
        }
    ]
    spans += [_span(timeline, uid, node, trace=trace, root=root) for uid, node in nodes]
    resource: JsonObject = {
        "attributes": _attributes({"service.name": "agentrewind", "service.version": __version__})
    }
    scope: JsonObject = {"name": "agentrewind", "version": __version__}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]}


def atif(timeline: Timeline) -> list[JsonObject]:
    """One trajectory a segment, in order; each names the file of the next (`continued_trajectory_ref`)."""
    numbers = list(timeline.segments)
    found = []
    for place, number in enumerate(numbers):
        document = _trajectory(timeline, number)
        if place + 1 < len(numbers):
            document["continued_trajectory_ref"] = atif_name(timeline, numbers[place + 1])
        found.append(document)
    return found


def atif_name(timeline: Timeline, segment: int) -> str:
    """The file name of a segment's trajectory."""
    return f"{timeline.header.run_id}-{segment:04d}.json"


def _trajectory(timeline: Timeline, number: int) -> JsonObject:
    header, nodes = timeline.headers[number], timeline.own_nodes(number)
    steps: list[JsonObject] = []
    told: set[int] = set()
    for node in nodes:
        if isinstance(node, LlmNode):
            if not told:
                steps += _opening(timeline.messages(node.record_uid), len(steps), node.metadata.created_at)
                told.add(1)
            steps.append(_step(node, len(steps) + 1))
        elif steps:
            _observe(steps[-1], node)
    usage = usage_of(nodes)
    metrics: JsonObject = {
        "total_prompt_tokens": usage.tokens_in,
        "total_completion_tokens": usage.tokens_out,
        "total_cost_usd": usage.cost,
        "total_steps": len(steps),
    }
    fork = header.forked_from
    extra: JsonObject = {
        "segment": number,
        "forked_from": None if fork is None else {"run_id": fork.run_id, "record_uid": fork.record_uid},
        "on_path": bool(nodes) and timeline.on_path(nodes[-1].record_uid),
    }
    return {
        "schema_version": ATIF,
        "session_id": header.run_id,
        "agent": {
            "name": header.harness or "command",
            "version": str(header.versions.get(header.harness or "", "unknown")),
            "model_name": header.model,
        },
        "steps": [*steps],
        "final_metrics": {name: value for name, value in metrics.items() if value is not None},
        "extra": extra,
    }


def _opening(messages: Sequence[JsonObject], count: int, at: str) -> list[JsonObject]:
    """The messages before a segment's first answer that no model gave and no tool."""
    found: list[JsonObject] = []
    for message in messages:
        role = message.get("role")
        if role in ("system", "user", "developer"):
            source = "user" if role == "user" else "system"
            found.append(
                {
                    "step_id": count + len(found) + 1,
                    "timestamp": at,
                    "source": source,
                    "message": _text(message.get("content")),
                }
            )
    return found


def _step(node: LlmNode, step_id: int) -> JsonObject:
    output = node.output or {}
    calls = output.get("tool_calls")
    told: list[Json] = [
        {
            "tool_call_id": str(call.get("id")),
            "function_name": str(_function(call).get("name")),
            "arguments": _arguments(_function(call).get("arguments")),
        }
        for call in (calls if isinstance(calls, list) else [])
        if isinstance(call, dict)
    ]
    usage = usage_of([node])
    metrics: JsonObject = {
        "prompt_tokens": usage.tokens_in,
        "completion_tokens": usage.tokens_out,
        "cost_usd": usage.cost,
    }
    known: JsonObject = {name: value for name, value in metrics.items() if value is not None}
    step: JsonObject = {
        "step_id": step_id,
        "timestamp": node.metadata.created_at,
        "source": "agent",
        "model_name": node.model,
        "message": _text(output.get("content")),
        "extra": {"record_uid": node.record_uid},
    }
    if told:
        step["tool_calls"] = told
    if known:
        step["metrics"] = known
    return step


def _observe(step: JsonObject, node: ToolNode) -> None:
    observation = step.setdefault("observation", {"results": []})
    assert isinstance(observation, dict)
    results = observation["results"]
    assert isinstance(results, list)
    content = node.error.message if node.error is not None else _text(node.output)
    result: JsonObject = {"content": content}
    calls = step.get("tool_calls")
    known = (
        [call.get("tool_call_id") for call in calls if isinstance(call, dict)]
        if isinstance(calls, list)
        else []
    )
    if node.tool_call_id in known:
        result["source_call_id"] = node.tool_call_id
    results.append(result)


def _span(timeline: Timeline, uid: RecordUid, node: Node, *, trace: str, root: str) -> JsonObject:
    if isinstance(node, LlmNode):
        parent, name = root, f"chat {node.model}"
        output = node.output or {}
        usage = usage_of([node])
        about: JsonObject = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": node.model,
            "gen_ai.conversation.id": timeline.header.run_id,
            "gen_ai.input.messages": _json(list(timeline.messages(uid))),
            "gen_ai.output.messages": _json([{"role": "assistant", "content": output.get("content")}]),
            "gen_ai.usage.input_tokens": usage.tokens_in,
            "gen_ai.usage.output_tokens": usage.tokens_out,
        }
    else:
        parent = root if node.parent is None else _span_id(f"{timeline.header.run_id} {node.parent}")
        name = f"execute_tool {node.tool_name}"
        about = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": node.tool_name,
            "gen_ai.tool.call.id": node.tool_call_id,
            "gen_ai.tool.call.arguments": _json(node.arguments),
            "gen_ai.tool.call.result": _json(node.output),
        }
    about |= {"agentrewind.record_uid": uid, "agentrewind.on_path": timeline.on_path(uid)}
    if node.error is not None:
        about["error.type"] = node.error.type
    return {
        "traceId": trace,
        "spanId": _span_id(f"{timeline.header.run_id} {uid}"),
        "parentSpanId": parent,
        "name": name,
        "kind": 3 if isinstance(node, LlmNode) else 1,
        "startTimeUnixNano": str(_nanoseconds(node.metadata.created_at)),
        "endTimeUnixNano": str(_end(node)),
        "status": {"code": 2, "message": node.error.message} if node.error is not None else {"code": 1},
        "attributes": _attributes(about),
    }


def _attributes(values: JsonObject) -> list[Json]:
    return [{"key": name, "value": _value(value)} for name, value in values.items() if value is not None]


def _value(value: Json) -> JsonObject:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case _:
            return {"stringValue": str(value)}


def _span_id(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _nanoseconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1_000_000) * 1000


def _end(node: Node) -> int:
    return _nanoseconds(node.metadata.created_at) + (node.metadata.latency_ms or 0) * 1_000_000


def _json(value: Json) -> str:
    return orjson.dumps(_plain(value)).decode()


def _plain(value: Json) -> Json:
    """Bytes as text: these documents hold no other."""
    match value:
        case bytes():
            return value.decode("utf-8", "backslashreplace")
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case list():
            return [_plain(each) for each in value]
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case _:
            return value


def _text(value: Json) -> str:
    if value is None:
        return ""
    plain = _plain(value)
    return plain if isinstance(plain, str) else _json(plain)


def _function(call: JsonObject) -> JsonObject:
    function = call.get("function")
    return function if isinstance(function, dict) else {}


def _arguments(value: Json) -> JsonObject:
    try:
        found = orjson.loads(value) if isinstance(value, str) else value
    except orjson.JSONDecodeError:
        found = None
    return found if isinstance(found, dict) else {"text": _text(value)}
