"""An answer that a person edits for a fork is what the client gets, in every form that a model answers in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest

from agentrewind.errors import UsageError
from agentrewind.fork_answer import edited
from agentrewind.forking import Edits, make_fork
from agentrewind.records import LlmNode
from agentrewind.workspace.roots import workspace_directory
from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest, from_steps
from tests.capture.clients import ANSWER, FLAT_TOOLS, KEY, MESSAGES, SCHEMA, TOOLS
from tests.capture.joined import Joined, run_of
from tests.core.stage import CLOCK, Stage

Told = tuple[str, list[tuple[str, Any]], str]
"""What an agent heard first: the text, the calls; and what it heard when it had answered the calls."""

pytestmark = pytest.mark.filterwarnings("ignore")  # the clients' own

SAID = "I do it otherwise é."
CALL = {"name": "bash", "arguments": {"command": "echo mine"}}
EDIT: Any = {"content": SAID, "tool_calls": [CALL, CALL]}


def chat(run: Joined, *, stream: bool = False) -> Told:
    client = openai.OpenAI(base_url=run.model.base_url, api_key=KEY, max_retries=0)
    if stream:
        with client.chat.completions.stream(model="m", messages=MESSAGES, tools=TOOLS) as events:
            message: Any = events.until_done().get_final_completion().choices[0].message
    else:
        message = client.chat.completions.create(model="m", messages=MESSAGES, tools=TOOLS).choices[0].message
    calls = message.tool_calls or []
    results = [{"role": "tool", "tool_call_id": each.id, "content": "done"} for each in calls]
    more: Any = [*MESSAGES, message.model_dump(exclude_none=True), *results]
    end = client.chat.completions.create(model="m", messages=more, tools=TOOLS).choices[0].message.content
    return (
        message.content or "",
        [(each.function.name, json.loads(each.function.arguments)) for each in calls],
        end or "",
    )


def responses(run: Joined, *, stream: bool = False) -> Told:
    client = openai.OpenAI(base_url=run.model.base_url, api_key=KEY, max_retries=0)
    asked: list[Any] = [{"role": "user", "content": "go"}]
    if stream:
        with client.responses.stream(model="m", input=asked, tools=FLAT_TOOLS) as events:
            answer: Any = events.until_done().get_final_response()
    else:
        answer = client.responses.create(model="m", input=asked, tools=FLAT_TOOLS)
    assert answer.status == "completed"
    items = [item.model_dump(exclude_none=True) for item in answer.output]
    calls = [item for item in items if item["type"] == "function_call"]
    results = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "done"} for item in calls
    ]
    more = [*asked, *items, *results]
    end = client.responses.create(model="m", input=more, tools=FLAT_TOOLS)
    told = [(item["name"], json.loads(item["arguments"])) for item in calls]
    return (answer.output_text, told, end.output_text)


def messages(run: Joined, *, stream: bool = False) -> Told:
    anthropic: Any = pytest.importorskip("anthropic")
    client = anthropic.Anthropic(base_url=run.model.base_url.removesuffix("/v1"), api_key=KEY, max_retries=0)
    turns: list[Any] = [{"role": "user", "content": "go"}]
    request: Any = {"model": "m", "max_tokens": 99, "tools": [{"name": "bash", "input_schema": SCHEMA}]}
    if stream:
        with client.messages.stream(**request, messages=turns) as events:
            answer = events.get_final_message()
    else:
        answer = client.messages.create(**request, messages=turns)
    uses = [block for block in answer.content if block.type == "tool_use"]
    assert answer.stop_reason == ("tool_use" if uses else "end_turn")
    results = [{"type": "tool_result", "tool_use_id": each.id, "content": "done"} for each in uses]
    content = [block.model_dump(exclude_none=True) for block in answer.content]
    more = [
        {"role": "assistant", "content": content},
        {"role": "user", "content": results or "and now?"},
    ]
    end = client.messages.create(**request, messages=[*turns, *more])
    text = "".join(block.text for block in answer.content if block.type == "text")
    return text, [(each.name, each.input) for each in uses], end.content[0].text


def langchain(run: Joined, *, stream: bool = False) -> Told:
    models: Any = pytest.importorskip("langchain_openai")
    from langchain_core.messages import HumanMessage, ToolMessage

    model = models.ChatOpenAI(model="m", base_url=run.model.base_url, api_key=KEY, max_retries=0)
    bound = model.bind_tools(TOOLS)
    asked = [HumanMessage("go")]
    if stream:
        first, *others = list(bound.stream(asked))
        answer: Any = sum(others, start=first)
    else:
        answer = bound.invoke(asked)
    results = [ToolMessage("done", tool_call_id=call["id"]) for call in answer.tool_calls]
    end = bound.invoke([*asked, answer, *results])
    return answer.text, [(call["name"], call["args"]) for call in answer.tool_calls], end.text


FORMS: dict[str, Callable[[Joined], Told]] = {
    "chat": chat,
    "chat, streamed": lambda run: chat(run, stream=True),
    "responses": responses,
    "responses, streamed": lambda run: responses(run, stream=True),
    "messages": messages,
    "messages, streamed": lambda run: messages(run, stream=True),
    "langchain": langchain,
    "langchain, streamed": lambda run: langchain(run, stream=True),
}


@contextmanager
def recorded(directory: Path, agent: Callable[[Joined], object]) -> Iterator[Joined]:
    """A run of this agent, whose first answer calls tools."""

    def end(request: ScriptedRequest) -> ScriptedAnswer:
        heard = [message.get("content") for message in request.messages if message["role"] == "assistant"]
        return ScriptedAnswer(content=f"after {heard}")

    with run_of(directory, from_steps([ANSWER, end, end, end])) as run:
        run.stage.store = workspace_directory(directory / "home", run.stage.root) / "snapshots.git"
        run.live(lambda: agent(run))
        yield run


def fork(run: Joined, answer: Any) -> Joined:
    """The fork of its first answer, and its agent."""
    home = run.stage.run.directory.parent.parent
    made = make_fork(run.stage.run, "rec_000001", Edits(answer=answer), home=home, clock=CLOCK)
    return Joined(stage=Stage(root=run.stage.root, run=made, store=run.stage.store), model=run.model)


@pytest.mark.parametrize("form", FORMS)
def test_the_client_gets_the_edited_answer_and_goes_on_with_it(tmp_path: Path, form: str) -> None:
    with recorded(tmp_path, FORMS[form]) as run:
        asked = len(run.model.requests)
        made = fork(run, EDIT)
        told = made.live(lambda: FORMS[form](made))
        assert told == (SAID, [("bash", {"command": "echo mine"})] * 2, f"after ['{SAID}']")
        assert len(run.model.requests) == asked + 1
        # and once more, of the whole fork
        assert made.replay(lambda: FORMS[form](made)) == told

        text = fork(run, SAID)
        assert text.live(lambda: FORMS[form](text)) == (SAID, [], f"after ['{SAID}']")


def test_a_tool_that_takes_text_gets_text(tmp_path: Path) -> None:
    with recorded(tmp_path, responses) as run:
        node = replace(run.nodes[0], tools=[{"type": "custom", "name": "patch"}])
    output: Any = edited(node, {"tool_calls": [{"name": "patch", "arguments": "*** Begin"}]}).output
    [item] = output["response"]["output"]
    assert (item["type"], item["input"]) == ("custom_tool_call", "*** Begin")


@pytest.mark.parametrize("response", [None, {}, {"choices": [{}, {}]}, {"object": "unheard of"}])
def test_an_answer_of_no_known_form_cannot_be_edited(tmp_path: Path, response: Any) -> None:
    with recorded(tmp_path, chat) as run:
        node: LlmNode = replace(run.nodes[0], output={"content": "x", "response": response})
    with pytest.raises(UsageError, match="has no form"):
        edited(node, "another")


@pytest.mark.parametrize("arguments", ["[1]", "{broken", '"text"'])
def test_arguments_that_have_to_be_an_object_are(tmp_path: Path, arguments: str) -> None:
    with recorded(tmp_path, chat) as run:
        node = replace(run.nodes[0], output={"content": "x", "response": {"type": "message"}})
    with pytest.raises(UsageError, match="arguments of bash are no JSON object"):
        edited(node, {"tool_calls": [{"name": "bash", "arguments": arguments}]})
