"""A server that speaks as the models of three providers do and asks for one shell command after another."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Scripted:
    """What is asked for, and the results that came back with the last request."""

    commands: Sequence[str]
    results: list[str] = field(default_factory=list)
    url: str = ""


@contextmanager
def scripted(commands: Sequence[str]) -> Iterator[Scripted]:
    """Serve both protocols on one port of 127.0.0.1."""
    script = Scripted(commands)
    handler = type("Handler", (_Handler,), {"script": script})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    script.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    script: Scripted

    def log_message(self, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        self._document({"data": [], "models": []})

    def do_HEAD(self) -> None:
        self._document({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        asked = json.loads(body or b"{}")
        if self.path.startswith("/v1/responses"):
            self._responses(asked)
        elif self.path.startswith("/v1/messages") and "count_tokens" not in self.path:
            self._messages(asked)
        elif "generateContent" in self.path or "streamGenerateContent" in self.path:
            self._contents(asked)
        else:
            self._document({"input_tokens": 1, "totalTokens": 1})

    def _next(self, results: list[str]) -> str | None:
        self.script.results = results
        done = len(results)
        return self.script.commands[done] if done < len(self.script.commands) else None

    def _messages(self, asked: dict[str, Any]) -> None:
        blocks = [each for message in asked["messages"] for each in _list(message["content"])]
        command = None
        if any(tool.get("name") == "Bash" for tool in asked.get("tools", [])):
            command = self._next([str(each["content"]) for each in blocks if each["type"] == "tool_result"])
        stop = "end_turn" if command is None else "tool_use"
        base = {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": asked["model"],
            "stop_sequence": None,
        }
        usage = {"input_tokens": 1, "output_tokens": 1}
        tool = {"type": "tool_use", "id": f"toolu_{len(self.script.results)}", "name": "Bash"}
        given = {"command": command, "description": "x"}
        if not asked.get("stream"):
            block = {"type": "text", "text": "done"} if command is None else {**tool, "input": given}
            self._document({**base, "content": [block], "stop_reason": stop, "usage": usage})
            return
        delta: dict[str, Any] = {"type": "text_delta", "text": "done"}
        block = {"type": "text", "text": ""}
        if command is not None:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
            block = {**tool, "input": {}}
        self._stream(
            {
                "type": "message_start",
                "message": {**base, "content": [], "stop_reason": None, "usage": usage},
            },
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        )

    def _responses(self, asked: dict[str, Any]) -> None:
        outputs = [each for each in asked["input"] if str(each.get("type", "")).endswith("_output")]
        command = self._next([str(each["output"]) for each in outputs])
        item: dict[str, Any] = {"type": "message", "id": "m", "role": "assistant"}
        if command is None:
            item["content"] = [{"type": "output_text", "text": "done"}]
        else:
            arguments = json.dumps({"cmd": command})
            call = f"call_{len(outputs)}"
            item = {"type": "function_call", "id": f"f{call}", "call_id": call, "name": "exec_command"}
            item["arguments"] = arguments
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        usage |= {"input_tokens_details": None, "output_tokens_details": None}  # type: ignore[dict-item]
        self._stream(
            {"type": "response.created", "response": {"id": "r"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": "r", "usage": usage}},
        )

    def _contents(self, asked: dict[str, Any]) -> None:
        declared = [each for tool in asked.get("tools", []) for each in tool.get("functionDeclarations", [])]
        parts = [part for content in asked.get("contents", []) for part in content.get("parts", [])]
        command = None
        if any(each["name"] == "run_shell_command" for each in declared):
            found = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
            command = self._next([str(each) for each in found])
        part: dict[str, Any] = {"text": "done"}
        if command is not None:
            part = {"functionCall": {"name": "run_shell_command", "args": {"command": command}}}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        document = {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 2}}
        if "stream" in self.path:
            self._stream(document)
        else:
            self._document(document)

    def _document(self, document: dict[str, Any]) -> None:
        data = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, *events: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event in events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
        self.close_connection = True


def _list(content: object) -> list[dict[str, Any]]:
    return content if isinstance(content, list) else []
