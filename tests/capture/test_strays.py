"""Requests that reach a model past every wrapped client are refused, and nothing else is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
import requests

from agentrewind.capture.nesting import inside
from agentrewind.capture.strays import runs_a_model
from agentrewind.errors import UsageError
from agentrewind.rewind.signal import StopSignal
from tests.capture.clients import ANSWER, MESSAGES
from tests.capture.joined import joined, later, run_of

BODY = {"model": "m", "messages": MESSAGES}


def post_requests(url: str) -> Any:
    return requests.post(url, json=BODY, timeout=5).status_code


def post_httpx(url: str) -> Any:
    return httpx.post(url, json=BODY).status_code


def post_httpx2(url: str) -> Any:
    return httpx2.post(url, json=BODY).status_code


def post_later(url: str) -> Any:
    async def go() -> Any:
        async with httpx.AsyncClient() as client:
            return (await client.post(url, json=BODY)).status_code

    return later(go)()


def post_aiohttp(url: str) -> Any:
    import aiohttp

    async def go() -> Any:
        async with aiohttp.ClientSession() as session, session.post(url, json=BODY) as response:
            return response.status

    return later(go)()


ALL = [post_requests, post_httpx, post_httpx2, post_later, post_aiohttp]


@pytest.mark.parametrize("post", ALL)
def test_a_harness_that_posts_by_itself_is_refused(tmp_path: Path, post: Callable[[str], Any]) -> None:
    with run_of(tmp_path, lambda request: ANSWER) as run:
        url = f"{run.model.base_url}/chat/completions"
        with run.stage.live() as layer, joined(layer), pytest.raises(StopSignal):
            post(url)
        assert isinstance(layer.latch.error, UsageError)
        assert "cannot be recorded" in str(layer.latch.error)
        assert not run.model.requests
        assert post(url) == 200


@pytest.mark.parametrize("post", ALL)
def test_other_requests_and_those_within_a_call_pass(tmp_path: Path, post: Callable[[str], Any]) -> None:
    with run_of(tmp_path, lambda request: ANSWER) as run, run.stage.live() as layer, joined(layer):
        assert post(f"{run.model.base_url}/elsewhere") == 404
        with inside():
            assert post(f"{run.model.base_url}/chat/completions") == 200


@pytest.mark.parametrize(
    ("method", "url", "known"),
    [
        ("POST", "https://api.openai.com/v1/chat/completions", True),
        ("POST", "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=1", True),
        ("POST", "https://api.anthropic.com/v1/messages", True),
        ("POST", "https://x.googleapis.com/v1beta/models/gemini:streamGenerateContent?alt=sse", True),
        ("POST", "http://localhost:11434/api/chat", True),
        ("POST", "https://bedrock.aws/model/m/converse-stream", True),
        ("GET", "https://api.openai.com/v1/chat/completions", False),
        ("POST", "https://api.openai.com/v1/embeddings", False),
        ("POST", "https://example.org/messages", False),
        ("POST", "https://example.org/v1/messages/count_tokens", False),
    ],
)
def test_addresses_of_models_are_known(method: str, url: str, known: bool) -> None:
    assert runs_a_model(method, url) is known


def test_installing_imports_no_client_and_may_be_done_twice() -> None:
    code = (
        "import sys\n"
        "from agentrewind.capture.install import install_all\n"
        "install_all(lambda: None)\n"
        "install_all(lambda: None)\n"
        "found = {'litellm', 'openai', 'anthropic', 'langchain_core', 'requests', 'httpx', 'aiohttp'}\n"
        "assert not found & set(sys.modules), found & set(sys.modules)\n"
        "import openai\n"
        "request = openai._base_client.SyncAPIClient.request\n"
        "assert hasattr(request, '__agentrewind__')\n"
        "assert not hasattr(request.__agentrewind__, '__agentrewind__')\n"
        "import agentrewind.capture.install\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
