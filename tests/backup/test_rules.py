"""Rules: what a file may say, what is wrong with it by line, and which commands a rule is for."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrewind.backup.kinds.table import kind_of
from agentrewind.backup.rules.loading import RulesError, load_rules, parse_rules, read_rules, shipped_rules
from agentrewind.backup.rules.matching import Rules
from agentrewind.backup.values import Command, Tier, Word

RESET = """
[[rule]]
id = "git.reset"
kind = "git"
tier = "pair"
program = ["git"]
subcommand = ["reset", "remote remove"]
any_option = ["--hard", "-q"]
no_option = ["--dry-run", "-n"]
values = ["-C", "-c", "-m"]
captures = "x"
restore = "y"
"""


def _command(text: str, *unknown: str) -> Command:
    return Command(argv=tuple(Word(word, literal=word not in unknown) for word in text.split()))


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("git reset --hard", True),
        ("/usr/bin/git reset --hard", True),
        ("git -C d reset --hard HEAD", True),
        ("git -Cd reset --hard", True),
        ("git --har reset", True),
        ("git reset --hard=x", True),
        ("git reset -vq", True),
        ("git remote remove o -q", True),
        ("git reset --hard -mn", True),
        ("git reset --hard -m -n", True),
        ("git reset --hard -m -- -n", False),
        ("git reset --hard --dry-run --no-dry-run", True),
        ("git reset $X", True),
        ("git reset --hard $X", True),
        ("git reset", False),
        ("git reset -- --hard", False),
        ("git reset -m --hard", False),
        ("git reset --hard -n", False),
        ("git reset --hard -vn", False),
        ("git reset --hard --dry-run", False),
        ("git remote add --hard", False),
        ("git $X --hard", False),
        ("git", False),
        ("gitk reset --hard", False),
    ],
)
def test_which_commands_a_rule_is_for(text: str, matches: bool) -> None:
    rules = Rules(parse_rules(RESET, "t.toml"))
    assert bool(rules.for_command(_command(text, "$X"))) is matches


def test_tiers_come_in_order_and_a_rule_of_a_user_replaces_one_of_its_name(tmp_path: Path) -> None:
    own = tmp_path / "backup" / "rules.toml"
    own.parent.mkdir()
    own.write_text(
        RESET.replace("git.reset", "files.rm").replace('"git"]', '"rm"]')
        + RESET.replace("git.reset", "own.first").replace('tier = "pair"', 'tier = "rewrite"'),
        encoding="utf-8",
    )
    rules = load_rules(tmp_path)
    assert rules.all[0].id == "own.first"
    assert rules.all[0].tier is Tier.REWRITE
    assert next(rule for rule in rules.all if rule.id == "files.rm").source == f"{own}:2"
    assert len({rule.id for rule in rules.all}) == len(rules.all)


def test_shipped_rules_are_sound_and_of_kinds_that_exist() -> None:
    for rule in shipped_rules():
        assert kind_of(rule.kind)
        assert rule.captures
        assert rule.restore
    assert len(shipped_rules()) > 10


@pytest.mark.parametrize(
    ("change", "line", "says"),
    [
        (('id = "git.reset"', 'id = "Reset"'), 3, "family.name"),
        (('kind = "git"', 'kind = "gti"'), 4, "must be one of"),
        (('tier = "pair"', 'tier = "subagent"'), 5, "rewrite, pair or snapshot"),
        (('program = ["git"]', 'program = "git"'), 6, "list of names"),
        (('"--hard", "-q"', '"hard"'), 8, "each with its dash"),
        (('captures = "x"', 'catpures = "x"'), 11, "unknown key 'catpures'"),
        (('captures = "x"', ""), 2, "captures is missing"),
        (('program = ["git"]', 'tool = ["Write"]'), 7, "subcommand needs program"),
        (('program = ["git"]', 'program = ["git"]\ntool = ["Write"]'), 2, "exactly one of"),
        (('restore = "y"', "restore = "), 12, "Invalid value"),
        (("[[rule]]", "[rule]"), 1, "two brackets"),
        (("[[rule]]", "[[rules]]"), 1, "unknown table 'rules'"),
    ],
)
def test_what_is_wrong_is_named_by_line(
    tmp_path: Path, change: tuple[str, str], line: int, says: str
) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(RESET.replace(*change), encoding="utf-8")
    with pytest.raises(RulesError) as caught:
        read_rules(path)
    assert caught.value.exit_code == 2
    assert any(each.startswith(f"{path}:{line}: ") and says in each for each in caught.value.problems), (
        caught.value.problems
    )


def test_the_same_id_twice_is_named_at_the_second() -> None:
    with pytest.raises(RulesError, match=r"t\.toml:15: id git\.reset stands twice"):
        parse_rules(RESET + RESET, "t.toml")


_VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.lists(st.text(max_size=3), max_size=2)
)


@given(st.dictionaries(st.sampled_from(["id", "kind", "tier", "program", "tool", "values", "x"]), _VALUES))
def test_no_table_makes_the_reader_fail_otherwise(table: dict[str, object]) -> None:
    lines = [f"{key} = {_toml(value)}" for key, value in table.items() if value is not None]
    with pytest.raises(RulesError):
        parse_rules("\n".join(["[[rule]]", *lines]), "t.toml")


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(_toml(each) for each in value)}]"
    if isinstance(value, str):
        return "'" + "".join(sign for sign in value if sign.isalnum()) + "'"
    return str(value)
