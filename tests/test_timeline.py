"""Segments folded into a tree: paths across forks, messages, rewinds, gaps, and the state of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentrewind.errors import DamagedError, UnknownNodeError
from agentrewind.journal import SegmentRead
from agentrewind.records import (
    Change,
    ForkPoint,
    JsonObject,
    NodeKind,
    Note,
    Record,
    Resumed,
    RunId,
    SnapshotTaken,
    WorkspaceSpan,
)
from agentrewind.salvage import Damage
from agentrewind.timeline import Timeline
from tests.records import (
    AT,
    asked,
    commit,
    done,
    finished,
    fork_at,
    header,
    llm,
    metadata,
    started,
    submission,
    tool,
    uid,
)


def segment(
    number: int, *records: Record, fork: ForkPoint | None = None, lost: int | None = None
) -> SegmentRead:
    """A segment whose nth record stands at byte 100 * n; `lost` is the place of a damage between them."""
    damage = Damage(segment=number, offset=lost or 0, length=50, reason="cut")
    return SegmentRead(
        segment=number,
        header=header(number, fork=fork),
        records=tuple((100 * (place + 1), record) for place, record in enumerate(records)),
        damages=() if lost is None else (damage,),
    )


def headless(read: SegmentRead) -> SegmentRead:
    damage = Damage(segment=read.segment, offset=0, length=99, reason="altered")
    return replace(read, header=None, damages=(damage, *read.damages))


def numbers(nodes: tuple[object, ...]) -> list[int]:
    return [int(getattr(node, "record_uid")[4:]) for node in nodes]  # noqa: B009 (any kind of node)


def after(number: int, *, before: int | None = None, partial: tuple[str, ...] = ()) -> SnapshotTaken:
    span = WorkspaceSpan(
        before_commit=None if before is None else commit(before),
        after_commit=commit(number + 100),
        changed=True,
        diff_summary=(Change(status="M", path=b"a"),),
        diff_total=1,
        partial=partial,
    )
    return SnapshotTaken(record_uid=uid(number), workspaces={"ws0": span}, at=AT)


TWO_REWINDS = (
    segment(0, llm(1), tool(2), llm(3), tool(4), llm(5), tool(6), asked(1, 3)),
    segment(1, done(1, 3), llm(7), tool(8), llm(9), tool(10), asked(2, 7), fork=fork_at(3)),
    segment(2, done(2, 7), llm(11), tool(12), fork=fork_at(7, segment=1)),
)
"""Two rewinds, the second inside the suffix of the first."""


class TestPaths:
    def test_a_run_without_rewinds_is_its_own_path(self) -> None:
        line = Timeline([segment(0, llm(1), tool(2), llm(3))])
        assert (line.head, line.segments) == (0, (0,))
        assert numbers(line.path()) == [1, 2, 3]

    def test_a_path_crosses_fork_points(self) -> None:
        line = Timeline(TWO_REWINDS)
        assert line.head == 2
        assert numbers(line.path(0)) == [1, 2, 3, 4, 5, 6]
        assert numbers(line.path(1)) == [1, 2, 7, 8, 9, 10]
        assert numbers(line.path()) == [1, 2, 11, 12]
        assert [number for number in range(1, 13) if line.on_path(uid(number))] == [1, 2, 11, 12]
        assert line.segment_of(uid(9)) == 1
        assert len(line.nodes) == 12

    def test_an_inclusive_fork_keeps_its_node(self) -> None:
        undo = segment(3, llm(13), fork=fork_at(10, segment=1, inclusive=True))
        assert numbers(Timeline([*TWO_REWINDS, undo]).path()) == [1, 2, 7, 8, 9, 10, 13]

    def test_an_undo_to_a_branch_without_own_nodes(self) -> None:
        bare = segment(1, done(1, 3), fork=fork_at(3))
        for point in (fork_at(None, segment=1), fork_at(2, segment=1, inclusive=True)):
            line = Timeline([TWO_REWINDS[0], bare, segment(2, llm(7), fork=point)])
            assert numbers(line.path()) == [1, 2, 7]

    def test_a_fresh_start_has_nothing_before_it(self) -> None:
        assert numbers(Timeline([TWO_REWINDS[0], segment(1, llm(7))]).path()) == [7]

    def test_a_fork_of_another_run_begins_here(self) -> None:
        point = replace(fork_at(9), run_id=RunId("another"))
        assert numbers(Timeline([segment(0, llm(1), fork=point)]).path()) == [1]

    def test_a_fork_point_named_with_a_later_segment_is_found(self) -> None:
        line = Timeline([*TWO_REWINDS[:2], segment(2, llm(11), fork=fork_at(3, segment=1))])
        assert numbers(line.path()) == [1, 2, 11]

    def test_calls_side_by_side_stand_in_the_order_of_their_begin(self) -> None:
        line = Timeline([segment(0, llm(1), started(2), started(3), tool(3), tool(2), llm(4))])
        assert numbers(line.path()) == [1, 2, 3, 4]

    def test_a_header_that_forks_from_itself_is_damage(self) -> None:
        with pytest.raises(DamagedError, match="claims to have left segment 1"):
            Timeline([TWO_REWINDS[0], segment(1, fork=fork_at(3, segment=1))])

    def test_unknown_nodes_and_segments_are_named(self) -> None:
        line = Timeline(TWO_REWINDS)
        with pytest.raises(UnknownNodeError, match="did you mean rec_0000"):
            line.node("rec_00003")
        with pytest.raises(UnknownNodeError):
            line.segment_of(uid(99))
        with pytest.raises(DamagedError, match="no segment 7; its last is 2"):
            line.path(7)
        with pytest.raises(DamagedError, match="no segments"):
            Timeline([])

    def test_records_and_events_of_a_segment(self) -> None:
        line = Timeline(TWO_REWINDS)
        assert line.events(0) == (asked(1, 3),)
        assert line.records() == (done(2, 7), llm(11), tool(12))
        assert numbers(line.own_nodes(1)) == [7, 8, 9, 10]
        assert line.node("rec_000012") == tool(12)


class TestFolding:
    def test_what_came_after_is_folded_in(self) -> None:
        line = Timeline([segment(0, llm(1), tool(2), after(2))])
        span = line.nodes[uid(2)].metadata.workspaces["ws0"]
        assert span == WorkspaceSpan(
            before_commit=commit(2),
            after_commit=commit(102),
            changed=True,
            diff_summary=(Change(status="M", path=b"a"),),
            diff_total=1,
        )
        assert line.records()[1] == tool(2)

    def test_it_may_stand_in_a_later_segment_or_before_the_node(self) -> None:
        late = Timeline([TWO_REWINDS[0], segment(1, after(6), fork=fork_at(3))])
        assert late.nodes[uid(6)].metadata.workspaces["ws0"].after_commit == commit(106)
        early = Timeline([segment(0, after(1), llm(1))])
        assert early.nodes[uid(1)].metadata.workspaces["ws0"].after_commit == commit(101)

    def test_a_later_event_corrects_without_forgetting(self) -> None:
        bare = SnapshotTaken(record_uid=uid(1), workspaces={"ws0": WorkspaceSpan(before_commit=None)}, at=AT)
        other = SnapshotTaken(record_uid=uid(1), workspaces={"ws1": WorkspaceSpan(before_commit=None)}, at=AT)
        line = Timeline([segment(0, llm(1), after(1), bare, other, after(77))])
        spans = line.nodes[uid(1)].metadata.workspaces
        assert spans["ws0"].after_commit == commit(101)
        assert spans["ws0"].before_commit == commit(1)
        assert set(spans) == {"ws0", "ws1"}


class TestCheckpoints:
    def test_llm_nodes_of_the_path_with_a_whole_snapshot_before(self) -> None:
        read = segment(
            0,
            llm(1),
            tool(2),
            llm(3, meta=metadata(None)),
            llm(4, meta=metadata(4, partial=("a: unreadable",))),
            llm(5, meta=replace(metadata(5), workspaces={})),
            llm(6),
        )
        line = Timeline([read])
        assert numbers(line.checkpoints()) == [1, 6]
        assert [line.is_checkpoint(uid(number)) for number in (1, 2, 3)] == [True, False, False]
        assert numbers(Timeline(TWO_REWINDS).checkpoints()) == [1, 11]

    def test_a_partial_snapshot_after_a_node_does_not_spoil_the_one_before(self) -> None:
        line = Timeline([segment(0, llm(1), after(1, partial=("b: vanished",)))])
        assert numbers(line.checkpoints()) == [1]
        assert line.nodes[uid(1)].metadata.workspaces["ws0"].partial == ("b: vanished",)

    def test_a_snapshot_before_may_be_told_later(self) -> None:
        late = Timeline([segment(0, llm(1, meta=metadata(None)), after(1, before=1))])
        assert numbers(late.checkpoints()) == [1]
        partly = Timeline([segment(0, llm(1, meta=metadata(None)), after(1, before=1, partial=("b",)))])
        assert partly.checkpoints() == ()


ONE: JsonObject = {"n": 1}
TWO: JsonObject = {"n": 2}
THREE: JsonObject = {"n": 3}


class TestMessages:
    def test_lists_are_put_together_along_their_bases(self) -> None:
        line = Timeline(
            [
                segment(0, llm(1, append=(ONE,)), llm(3, base=1, keep=1, append=(TWO,))),
                segment(1, llm(5, base=3, keep=2, append=(THREE,)), llm(6, base=3, keep=1, append=())),
            ]
        )
        assert line.messages(uid(6)) == (ONE,)
        assert line.messages(uid(5)) == (ONE, TWO, THREE)
        assert line.messages(uid(1)) == (ONE,)

    def test_a_long_chain_is_no_deep_recursion(self) -> None:
        nodes = [llm(1)] + [llm(n, base=n - 1, keep=n - 1, append=({"n": n},)) for n in range(2, 3001)]
        line = Timeline([segment(0, *nodes)])
        assert len(line.messages(uid(3000))) == 3000
        assert [len(line.messages(uid(n))) for n in range(1, 3001)] == list(range(1, 3001))

    @pytest.mark.parametrize(
        ("nodes", "told"),
        [
            ((llm(3, base=1, keep=1),), "messages of rec_000003 .* rec_000001 is missing or damaged"),
            ((tool(1), llm(3, base=1, keep=1)), "rec_000001 is a tool call"),
            ((llm(1), llm(3, base=1, keep=2)), "keeps 2 of rec_000001, which has 1"),
            ((llm(1, base=3), llm(3, base=1)), "build on themselves"),
        ],
    )
    def test_what_is_missing_is_named(self, nodes: tuple[Record, ...], told: str) -> None:
        with pytest.raises(DamagedError, match=told):
            Timeline([segment(0, *nodes)]).messages(uid(3))


class TestRewinds:
    def test_notes_add_up_over_the_whole_run(self) -> None:
        line = Timeline(TWO_REWINDS)
        assert line.memories(0) == ()
        assert line.memories(1) == (asked(1, 3),)
        assert line.memories() == (asked(1, 3), asked(2, 7))
        assert line.rewinds() == (asked(1, 3), asked(2, 7))

    def test_an_undo_has_the_notes_of_the_branch_it_returns_to(self) -> None:
        undo = segment(3, llm(13), asked(4, 13), fork=fork_at(10, segment=1, inclusive=True))
        again = segment(4, fork=fork_at(13, segment=3))
        line = Timeline([*TWO_REWINDS, undo, again])
        assert line.memories(3) == (asked(1, 3),)
        assert line.memories(4) == (asked(1, 3), asked(4, 13))

    def test_a_fresh_start_has_no_notes(self) -> None:
        assert Timeline([*TWO_REWINDS, segment(3)]).memories() == ()

    def test_an_empty_note_is_none(self) -> None:
        silent = replace(asked(1, 3), memory="")
        line = Timeline([segment(0, llm(1), llm(3), silent), segment(1, fork=fork_at(3))])
        assert line.memories() == ()
        assert line.rewinds() == (silent,)

    def test_a_rewind_is_pending_until_its_segment_exists(self) -> None:
        assert Timeline(TWO_REWINDS[:1]).pending_rewind() == asked(1, 3)
        assert Timeline(TWO_REWINDS[:2]).pending_rewind() == asked(2, 7)
        assert Timeline(TWO_REWINDS).pending_rewind() is None

    def test_the_first_of_two_decisions_counts(self) -> None:
        line = Timeline([segment(0, llm(1), llm(3), asked(1, 3), asked(1, 1))])
        assert line.pending_rewind() == asked(1, 3)


class TestUnfinished:
    def test_calls_that_began_and_never_ended(self) -> None:
        first, second = started(3, NodeKind.TOOL), replace(started(4), attempt=2)
        line = Timeline([segment(0, started(1), llm(1), first, started(4), second)])
        assert line.started_unfinished() == (first, second)
        assert line.next_uid() == uid(5)

    def test_only_those_of_the_segment_asked_for(self) -> None:
        line = Timeline([segment(0, llm(1), started(2)), segment(1, started(3), fork=fork_at(1))])
        assert numbers(line.started_unfinished()) == [3]
        assert numbers(line.started_unfinished(0)) == [2]
        assert line.segment_of(uid(2)) == 0

    def test_a_damaged_line_keeps_its_id(self) -> None:
        damage = Damage(segment=0, offset=300, length=9, reason="cut", record_uid=uid(9))
        line = Timeline([replace(segment(0, llm(1)), damages=(damage,))])
        assert line.next_uid() == uid(10)
        assert Timeline([segment(0)]).next_uid() == uid(1)


class TestGaps:
    def test_a_gap_counts_for_what_comes_after_it(self) -> None:
        line = Timeline([segment(0, llm(1), tool(2), llm(3), tool(4), lost=250)])
        (gap,) = line.gaps()
        assert gap.offset == 250
        assert line.gap_on_path() == gap
        assert line.gaps(until=uid(2)) == ()
        assert line.gaps(until=uid(3)) == (gap,)
        assert line.gap_on_path(until=uid(1)) is None

    def test_a_gap_in_an_abandoned_suffix_does_not_count(self) -> None:
        late = replace(TWO_REWINDS[0], damages=segment(0, lost=450).damages)
        early = replace(TWO_REWINDS[0], damages=segment(0, lost=150).damages)
        assert Timeline([late, *TWO_REWINDS[1:]]).gaps() == ()
        assert len(Timeline([late, *TWO_REWINDS[1:]]).gaps(segment=0)) == 1
        assert len(Timeline([early, *TWO_REWINDS[1:]]).gaps()) == 1
        assert len(Timeline([early]).damages) == 1

    def test_the_lost_line_of_the_target_itself_is_no_gap_before_it(self) -> None:
        damage = Damage(segment=0, offset=250, length=50, reason="altered", record_uid=uid(3))
        first = replace(segment(0, llm(1), tool(2), tool(4)), damages=(damage,))
        line = Timeline([first, segment(1, llm(5), fork=fork_at(3))])
        assert numbers(line.path()) == [1, 2, 5]
        assert line.gaps() == ()
        assert line.gaps(segment=0) == (damage,)

    def test_an_altered_id_does_not_talk_a_gap_away(self) -> None:
        damage = Damage(segment=0, offset=250, length=50, reason="altered", record_uid=uid(900002))
        line = Timeline([replace(segment(0, llm(1), tool(2), llm(4)), damages=(damage,))])
        assert line.gaps(until=uid(4)) == (damage,)

    def test_the_lost_begin_of_the_target_itself_is_no_gap_before_it(self) -> None:
        damage = Damage(segment=0, offset=250, length=50, reason="altered", record_uid=uid(4))
        line = Timeline([replace(segment(0, llm(1), tool(2), llm(4)), damages=(damage,))])
        assert line.gaps(until=uid(4)) == ()
        assert line.gaps() == (damage,)

    def test_a_torn_tail_or_a_second_copy_is_no_gap(self) -> None:
        damage = Damage(segment=0, offset=150, length=50, reason="cut", lost=False)
        assert Timeline([replace(segment(0, llm(1), llm(2)), damages=(damage,))]).gaps() == ()

    def test_a_missing_segment_is_a_gap_for_those_that_left_it(self) -> None:
        line = Timeline([TWO_REWINDS[0], TWO_REWINDS[2]])
        assert [str(gap) for gap in line.gaps()] == ["segment 1, 0 bytes from byte 0: the segment is missing"]
        assert line.headers[1].forked_from is not None
        assert numbers(line.path()) == [1, 2, 11, 12]
        unrelated = segment(2, llm(11), fork=fork_at(3))
        assert Timeline([TWO_REWINDS[0], unrelated]).gaps() == ()

    def test_a_lost_header_is_filled_in_from_the_decision_and_named(self) -> None:
        line = Timeline([TWO_REWINDS[0], headless(TWO_REWINDS[1])])
        assert line.header_of(1) is None
        assert line.headers[1] == header(1, fork=fork_at(3))
        assert numbers(line.path()) == [1, 2, 7, 8, 9, 10]
        assert [gap.segment for gap in line.gaps()] == [1]
        bare = Timeline([headless(segment(0, llm(1)))])
        assert numbers(bare.path()) == [1]
        with pytest.raises(DamagedError, match="no segment of the run has a readable header"):
            _ = bare.header

    def test_a_node_that_an_earlier_segment_holds_is_named(self) -> None:
        line = Timeline([segment(0, llm(1)), segment(1, llm(1), llm(2), fork=fork_at(1, inclusive=True))])
        assert numbers(line.path()) == [1, 2]
        assert [(damage.segment, damage.lost) for damage in line.damages] == [(1, False)]


class TestState:
    @pytest.mark.parametrize("state", ["accepted", "rejected", "stopped", "error"])
    def test_as_the_agent_ended(self, state: str) -> None:
        note = Note(topic="killed", text="", at=AT)
        line = Timeline([segment(0, llm(1), finished(state), note, after(1))])
        assert line.state() == state
        assert line.last_finished() == finished(state)

    @pytest.mark.parametrize(
        "records", [(), (llm(1),), (llm(1), started(2)), (finished("error"), Resumed(at=AT, detail=""))]
    )
    def test_interrupted_where_nothing_tells_of_an_end(self, records: tuple[Record, ...]) -> None:
        assert Timeline([segment(0, *records)]).state() == "interrupted"

    def test_a_rewind_takes_an_end_back(self) -> None:
        ended = segment(0, llm(1), finished("rejected"), asked(1, 1, by="person"))
        assert Timeline([ended]).state() == "interrupted"
        assert Timeline([ended, segment(1, done(1, 1), fork=fork_at(1))]).state() == "interrupted"
        assert Timeline([segment(0)]).last_finished() is None

    def test_submissions_of_all_segments_in_time_order(self) -> None:
        first, second = submission(2), submission(8, accepted=True)
        line = Timeline(
            [segment(0, llm(1), tool(2), first), segment(1, llm(7), tool(8), second, fork=fork_at(1))]
        )
        assert line.submissions() == (first, second)
