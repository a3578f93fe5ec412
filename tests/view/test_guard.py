"""Who is let in: the own browser with the token, and nobody else."""

from __future__ import annotations

import socket

import pytest

from tests.cli.desk import Desk
from tests.view.served import Served, viewer

PATHS = (
    "",
    "runs?from=0",
    "static/view.js",
    "r/{run}",
    "r/{run}/rows?from=0",
    "r/{run}/live",
    "compare?a={run}&b={run}",
)


def test_every_answer_is_safe_to_show(served: Served, shown: tuple[Desk, str]) -> None:
    for path in PATHS[:4]:
        found = served.get(path.format(run=shown[1]))
        assert found.status == 200, path
        policy = found.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "script-src 'self'" in policy
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["cache-control"] == "no-store"
        assert not [name for name in found.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("path", PATHS)
def test_nothing_without_the_token(served: Served, shown: tuple[Desk, str], path: str) -> None:
    asked = path.format(run=shown[1])
    for token in ("", "x", served.path.strip("/")[:-1], served.path.strip("/") + "x", "..", "%00"):
        found = served.raw("GET", f"/{token}/{asked}".replace("//", "/"))
        assert found.status == 404, (token, path)
        assert shown[1] not in found.text


@pytest.mark.parametrize("path", PATHS)
def test_nothing_under_another_name(served: Served, shown: tuple[Desk, str], path: str) -> None:
    port = served.host.rpartition(":")[2]
    for host in (
        f"evil.example:{port}",
        "127.0.0.1",
        f"127.0.0.1.evil.example:{port}",
        f"127.0.0.2:{port}",
        "",
    ):
        found = served.raw("GET", f"{served.path}{path.format(run=shown[1])}", headers={"Host": host})
        assert found.status == 421, host
        assert shown[1] not in found.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
        ({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, 200),
    ],
)
def test_other_pages_are_not_answered(served: Served, headers: dict[str, str], status: int) -> None:
    assert served.raw("GET", served.path, headers=headers).status == status


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_not_understood(served: Served, method: str) -> None:
    assert served.raw(method, served.path).status == 405


def test_websockets_are_refused(served: Served) -> None:
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    assert served.raw("GET", f"{served.path}runs", headers=headers).status != 101


@pytest.mark.parametrize("path", ["restore", "restore/now", "fork"])
def test_forms_are_taken_from_the_own_page_alone(served: Served, shown: tuple[Desk, str], path: str) -> None:
    run = shown[1]
    token = served.form_token(run, "rec_000005")
    fields = {"form_token": token, "node": "rec_000005", "where": "in-place", "ticket": "x"}
    asked = f"r/{run}/{path}"
    for origin in ("https://evil.example", "null", f"http://localhost.evil:{served.host[-4:]}", ""):
        assert served.post(asked, fields, Origin=origin).status == 403
    assert served.raw("POST", f"{served.path}{asked}", body=b"").status == 403
    assert served.post(asked, fields | {"form_token": "guessed"}).status == 403
    assert served.get(asked).status == 405


def test_a_form_longer_than_anybody_fills_in_is_refused(served: Served, shown: tuple[Desk, str]) -> None:
    fields = {"form_token": "x", "memory": "x" * (2 << 20)}
    assert served.post(f"r/{shown[1]}/fork", fields).status == 413


def test_it_listens_on_loopback_only(served: Served) -> None:
    port = int(served.host.rpartition(":")[2])
    name = socket.gethostbyname(socket.gethostname())
    if not name.startswith("127."):
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((name, port), timeout=5)
    with socket.socket(socket.AF_INET6) as other:
        assert other.connect_ex(("::1", port)) != 0


def test_tokens_differ_each_time(shown: tuple[Desk, str]) -> None:
    with viewer(shown[0]) as one, viewer(shown[0]) as other:
        assert one.path != other.path
        assert len(one.path) >= 32
        assert one.raw("GET", other.path).status == 404


def test_static_files_are_those_of_the_viewer(served: Served) -> None:
    for name in ("../application.py", "..%2fapplication.py", "view.py", "%2e%2e/server.py"):
        assert served.get(f"static/{name}").status == 404
