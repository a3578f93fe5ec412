"""A scripted model behind a local OpenAI-compatible HTTP endpoint; it never pretends to be a real one.

In a process of its own it prints its base URL as the first line of its output and serves until SIGTERM or
SIGINT:

    python -m harness_adapters.scripted --policy package.module:factory [--port 0] [--log FILE] [--model NAME]
"""

from __future__ import annotations

import importlib
import json
import re
import signal
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import click

from agentrewind.errors import UsageError
from harness_adapters.scripted_answer import Completion, ScriptedAnswer, error_body
from harness_adapters.scripted_dialects import COMPLETIONS, DIALECTS, Dialect, read
from harness_adapters.scripted_policy import NoAnswerError, Policy, Step, from_steps
from harness_adapters.scripted_request import Refusal, ScriptedRequest, ToolCall, text_of

__all__ = [
    "NoAnswerError",
    "Policy",
    "Refusal",
    "ScriptedAnswer",
    "ScriptedModel",
    "ScriptedRequest",
    "Step",
    "ToolCall",
    "from_steps",
    "load_policy",
]

MODELS = "/v1/models"


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What goes back over the wire, in the pieces in which it leaves, and the answer that it says."""

    answer: ScriptedAnswer
    pieces: tuple[bytes, ...]
    content_type: str = "application/json"


class ScriptedModel:
    """A server on 127.0.0.1 that answers by a policy; serves from construction to `close`.

    It speaks chat completions, and the APIs of Responses and of Anthropic's Messages; a policy sees every
    request in the form of chat completions, with the body as it came in `raw`.

    Answers are numbered by arrival: `chatcmpl-<n>`, with tool calls `call_<n>` counted over all answers and
    past any such id in the conversation, so that no id is used twice even when a new server takes over.
    `models` lists the names that are known, and others get a 404; left empty, every name is. `log` gets one
    JSON line per request before its answer leaves: `{"number", "status", "refusal", "request", "answer"}`.

    Status codes: 400 for a malformed request, 404 where the policy raises NoAnswerError (clients do not try
    that again), 500 where it raises anything else, or what the policy says itself.
    """

    def __init__(
        self, policy: Policy, *, port: int = 0, log: Path | None = None, models: Sequence[str] = ()
    ) -> None:
        self._policy = policy
        self._models = tuple(models)
        self._lock = threading.Lock()
        self._requests: list[ScriptedRequest] = []
        self._calls_given = 0
        self._stopping = threading.Event()
        self._log = log.open("ab", buffering=0) if log else None
        try:
            self._server = _Server(("127.0.0.1", port), model=self)
        except OSError:
            self._close_log()
            raise
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), name="scripted-model"
        )
        self._thread.start()

    @property
    def base_url(self) -> str:
        """What a client takes as its `base_url`, `/v1` included."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def requests(self) -> tuple[ScriptedRequest, ...]:
        """Every request for a completion so far, refused ones included, in order of arrival."""
        with self._lock:
            return tuple(self._requests)

    def close(self) -> None:
        """Stop serving, cut open connections and wait for the threads; a delay under way ends at once."""
        self._stopping.set()
        self._server.shutdown()
        self._server.cut_connections()
        self._server.server_close()
        self._thread.join()
        self._close_log()

    def __enter__(self) -> ScriptedModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def model_list(self) -> dict[str, Any]:
        """The answer to GET /v1/models."""
        names = self._models or ("scripted",)
        models = [{"id": name, "object": "model", "created": 0, "owned_by": "agentrewind"} for name in names]
        return {"object": "list", "data": models}

    def complete(self, body: bytes, dialect: Dialect = DIALECTS[COMPLETIONS]) -> Response:
        """What to send for one request; returns when it is time to send it."""
        with self._lock:
            request = read(body, dialect, number=len(self._requests) + 1)
            self._requests.append(request)
        response = self._respond(request, dialect)
        self._note(request, response.answer)
        if response.answer.delay:
            self._stopping.wait(response.answer.delay)
        return response

    def _respond(self, request: ScriptedRequest, dialect: Dialect) -> Response:
        if request.refusal:
            refusal = request.refusal
            return _failed(400, refusal.message, kind="invalid_request_error", param=refusal.param)
        if self._models and request.model not in self._models:
            message = f"no model is called {request.model!r}; known: {', '.join(self._models)}"
            return _failed(404, message, kind="invalid_request_error", param="model")
        try:
            return self._render(request, self._policy(request), dialect)
        except NoAnswerError as error:
            return _failed(404, str(error), kind="invalid_request_error")
        except Exception as error:  # noqa: BLE001 - a policy is anybody's code; its client must hear what failed
            return _failed(500, f"the policy raised {type(error).__name__}: {error}", kind="server_error")

    def _render(self, request: ScriptedRequest, answer: ScriptedAnswer, dialect: Dialect) -> Response:
        if answer.status != 200 or answer.body is not None:
            return _as_given(answer)
        completion = Completion(
            completion_id=f"chatcmpl-{request.number}",
            model=request.model,
            answer=answer,
            call_ids=self._new_call_ids(request, len(answer.tool_calls)),
            prompt_characters=sum(len(text_of(message)) for message in request.messages),
        )
        if not request.stream:
            return Response(answer=answer, pieces=(json.dumps(dialect.whole(completion)).encode(),))
        events = dialect.stream(completion, request.raw)
        return Response(answer=answer, pieces=events, content_type="text/event-stream")

    def _new_call_ids(self, request: ScriptedRequest, count: int) -> tuple[str, ...]:
        seen = [
            int(call.call_id[5:]) for call in request.calls if re.fullmatch(r"call_\d{1,18}", call.call_id)
        ]
        with self._lock:
            first = max([self._calls_given, *seen]) + 1
            self._calls_given = first + count - 1
        return tuple(f"call_{number}" for number in range(first, first + count))

    def _note(self, request: ScriptedRequest, answer: ScriptedAnswer) -> None:
        if self._log is None:
            return
        line = {
            "number": request.number,
            "status": answer.status,
            "refusal": request.refusal.message if request.refusal else None,
            "request": request.raw,
            "answer": {"content": answer.content, "tool_calls": [list(call) for call in answer.tool_calls]},
        }
        with self._lock:
            self._log.write(json.dumps(line).encode() + b"\n")

    def _close_log(self) -> None:
        if self._log is not None:
            self._log.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # joined in server_close, after cut_connections has woken them

    def __init__(self, address: tuple[str, int], *, model: ScriptedModel) -> None:
        self.model = model
        self._open: set[socket.socket] = set()
        self._open_lock = threading.Lock()
        super().__init__(address, _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        with self._open_lock:
            self._open.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        with self._open_lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def cut_connections(self) -> None:
        """Wake every thread that waits for the next request of a connection kept alive."""
        with self._open_lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # the client was faster


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            self.close_connection = True  # an agent that was killed or rewound takes no answer

    def do_GET(self) -> None:
        if self.path.rstrip("/") == MODELS:
            self._send_json(200, self._model.model_list())
        else:
            self._send_unknown_path()

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            self.close_connection = True  # where the body ends is unknown, so nothing after it can be read
            self._send_json(411, error_body("Content-Length is needed", kind="invalid_request_error"))
            return
        body = self.rfile.read(int(length))
        dialect = DIALECTS.get(self.path.partition("?")[0].rstrip("/"))
        if dialect is not None:
            self._send_response(self._model.complete(body, dialect))
        else:
            self._send_unknown_path()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the signature of http.server
        """Stay silent; `requests` and `log` are the record."""

    @property
    def _model(self) -> ScriptedModel:
        return cast("_Server", self.server).model

    def _send_unknown_path(self) -> None:
        message = f"nothing is served at {self.command} {self.path}; try POST {COMPLETIONS} or GET {MODELS}"
        self._send_json(404, error_body(message, kind="invalid_request_error"))

    def _send_json(self, status: int, body: dict[str, Any]) -> None:
        self._send_head(status, "application/json", text := json.dumps(body).encode())
        self.wfile.write(text)

    def _send_response(self, response: Response) -> None:
        answer, pieces = response.answer, response.pieces
        cut = answer.cut_after if response.content_type == "text/event-stream" else None
        sent = pieces if cut is None else pieces[:cut]
        told = sent if answer.cut_cleanly else pieces
        self._send_head(answer.status, response.content_type, b"".join(told))
        for piece in sent:
            self.wfile.write(piece)
            if answer.gap:
                time.sleep(answer.gap)
        if len(sent) < len(told):
            self.close_connection = True

    def _send_head(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()


def _failed(status: int, message: str, *, kind: str, param: str | None = None) -> Response:
    body = error_body(message, kind=kind, param=param)
    return _as_given(ScriptedAnswer(content=None, status=status, body=body))


def _as_given(answer: ScriptedAnswer) -> Response:
    body = answer.body
    if body is None:
        body = error_body(f"scripted HTTP {answer.status}", kind="scripted_error")
    text = body if isinstance(body, str) else json.dumps(body)
    return Response(answer=answer, pieces=(text.encode(),))


def load_policy(path: str) -> Policy:
    """Call the factory at `package.module:factory`, without arguments, for a policy.

    Raises:
        UsageError: the path has another form, the module cannot be imported, or the name is not there or
            cannot be called.
    """
    module_name, colon, name = path.partition(":")
    if not (module_name and colon and name):
        raise UsageError(f"a policy is named as package.module:factory, not {path!r}")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise UsageError(f"policy {path!r}: module {module_name} cannot be imported ({error})") from error
    factory = getattr(module, name, None)
    if not callable(factory):
        raise UsageError(f"policy {path!r}: module {module_name} has no callable {name!r}")
    policy = factory()
    if not callable(policy):
        raise UsageError(f"policy {path!r}: {name} returned {type(policy).__name__}, which cannot be called")
    return cast("Policy", policy)


@click.command()
@click.option("--policy", "policy_path", required=True, help="Factory of the policy: package.module:factory.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port on 127.0.0.1; 0 takes a free one.",
)
@click.option(
    "--log", type=click.Path(dir_okay=False, path_type=Path), help="Append one JSON line per request."
)
@click.option("--model", "models", multiple=True, help="A model name to know; others get a 404. Repeatable.")
def main(policy_path: str, port: int, log: Path | None, models: tuple[str, ...]) -> None:
    """Serve a scripted model until SIGTERM or SIGINT; the first line of output is its base URL."""
    stop = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(
        signal.SIG_BLOCK, stop
    )  # before any thread starts: sigwait needs it in all of them
    try:
        policy = load_policy(policy_path)
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    try:
        model = ScriptedModel(policy, port=port, log=log, models=models)
    except OSError as error:
        raise click.ClickException(f"cannot serve on port {port}, log {log}: {error}") from error
    with model:
        click.echo(model.base_url)  # echo flushes, so that a reader on a pipe need not wait
        signal.sigwait(stop)


if __name__ == "__main__":
    main()
