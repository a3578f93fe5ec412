"""Starting and ending the viewer: the browser's address works once, and Ctrl-C ends it in peace."""

from __future__ import annotations

import http.client
import re
import signal
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from agentrewind.view.templating import HERE
from tests.cli.desk import PROGRAM, Desk
from tests.view.served import Served, viewer


def test_the_browser_gets_an_address_that_works_once(shown: tuple[Desk, str], tmp_path: Path) -> None:
    script = tmp_path / "browser"
    asked = tmp_path / "asked"
    script.write_text(f'#!/bin/sh\necho "$1" > {asked}.new\nmv {asked}.new {asked}\n')
    script.chmod(0o755)
    process = subprocess.Popen(
        [*PROGRAM, "view", shown[1], "--node", "rec_000005"],
        env=shown[0].environment(BROWSER=str(script)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        url = process.stdout.readline().strip()
        deadline = time.monotonic() + 30
        while not asked.exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        opened = asked.read_text().strip()
        token = urlsplit(url).path.split("/")[1]
        assert token not in opened
        served = Served(url=f"http://{urlsplit(url).netloc}/{token}/", process=process)
        first = served.raw("GET", urlsplit(opened).path)
        assert first.status == 303
        assert first.headers["location"] == urlsplit(url).path + "?" + urlsplit(url).query
        assert served.raw("GET", first.headers["location"]).status == 200
        assert served.raw("GET", urlsplit(opened).path).status == 404
    finally:
        process.terminate()
        process.wait(timeout=20)
        process.stdout.close()
        process.stderr.close()


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_in_peace_whatever_is_open(shown: tuple[Desk, str], sign: signal.Signals) -> None:
    with viewer(shown[0]) as served:
        connection = http.client.HTTPConnection(served.host, timeout=30)
        connection.request("GET", f"{served.path}r/{shown[1]}/live")
        stream = connection.getresponse()
        stream.readline()
        served.process.send_signal(sign)
        assert served.process.wait(timeout=20) == (0 if sign == signal.SIGINT else -sign)
        assert served.process.stderr is not None
        assert served.process.stderr.read() == ""
        connection.close()


def test_two_viewers_of_one_store_and_a_run_do_not_disturb_each_other(told: tuple[Desk, str]) -> None:
    desk, run = told
    with viewer(desk) as one, viewer(desk) as other:
        assert one.get(f"r/{run}").status == other.get(f"r/{run}").status == 200
        assert desk.json("verify")["sound"] is True


def test_looking_changes_nothing_on_disk(told: tuple[Desk, str]) -> None:
    desk, run = told
    before = _facts(desk)
    with viewer(desk) as served:
        for path in ("", "runs", f"r/{run}", f"r/{run}/pane?node=rec_000018", f"compare?a={run}&b={run}"):
            assert served.raw("GET", f"{served.path}{path}").status == 200
    assert _facts(desk) == before


def _facts(desk: Desk) -> dict[str, tuple[int, int]]:
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in desk.base.rglob("*")
        # a lock is touched by whoever looks whether it is there
        if path.is_file() and "__pycache__" not in path.parts and path.name != "agentrewind.lock"
    }


def test_no_template_steps_around_the_escaping() -> None:
    texts = {path.name: path.read_text() for path in (HERE / "templates").glob("*.html")}
    assert len(texts) > 10
    for name, text in texts.items():
        assert not re.search(r"\|\s*safe\b|autoescape|Markup", text), name
        assert not re.search(r"\son[a-z]+=|\sstyle=|javascript:", text), name
        assert len(re.findall(r"<script", text)) == (1 if name == "layout.html" else 0), name
        assert (text.count("stylesheet") > 0) == (name in ("layout.html", "page.html")), name
    # an attribute's value must stand in quotes, or escaping does not help
    assert not [name for name, text in texts.items() if re.search(r"=\{\{", re.sub(r'"[^"]*"', '""', text))]


def test_the_package_holds_no_address_of_another_host() -> None:
    for path in [*(HERE / "static").iterdir(), *(HERE / "templates").iterdir()]:
        found = set(re.findall(r"https?://[^\s\"'<>)]+", path.read_text()))
        assert found <= {"http://www.w3.org/2000/svg"}, path
