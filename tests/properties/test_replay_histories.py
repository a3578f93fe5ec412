"""Laws of the replayer: a prefix that is served once and exactly, and nothing live before its end."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from agentrewind.identity import Request, tool_input_id
from agentrewind.records import InputId, Json, LlmNode, RecordUid, ToolNode
from agentrewind.replayer import (
    Interrupted,
    Live,
    Mode,
    OnDivergence,
    Refuse,
    Replayer,
    ServeLlm,
    ServeTool,
    Wait,
)
from tests.core.histories import CHANGES, Asked, History, ask_tool, changed, histories, identified, key_of

NEW = identified([{"role": "system", "content": "agent 0"}, {"role": "user", "content": "quite new"}])

modes = st.sampled_from(Mode)


def asked_of(history: History) -> dict[RecordUid, Asked]:
    return {each.node.record_uid: each for each in history.asked}


@given(histories(), modes)
def test_in_order_everything_is_served_as_it_was_recorded(history: History, mode: Mode) -> None:
    replayer, requests = history.replayer(mode), asked_of(history)
    for node in history.path:
        if isinstance(node, ToolNode):
            assert ask_tool(replayer, node) == ServeTool(node=node)
        else:
            assert replayer.llm(requests[node.record_uid].request) == ServeLlm(node=node)
    assert replayer.served == len(history.path)
    assert replayer.remaining == 0
    assert replayer.exhausted


@given(st.data(), histories(), modes)
def test_in_any_order_each_is_served_once_and_equal_requests_in_their_order(
    data: st.DataObject, history: History, mode: Mode
) -> None:
    replayer, requests = history.replayer(mode), asked_of(history)
    expected: dict[InputId, list[RecordUid]] = defaultdict(list)
    served: dict[InputId, list[RecordUid]] = defaultdict(list)
    for each in history.asked:
        expected[each.request.input_id].append(each.node.record_uid)
    for node in data.draw(st.permutations(history.path)):
        if isinstance(node, ToolNode):
            assert ask_tool(replayer, node) == ServeTool(node=node)
            continue
        decision = replayer.llm(requests[node.record_uid].request)
        assert isinstance(decision, ServeLlm)
        served[node.input_id].append(decision.node.record_uid)
    assert served == expected
    assert replayer.served == len(history.path)


@given(st.data(), histories(), modes)
def test_nothing_is_live_before_the_end(data: st.DataObject, history: History, mode: Mode) -> None:
    replayer, requests = history.replayer(mode), asked_of(history)
    order = data.draw(st.permutations([node for node in history.path if isinstance(node, LlmNode)]))
    for node in order:
        assert isinstance(replayer.llm(NEW), Refuse | Wait)
        assert isinstance(
            replayer.tool((node.record_uid, "new", 0), name="bash", input_id=NEW.input_id, arguments={}),
            Refuse | Wait,
        )
        replayer.llm(requests[node.record_uid].request)
    decision = replayer.llm(NEW)
    assert isinstance(decision, Refuse if mode is Mode.REPLAY else Live)
    tool = replayer.tool((None, "new", 0), name="bash", input_id=NEW.input_id, arguments={})
    assert isinstance(tool, Refuse if mode is Mode.REPLAY else Live)


@given(st.data(), histories(), st.sampled_from(CHANGES))
def test_a_changed_request_is_refused_with_the_first_difference(
    data: st.DataObject, history: History, what: str
) -> None:
    place = data.draw(st.integers(0, len(history.asked) - 1))
    replayer, requests = history.replayer(), asked_of(history)
    known = {each.request.input_id for each in history.asked}
    for each in history.asked[:place]:
        replayer.llm(each.request)
    asked = history.asked[place]
    request = changed(requests[asked.node.record_uid].request, what)
    if request.input_id in known:
        return
    decision = replayer.llm(request)
    assert isinstance(decision, Refuse)
    assert decision.record_uid is not None
    assert decision.difference != "no difference"
    own = {each.node.record_uid: each for each in history.asked[place:]}
    assert own[decision.record_uid].node.conversation == asked.node.conversation
    # the refusal costs nothing: the recorded request is still there to be asked for
    assert replayer.llm(asked.request) == ServeLlm(node=asked.node)


@given(st.data(), histories(), st.sampled_from(CHANGES))
def test_by_position_a_conversation_goes_on_with_its_own_next_answer(
    data: st.DataObject, history: History, what: str
) -> None:
    replayer = history.replayer(on_divergence=OnDivergence.POSITION)
    waiting = list(history.asked)
    known = {each.request.input_id for each in history.asked}
    while waiting:
        first_of: dict[str, Asked] = {}
        for each in waiting:
            first_of.setdefault(each.node.conversation, each)
        asked = data.draw(st.sampled_from(list(first_of.values())))
        request = changed(asked.request, what)
        if request.input_id in known:
            request = asked.request
        decision = replayer.llm(request)
        assert isinstance(decision, ServeLlm)
        assert decision.node == asked.node
        assert (decision.warning is None) == (request is asked.request)
        waiting.remove(asked)
    assert isinstance(replayer.llm(NEW), Live)


@given(histories(), st.data())
def test_a_tool_call_with_other_arguments_is_refused_or_served_with_a_warning(
    history: History, data: st.DataObject
) -> None:
    if not history.tools:
        return
    node = data.draw(st.sampled_from(history.tools))
    refused = ask_tool(history.replayer(), node, arguments={"command": "rm -r ."})
    assert isinstance(refused, Refuse)
    assert refused.record_uid == node.record_uid
    assert "rm -r ." in refused.difference
    replayer = history.replayer(on_divergence=OnDivergence.POSITION)
    served = ask_tool(replayer, node, arguments={"command": "rm -r ."})
    assert isinstance(served, ServeTool)
    assert served.node == node
    assert served.warning == refused.difference


@given(histories(interrupted=True), st.data())
def test_an_interrupted_call_is_named_once_and_never_runs(history: History, data: st.DataObject) -> None:
    replayer = history.replayer()
    for each in history.asked:
        replayer.llm(each.request)
    for started in data.draw(st.permutations(history.unfinished)):
        decision = replayer.tool(key_of(started), name="bash", input_id=started.input_id, arguments={})
        assert decision == Interrupted(started=started)


@given(histories(interrupted=True), st.data())
def test_another_call_in_the_place_of_an_interrupted_one_is_refused(
    history: History, data: st.DataObject
) -> None:
    replayer = history.replayer()
    for each in history.asked:
        replayer.llm(each.request)
    started = data.draw(st.sampled_from(history.unfinished))
    arguments: Json = {"command": "rm -r ."}
    asked = tool_input_id("bash", arguments)
    decision = replayer.tool(key_of(started), name="bash", input_id=asked, arguments=arguments)
    assert isinstance(decision, Refuse)
    assert decision.record_uid == started.record_uid


@given(histories(), st.data(), st.sampled_from(OnDivergence))
def test_the_checkpoint_is_one_live_call_after_the_prefix(
    history: History, data: st.DataObject, on_divergence: OnDivergence
) -> None:
    target = data.draw(st.sampled_from(history.asked))
    replayer = history.replayer(Mode.REWIND, checkpoint=target, on_divergence=on_divergence)
    requests = asked_of(history)
    prefix = [node for node in history.path if node.record_uid < target.node.record_uid]
    for node in prefix:
        assert not replayer.exhausted
        if isinstance(node, ToolNode):
            assert isinstance(ask_tool(replayer, node), ServeTool)
        else:
            assert replayer.llm(requests[node.record_uid].request) == ServeLlm(node=node)
    refused = replayer.tool((None, "early", 0), name="bash", input_id=NEW.input_id, arguments={})
    assert isinstance(refused, Refuse)
    assert refused.record_uid == target.node.record_uid
    other = replayer.llm(NEW)
    talks = {requests[node.record_uid].node.conversation for node in prefix if isinstance(node, LlmNode)}
    own = NEW.conversation not in talks - {target.node.conversation}
    if on_divergence is OnDivergence.STOP or not own or target.node.conversation in talks:
        assert isinstance(other, Refuse | Wait)
        assert replayer.llm(target.request) == Live(checkpoint=target.node)
    else:
        assert isinstance(other, Live)
        assert other.checkpoint == target.node
        assert other.warning
    # from here on everything is live, and no call is the checkpoint again
    assert replayer.llm(target.request) == Live()
    assert replayer.llm(NEW) == Live()


class AgainstPlainLists(RuleBasedStateMachine):
    """The replayer against a model of two lists, in any order of right and wrong questions."""

    @initialize(history=histories(interrupted=True), data=st.data(), mode=modes)
    def begin(self, history: History, data: st.DataObject, mode: Mode) -> None:
        target = data.draw(st.sampled_from(history.asked)) if mode is Mode.REWIND else None
        self.history, self.mode, self.checkpoint = history, mode, target
        self.replayer: Replayer = history.replayer(mode, checkpoint=target)
        kept = [node for node in history.path if target is None or node.record_uid < target.node.record_uid]
        self.waiting = [each for each in history.asked if each.node in kept]
        self.tools = [node for node in kept if isinstance(node, ToolNode)]
        self.lost = list(history.unfinished)
        self.served = 0

    def ask(self, request: Request) -> None:
        decision = self.replayer.llm(request)
        equal = [each for each in self.waiting if each.request.input_id == request.input_id]
        if equal:
            assert decision == ServeLlm(node=equal[0].node)
            self.waiting.remove(equal[0])
            self.served += 1
        elif self.waiting:
            refused = decision.otherwise if isinstance(decision, Wait) else decision
            assert isinstance(refused, Refuse)
            left = [*self.waiting, *([self.checkpoint] if self.checkpoint else [])]
            assert refused.record_uid in {each.node.record_uid for each in left}
        elif self.checkpoint is not None and self.checkpoint.request.input_id == request.input_id:
            assert decision == Live(checkpoint=self.checkpoint.node)
            self.checkpoint = None
        elif self.checkpoint is not None or self.mode is Mode.REPLAY:
            assert isinstance(decision, Refuse | Wait)
        else:
            assert decision == Live()

    @rule(data=st.data())
    def ask_what_was_recorded(self, data: st.DataObject) -> None:
        self.ask(data.draw(st.sampled_from(self.history.asked)).request)

    @rule(data=st.data(), what=st.sampled_from(CHANGES))
    def ask_something_like_it(self, data: st.DataObject, what: str) -> None:
        self.ask(changed(data.draw(st.sampled_from(self.history.asked)).request, what))

    @rule()
    def ask_something_new(self) -> None:
        self.ask(NEW)

    @precondition(lambda self: self.history.tools)
    @rule(data=st.data())
    def call_a_tool(self, data: st.DataObject) -> None:
        node = data.draw(st.sampled_from(self.history.tools))
        decision = ask_tool(self.replayer, node)
        if node in self.tools:
            assert decision == ServeTool(node=node)
            self.tools.remove(node)
            self.served += 1
        else:
            self.judge_unknown(decision)

    @rule()
    def call_a_lost_tool(self) -> None:
        started = self.history.unfinished[0]
        decision = self.replayer.tool(key_of(started), name="bash", input_id=started.input_id, arguments={})
        if started in self.lost and self.mode is not Mode.REPLAY:
            assert decision == Interrupted(started=started)
            self.lost.remove(started)
        else:
            self.judge_unknown(decision)

    def judge_unknown(self, decision: object) -> None:
        over = not self.waiting and self.checkpoint is None
        live = over and self.mode is not Mode.REPLAY
        assert isinstance(decision, Live if live else (Refuse, Wait))

    def teardown(self) -> None:
        if hasattr(self, "replayer"):
            assert self.replayer.served == self.served
            assert self.replayer.remaining == len(self.waiting)


AgainstPlainLists.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


TestAgainstPlainLists = AgainstPlainLists.TestCase


@pytest.mark.parametrize("mode", Mode)
def test_an_empty_log_goes_live_at_once_unless_it_is_replayed(mode: Mode) -> None:
    replayer = Replayer(path=(), mode=mode, messages_of=lambda uid: ())
    assert replayer.exhausted
    assert isinstance(replayer.llm(NEW), Refuse if mode is Mode.REPLAY else Live)
