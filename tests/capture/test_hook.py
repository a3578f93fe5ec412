"""Callbacks after an import, whatever else looks for the module, and names that are bound anew everywhere."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from agentrewind.capture.hook import replace_everywhere, when_imported


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory to import from; what was imported from it is forgotten again."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before, finders = set(sys.modules), list(sys.meta_path)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]
    sys.meta_path[:] = finders


def wrap(module: ModuleType) -> None:
    vars(module)["answer"] = lambda: "wrapped"


def test_the_callback_comes_before_the_importer_binds_names(place: Path) -> None:
    (place / "hooked_one.py").write_text("def answer(): return 'original'\n")
    (place / "hooked_user.py").write_text("from hooked_one import answer\nvalue = answer()\n")
    when_imported("hooked_one", wrap)
    assert "hooked_one" not in sys.modules
    assert importlib.import_module("hooked_user").value == "wrapped"


def test_a_module_that_is_there_already_is_handed_over_at_once(place: Path) -> None:
    (place / "hooked_two.py").write_text("def answer(): return 'original'\n")
    module = importlib.import_module("hooked_two")
    found: list[ModuleType] = []
    when_imported("hooked_two", found.append)
    assert found == [module]


def test_a_look_whether_it_exists_uses_nothing_up(place: Path) -> None:
    (place / "hooked_three.py").write_text("def answer(): return 'original'\n")
    when_imported("hooked_three", wrap)
    for _ in range(2):
        assert importlib.util.find_spec("hooked_three") is not None
    assert importlib.import_module("hooked_three").answer() == "wrapped"


def test_an_import_that_failed_is_hooked_when_it_is_tried_again(place: Path) -> None:
    (place / "hooked_four.py").write_text("raise ImportError('not yet')\n")
    when_imported("hooked_four", wrap)
    with pytest.raises(ImportError, match="not yet"):
        importlib.import_module("hooked_four")
    (place / "hooked_four.py").write_text("def answer(): return 'original, and longer'\n")
    importlib.invalidate_caches()
    assert importlib.import_module("hooked_four").answer() == "wrapped"


def test_the_callback_comes_once_and_the_finder_goes(place: Path) -> None:
    (place / "hooked_five.py").write_text("x = 1\n")
    finders = len(sys.meta_path)
    found: list[ModuleType] = []
    when_imported("hooked_five", found.append)
    module = importlib.import_module("hooked_five")
    assert importlib.import_module("hooked_five") is module
    assert found == [module]
    assert len(sys.meta_path) == finders


def test_hooked_again_and_again_before_the_import(place: Path) -> None:
    (place / "hooked_seven.py").write_text("x = 1\n")
    finders = len(sys.meta_path)
    found: list[str] = []

    def tell(module: ModuleType, *, what: str) -> None:
        found.append(what)

    for _ in range(2000):
        when_imported("hooked_seven", partial(tell, what="one"))
        when_imported("hooked_seven", partial(tell, what="other"))
    assert len(sys.meta_path) == finders + 1
    importlib.import_module("hooked_seven")
    assert found == ["one", "other"]
    assert len(sys.meta_path) == finders


def test_packages_keep_their_submodules_and_resources(place: Path) -> None:
    (place / "hooked_six").mkdir()
    (place / "hooked_six" / "__init__.py").write_text("from hooked_six.part import value\n")
    (place / "hooked_six" / "part.py").write_text("value = 6\n")
    found: list[ModuleType] = []
    when_imported("hooked_six", found.append)
    module = importlib.import_module("hooked_six")
    assert module.value == 6
    assert module.__spec__ is not None
    assert module.__spec__.submodule_search_locations == [str(place / "hooked_six")]
    assert found == [module]


def test_a_module_that_does_not_exist_stays_missing(place: Path) -> None:
    when_imported("hooked_nowhere", wrap)
    assert importlib.util.find_spec("hooked_nowhere") is None
    with pytest.raises(ModuleNotFoundError, match="hooked_nowhere"):
        importlib.import_module("hooked_nowhere")


def test_every_name_of_an_object_is_bound_anew(place: Path) -> None:
    (place / "hooked_seven.py").write_text("def answer(): return 'original'\n")
    (place / "hooked_alias.py").write_text(
        "from hooked_seven import answer\nfrom hooked_seven import answer as other\n"
    )
    module, alias = importlib.import_module("hooked_seven"), importlib.import_module("hooked_alias")
    count = replace_everywhere(module.answer, lambda: "wrapped")
    assert (module.answer(), alias.answer(), alias.other()) == ("wrapped", "wrapped", "wrapped")
    assert count == 3
