"""Law of conversations side by side: however fast, each gets its own, and none goes ahead of the log."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from agentrewind.identity import tool_input_id
from agentrewind.records import JsonObject, LlmNode, Node, RecordUid
from agentrewind.replayer import (
    Beyond,
    Live,
    LlmDecision,
    Mode,
    OnDivergence,
    Refuse,
    Replayer,
    ServeLlm,
    ServeTool,
    ToolDecision,
    Wait,
)
from tests.core.histories import Asked, Book, identified

STEPS = 5


@dataclass
class Talk:
    """One agent, which does the same at every run: it asks, calls some tools, asks again."""

    name: str
    tools: tuple[int, ...]
    turn: int = 0
    called: int = -1
    parent: RecordUid | None = None
    got: list[RecordUid] = field(default_factory=list)

    @property
    def asks(self) -> bool:
        return self.called < 0

    @property
    def over(self) -> bool:
        return self.turn >= STEPS

    def messages(self) -> list[JsonObject]:
        """The same user's words in every conversation: only what each was told first is its own."""
        said: list[JsonObject] = [{"role": "system", "content": self.name}]
        for turn in range(self.turn + 1):
            said.append({"role": "user", "content": f"go {turn}"})
        return said

    def went_on(self, uid: RecordUid | None) -> None:
        """The call that stood here is answered."""
        if uid is not None:
            self.got.append(uid)
        if self.asks:
            self.parent = uid
        self.called += 1
        if self.called >= self.tools[self.turn]:
            self.turn, self.called = self.turn + 1, -1


@dataclass
class Recorded:
    path: list[Node]
    asked: list[Asked]


def record(talks: list[Talk], order: list[int]) -> Recorded:
    book, path, asked = Book(), [], []
    answers: dict[str, LlmNode] = {}
    node: Node
    for number in order:
        talk = talks[number % len(talks)]
        if talk.over:
            continue
        if talk.asks:
            found = book.llm(talk.messages())
            asked.append(found)
            node = answers[talk.name] = found.node
        else:
            node = book.tool(answers[talk.name], f"call_{talk.called}", {"command": "ls"})
        path.append(node)
        talk.went_on(node.record_uid)
    return Recorded(path, asked)


def ask(replayer: Replayer, talk: Talk) -> LlmDecision | ToolDecision:
    if talk.asks:
        return replayer.llm(identified(talk.messages()))
    key = (talk.parent, f"call_{talk.called}", 0)
    arguments: JsonObject = {"command": "ls"}
    return replayer.tool(key, name="bash", input_id=tool_input_id("bash", arguments), arguments=arguments)


@st.composite
def recordings(draw: st.DrawFn) -> tuple[list[tuple[str, tuple[int, ...]]], Recorded]:
    count = draw(st.integers(2, 4))
    kinds = [
        (f"agent {name}", tuple(draw(st.lists(st.integers(0, 2), min_size=STEPS, max_size=STEPS))))
        for name in range(count)
    ]
    order = draw(st.lists(st.integers(0, 11), max_size=30))
    # each has asked at least once, be it after the target: of what the log never heard nothing is known
    order += range(count)
    return kinds, record([Talk(*kind) for kind in kinds], order)


@settings(deadline=None)
@given(recordings(), st.data(), st.sampled_from([Mode.REWIND, Mode.RESUME]), st.sampled_from(OnDivergence))
def test_each_is_served_its_own_and_waits_for_the_others(
    made: tuple[list[tuple[str, tuple[int, ...]]], Recorded],
    data: st.DataObject,
    mode: Mode,
    on_divergence: OnDivergence,
) -> None:
    kinds, recorded = made
    target = data.draw(st.sampled_from(recorded.asked)) if mode is Mode.REWIND else None
    kept = [node for node in recorded.path if target is None or node.record_uid < target.node.record_uid]
    later = frozenset(each.node.input_id for each in recorded.asked if each.node not in kept)
    messages = {each.node.record_uid: each.request.messages for each in recorded.asked}
    answers = {node.record_uid for node in kept if isinstance(node, LlmNode)}
    replayer = Replayer(
        path=kept,
        beyond=Beyond(later=later),
        checkpoint=target.node if target else None,
        mode=mode,
        on_divergence=on_divergence,
        messages_of=lambda uid: messages[uid],
    )
    own = {name: [node.record_uid for node in kept if _name(node, recorded) == name] for name, _ in kinds}
    talks = [Talk(*kind) for kind in kinds]
    waiting = list(talks)
    while any(not talk.over for talk in talks):
        assert waiting, "everybody waits for somebody"
        talk = data.draw(st.sampled_from(waiting))
        if talk.over:
            waiting.remove(talk)
            continue
        decision = ask(replayer, talk)
        asked = sum(uid in answers for each in talks for uid in each.got)
        match decision:
            case ServeLlm(node=node, warning=warning) | ServeTool(node=node, warning=warning):
                assert warning is None
                talk.went_on(node.record_uid)
                assert talk.got == own[talk.name][: len(talk.got)]
                waiting = list(talks)
            case Live(checkpoint=checkpoint):
                assert asked == len(answers), "live before the prefix was served"
                assert (checkpoint is None) == (target is None)
                if target is not None:
                    assert talk.messages() == list(target.request.messages)
                break
            case Wait():
                waiting.remove(talk)
            case _:
                assert isinstance(decision, Refuse)
                raise AssertionError(decision.difference)
    assert replayer.remaining == 0 or target is None


def _name(node: Node, recorded: Recorded) -> str:
    uid = node.record_uid if isinstance(node, LlmNode) else node.parent
    asked = next(each for each in recorded.asked if each.node.record_uid == uid)
    return str(asked.request.messages[0]["content"])
