"""What the replayer answers in the cases that a run can bring about, one by one."""

from __future__ import annotations

from agentrewind.records import JsonObject
from agentrewind.replayer import Live, Mode, OnDivergence, Refuse, ServeLlm, ServeTool, Wait
from tests.core.histories import FAILED, Book, ask_tool, changed, identified

SYSTEM: JsonObject = {"role": "system", "content": "You work in a shell."}


def say(text: str, system: JsonObject = SYSTEM) -> list[JsonObject]:
    return [system, {"role": "user", "content": text}]


def test_a_call_that_failed_fails_as_often_as_it_was_tried() -> None:
    book = Book()
    failed = book.llm(say("long"), error=FAILED, attempts=3)
    shorter = book.llm(say("short"))
    again = book.llm(say("long"))
    replayer = book.history().replayer(Mode.REPLAY)
    for _ in range(3):
        assert replayer.llm(failed.request) == ServeLlm(node=failed.node)
    assert replayer.llm(shorter.request) == ServeLlm(node=shorter.node)
    assert replayer.llm(again.request) == ServeLlm(node=again.node)
    assert replayer.served == 3
    assert isinstance(replayer.llm(failed.request), Refuse)


def test_a_harness_that_tries_less_often_goes_on() -> None:
    book = Book()
    failed = book.llm(say("long"), error=FAILED, attempts=3)
    shorter = book.llm(say("short"))
    again = book.llm(say("long"))
    replayer = book.history().replayer()
    assert replayer.llm(failed.request) == ServeLlm(node=failed.node)
    assert replayer.llm(shorter.request) == ServeLlm(node=shorter.node)
    assert replayer.llm(again.request) == ServeLlm(node=again.node)
    assert replayer.llm(again.request) == Live()


def test_an_answer_after_retries_is_served_at_once_and_once() -> None:
    book = Book()
    answered = book.llm(say("go"), attempts=3)
    replayer = book.history().replayer()
    assert replayer.llm(answered.request) == ServeLlm(node=answered.node)
    assert replayer.llm(answered.request) == Live()


def test_ids_used_again_belong_to_the_answer_that_gave_them() -> None:
    book = Book()
    first = book.llm(say("one"))
    one = book.tool(first.node, "call_1", {"command": "make"})
    second = book.llm(say("two"))
    two = book.tool(second.node, "call_1", {"command": "make"})
    three = book.tool(second.node, "call_1", {"command": "make"}, ordinal=1)
    replayer = book.history().replayer()
    for node in (three, one, two):
        assert ask_tool(replayer, node) == ServeTool(node=node)


def test_the_refusal_names_the_place_and_both_sides() -> None:
    book = Book()
    asked = book.llm(say("It is 10:31, mend the build."))
    refused = book.history().replayer().llm(identified(say("It is 11:02, mend the build.")))
    assert refused == Refuse(
        record_uid=asked.node.record_uid,
        difference="messages[1].content at character 7: recorded 'It is 10:31, mend the build.', "
        "asked 'It is 11:02, mend the build.'",
    )


def test_a_first_message_with_the_time_goes_on_by_position_in_its_own_conversation() -> None:
    reviewer: JsonObject = {"role": "system", "content": "You review."}
    book = Book()
    main = book.llm(say("It is 10:31."))
    review = book.llm(say("Look at this.", reviewer))
    grown = book.llm([*say("It is 10:31."), {"role": "user", "content": "go on"}])
    replayer = book.history().replayer(on_divergence=OnDivergence.POSITION)
    # the reviewer's call comes first this time
    assert replayer.llm(review.request) == ServeLlm(node=review.node)
    served = replayer.llm(identified(say("It is 11:02.")))
    assert isinstance(served, ServeLlm)
    assert served.node == main.node
    assert served.warning is not None
    served = replayer.llm(identified([*say("It is 11:02."), {"role": "user", "content": "go on"}]))
    assert isinstance(served, ServeLlm)
    assert served.node == grown.node


def test_a_sub_agent_that_goes_on_is_not_taken_for_the_checkpoint() -> None:
    reviewer: JsonObject = {"role": "system", "content": "You review."}
    book = Book()
    review = book.llm(say("Look at this.", reviewer))
    target = book.llm(say("mend"))
    history = book.history()
    replayer = history.replayer(Mode.REWIND, checkpoint=target, on_divergence=OnDivergence.POSITION)
    assert isinstance(replayer.llm(review.request), ServeLlm)
    assert isinstance(replayer.llm(changed(review.request, "more")), Wait)
    assert replayer.llm(target.request) == Live(checkpoint=target.node)


def test_a_replay_that_goes_further_than_the_run_is_refused() -> None:
    book = Book()
    asked = book.llm(say("go"))
    replayer = book.history().replayer(Mode.REPLAY)
    replayer.llm(asked.request)
    refused = replayer.llm(changed(asked.request, "more"))
    assert isinstance(refused, Refuse)
    assert refused.record_uid is None
    key = (asked.node.record_uid, "call_9", 0)
    tool = replayer.tool(key, name="bash", input_id=asked.request.input_id, arguments={})
    assert isinstance(tool, Refuse)
    assert "bash" in tool.difference
