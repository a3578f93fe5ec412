"""A result comes back as it was written, and what is wrong in a file is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrewind.errors import DamagedError, UnsupportedFormatError
from runner.cell import Cell
from runner.result import Result
from runner.result_form import decode_result, encode_result, load_result, load_results, save_result
from tests.runner.results import cells, results


@settings(deadline=None, max_examples=40)
@given(results())
def test_decoding_inverts_encoding(result: Result) -> None:
    assert decode_result(encode_result(result)) == result


@settings(deadline=None)
@given(cells())
def test_an_id_stands_for_one_cell_and_for_one_folder_of_five_parts(cell: Cell) -> None:
    assert Cell.from_id(cell.id) == cell
    assert len(Path(cell.id).parts) == 5
    assert ".." not in Path(cell.id).parts


@settings(deadline=None, max_examples=40)
@given(results(), st.data())
def test_a_field_that_is_missing_or_of_another_kind_is_named(result: Result, data: st.DataObject) -> None:
    document = json.loads(encode_result(result))
    # these may be missing
    name = data.draw(
        st.sampled_from(
            sorted(document.keys() - {"cost", "snapshot_seconds", "reviews", "endpoint", "step_seconds"})
        )
    )
    missing = {key: value for key, value in document.items() if key != name}
    wrong = {**document, name: {"of": "another kind"} if not isinstance(document[name], dict) else "text"}
    for altered in (missing, wrong):
        with pytest.raises(DamagedError, match=name):
            decode_result(json.dumps(altered).encode())


@settings(deadline=None, max_examples=40)
@given(results())
def test_what_stands_there_twice_has_to_agree(result: Result) -> None:
    document = json.loads(encode_result(result))
    for name, value in (("task", "other" + document["task"]), ("prefix", document["prefix"] + 1)):
        with pytest.raises(DamagedError, match=name):
            decode_result(json.dumps({**document, name: value}).encode())


@settings(deadline=None, max_examples=40)
@given(results())
def test_a_newer_format_is_refused_by_its_number(result: Result) -> None:
    document = json.loads(encode_result(result))
    with pytest.raises(UnsupportedFormatError, match="99"):
        decode_result(json.dumps({**document, "format": 99}).encode())


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_garbage_is_damage(data: bytes) -> None:
    with pytest.raises(DamagedError):
        decode_result(data)


@settings(deadline=None)
@given(result=results())
def test_results_are_found_below_a_folder(tmp_path_factory: pytest.TempPathFactory, result: Result) -> None:
    root = tmp_path_factory.mktemp("campaign")
    folder = root / "cells" / result.cell.id
    folder.mkdir(parents=True)
    assert load_results(root) == ()
    assert load_result(folder) is None
    save_result(result, folder)
    assert load_results(root) == (result,)
