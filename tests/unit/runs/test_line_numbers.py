"""Line numbers in quarantine count from the beginning of a file, however it was split."""

import json

from gristmill.engine.ledger import CommitRecord
from gristmill.runs.line_numbers import block_lines, with_line_numbers
from gristmill.stages.context import Quarantined, StageContext
from gristmill.stages.file_partitioning import FilePartitioningStage
from gristmill.stages.text.io.reader.jsonl import JsonlReaderStage


def starts(*lines_read):
    return block_lines([CommitRecord(root, "p", (), (), (), lines) for root, lines in enumerate(lines_read)])


def text_of(*entries):
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def lines_of(text):
    return [json.loads(line)["line"] for line in text.splitlines()]


def test_line_numbers_become_those_of_the_file():
    text = text_of(
        {"source": "f", "line": 3, "block_start": 0},
        {"source": "f", "line": 2, "block_start": 200},
        {"source": "g", "line": 1, "block_start": 100},
    )
    blocks = starts((("f", 0, 10), ("f", 100, 5)), (("f", 200, 4), ("g", 100, 9)))

    assert lines_of(with_line_numbers(text, blocks)) == [3, 17, 1]


def test_numbering_again_changes_nothing():
    blocks = starts((("f", 0, 10), ("f", 100, 5)))
    numbered = with_line_numbers(text_of({"source": "f", "line": 2, "block_start": 100}), blocks)

    assert lines_of(numbered) == [12]
    assert with_line_numbers(numbered, blocks) is None


def test_what_has_no_line_keeps_none():
    assert with_line_numbers(text_of({"source": "f", "line": None, "block_start": 0}), starts((("f", 0, 10),))) is None


def test_damaged_text_is_left_for_whoever_compares_it_with_its_checksum():
    blocks = starts((("f", 0, 10),))

    for text in ('{"source": "f", "li\n', "5\n", '{"line": 3}\n', "[" * 100_000):
        assert with_line_numbers(text, blocks) is None


def test_a_split_files_bad_lines_are_found_where_an_editor_shows_them(tmp_path):
    """Reader, partitions and numbers together: cut a file anywhere, and the numbers are those of the whole file."""
    source = tmp_path / "a.jsonl"
    bad = {4, 11, 12, 29}
    source.write_text("".join("{broken\n" if n in bad else f'{{"n": {n}}}\n' for n in range(1, 31)))
    for blocksize in (10, 33, 64, 1000):
        read, found = [], []
        for task in FilePartitioningStage(str(source), blocksize=blocksize, split="lines").partitions():
            stage = JsonlReaderStage()
            stage.context = context = StageContext()
            stage.process(task)
            read.append(tuple((path, start, count) for (path, start), count in context.lines_read.items()))
            found += context.quarantined

        assert set(lines_of(with_line_numbers(text_of(*map(entry_of, found)), starts(*read)))) == bad


def entry_of(quarantined: Quarantined):
    return {"source": quarantined.source, "line": quarantined.line, "block_start": quarantined.block_start}
