"""What is written of a run over time is read again as it was, however the file was damaged."""

import json
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.metrics.history import read_history
from gristmill.metrics.history_writer import LINES_BELOW_A_HEADER, HistoryWriter, interval_s, numbers_of, text_of
from gristmill.metrics.node_sample import GpuSample, NodeSample
from gristmill.metrics.snapshot import RunSnapshot, StageSnapshot

STATES = {"starting": 0, "idle": 1, "busy": 2, "blocked": 0, "draining": 0}


def stage(name, group, documents, **further):
    return StageSnapshot(
        name,
        group,
        documents_in=documents,
        documents_out=documents - 3,
        dropped=2,
        quarantined=1,
        process_s=documents / 100,
        workers=3,
        busy_workers=2,
        worker_states=STATES,
        queued_tasks=documents % 7,
        memory_bytes=50_000_000,
        reasons={"too_short": 2},
        metrics={"seen": documents, "share": 0.125},
        **further,
    )


def snapshot(at, documents, *, state="running", stages=None, nodes=()):
    return RunSnapshot(
        name="demo",
        state=state,
        elapsed_s=at,
        partitions_done=documents // 10,
        partitions_total=100,
        read=documents,
        written=documents - 3,
        dropped=2,
        quarantined=1,
        created=0,
        input_bytes_done=documents * 1000,
        input_bytes_total=10**9,
        memory_bytes=123_000_000 + documents * 1_000_000,
        memory_limit=10**9,
        eta_s=None if at < 2 else 100.5,
        stages=(stage("read", 0, documents), stage("filter", 1, documents)) if stages is None else stages,
        made_at=1_700_000_000.0 + at,
        resource_seconds={"cpu": {"useful": at * 1.5, "starved": 0.5}},
        nodes=nodes,
    )


def written(*snapshots):
    writer = HistoryWriter()
    return b"".join(writer.lines(each) for each in snapshots)


def test_a_first_line_names_columns_and_stages_and_the_others_have_no_keys():
    header, *lines = written(snapshot(1, 10), snapshot(2, 25)).splitlines()

    assert json.loads(header)["history"] == 3
    assert json.loads(header)["stages"] == ["read", "filter"]
    assert len(lines) == 2
    assert all(isinstance(json.loads(line), str) and b"read" not in line for line in lines)
    assert len(lines[1]) < len(lines[0])


def test_numbers_are_read_as_they_were():
    node = NodeSample("n1", 0.0, 5 * 10**9, 8 * 10**9, 77.7, 4, (GpuSample("0", 10**9, 8 * 10**9, 0.5),))
    history = read_history(
        written(snapshot(1, 10), snapshot(2.5, 25, nodes=(node,)), snapshot(4, 40, state="finished"))
    )

    assert history.name == "demo"
    assert history.times == [1_700_000_001.0, 1_700_000_002.5, 1_700_000_004.0]
    assert history.column("run", "", "read") == [10, 25, 40]
    assert history.column("run", "", "memory_bytes") == [133e6, 148e6, 163e6]
    assert history.column("run", "", "cpu_useful_s") == [1.5, 3.8, 6.0]
    assert history.column("run", "", "eta_s") == [None, 100.5, 100.5]
    assert history.column("stage", "filter", "documents_in") == [10, 25, 40]
    assert history.column("stage", "filter", "documents_out") == [7, 22, 37]
    assert history.column("stage", "filter", "process_s") == [0.1, 0.25, 0.4]
    assert history.column("group", "filter", "busy") == [2, 2, 2]
    assert history.column("group", "filter", "queued_tasks") == [3, 4, 5]
    assert history.column("reason", "filter", "too_short") == [2, 2, 2]
    assert history.column("metric", "filter", "share") == [0.125] * 3
    assert history.column("node", "n1", "memory_bytes") == [None, 5e9, 0]
    assert history.column("node", "n1", "gpu_utilization") == [None, 0.5, 0]
    assert history.column("run", "", "no such column") == [None] * 3
    assert history.states() == ["running", "running", "finished"]
    assert history.per_second(history.column("run", "", "read")) == [None, 10, 10]


def test_nothing_drifts_however_many_lines_there_are():
    chance = random.Random(7)
    writer, content, told = HistoryWriter(), b"", []
    documents, seconds = 0, 0.0
    for at in range(2 * LINES_BELOW_A_HEADER + 10):
        documents += chance.randrange(1000)
        seconds += chance.random() / 7
        stages = (msgspec.structs.replace(stage("a", 0, documents), process_s=seconds),)
        told.append((documents, seconds))
        content += writer.lines(snapshot(at, documents, stages=stages))
    history = read_history(content)

    assert history.column("stage", "a", "documents_in") == [documents for documents, _ in told]
    assert history.column("stage", "a", "process_s") == pytest.approx([s for _, s in told], abs=0.005001)


