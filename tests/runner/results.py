"""Generated cells and results."""

from __future__ import annotations

import dataclasses

from hypothesis import strategies as st

from runner.cell import Cell, Strategy
from runner.result import (
    Criterion,
    Endpoint,
    Exit,
    Progress,
    Result,
    Reviews,
    State,
    SubmissionResult,
    Suspicion,
    Tokens,
)

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(lambda n: n not in (".", ".."))
counts = st.integers(0, 10**6)
ids = st.lists(st.sampled_from([f"C{n:02}" for n in range(1, 9)]), unique=True).map(sorted).map(tuple)
numbers = st.floats(0, 1e6, allow_nan=False)


def cells() -> st.SearchStrategy[Cell]:
    return st.builds(
        Cell,
        task=names,
        model=names | st.just("simulated:careless") | st.just("openai/gpt"),
        harness=names,
        strategy=st.sampled_from(Strategy),
        run=st.integers(1, 99),
    )


def results() -> st.SearchStrategy[Result]:
    return st.builds(
        Result,
        cell=cells(),
        task_digest=names,
        family=names,
        seed=counts,
        state=st.sampled_from(State),
        exit=st.sampled_from(Exit),
        detail=st.text(st.characters(codec="utf-8")),
        accepted=st.booleans(),
        success=st.just(False),
        criteria=st.lists(
            st.builds(Criterion, id=names, category=names, passed=st.booleans()), min_size=1, max_size=6
        ).map(tuple),
        submissions=st.lists(
            st.builds(
                SubmissionResult,
                attempt=counts,
                record_uid=names,
                nodes=counts,
                accepted=st.booleans(),
                first_failure=st.none() | names,
                prefix=counts,
                passed=ids,
                regressions=ids,
                repeated=counts,
            ),
            max_size=3,
        ).map(tuple),
        nodes=counts,
        llm_nodes=counts,
        tool_nodes=counts,
        rewinds=counts,
        attempts=counts,
        tries=counts,
        tokens=st.builds(Tokens, input=counts, output=counts, cached=counts),
        cost=st.none() | numbers,
        seconds=numbers,
        snapshot_seconds=st.none() | numbers,
        storage_bytes=counts,
        suspicions=st.lists(st.builds(Suspicion, kind=names, record_uid=names, text=names), max_size=2).map(
            tuple
        ),
        clean=st.booleans(),
        progress=st.lists(st.builds(Progress, nodes=counts, prefix=counts), max_size=3).map(tuple),
        sandbox=names,
        started_at=names,
        ended_at=names,
        reviews=st.none() | st.builds(Reviews, asked=counts, blocked=counts, unparsable=counts),
        endpoint=st.none() | st.builds(Endpoint, cell=names, prefix=counts),
    ).map(_settled)


def _settled(result: Result) -> Result:
    return dataclasses.replace(result, success=result.prefix == result.total)
