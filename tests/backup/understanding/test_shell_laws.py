"""Laws of reading shell text: it never fails, and nothing that changes something is called read-only."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agentrewind.backup.understanding.shell import read_shell
from tests.backup.understanding.reading import CONTEXT, verdict

_HARMLESS = ["ls", "cat /etc/hosts", "echo a 'b c'", "true", "grep -q x /etc/hosts", "[ -d /etc ]", "X=1"]
_DANGEROUS = [
    "rm x",
    "echo y > x",
    "r''m x",
    '"rm" x',
    "sort -o x y",
    "sed -i s/a/b/ x",
    "python3 -c 1",
    "tee x",
]

_AROUND = [
    "sudo {}",
    "env A=1 {}",
    "nice -n 3 {}",
    "timeout 5 {}",
    "nohup {}",
    "( {}; )",
    "{{ {}; }}",
    "! {}",
    "time {}",
    "( {} & )",
    "echo $( {} )",
    'echo "$( {} )"',
    "echo `{}`",
    "cat <( {} )",
    "X=$( {} )",
    "if {}; then ls; fi",
    "if ls; then {}; else ls; fi",
    "while {}; do break; done",
    "for i in a b; do {}; done",
    "for i in $( {} ); do ls; done",
    "case a in *) {};; esac",
    "f() {{ {}; }}; f",
    "[[ -n $( {} ) ]]",
    "cat <<END\n$( {} )\nEND",
    "{} 2>/dev/null",
    "echo a | {}",
    "{} | cat",
    "ls && {}",
    "ls || {}",
    "ls; {}",
    "ls\n{}",
    "{} # ls",
]
_PREFIXES = ("sudo", "env", "nice", "timeout", "nohup")


def _simple(text: str) -> bool:
    """Whether a wrapper program can be put before it and still runs it."""
    return not any(sign in text for sign in ";&|\n`(){}#!") and text.split()[0] not in (
        "if", "for", "while", "case", "time", "X=1",
    )  # fmt: skip


def _goes_into(pattern: str, text: str) -> bool:
    """Whether the text means the same there, to the shell and to who reads it."""
    if pattern.split()[0] in _PREFIXES:
        return _simple(text)
    if "`" in pattern:
        # shfmt does not read a test there; it is asked about
        return not any(sign in text for sign in ("`", "\n", '"', "\\", "[["))
    if text.startswith("!"):
        # bash alone takes it twice, and none within a pipe
        return not pattern.startswith(("!", "time", "echo a |"))
    # defined in some cases only, or in a pipe's shell and gone after it
    return not ("f()" in text and ("|" in pattern or "&&" in pattern))


@st.composite
def _wrapped(draw: st.DrawFn, leaf: str) -> str:
    text = leaf
    for _ in range(draw(st.integers(0, 4))):
        pattern = draw(st.sampled_from(_AROUND))
        if "\n" in text or "#" in text:
            pattern = "ls\n{}"
        if _goes_into(pattern, text):
            text = pattern.format(text)
    return text


@st.composite
def _mixed(draw: st.DrawFn) -> str:
    """Harmless commands around one that is not."""
    parts = [draw(_wrapped(draw(st.sampled_from(_HARMLESS)))) for _ in range(draw(st.integers(0, 3)))]
    parts.insert(draw(st.integers(0, len(parts))), draw(_wrapped(draw(st.sampled_from(_DANGEROUS)))))
    return (
        "\n".join(parts)
        if any("\n" in part or "#" in part or "&" in part for part in parts)
        else "; ".join(parts)
    )


@given(_mixed())
@settings(max_examples=250, deadline=None)
def test_one_harmless_word_clears_nothing(text: str) -> None:
    assert verdict(text) != "reads", text


@given(st.sampled_from(_HARMLESS).flatmap(_wrapped))
@settings(max_examples=100, deadline=None)
def test_what_only_reads_is_told_so_in_every_wrapping(text: str) -> None:
    assert verdict(text) == "reads", text


@given(st.text(max_size=60) | st.text(alphabet=" \n'\"\\$`(){}[]<>|&;#!=*?~abrm0", max_size=40))
@example("\x00")
@example("\ud800")
@example("$(" * 200)
@example("{" * 500)
@example("(" * 300 + ")" * 300)
@settings(max_examples=250, deadline=None)
def test_no_text_makes_it_fail(text: str) -> None:
    read_shell(text, CONTEXT)


_TOKENS = [
    "rm", "rm x", "ls", "echo", "cat", "x", "y", " ", " ", "; ", " && ", " || ", " | ", "\n", " & ", "$(",
    ")", "`", "(", "{ ", "; }", "'", "\"", "\\", "$X", "X=rm", "X='rm x'; ", " > ", ">>", " <<E\n", "\nE\n",
    "<<<", " 2>&1", "if ", "; then ", "; fi", "for X in rm ls; do ", "; done", "eval ", "bash -c ", "env ",
    "xargs ", "$'r\\x6d'", "{rm,x}", "${X}", "${X:-rm}", "f() { ", "; f", "#", "! ", "-", "<(", "[[ ",
    " ]]", "case x in x) ", ";; esac", "command ", "builtin ", "exec ", "time ", "trap ", " EXIT", "$IFS",
    "${IFS}", "r", "m", "true", "false", "set -- ", "$1", "\"$@\"", "printf ", "read X", "while ", "; do ",
    "break", "alias ls=rm", "shopt -s expand_aliases", "let ", "declare ", "export ", "((", "))", "a[", "]",
    "=", "$((", "unset ", "coproc ", "function ", "return", "test ",
]  # fmt: skip


def _runs(text: str, base: Path) -> bool:
    """Whether bash really runs `rm` (a stand-in that leaves a mark) or leaves any other trace."""
    programs, work = base / "programs", base / "work"
    programs.mkdir()
    work.mkdir()
    rm = programs / "rm"
    rm.write_text(f"#!/bin/sh\n: > {base}/mark\n", encoding="utf-8")
    rm.chmod(0o755)
    subprocess.run(
        ["bash", "-c", text],
        cwd=work,
        env={"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(work)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=20,
        check=False,
    )
    return (base / "mark").exists() or any(os.scandir(work))


@given(st.lists(st.sampled_from(_TOKENS), min_size=1, max_size=12).map("".join))
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_bash_really_changes_is_never_called_read_only(text: str) -> None:
    if verdict(text) != "reads":
        return
    with tempfile.TemporaryDirectory() as base:
        assert not _runs(text, Path(base)), text
