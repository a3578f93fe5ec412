"""Any sequence of calls, taken back newest first, ends where it began; undone, where it had come to."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backup.bench import Bench
from tests.backup.test_rules_files import furnish, plain
from tests.workspace.disk import differences

CALLS = st.lists(
    st.sampled_from(
        [
            "rm -rf tree",
            "rm -f one.txt two.txt",
            "mv one.txt two.txt",
            "mv tree elsewhere",
            "cp -r src tree/",
            "cp src/one.txt one.txt",
            "echo more >> one.txt",
            "echo x > tree/a",
            "mkdir -p tree/deep && echo y > tree/deep/b",
            "chmod -R 700 tree",
            "touch one.txt new.txt",
            "ln -sf two.txt one.txt",
            "sed -i s/o/0/ one.txt two.txt",
            "find . -name '*.txt' -delete",
            "tar -xf archive.tar",
            "truncate -s 0 one.txt",
            "echo z > to-one",
        ]
    ),
    min_size=1,
    max_size=5,
)


@settings(deadline=None, max_examples=12)
@given(calls=CALLS, kept=st.integers(0, 4))
def test_calls_taken_back_newest_first(calls: list[str], kept: int) -> None:
    base = Path(tempfile.mkdtemp())
    bench = Bench(base=base / "bench")
    try:
        furnish(bench)
        states = [bench.facts()]
        for number, call in enumerate(calls):
            assert not bench.do(call, node=f"rec_{number:06d}").blocked
            states.append(bench.facts())
        kept = min(kept, len(calls) - 1)
        abandoned = {f"rec_{number:06d}" for number in range(kept, len(calls))}
        ids = [entry.id for entry in bench.entries() if entry.node in abandoned]
        results = bench.take_back(*ids, by="rewind") if ids else []
        assert [result.detail for result in results if not result.back] == []
        assert differences(states[kept], bench.facts()) == []
        # told again under the same name, nothing is done
        assert all(result.back for result in bench.take_back(*ids, by="rewind")) if ids else True
        assert differences(states[kept], bench.facts()) == []
        safeties = [result.safety for result in results if result.safety]
        back = bench.restoring.restore(safeties, by="undo")
        assert [result.detail for result in back if not result.back] == []
        assert differences(plain(states[-1]), plain(bench.facts())) == []
    finally:
        bench.store.close()
        shutil.rmtree(base)
