"""Forms of tool calls: what a form says, it reads again, in the conversation that its harness makes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_adapters.demo.forms import Called, FinalText, Form, PythonCode, TaggedText, ToolCalls, form_of
from harness_adapters.demo.steps import BASH, SUBMIT
from harness_adapters.instructions import FINISH
from harness_adapters.scripted_answer import ScriptedAnswer
from harness_adapters.scripted_request import ScriptedRequest, read_request

Message = dict[str, Any]

SYSTEM = (
    "Write code between <code> and </code>. You have:\ndef bash(command: string) -> object:\n"
    "def backtrack_candidates(reason: string) -> string:\ndef final_answer(answer: any) -> any:\n"
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
    lambda each: "code>" not in each and "tool_call>" not in each
)


def asked(messages: list[Message], **more: Any) -> ScriptedRequest:
    request = read_request(json.dumps({"model": "m", "messages": messages, **more}).encode(), number=1)
    assert request.refusal is None
    return request


def as_code(answer: ScriptedAnswer, result: str) -> ScriptedRequest:
    """The conversation as CodeAgent goes on with it."""
    return asked(
        [
            {"role": "system", "content": [{"type": "text", "text": SYSTEM}]},
            {"role": "user", "content": [{"type": "text", "text": "New task:\ngo"}]},
            {"role": "assistant", "content": f"{answer.content}\nCalling tools:\n[…]"},
            {
                "role": "user",
                "content": f"Observation:\nExecution logs:\n{result}\nLast output from code snippet:\nNone",
            },
        ]
    )


TAGGED = (
    'You have:\n<tools>\n{"type": "function", "function": {"name": "bash"}}\n'
    '{"type": "function", "function": {"name": "backtrack_candidates"}}\n</tools>\n'
    "Say it within <tool_call></tool_call>."
)


def as_text(answer: ScriptedAnswer, result: str) -> ScriptedRequest:
    """The conversation as Qwen-Agent's prompt has it."""
    return asked(
        [
            {"role": "system", "content": TAGGED},
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": answer.content},
            {"role": "user", "content": f"<tool_response>\n{result}\n</tool_response>"},
        ]
    )


def as_calls(answer: ScriptedAnswer, result: str, task: str = "go") -> ScriptedRequest:
    """The conversation as chat completions have it."""
    ((name, arguments),) = answer.tool_calls
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }
    return asked(
        [
            {"role": "user", "content": task},
            {"role": "assistant", "content": answer.content, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": result},
        ],
        tools=[{"type": "function", "function": {"name": name}}],
    )


CALLS = st.one_of(
    st.tuples(st.just(BASH), st.fixed_dictionaries({"command": TEXTS})),
    st.tuples(st.just("backtrack_candidates"), st.fixed_dictionaries({"reason": TEXTS})),
    st.tuples(
        st.just("backtrack_commit"), st.fixed_dictionaries({"record_uid": TEXTS, "memory_summary": TEXTS})
    ),
)


def conversation(form: Form, answer: ScriptedAnswer) -> ScriptedRequest:
    match form:
        case PythonCode():
            return as_code(answer, "gave this")
        case TaggedText():
            return as_text(answer, "gave this")
        case FinalText():
            return as_calls(answer, "gave this", f"go. {FINISH}")
        case _:
            return as_calls(answer, "gave this")


@pytest.mark.parametrize(
    "form",
    [PythonCode(), TaggedText(), FinalText(), ToolCalls()],
    ids=["code", "tagged", "final-text", "calls"],
)
@given(call=CALLS)
def test_a_form_reads_what_it_says(form: Form, call: tuple[str, Mapping[str, str]]) -> None:
    name, arguments = call
    request = conversation(form, form.say("I do it.", name, arguments))
    assert isinstance(form_of(request), type(form))
    assert form.calls(request) == [Called(name=name, arguments=arguments, result="gave this")]
    assert name in form.offers(request) or name == "backtrack_commit"


@pytest.mark.parametrize("form", [TaggedText(), FinalText()], ids=["tagged", "final-text"])
def test_a_plain_answer_is_the_last_step(form: Form) -> None:
    answer = form.say(SUBMIT.say, SUBMIT.tool, {"command": SUBMIT.command})
    assert (answer.content, list(answer.tool_calls)) == (SUBMIT.say, [])
    request = asked(
        [
            {"role": "system", "content": f"{TAGGED} {FINISH}"},
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": answer.content},
            {"role": "user", "content": "not accepted"},
        ]
    )
    (call,) = form.calls(request)
    assert (call.name, call.arguments) == (BASH, {"command": SUBMIT.command})


def test_the_last_step_is_the_harness_s_own_way_to_submit() -> None:
    answer = PythonCode().say(SUBMIT.say, SUBMIT.tool, {"command": SUBMIT.command})
    assert "final_answer(" in str(answer.content)
    (call,) = PythonCode().calls(as_code(answer, ""))
    assert (call.name, call.arguments) == (BASH, {"command": SUBMIT.command})


def test_code_that_failed_has_its_error_as_its_result() -> None:
    answer = PythonCode().say("Back.", "backtrack_commit", {"record_uid": "x", "memory_summary": "y"})
    request = as_code(answer, "")
    messages = [dict(message) for message in request.messages]
    messages[-1]["content"] = "Call id: call_2\nError:\nCode execution failed"
    (call,) = PythonCode().calls(asked(messages))
    assert "error" in str(call.result).casefold()
