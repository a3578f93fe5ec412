"""Changes outside the workspace by way of find, of links made before, or of the state of the shell."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agentrewind.backup.decide import decide
from agentrewind.backup.kinds.files_targets import paths_in
from agentrewind.backup.rules.loading import load_rules
from agentrewind.backup.values import Context, Decision, Tier, ToolCall

Judge = Callable[[str], Decision]

RULES = load_rules(None)
FURNISH = """mkdir ws out out/d ws/sub; echo precious >out/f; echo precious >out/d/h; cd ws; echo hi >a
echo new >sub/z; ln -s ../out link; tar cf x.tar a; (cd ..; tar cf ws/y.tar out/f); git init -q rep"""


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    base = tmp_path.resolve()
    subprocess.run(["bash", "-c", FURNISH], cwd=base, check=True, capture_output=True)
    context = Context(
        cwd=base / "ws", env={"PATH": os.environ["PATH"]}, home=base / "home", workspace=base / "ws"
    )

    def judged(text: str) -> Decision:
        call = ToolCall(name="bash", arguments={"command": text.replace("@", str(base / "out"))})
        return decide(call, context, RULES)

    return judged


@pytest.mark.parametrize(
    "text",
    [
        r"find . -name a -exec rm ../out/f \;",
        r"find . -name a -exec rm {} ../out/f \;",
        r"find . -name a -exec rm ../out/f {} +",
        r"find . -name a -execdir rm ../out/f \;",
        r"find . -name a -exec chmod {} ../out/f \;",
        r"find . -name a -exec touch -r {} ../out/f \;",
        r"find . -name a -exec rm -rf {}/../../out/d \;",
        r"find . -name a -exec mv {} ../out/f \;",
        r"find . -name a -exec ln -f {} ../out/f \;",
        r"find . -name a -exec tee ../out/f \;",
        r"find . -name a -exec xargs rm \;",
        "find . -name a | xargs rm ../out/f",
        "find . -name a | xargs -I{} rm ../out/f",
        "find . -name a | xargs truncate -s0 ../out/f",
        "find sub -type d | xargs -I% rm -rf %/../../out/d",
        "find . -name a | sed s,^,../out/, | xargs rm",
        "find . -name a | head -1 | xargs dirname | xargs rm -r",
        r"find . -name a -printf '../out/f\n' | xargs rm",
        "find . -name a |& xargs rm",
        "find . -name a; echo ../out/f | xargs rm",
        "find . -name a | xargs -d/ rm",
        "find . -name a | xargs -a names rm",
        "find . -name a | xargs rm < names",
        "find . -name a | { xargs rm; } < names",
        "find . -name a | (cd ../out && xargs rm)",
        "{ find . -name a; echo ../out/f; } | xargs rm",
        "ls | xargs rmdir",
    ],
)
def test_find_and_xargs_hand_on_more_than_matches(judge: Judge, text: str) -> None:
    assert judge(text).tier is not Tier.NONE


@pytest.mark.parametrize(
    "text",
    [
        r"find . -name a -exec rm -f {} \;",
        "find . -name a -exec chmod 600 {} +",
        "find . -name a -exec truncate -s 0 {} +",
        "find . -name a | xargs rm -f",
        "find . -name a -print | xargs rm -f",
        "find . -name a 2>/dev/null | xargs -I% rm %",
        "find . -name a -print0 | xargs -0 rm",
        "find . -name a -print -delete",
    ],
)
def test_find_and_xargs_inside_the_workspace(judge: Judge, text: str) -> None:
    decision = judge(text)
    assert (decision.tier, decision.uncovered) == (Tier.NONE, ())


@pytest.mark.parametrize(
    "text",
    [
        "ln -s ../out lk2 && rm lk2/f",
        "ln -s @ l; echo x > l/f",
        "ln -s ../out l; cd l && rm f",
        "ln -s ../out l; rm */f",
        "ln -s ../out/d l; rm l/../f",
        "ln -s ../out l; find l/ -name f -delete",
        "ln -s ../out l; find -L . -name h -exec rm {} +",
        "ln -st . ../out/d; rm d/h",
        "mv link l9 && rm l9/f",
        "cp -a link l3 && rm l3/f",
        "mkdir n; cp -a link n; rm n/link/f",
        "rm -rf sub && ln -s ../out sub && rm sub/f",
        "rm -rf sub && mv link sub && rm sub/f",
        "ln ../out/f nn && echo x > nn",
        "ln ../out/f nn && chmod 600 nn",
        "ln ../out/f nn && chmod -R 600 .",
        "ln ../out/f nn && mv nn mm && echo x > mm",
        "cp -rl ../out/d hd && echo x > hd/h",
        "git clone --local rep cl && echo x > cl/y",
        "cd rep && git checkout other && echo x > y",
        "tar xf x.tar && echo x > a",
        "cd rep && git checkout other && rm */y",
        "cd rep && git checkout other; cd sub && git commit -m x",
        "cd rep && git worktree add ../wt other && echo x > ../wt/y",
        "git clone --local rep cl; ln -s ../out cl/sub; cd cl/sub && git commit -m x",
        "cd rep && git stash pop; echo x > sub/y",
        "rm -rf rep; ln -s ../out/rep rep; cd rep && git commit -m x",
        "tar cf x.tar a && tar xf x.tar -C ../out",
        "mv y.tar x.tar && tar xf x.tar -C ..",
        "cat y.tar > x.tar && tar xf x.tar -C ..",
        "cp y.tar x.tar && tar --extract -f x.tar -C ..",
        "for i in 1 2; do rm l/f; ln -s ../out l; done",
        "rm l/f; ln -s ../out l; rm l/f",
        "while read x; do echo y > l/f; ln -s ../out l; done",
        "cd rep; ln -s ../../out .git/hooks2; git gc",
    ],
)
def test_what_goes_through_a_path_that_the_call_makes_is_unclear(judge: Judge, text: str) -> None:
    assert judge(text).uncovered


@pytest.mark.parametrize(
    "text",
    [
        "mkdir b && echo x > b/c",
        "echo x > b; rm b",
        "cd rep && git add . && git commit -m x",
        "cd rep && git checkout -b topic && echo x > y && git add y",
        "cd rep && git checkout -q other; git commit -q -m x",
        "git clone -q --local rep cl && rm -rf cl/.git",
        "mv a b && rm b",
        "mv a b && echo x > c",
        "ln -s a b && rm -f b",
        "cp a b && echo x >> b",
        "cp -r sub new && echo x > a",
        "mkdir -p b && tar xf x.tar -C b",
        "mv a b && find . -name z -delete",
        "sed -i s/h/j/ a && echo x > a",
    ],
)
def test_ordinary_calls_stay_clear(judge: Judge, text: str) -> None:
    decision = judge(text)
    assert (decision.tier, decision.uncovered) == (Tier.NONE, ())


@pytest.mark.parametrize(
    "text",
    [
        "x=../out/f; f() { local x=a; }; f; rm $x",
        "x=../out/f; f() { declare x=a; }; f; rm $x",
        "x=../out/f; f() { eval 'local x=a'; }; f; rm $x",
        "x=a; f() { rm $x; }; x=../out/f f",
        "x=a; x=../out/f eval 'rm $x'",
        "set -- a ../out/f; shift; rm $1",
        "set -- a b ../out/f; shift 2; rm $1",
        "set -- a ../out/f; shift $n; rm $1",
        "q=../out/f; r=a; declare -n r=q; rm $r",
        "x=a; y=x; declare $y=../out/f; rm $x",
        "x=a; y=x; export $y=../out/f; rm $x",
        "x=a; command export x=../out/f; rm $x",
        "readonly x=../out/f; x=a; rm $x",
        "x=a; printf -vx ../out/f; rm $x",
        "OPTARG=a; getopts a: o -a ../out/f; rm $OPTARG",
        "cd -P link/..; rm out/f",
        "cd -P link; cd ..; rm out/f",
        "cd sub; pushd ../../out; pushd ../ws; pushd +1; rm f",
        "pushd ../out; pushd; rm f",
        "HOME=../out cd; rm f",
    ],
)
def test_the_state_of_the_shell_is_unknown_where_it_is_not_followed(judge: Judge, text: str) -> None:
    assert judge(text).tier is not Tier.NONE


@pytest.mark.parametrize(
    "text",
    [
        "f() { local y=b; rm $y; }; f",
        "set -- x a; shift; rm $1",
        "declare -r x=a; echo $x",
        "export X=b; echo x > $X",
        "pushd sub; rm z",
        "local_dir=sub; cd -- $local_dir && rm z",
    ],
)
def test_the_state_of_the_shell_is_followed(judge: Judge, text: str) -> None:
    assert judge(text).tier is Tier.NONE


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (r"b\xff", b"b\xff"),
        (r"b\377", b"b\xff"),
        (r"\303\251", "é".encode()),
        (r"\xc3\xa9", "é".encode()),
        (r"é\x41", "éA".encode()),
        (r"\u0041\x42", b"AB"),
        (r"f\0g", b"f"),
        (r"tab\there", b"tab\there"),
    ],
)
def test_escapes_in_a_word_are_bytes(judge: Judge, written: str, name: bytes) -> None:
    decision = judge(f"rm @/$'{written}'")
    paths = [paths_in(target) for target in decision.targets]
    assert [[os.fsencode(path.name) for path in each] for each in paths] == [[name]]
    assert judge(f"./tool $'{written}'").uncovered[0].encode()


@pytest.mark.parametrize("written", [r"\u00e9", r"\x{66}", r"\ud800", r"\U00110000"])
def test_escapes_that_depend_on_the_shell_are_unknown(judge: Judge, written: str) -> None:
    assert judge(f"rm @/$'{written}'").uncovered
