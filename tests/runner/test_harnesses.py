"""One task end to end with every harness: it makes its mistake, is rejected, goes back, and is accepted."""

from __future__ import annotations

import dataclasses

import pytest

from agentrewind.adapters import ADAPTERS
from agentrewind.records import ToolNode
from runner.cell import Strategy
from tests.runner.stage import Stage, cell_of

MODULES = {
    "mini-swe-agent": "minisweagent",
    "smolagents": "smolagents",
    "qwen-agent": "qwen_agent",
    "langchain": "langchain",
}


@pytest.mark.parametrize("harness", sorted(ADAPTERS))
def test_an_agent_rewinds_and_solves_its_task(stage: Stage, harness: str) -> None:
    pytest.importorskip(MODULES[harness])
    cell = dataclasses.replace(cell_of(Strategy.REWIND), harness=harness)
    result = stage.run(stage.order(cell))
    assert result.success, result.detail
    assert result.rewinds == 1
    assert [each.accepted for each in result.submissions] == [False, True]
    assert result.tokens.input > 0
    assert not result.suspicions
    # nothing that an agent was told names a place outside its sandbox
    timeline = stage.timeline(cell)
    last = [node for node in timeline.path() if not isinstance(node, ToolNode)][-1]
    said = str(timeline.messages(last.record_uid))
    assert str(stage.root) not in said
    assert str(stage.tasks) not in said
