"""Every rule for files loses state for real and gets it back; the traps among them are cases of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

import pytest

from agentrewind.backup.entries import State
from agentrewind.backup.policy import BackupPolicy, OnFailure, OnUnknown
from agentrewind.backup.values import Tier
from tests.backup.bench import Bench
from tests.workspace.disk import Fact, differences


def furnish(bench: Bench) -> None:
    """What is in the directory before every command."""
    bench.write("one.txt", "one\n")
    bench.write("two.txt", "two\n", 0o600)
    bench.write("tree/a", "a\n", 0o755)
    bench.write("tree/deep/b", "b\n")
    (bench.out / "tree" / "empty").mkdir(mode=0o750)
    (bench.out / "tree" / "link").symlink_to("deep/b")
    (bench.out / "tree" / "twin").hardlink_to(bench.out / "tree" / "a")
    (bench.out / "to-one").symlink_to("one.txt")
    (bench.out / "dangling").symlink_to("nowhere")
    (bench.out / "odd name\n*").write_text("odd")
    bench.write("src/one.txt", "another one\n")
    bench.write("src/new.txt", "new\n")
    bench.run("tar -cf archive.tar -C src one.txt new.txt && gzip -k archive.tar")
    bench.run("python3 -m zipfile -c archive.zip src/one.txt src/new.txt")


CHANGES = [
    "rm one.txt",
    "rm -f one.txt two.txt nonexistent",
    "rm -rf tree",
    "rm -r -- tree one.txt",
    "cd tree && rm -rf deep",
    "rm *.txt",
    "rm 'odd name\n*'",
    'rm "$OUT"/one.txt',
    "rm ~/../../out/one.txt; rm {one,two}.txt",
    "sudo -n true; rm to-one dangling",
    "unlink one.txt",
    "rmdir tree/empty",
    "bash -c 'rm one.txt'",
    "env FOO=1 rm one.txt",
    "if true; then rm one.txt; fi",
    "mv one.txt elsewhere.txt",
    "mv -f one.txt two.txt",
    "mv one.txt two.txt tree/",
    "mv tree elsewhere",
    "mv -t tree one.txt two.txt",
    "cp src/one.txt one.txt",
    "cp -r src tree/",
    "cp -t tree src/one.txt src/new.txt",
    "cp src/one.txt to-one",
    "install -m 700 src/one.txt two.txt",
    "install -d made/deep/inner",
    "ln -sf two.txt one.txt",
    "ln -sfn elsewhere to-one",
    "ln one.txt three.txt",
    "echo more > one.txt",
    "echo more >> one.txt",
    "echo more >| one.txt",
    "ls /nonexistent &> one.txt",
    "ls /nonexistent 2> errors.txt",
    ": > one.txt",
    "> one.txt",
    "cat > one.txt <<'EOF'\nrm -rf nothing\nEOF",
    "echo x > to-one",
    "echo x > new-file",
    "echo x > new\\ file\\ with\\ blanks",
    "{ echo a; echo b; } > one.txt",
    "echo x | tee one.txt two.txt",
    "echo x | tee -a one.txt > /dev/null",
    "echo x > tree/twin",
    "echo x >> tree/a",
    "dd if=src/one.txt of=one.txt",
    "dd if=/dev/zero of=tree/a bs=1 count=10 conv=notrunc",
    "truncate -s 0 one.txt",
    "truncate --size=100 tree/a",
    "shred -u one.txt",
    "sed -i s/one/changed/ one.txt two.txt",
    "sed -i.bak -e s/one/changed/ one.txt",
    "sed -i s/b/changed/ tree/link",
    "sed -i s/a/changed/ tree/twin",
    "perl -i -pe s/one/changed/ one.txt",
    "perl -pi.orig -e s/one/changed/ one.txt",
    "find tree -name b -delete",
    "find . -name '*.txt' -exec rm {} +",
    "find tree -type f -print0 | xargs -0 rm -f",
    "find tree -type f -exec chmod 000 {} \\;",
    "rsync -a --delete src/ tree/ || rm -rf tree",
    "tar -xf archive.tar",
    "tar xzf archive.tar.gz",
    "tar -C tree -xf archive.tar",
    "unzip -o archive.zip -d tree",
    "gzip one.txt",
    "gunzip -f archive.tar.gz",
    "xz -k one.txt",
    "tar -cf archive.tar one.txt",
    "tar -rf archive.tar two.txt",
    "rm tree/a",
    "cp one.txt tree/twin",
    "mv two.txt tree/twin",
    "chmod -R 700 tree",
    "chmod 777 one.txt",
    "chmod u-w,g+x to-one",
    "touch one.txt new.txt",
    "touch -d 2001-01-01 tree/a",
    "mkdir -p made/deep/inner",
    "mkdir made && echo x > made/file",
    "touch two.txt; rm two.txt",
    "chmod -R 700 tree; rm -rf tree/deep; echo x > tree/a",
    "cp one.txt keep && rm one.txt",
    "for f in one.txt two.txt; do rm $f; done",
    "mkfifo pipe",
]


@pytest.mark.parametrize("command", CHANGES)
def test_what_a_command_destroyed_comes_back(bench: Bench, command: str) -> None:
    furnish(bench)
    before = bench.facts()
    guarded = bench.do(command)
    assert not guarded.blocked
    changed = bench.facts()
    assert changed != before, "the case loses nothing"
    results = bench.take_back()
    assert [result.detail for result in results if not result.back] == []
    assert differences(before, bench.facts()) == []
    back = bench.restoring.restore([result.safety for result in results if result.safety], by="undo")
    assert [result.detail for result in back if not result.back] == []
    assert differences(plain(changed), plain(bench.facts())) == []
    bench.take_back(by="again")
    assert differences(before, bench.facts()) == []


def plain(facts: Mapping[bytes, Fact]) -> dict[bytes, Fact]:
    """Without what directories' times and links between trees say."""
    return {path: replace(fact, twins=(), mtime_ns=0) for path, fact in facts.items()}