def test_a_torn_last_line_is_left_out():
    content = written(snapshot(1, 10), snapshot(2, 20))

    assert read_history(content[:-5]).column("run", "", "read") == [10]
    for cut in range(0, len(content), 7):
        assert read_history(content[:cut]).column("run", "", "read") in ([], [10], [10, 20])


def test_a_later_session_goes_on_below():
    torn = written(snapshot(1, 10), snapshot(2, 20))[:-5]
    history = read_history(torn + b"\n" + written(snapshot(9, 30)))

    assert history.column("run", "", "read") == [10, 30]


@pytest.mark.parametrize(
    "damage", [b"[1,2]", b"[[1", b"\0" * 40, b'{"a": 1}', b"[" * 100_000, b"null", b'[["x"]]', b'"A,B"', b'"?"']
)
def test_what_follows_a_damaged_line_is_left_out_until_the_next_header(damage):
    writer = HistoryWriter()
    lines = [writer.lines(snapshot(at, 10 * at)) for at in range(1, LINES_BELOW_A_HEADER + 4)]
    lines[100] = damage + b"\n"
    reads = read_history(b"".join(lines)).column("run", "", "read")

    assert reads[:100] == [10.0 * at for at in range(1, 101)]
    assert reads[100:] == [10.0 * at for at in range(LINES_BELOW_A_HEADER + 1, LINES_BELOW_A_HEADER + 4)]


def test_only_what_is_later_is_read_if_wanted():
    content = written(*(snapshot(at, 10 * at) for at in range(1, 6)))

    assert read_history(content, since=1_700_000_003.0).column("run", "", "read") == [40, 50]
    assert len(read_history(content, since=1_800_000_000.0)) == 0


def test_reasons_and_stages_that_appear_later_get_columns():
    later = snapshot(
        2, 20, stages=(stage("read", 0, 20), msgspec.structs.replace(stage("filter", 1, 20), reasons={"b": 5}))
    )
    history = read_history(written(snapshot(1, 10), later))

    assert history.column("reason", "filter", "b") == [None, 5]
    assert history.column("reason", "filter", "too_short") == [2, 0]
    assert ("reason", "filter", "b") in history.keys("reason")


def test_bins_keep_the_mean_and_both_ends():
    history = read_history(written(*(snapshot(at, 10 * at) for at in range(101))))
    points = history.binned(history.column("run", "", "read"), 10)

    assert len(points.mean) == len(history.bin_times(10)) == 10
    assert (points.least[0], points.greatest[-1]) == (0, 1000)
    assert points.mean[0] == pytest.approx(45)
    assert history.binned(history.column("run", "", "read"), 1000).mean == history.column("run", "", "read")
    assert history.binned([None] * 101, 10).mean == [None] * 10
    assert read_history(b"").binned([], 10).mean == []


def test_a_line_is_due_every_second_at_first_and_later_for_a_part_of_the_run():
    writer, due, now = HistoryWriter(), [], 0.0
    while now < 36_000:
        if writer.is_due(now):
            due.append(now)
            writer._last_s = now
        now += 1.0
    assert due[:3] == [0.0, 1.0, 2.0]
    assert len([at for at in due if at <= 600]) == 601
    assert 2700 < len(due) < 3200
    assert interval_s(36_000) == interval_s(10**9) == 60.0


def test_a_line_of_forty_stages_is_short():
    chance, writer = random.Random(1), HistoryWriter()
    documents = [0] * 40
    sizes = []
    for at in range(60):
        stages = []
        for number in range(40):
            documents[number] += chance.randrange(18_000, 22_000)
            stages.append(
                StageSnapshot(
                    f"stage_with_a_name_{number}",
                    number,
                    documents_in=documents[number],
                    documents_out=documents[number] - documents[number] // 50,
                    dropped=documents[number] // 50,
                    process_s=documents[number] * 1e-5,
                    worker_states=STATES,
                    queued_tasks=chance.randrange(30),
                )
            )
        sizes.append(len(writer.lines(snapshot(float(at), documents[0], stages=tuple(stages)))))

    # 1.2 MB for the 1,675 lines of the first hour, headers included, are 716 bytes.
    assert sum(sizes[1:]) / len(sizes[1:]) < 650


@given(st.lists(st.integers() | st.integers(-20, 20)))
def test_rows_of_numbers_are_read_as_they_were(numbers):
    assert numbers_of(text_of(numbers)) == numbers


@pytest.mark.parametrize("text", ["g", "A?", "é", "Ag", "A A"])
def test_what_are_not_numbers_is_refused(text):
    with pytest.raises(ValueError, match="expected numbers"):
        numbers_of(text)
