"""Memory of all processes together stays within the limit and does not depend on the size of a file."""

import contextlib
import gzip
import json
import shutil
import sys

import psutil
import pytest
from tests.fault.processes import DEADLINE_S, wait_until

pytestmark = [pytest.mark.fault, pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="needs Pss")]

LIMIT_MB = 600
SMALL_BLOCKS, LARGE_BLOCKS = 15, 45
PROGRAM = """
import sys
from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io import JsonlReader, JsonlWriter, ParquetReader

source, output, limit = sys.argv[1:]
reader = ParquetReader if source.endswith("parquet") else JsonlReader
stages = [reader(source), ScoreFilter(WordCountFilter(min_words=5)), JsonlWriter(output)]
result = Pipeline("memory", stages=stages).run(LocalExecutor(num_workers=2, memory_limit=limit), max_quarantined=1.0)
print(result.read, result.written)
"""
SENTENCE = "the miller went down to the river with a sack of grain and came back with flour "


@pytest.fixture(scope="module")
def block():
    """About 10 MB of documents; one in four is too short."""
    texts = [f"{n} " + SENTENCE * (0 if n % 4 == 0 else n % 60) for n in range(4800)]
    return "".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(texts)).encode()


def observe(scene, source):
    """Run the program; return the greatest memory of all its processes, and which of them worked."""
    output = scene.work / f"out-{source.name}"
    program = scene.start("-c", PROGRAM, source, output, f"{LIMIT_MB}MB")
    peak, cpu_s = 0, {}

    def look():
        nonlocal peak
        total = 0
        for process in scene.processes():
            with contextlib.suppress(psutil.Error):
                total += process.memory_full_info().pss
                cpu_s[process.pid] = process.cpu_times().user
        peak = max(peak, total)
        return program.poll() is not None

    wait_until(look, what="the program to end", deadline_s=2 * DEADLINE_S)
    out, errors = program.communicate()
    assert program.returncode == 0, errors
    shutil.rmtree(output)
    workers = [seconds for pid, seconds in cpu_s.items() if pid != program.pid and seconds > 0.2]
    return peak, workers, tuple(map(int, out.split()))


def assert_flat(small, large, block):
    """A run that held on to what it has read would be greater by all that was added; its buffers differ by far
    less than half of that. How flat memory is on long runs, benchmarks/large_file.py says.
    """
    assert large < LIMIT_MB * 1_000_000
    assert large - small < (LARGE_BLOCKS - SMALL_BLOCKS) * len(block) / 2


def repeat(path, block, times, opener=open):
    with opener(path, "wb") as file:
        for _ in range(times):
            file.write(block)
    return path


def test_three_times_the_file_takes_no_more_memory_and_stays_within_the_limit(scene, block):
    small, _, _ = observe(scene, repeat(scene.work / "small.jsonl", block, SMALL_BLOCKS))
    large, workers, counts = observe(scene, repeat(scene.work / "large.jsonl", block, LARGE_BLOCKS))

    assert counts[0] == LARGE_BLOCKS * 4800
    assert_flat(small, large, block)
    assert len(workers) >= 2


def test_a_single_gzip_file_streams_through_several_processes_in_flat_memory(scene, block):
    """Stored, not deflated: the file is as large as its content, so it is known to be large before it is read."""
    small, _, _ = observe(scene, repeat(scene.work / "small.jsonl.gz", block, SMALL_BLOCKS, gzip_of(level=0)))
    large, workers, counts = observe(
        scene, repeat(scene.work / "large.jsonl.gz", block, LARGE_BLOCKS, gzip_of(level=0))
    )

    assert counts[0] == LARGE_BLOCKS * 4800
    assert_flat(small, large, block)
    assert len(workers) >= 2


def test_a_tiny_file_with_a_huge_content_is_streamed_too(scene, block):
    source = repeat(scene.work / "bomb.jsonl.gz", block, LARGE_BLOCKS, gzip_of(level=6))
    peak, _, counts = observe(scene, source)

    assert source.stat().st_size < len(block)
    assert counts[0] == LARGE_BLOCKS * 4800
    assert peak < LIMIT_MB * 1_000_000


# What is too large for its share

HUGE = 700_000_000


def huge_line(path, opener=open):
    """A line of 700 MB between two documents; zeros, which a disk need not store."""
    with opener(path, "wb") as file:
        file.write(b'{"id":1,"text":"one two three four five six"}\n{"text":"')
        if opener is open:
            file.seek(HUGE)
        else:
            for _ in range(HUGE // 10_000_000):
                file.write(bytes(10_000_000))
        file.write(b'"}\n{"id":2,"text":"one two three four five six"}\n')
    return path


def huge_row_group(path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"id": range(80_000), "text": [SENTENCE * 40] * 80_000})
    pq.write_table(table, path, row_group_size=100_000, use_dictionary=False)
    return path


@pytest.mark.parametrize(
    ("name", "make", "counts"),
    [
        ("huge.jsonl", huge_line, (3, 2)),
        ("huge.jsonl.gz", lambda path: huge_line(path, gzip_of(level=1)), (3, 2)),
        ("huge.parquet", huge_row_group, (80_000, 80_000)),
    ],
)
def test_a_line_or_a_row_group_larger_than_its_share_stays_within_the_limit(scene, name, make, counts):
    source = make(scene.work / name)
    peak, _, found = observe(scene, source)

    assert found == counts
    assert peak < LIMIT_MB * 1_000_000


def gzip_of(level):
    return lambda path, mode: gzip.open(path, mode, compresslevel=level)