READS = [
    "ls -la; cat one.txt | wc -l",
    "grep -r one . 2>/dev/null",
    "find . -name '*.txt'",
    "sed s/one/two/ one.txt",
    "echo x > /dev/null",
    "ls >&2",
    "tar -tf archive.tar",
    "diff one.txt two.txt 2>&1",
    "dd if=one.txt",
    "git --version",
]


@pytest.mark.parametrize("command", READS)
def test_what_only_reads_leaves_no_entry(bench: Bench, command: str) -> None:
    furnish(bench)
    assert bench.do(command).entries == ()


def test_the_workspace_is_the_snapshots_business(bench: Bench) -> None:
    (bench.workspace / "inside").write_text("inside")
    assert bench.do(f"rm {bench.workspace}/inside; echo x > {bench.workspace}/new").entries == ()


def test_a_link_that_leads_out_of_the_workspace_is_not(bench: Bench) -> None:
    outside = bench.write("one.txt", "one\n")
    (bench.workspace / "link").symlink_to(outside)
    (bench.workspace / "folder").symlink_to(bench.out)
    bench.write("two.txt", "two\n")
    bench.do(f"echo x > {bench.workspace}/link; rm {bench.workspace}/folder/two.txt")
    assert {entry.name for entry in bench.entries()} == {str(outside), str(bench.out / "two.txt")}
    bench.take_back()
    assert outside.read_text() == "one\n"
    assert (bench.out / "two.txt").read_text() == "two\n"


def test_a_call_that_changed_nothing_has_nothing_to_restore(bench: Bench) -> None:
    bench.write("one.txt", "one\n")
    bench.do("rm nonexistent; test -f nothing && rm one.txt")
    states = {entry.name: entry.state for entry in bench.entries()}
    assert set(states.values()) == {State.UNCHANGED}
    assert [result.state for result in bench.take_back()] == [State.UNCHANGED] * len(states)


def test_two_calls_come_back_newest_first(bench: Bench) -> None:
    path = bench.write("one.txt", "first\n")
    bench.do("echo second > one.txt", node="rec_000001")
    bench.do("echo third >> one.txt; rm -rf tree", node="rec_000002")
    assert all(result.back for result in bench.take_back())
    assert path.read_text() == "first\n"


def test_an_older_backup_alone_stops_at_a_newer_change(bench: Bench) -> None:
    path = bench.write("one.txt", "first\n")
    bench.do("echo second > one.txt")
    bench.do("echo third > one.txt")
    older, newer = bench.entries()
    (result,) = bench.take_back(older.id)
    assert result.state is State.PRESERVED
    assert newer.id in result.detail[0]
    assert path.read_text() == "third\n"
    (forced,) = bench.take_back(older.id, by="forced", force=True)
    assert forced.back
    assert path.read_text() == "first\n"
    assert forced.safety is not None
    bench.restoring.restore([forced.safety], by="undo")
    assert path.read_text() == "third\n"


def test_what_somebody_changed_since_is_left_alone(bench: Bench) -> None:
    path = bench.write("one.txt", "first\n")
    bench.do("echo second > one.txt")
    path.write_text("by a person\n")
    (result,) = bench.take_back()
    assert result.state is State.PRESERVED
    assert "changed after the call" in result.detail[0]
    assert path.read_text() == "by a person\n"


