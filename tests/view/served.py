"""Starts the viewer as a user does, and asks it over HTTP as a browser would."""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import urlencode, urlsplit

from tests.cli.desk import PROGRAM, Desk


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8")


@dataclass(frozen=True)
class Served:
    """A viewer under way. `url` ends with a slash; `process` is the viewer's own."""

    url: str
    process: subprocess.Popen[str]

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    def raw(
        self, method: str, path: str, *, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """An answer to a request to this very path; headers that are given replace the usual ones."""
        connection = http.client.HTTPConnection(self.host, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            given = {"Host": self.host, **(headers or {})}
            if body is not None:
                given["Content-Length"] = str(len(body))
            for name, value in given.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            found = connection.getresponse()
            names = {name.lower(): value for name, value in found.getheaders()}
            return Answer(found.status, names, found.read())
        finally:
            connection.close()

    def get(self, path: str = "", fields: Mapping[str, str] | None = None, /, **more: str) -> Answer:
        """A page or fragment below the viewer's address, with what a query gives."""
        query = {**(fields or {}), **more}
        return self.raw("GET", f"{self.path}{path}{'?' if query else ''}{urlencode(query)}")

    def post(self, path: str, fields: Mapping[str, str], **headers: str) -> Answer:
        """A form sent from the viewer's own page."""
        usual = {"Origin": f"http://{self.host}", "Content-Type": "application/x-www-form-urlencoded"}
        return self.raw(
            "POST", f"{self.path}{path}", body=urlencode(fields).encode(), headers=usual | headers
        )

    def form_token(self, run: str, node: str) -> str:
        """What the forms of a node carry."""
        return Read.of(self.get(f"r/{run}", node=node).text).inputs["form_token"]


class Read(HTMLParser):
    """What stands in a page: tags with their attributes, text, and the fields of its forms."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.inputs: dict[str, str] = {}
        self.words: list[str] = []

    @classmethod
    def of(cls, text: str) -> Read:
        found = cls()
        found.feed(text)
        found.close()
        return found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.append((tag, given))
        if tag == "input" and "name" in given:
            self.inputs[given["name"]] = given.get("value", "")

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


@contextmanager
def viewer(desk: Desk, *arguments: str) -> Iterator[Served]:
    """A viewer of the desk's runs, ended afterwards."""
    process = subprocess.Popen(
        [*PROGRAM, "view", "--no-browser", "--json", *arguments],
        cwd=desk.base,
        env=desk.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        url = json.loads(line)["url"]
        base = urlsplit(url)
        token = base.path.split("/")[1]
        yield Served(url=f"http://{base.netloc}/{token}/", process=process)
    finally:
        process.terminate()
        process.wait(timeout=20)
        process.stdout.close()
        process.stderr.close()
