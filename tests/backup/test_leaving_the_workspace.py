"""Which commands on files reach out of the workspace though they seem to stay in it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agentrewind.backup.decide import decide
from agentrewind.backup.rules.loading import load_rules
from agentrewind.backup.values import Context, Decision, Tier, ToolCall

RULES = load_rules(None)

DESK = """
mkdir ws out; echo precious >out/f; mkdir out/d; echo precious >out/d/h; cd ws; echo hi >a; mkdir sub
echo new >sub/z; ln -s ../out link; ln -s ../../out sub/k; ln ../out/f hl; ln a twin; mkdir q deep
ln -s ../../out/f q/z; ln ../out/f deep/hl; tar cf x.tar a; cd ..; tar cf ws/y.tar out/f
"""


class Desk:
    """A workspace with links and names that lead out of it."""

    def __init__(self, base: Path) -> None:
        subprocess.run(["bash", "-ec", DESK], cwd=base, check=True, env={"PATH": os.environ["PATH"]})
        self.base = base
        self.context = Context(
            cwd=base / "ws", env={"PATH": os.environ["PATH"]}, home=base, workspace=base / "ws"
        )

    def shell(self, text: str) -> Decision:
        return decide(ToolCall(name="bash", arguments={"command": text}), self.context, RULES)

    def kept(self, decision: Decision) -> set[str]:
        """What of each target is kept, relative to the desk."""
        found: set[str] = set()
        for target in decision.targets:
            paths = target.detail.get("paths", [])
            assert isinstance(paths, list)
            found |= {os.path.relpath(str(path), self.base) for path in paths}
        return found


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path.resolve())


@pytest.mark.parametrize(
    "text",
    [
        "tar xf x.tar --to-command='tee ../out/f'", "tar -xf x.tar --checkpoint-action=exec=./a",
        "tar cf n.tar a --checkpoint=1 --checkpoint-action=exec=./a", "tar -cf n.tar -I ./a a",
        "tar -c --use-compress-program=./a -f n.tar a", "tar cf n.tar --remove-files ../out/f",
        "tar x -C .. < y.tar", "tar xP -f y.tar", "tar -xPf y.tar", "tar --absolute-names -xf y.tar",
        "tar -xf y.tar --one-top-level=../out", "tar xf y.tar --transform=s,^,/tmp/, -P",
        "tar -xf x.tar --xform s,a,b,", "tar tf x.tar --index-file=../out/f", "tar cf n.tar -g ../out/f a",
        "tar -xf x.tar --overwrite", "tar -cf host:n.tar a", "tar xf x.tar $X", "tar -xf x.tar -T list",
        "TAR_OPTIONS=-P tar -xf x.tar", "tar -xf nothing-yet.tar", "tar -xf x.tar --to-com=./a",
        "tar --delete -f x.tar a", "tar xfC x.tar $D", "tar xf x.tar -F ./a",
    ],
)  # fmt: skip
def test_what_tar_may_do_elsewhere_is_not_covered(desk: Desk, text: str) -> None:
    decision = desk.shell(text)
    assert decision.uncovered, decision
    assert decision.tier is Tier.SUBAGENT


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("tar xfC y.tar ..", {"out/f"}), ("tar xCf .. y.tar", {"out/f"}), ("tar -xC .. -f y.tar", {"out/f"}),
        ("tar -C.. -xf y.tar", {"out/f"}), ("tar xf x.tar --directory=../out", {"out/a"}),
        ("tar xf x.tar -C link", {"out/a"}), ("tar xf x.tar --directory link/d", {"out/d/a"}),
        ("tar cf ../out/f a", {"out/f"}), ("tar cf q/z a", {"out/f"}), ("tar -rf link/f a", {"out/f"}),
        ("cd .. && tar xzvf ws/y.tar", {"out/f"}), ("tar xf x.tar", set()), ("tar c a | cat", set()),
        ("tar cf n.tar *", set()), ("tar -czf n.tar a", set()),
        ("tar cvzf n.tar --exclude=b a", set()), ("tar xf x.tar -O", set()),
    ],
)  # fmt: skip
def test_what_tar_writes_is_kept(desk: Desk, text: str, kept: set[str]) -> None:
    decision = desk.shell(text)
    assert (desk.kept(decision), decision.uncovered) == (kept, ())


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("rm -rf link/", {"out"}), ("rm -rf ./link//", {"out"}), ("rm -rf sub/k/", {"out"}),
        ("rm -rf sub/*/", {"out"}), ("rm --recurs -f link/", {"out"}), ("rm -r --force link/.", {"out"}),
        ("rm -rf link", set()), ("rm --recu ../out/d", {"out/d"}), ("rm -rf sub/../link/d/", {"out/d"}),
    ],
)  # fmt: skip
def test_a_link_with_a_slash_is_what_it_leads_to(desk: Desk, text: str, kept: set[str]) -> None:
    decision = desk.shell(text)
    assert (desk.kept(decision), decision.uncovered) == (kept, ())


@pytest.mark.parametrize(
    "text",
    [
        "echo x > hl", "echo x >> deep/hl", "cp a hl", "cp a deep/hl", "truncate -s 0 hl", "echo x | tee hl",
        "dd if=a of=hl", "chmod 600 hl", "chmod -R 700 deep", "chown -R root .", "touch hl", "tar cf hl a",
        "shred hl", "find deep -type f -exec chmod 600 {} +", "find . -name hl | xargs truncate -s 0",
        "sqlite3 hl 'create table t(x)'", "ln -s hl soft && chmod 600 ./hl", "cd deep; : > hl",
    ],
)  # fmt: skip
def test_a_file_with_a_name_outside_is_not_only_the_workspaces(desk: Desk, text: str) -> None:
    assert any("other names" in each for each in desk.shell(text).uncovered)


@pytest.mark.parametrize(
    "text",
    [
        "echo x > twin", "cp sub/z twin", "chmod 600 a", "chmod -R 700 sub", "rm hl", "mv hl gone",
        "sed -i s/p/q/ hl", "ln -f a hl", "find deep -delete", "find deep -type f -exec rm {} +",
        "rm -rf deep", "chown -R root sub", "chmod -R 700 .git",
    ],
)  # fmt: skip
def test_what_replaces_one_name_leaves_the_others(desk: Desk, text: str) -> None:
    decision = desk.shell(text)
    assert (decision.tier, decision.uncovered) == (Tier.NONE, ())


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("chown -RL root sub", {"out"}), ("chgrp -R -L root sub", {"out"}), ("chmod -R -L 700 sub", {"out"}),
        ("chown --recursive -L root q", {"out/f"}), ("chown -RL root link/d", {"out/d"}),
        ("chmod --recurs 700 ../out", {"out"}), ("mkdir q/r; chown -LR 0:0 ./q", {"out/f"}),
    ],
)  # fmt: skip
def test_a_change_of_all_below_follows_links_where_it_is_told_to(
    desk: Desk, text: str, kept: set[str]
) -> None:
    decision = desk.shell(text)
    assert (desk.kept(decision), decision.uncovered) == (kept, ())
    assert all(each.detail["deep"] for each in decision.targets)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("cp -r sub/. ../out", {"out"}), ("cp -r . ../out", {"out"}), ("cp -a ./ ../out/d", {"out/d"}),
        ("cp -R sub/.// link/", {"out"}), ("cp -rt ../out/d sub/..", {"out/d"}),
        ("cp -aT sub ../out/d", {"out/d"}),
        ("cp -r ../out/d/. ../new", {"new"}), ("cp --parents sub/z ../out", {"out/sub"}),
        ("cp -r sub/. q", {"out/f"}), ("cp -rT sub q", {"out/f"}), ("cp -r sub/. sub", set()),
        ("cp -r sub ../out", {"out/sub"}), ("cp --parents -t ../out/d sub/z a", {"out/d/sub", "out/d/a"}),
    ],
)  # fmt: skip
def test_a_copy_of_all_that_a_folder_holds_goes_over_the_destination(
    desk: Desk, text: str, kept: set[str]
) -> None:
    decision = desk.shell(text)
    assert (desk.kept(decision), decision.uncovered) == (kept, ())


def test_a_tree_that_is_copied_over_files_with_other_names_is_not_covered(desk: Desk) -> None:
    assert any("other names" in each for each in desk.shell("cp -r sub/. deep").uncovered)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("cp -b a ../out/f", {"out/f", "out/f~", "out/f.~3~"}), ("cp -b a q", set()),
        ("cp -fb a ../out", {"out/a", "out/a~", "out/a.~1~"}),
        ("cp --backup=numbered a ../out/f", {"out/f", "out/f~", "out/f.~3~"}),
        ("cp -S .old a ../out/f", {"out/f", "out/f.old", "out/f.~3~"}),
        ("mv -bS.old ../out/d/h ../out/f", {"out/d/h", "out/f", "out/f.old", "out/f.~3~"}),
        ("mv --backup a link/f", {"out/f", "out/f~", "out/f.~3~"}),
        ("ln -sfb a ../out/f", {"out/f", "out/f~", "out/f.~3~"}),
        ("install --suffix=.old -b a link/f", {"out/f", "out/f.old", "out/f.~3~"}),
        ("install -b -m 600 -t ../out/d a", {"out/d/a", "out/d/a~", "out/d/a.~1~"}),
    ],
)  # fmt: skip
def test_what_an_older_file_is_backed_up_to_is_kept(desk: Desk, text: str, kept: set[str]) -> None:
    (desk.base / "out/f.~2~").touch()
    decision = desk.shell(text)
    assert (desk.kept(decision), decision.uncovered) == (kept, ())


@pytest.mark.parametrize(
    "text",
    [
        "cp -b -S $X a ../out/f", "SIMPLE_BACKUP_SUFFIX=.o cp -b a ../out/f", "cp --suf .o a b",
        "cp --target=../out a",
        "install --strip-program=./a a b", "mv --exchange a b", "cp --parents ../ws/a ../out",
        "cp -r .* ../out",
        "rsync --backup-dir=../out -b a b", "rsync -a --remove-source-files ../out/ q/",
        "rsync --inplace a q/z",
        "rsync -e ./a host:b c", "scp -o ProxyCommand=./a host:b c", "scp -S ./a host:b c", "rsync -a a hl",
        "rsync -a --log-file=../out/f a b", "rm -rf .*",
    ],
)  # fmt: skip
def test_what_is_copied_elsewhere_by_rare_options_is_not_covered(desk: Desk, text: str) -> None:
    assert desk.shell(text).uncovered
