"""The two tools as they are offered to a model."""

from __future__ import annotations

from agentrewind.rewind.tools import (
    CANDIDATES,
    COMMIT,
    GUIDANCE,
    REJECTION_QUESTION,
    REWIND_TOOLS,
    SCHEMAS,
    openai_tools,
)


def test_the_parameters_are_those_of_the_paper() -> None:
    wanted = {
        CANDIDATES: ({"reason"}, ["reason"]),
        COMMIT: ({"record_uid", "memory_summary", "reason"}, ["record_uid", "memory_summary"]),
    }
    for name, (properties, required) in wanted.items():
        parameters = SCHEMAS[name]["parameters"]
        assert isinstance(parameters, dict)
        found = parameters["properties"]
        assert isinstance(found, dict)
        assert set(found) == properties
        assert parameters["required"] == required
        assert parameters["additionalProperties"] is False
        assert all(isinstance(each, dict) and each["type"] == "string" for each in found.values())


def test_chat_completions_get_both_under_their_names() -> None:
    tools = openai_tools()
    functions = [tool["function"] for tool in tools]
    assert [each["name"] for each in functions if isinstance(each, dict)] == [CANDIDATES, COMMIT]
    assert {CANDIDATES, COMMIT} == REWIND_TOOLS


def test_the_guidance_names_the_tools_and_leaves_templates_alone() -> None:
    assert CANDIDATES in GUIDANCE
    assert COMMIT in GUIDANCE
    assert CANDIDATES in REJECTION_QUESTION
    assert not any(mark in GUIDANCE + REJECTION_QUESTION for mark in ("{{", "{%", "}}"))
