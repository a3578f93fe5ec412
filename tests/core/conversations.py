"""Message lists for tests: strategies of JSON that harnesses send, and of what may be changed in it."""

from __future__ import annotations

import copy
from collections.abc import Callable

from hypothesis import strategies as st

from agentrewind.records import Json, JsonObject

texts = st.sampled_from(["", "go on", "look", "again", "é\U0001f600", "call_1"]) | st.text(max_size=6)

numbers: st.SearchStrategy[Json] = st.sampled_from([0, 1, -1, 0.0, -0.0, 1.0, True, False, 2**63, 0.5])
"""Values that Python takes for equal and JSON does not, among others."""

values: st.SearchStrategy[Json] = st.recursive(
    st.none() | texts | numbers,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)

messages: st.SearchStrategy[JsonObject] = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": texts},
    optional={"tool_call_id": texts, "extra": values},
)

tools: st.SearchStrategy[Json] = st.none() | st.lists(
    st.fixed_dictionaries({"type": st.just("function"), "function": st.dictionaries(texts, values)}),
    max_size=2,
)


def reordered(value: Json) -> Json:
    """The same value with the keys of every object in the opposite order."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(list(value))}
    if isinstance(value, list):
        return [reordered(each) for each in value]
    return value


def other_number(value: Json) -> Json:
    """The same value with every number replaced by one that Python takes for equal, where there is one."""
    swaps: dict[str, Json] = {
        "0": False,
        "1": True,
        "True": 1.0,
        "False": 0,
        "0.0": -0.0,
        "1.0": 1,
        "-1": -1.0,
    }
    match value:
        case dict():
            return {key: other_number(each) for key, each in value.items()}
        case list():
            return [other_number(each) for each in value]
        case bool() | int() | float():
            return swaps.get(repr(value), value)
        case _:
            return value


def edits(count: int) -> st.SearchStrategy[Callable[[list[JsonObject]], list[JsonObject]]]:
    """Changes that a harness makes between two requests of a list of `count` messages."""

    def grow(found: list[JsonObject]) -> Callable[[list[JsonObject]], list[JsonObject]]:
        return lambda given_list: [*copy.deepcopy(given_list), *found]

    def change(place: int, found: JsonObject) -> Callable[[list[JsonObject]], list[JsonObject]]:
        return lambda given_list: [*given_list[:place], found, *given_list[place + 1 :]]

    def cut(start: int, end: int) -> Callable[[list[JsonObject]], list[JsonObject]]:
        return lambda given_list: [*given_list[:start], *given_list[end:]]

    place = st.integers(0, count)
    return st.one_of(
        st.lists(messages, max_size=3).map(grow),
        st.builds(change, place, messages),
        st.builds(cut, place, place),
        st.just(
            lambda given_list: [each for each in map(other_number, given_list) if isinstance(each, dict)]
        ),
    )