def test_a_restore_that_was_interrupted_is_not_begun_again(bench: Bench) -> None:
    from agentrewind.backup.entries import RestoreBegun

    path = bench.write("one.txt", "first\n")
    bench.do("echo second > one.txt")
    (entry,) = bench.entries()
    bench.log.append(RestoreBegun(id=entry.id, by="test", safety=None, at=""))
    (result,) = bench.take_back()
    assert result.state is State.UNKNOWN
    assert path.read_text() == "second\n"
    (again,) = bench.take_back(by="asked for anew")
    assert again.back
    assert path.read_text() == "first\n"


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("rm $(cat names)", "only when the command runs"),
        ("./unknown.sh", "no rule knows it"),
        ("rm $UNSET_ANYWHERE", "only when the command runs"),
        ("cat names | xargs rm", "another command's output"),
        ("dd if=/dev/zero of=/dev/loop0 count=0", "system's own state"),
        ("echo 1 > /proc/sys/vm/drop_caches_nonexistent", "system's own state"),
        ("rsync -a src/ host.invalid:/srv/", "another machine"),
    ],
)
def test_what_cannot_be_told_is_said(bench: Bench, command: str, why: str) -> None:
    furnish(bench)
    decision = bench.decision(command)
    assert not decision.read_only
    assert any(why in line for line in decision.uncovered), decision
    bench.policy = BackupPolicy(on_unknown=OnUnknown.BLOCK)
    guarded = bench.do(command)
    assert guarded.blocked.startswith("blocked: nothing was run")
    assert [entry.state for entry in bench.entries()] == [State.BLOCKED]


def test_a_backup_that_failed_blocks_or_warns(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("big.bin", "x" * 1000)
    monkeypatch.setattr("agentrewind.backup.kinds.tree.BUDGET", 999)
    guarded = bench.do("rm big.bin")
    assert "more than" in guarded.blocked
    assert (bench.out / "big.bin").exists()
    bench.policy = BackupPolicy(on_failure=OnFailure.WARN)
    assert not bench.do("rm big.bin").blocked
    assert not (bench.out / "big.bin").exists()
    assert [entry.state for entry in bench.entries()] == [State.BLOCKED, State.FAILED]


@pytest.mark.parametrize("command", ["mv tree elsewhere", "mv one.txt two.txt tree/", "mv big.bin tree"])
def test_what_is_too_large_to_copy_is_moved_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr("agentrewind.backup.kinds.files_moved.UNCOPIED", 1)
    monkeypatch.setattr("agentrewind.backup.kinds.tree.BUDGET", 0)
    furnish(bench)
    bench.write("big.bin", "x" * 1000)
    before = bench.facts()
    assert not bench.do(command).blocked
    moved = bench.facts()
    assert moved != before
    assert all(entry.captured and entry.captured.bytes == 0 for entry in bench.entries())
    results = bench.take_back()
    assert [result.detail for result in results if not result.back] == []
    assert differences(before, bench.facts()) == []
    bench.restoring.restore([result.safety for result in results if result.safety], by="undo")
    assert differences(moved, bench.facts()) == []


def test_what_was_changed_where_it_was_moved_to_stays_there(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentrewind.backup.kinds.files_moved.UNCOPIED", 1)
    furnish(bench)
    bench.do("mv tree elsewhere")
    (bench.out / "elsewhere" / "a").write_text("by a person\n")
    (result,) = bench.take_back()
    assert result.state is State.PRESERVED
    assert (bench.out / "elsewhere" / "a").read_text() == "by a person\n"
    (forced,) = bench.take_back(by="forced", force=True)
    assert not forced.back
    assert (bench.out / "elsewhere" / "a").read_text() == "by a person\n"


def test_the_store_itself_is_never_handed_over(bench: Bench) -> None:
    bench.do("echo x > one.txt")
    guarded = bench.do(f"rm -rf {bench.base}/store")
    assert "own store" in guarded.blocked
    assert (bench.base / "store" / "log.jsonl").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_owners_come_back(bench: Bench) -> None:
    path = bench.write("one.txt", "one\n")
    os.chown(path, 1234, 1235)
    path.chmod(0o4750)
    bench.do("chown -R 0:0 one.txt; chmod 600 one.txt; rm one.txt")
    bench.take_back()
    status = path.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (1234, 1235, 0o4750)


def test_decisions_name_the_tier_and_the_rule(bench: Bench) -> None:
    bench.write("one.txt", "one\n")
    decision = bench.decision("rm one.txt")
    assert (decision.tier, decision.rules, decision.uncovered) == (Tier.PAIR, ("files.rm",), ())
    assert [target.name for target in decision.targets] == [str(bench.out / "one.txt")]
