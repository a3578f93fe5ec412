"""One request of a generated SDK on its way through the gate: recorded, or answered from the log."""

from __future__ import annotations

import datetime
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, TypeAlias

from agentrewind.capture.call import Call, Pending
from agentrewind.capture.gate import Gate
from agentrewind.capture.nesting import inside
from agentrewind.capture.sse import DONE, write_event
from agentrewind.capture.streams import SWITCHES, Watch, failure_itself, part_read
from agentrewind.capture.wire_api import Sdk, WireApi
from agentrewind.capture.wire_taps import BodyTap, EventTap, tap_response
from agentrewind.errors import UsageError
from agentrewind.raised import record_exception
from agentrewind.records import ErrorRecord, Json, JsonObject
from agentrewind.redact import scrub

Reply: TypeAlias = Callable[[], Any]
"""Gives the harness its answer, or raises; for an async client what it gives is awaited."""

Send: TypeAlias = Callable[["WireCall", Any], Any]
"""Hands the request on to the SDK."""

_HTTP = "http_answer"
_RAW = "X-Stainless-Raw-Response"
_CONVERSATION = frozenset({"model", "messages", "input", "instructions", "system", "tools", "functions"})


@dataclass(slots=True, kw_only=True)
class WireCall:
    """A request as the SDK was about to make it.

    Attributes:
        base: the SDK's module with the base clients, for the names that it uses itself.
        from_log: on replay, makes the response that takes the transport's place, for the options of a try.
    """

    gate: Gate
    sdk: Sdk
    api: WireApi
    base: ModuleType
    client: Any
    cast_to: Any
    options: Any
    stream: bool
    stream_cls: Any
    from_log: Callable[[Any], Any] | None = None
    _pending: Pending | None = None
    _output: JsonObject | None = None
    _seen: bool = False

    @property
    def body(self) -> JsonObject:
        """The request's body, as JSON."""
        data = self.options.json_data
        extra = self.options.extra_json
        return {**(data if isinstance(data, dict) else {}), **(extra if isinstance(extra, dict) else {})}

    @property
    def _asynchronous(self) -> bool:
        return isinstance(self.client, self.base.AsyncAPIClient)

    def for_gate(self, send: Send) -> Call[Reply]:
        """The call as the gate decides on it. A request that cannot be recorded stops the process."""
        with self.gate.stopping():
            body = self.body
            reason = self.api.refusal(body)
            if reason is not None:
                raise UsageError(f"{self.api.client} cannot be recorded: {reason}")
            parameters = {
                name: value
                for name, value in body.items()
                if name not in _CONVERSATION and name not in SWITCHES
            }
            return Call(
                client=self.api.client,
                model=str(body.get("model", "")),
                messages=self.api.compared(body),
                sent=self.api.sent(body),
                tools=body.get("tools") or body.get("functions"),
                parameters={**parameters, **self._credentials()},
                place=self.api.place,
                encode=lambda reply: {},
                decode=lambda output: self._replied(self._response(output), send),
                describe=self._describe,
                refail=lambda record: self._refailed(record, send),
            )

    def _credentials(self) -> dict[str, object]:
        """What the client authenticates with: never recorded, but blotted out where an error quotes it."""
        names = ("api_key", "auth_token", "_custom_headers")
        found = {name: getattr(self.client, name, None) for name in names}
        given = self.options.headers
        return {**found, "extra_headers": given if isinstance(given, dict) else None}

    def with_sent(self, sent: list[Any]) -> Any:
        """The request's options with this conversation in their body; the same options if it is theirs."""
        body = self.body
        if sent == self.api.sent(body):
            return self.options
        return self.options.model_copy(
            update={"json_data": self.api.with_sent(body, sent), "extra_json": None}
        )

    # --- live ---

    def live(self, options: Any, pending: Pending, send: Send) -> Reply:
        """Make the call; what the SDK itself makes of an answer that came is raised afterwards."""
        self._pending = pending
        try:
            result = send(self, options)
        except Exception:
            self._settle()
            raise
        self._settle(answered=True)
        return lambda: result

    async def alive(self, options: Any, pending: Pending, send: Callable[..., Awaitable[Any]]) -> Reply:
        """The same for an async client."""
        self._pending = pending
        try:
            result = await send(self, options)
        except Exception:
            self._settle()
            raise
        self._settle(answered=True)

        async def reply() -> Any:
            return result

        return reply

    def received(self, response: Any) -> None:
        """The SDK got a response and is about to make its objects of it."""
        if self.from_log is not None:
            return
        self._seen = True
        if hasattr(response, "_content"):
            self._output = self._lifted(response.content, response)
        else:
            self._tap(response)

    def _settle(self, *, answered: bool = False) -> None:
        assert self._pending is not None
        if self._output is not None:
            self._pending.finished(self._output)
        elif answered and not self._seen:
            reason = "a middleware answered without a response, which cannot be recorded; remove it"
            raise self.gate.latch.stop(UsageError(f"{self.api.client}: {reason}"))

    def _lifted(self, content: bytes, response: Any) -> JsonObject:
        with self.gate.stopping():
            try:
                found = json.loads(content)
            except ValueError:
                found = None
            if isinstance(found, dict):
                return {**self.api.lift(found), **self._headers(response)}
            kind = response.headers.get("content-type", "")
            raw: JsonObject = {"content_type": kind, "body": content}
            return {"content": None, "tool_calls": [], "usage": None, "response": {}, "raw": raw}

    def _headers(self, response: Any) -> JsonObject:
        kept: JsonObject = {
            name: response.headers[name] for name in self.sdk.kept_headers if name in response.headers
        }
        return {"headers": kept} if kept else {}

    def _tap(self, response: Any) -> None:
        """Read along while the harness takes the body, however it does that."""
        assert self._pending is not None
        headers = self._headers(response)  # now: what the watch holds must not keep the response alive
        watch = Watch(
            gate=self.gate,
            pending=self._pending,
            joiner=self.api.joiner(self.body),
            lift=lambda answer: {**self.api.lift(answer), **headers},
        )
        pending = self._pending
        events = str(response.headers.get("content-type", "")).startswith("text/event-stream")
        tap = (
            EventTap(watch)
            if events
            else BodyTap(watch, lambda body: pending.finished(self._lifted(body, response)))
        )
        tap_response(response, tap, asynchronous=self._asynchronous)

    # --- from the log ---

    def _replied(self, response: Callable[[Any], Any], send: Send) -> Reply:
        self.from_log = response
        if hasattr(self.client, "_attempt_request"):

            def again() -> Any:
                with inside():
                    return send(self, self.options)

            async def aagain() -> Any:
                with inside():
                    return await send(self, self.options)

            return aagain if self._asynchronous else again
        return lambda: self.client._process_response(  # noqa: SLF001 - what `request` itself ends with
            cast_to=self.client._maybe_override_cast_to(self.cast_to, self.options),  # noqa: SLF001
            options=self.options,
            response=response(self.options),
            stream=self.stream,
            stream_cls=self.stream_cls,
            retries_taken=0,
        )

    def _response(self, output: JsonObject) -> Callable[[Any], Any]:
        raw, headers = output.get("raw"), output.get("headers")
        kept = {name: str(value) for name, value in headers.items()} if isinstance(headers, dict) else {}
        if isinstance(raw, dict) and isinstance(content := raw.get("body"), bytes):
            told = {**kept, "content-type": str(raw.get("content_type"))}
            return lambda options: self._made(options, 200, content, told)
        answer = self.api.lower(output)
        if not self.stream:
            body = json.dumps(answer).encode()
            return lambda options: self._made(
                options, 200, body, {**kept, "content-type": "application/json"}
            )
        return self._stream_of(self.api.events(answer, self.body), lambda: None, whole=True, headers=kept)

    def _stream_of(
        self,
        events: list[JsonObject],
        end: Callable[[], None],
        *,
        whole: bool,
        headers: dict[str, str] | None = None,
    ) -> Callable[[Any], Any]:
        def pieces() -> Iterator[bytes]:
            for event in events:
                yield write_event(event, named=self.api.named)
            if whole and not self.api.named:
                yield DONE
            end()

        async def apieces() -> AsyncIterator[bytes]:
            for piece in pieces():
                yield piece

        told = {**(headers or {}), "content-type": "text/event-stream"}
        return lambda options: self._made(options, 200, apieces() if self._asynchronous else pieces(), told)

    def _made(self, options: Any, status: int, content: Any, headers: dict[str, str]) -> Any:
        http = getattr(self.base, "httpx2", None) or self.base.httpx
        given = options.headers
        marks = (
            {name: value for name, value in given.items() if name == _RAW} if isinstance(given, dict) else {}
        )
        url = str(self.client._prepare_url(self.options.url))  # noqa: SLF001 - no public way to it
        request = http.Request(self.options.method, url, headers=marks)
        response = http.Response(status, content=content, headers=headers, request=request)
        response.elapsed = datetime.timedelta(0)
        return response

    # --- failures ---

    def _describe(self, error: BaseException, secrets: Collection[str]) -> ErrorRecord:
        """Of an HTTP error the answer is kept, so that the SDK can make the same exception of it again."""
        record = record_exception(error, secrets=secrets)
        response = getattr(error, "response", None)
        if not isinstance(getattr(error, "status_code", None), int) or response is None:
            return record
        answer: JsonObject = {
            "status": response.status_code,
            "content_type": response.headers.get("content-type", ""),
            "body": scrub(response.text, secrets),
        }
        return replace(record, attributes={**record.attributes, _HTTP: {**answer, **self._headers(response)}})

    def _refailed(self, record: ErrorRecord, send: Send) -> Reply:
        read = part_read(record, self.gate)
        if read is not None and self.stream:
            return self._replied(self._stream_of([*read.events], read.end, whole=False), send)
        error = self._error(record)

        def fail() -> Any:
            raise error

        async def afail() -> Any:
            raise error

        return afail if self._asynchronous else fail

    def _error(self, record: ErrorRecord) -> BaseException:
        answer = record.attributes.get(_HTTP)
        if isinstance(answer, dict) and isinstance(status := answer.get("status"), int):
            headers = {"content-type": _text(answer.get("content_type"))}
            kept = answer.get("headers")
            headers |= {name: _text(value) for name, value in kept.items()} if isinstance(kept, dict) else {}
            response = self._made(self.options, status, _text(answer.get("body")).encode(), headers)
            made: BaseException = self.client._make_status_error_from_response(response)  # noqa: SLF001
            return made
        error = failure_itself(record)
        if hasattr(type(error), "request") or isinstance(error, getattr(self.base, "APIConnectionError", ())):
            error.request = self._made(self.options, 200, b"", {}).request  # type: ignore[attr-defined]
        return error


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
