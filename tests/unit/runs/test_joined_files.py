"""Small files of a partition become one, in order; large ones, others' and those of other formats stay."""

import gzip

import pytest

from gristmill.runs import joined_files
from gristmill.runs.joined_files import join_small_files, joined_directories
from gristmill.runs.ledger import CommitRecord
from gristmill.storage.atomic_write import checksum_of, stage_file
from gristmill.tasks import StagedFile


def staged(directory, name, content, documents=1):
    (directory / "tmp").mkdir(exist_ok=True, parents=True)
    written = stage_file(str(directory / "tmp" / name), [content])
    return StagedFile(written.path, str(directory / "out" / name), written.num_bytes, documents, written.checksum)


def record(files):
    return CommitRecord(0, "a", tuple(files), (), (), ())


def test_files_of_a_partition_are_joined_in_the_order_of_their_numbers(tmp_path):
    files = [staged(tmp_path, f"a.{number:04d}.jsonl", b"%d\n" % number, 2) for number in (0, 1, 2, 9999, 10000)]
    joined = join_small_files(record(files[::-1]), [f"{tmp_path}/out/"], durable=True)

    [file] = joined.files
    assert (file.final, file.num_documents, file.num_bytes) == (str(tmp_path / "out" / "a.0000.jsonl"), 10, 17)
    assert (tmp_path / "tmp" / "a.0000.jsonl.joined").read_bytes() == b"0\n1\n2\n9999\n10000\n"
    assert file.checksum == checksum_of(file.temporary)
    assert [path.name for path in (tmp_path / "tmp").iterdir()] == ["a.0000.jsonl.joined"]


def test_a_joined_file_is_not_larger_than_a_file_usually_is(tmp_path, monkeypatch):
    monkeypatch.setattr(joined_files, "JOINED_BYTES", 10)
    sizes = [4, 4, 4, 20, 4, 6]
    files = [staged(tmp_path, f"a.{number:04d}.jsonl", b"x" * size) for number, size in enumerate(sizes)]
    joined = join_small_files(record(files), [f"{tmp_path}/out/"], durable=False)

    assert [(file.final[-10:], file.num_bytes) for file in joined.files] == [
        ("0000.jsonl", 8),
        ("0002.jsonl", 4),
        ("0003.jsonl", 20),
        ("0004.jsonl", 10),
    ]


def test_compressed_files_are_joined_too_and_read_as_one(tmp_path):
    files = [staged(tmp_path, f"a.{n:04d}.jsonl.gz", gzip.compress(b"%d\n" % n)) for n in range(3)]
    [file] = join_small_files(record(files), [f"{tmp_path}/out/"], durable=False).files
    with gzip.open(file.temporary) as content:
        assert content.read() == b"0\n1\n2\n"


@pytest.mark.parametrize("directories", [[], ["/elsewhere/"]])
def test_other_directories_are_left_alone(tmp_path, directories):
    given = record([staged(tmp_path, f"a.{n:04d}.jsonl", b"x") for n in range(3)])
    assert join_small_files(given, directories, durable=False) == given


def test_only_formats_that_may_be_joined_are_and_only_where_tasks_are_small(tmp_path):
    from tests.own_source import own_source, write_lines

    from gristmill.backends.local import LocalExecutor
    from gristmill.pipeline import Pipeline
    from gristmill.stages.text.io import JsonlReader, JsonlWriter, ParquetWriter

    source = write_lines(tmp_path / "raw", 1, 3)
    (tmp_path / "raw2").mkdir()
    (tmp_path / "raw2" / "a.jsonl").write_text('{"a": 1}\n')
    here = LocalExecutor(num_workers=0)

    def directories(reader, writer):
        return joined_directories(Pipeline("p", stages=[reader, writer]).plan(here))

    out = str(tmp_path / "out")
    assert directories(own_source(source, tmp_path), JsonlWriter(out)) == (f"{out}/",)
    assert directories(own_source(source, tmp_path), ParquetWriter(out)) == ()
    assert directories(JsonlReader(str(tmp_path / "raw2")), JsonlWriter(out)) == ()
