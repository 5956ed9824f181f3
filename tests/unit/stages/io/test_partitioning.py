"""Partitions depend on the files and the parameters, on nothing else."""

import gzip
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.errors import ConfigError, NoInputError
from gristmill.stages.io.partitioning import DEFAULT_BLOCK_BYTES, FilePartitioningStage
from gristmill.stages.io.splitting import Part
from gristmill.tasks import EmptyTask


@pytest.fixture
def files(tmp_path):
    for name, size in {"a": 10, "b": 10, "c": 35, "d": 5}.items():
        (tmp_path / f"{name}.jsonl").write_bytes(b"x" * size)
    return str(tmp_path)


def shape(stage):
    return {t.partition_name: [(s.path[-7:-6], s.part) for s in t.slices] for t in stage.partitions()}


def test_by_default_each_file_is_a_partition(files):
    stage = FilePartitioningStage(files)
    assert list(shape(stage)) == ["a", "b", "c", "d"]
    assert stage.process(EmptyTask()) == stage.partitions()


def test_files_per_partition_groups_neighbours(files):
    assert shape(FilePartitioningStage(files, files_per_partition=3)) == {
        "a+2": [("a", None), ("b", None), ("c", None)],
        "d": [("d", None)],
    }


def test_blocksize_groups_small_files_and_splits_large_ones(files):
    assert shape(FilePartitioningStage(files, blocksize=20, split="lines")) == {
        "a+1": [("a", None), ("b", None)],
        "c-00000": [("c", (0, 20))],
        "c-00001": [("c", (20, 35))],
        "d": [("d", None)],
    }


def test_a_large_file_is_split_by_default_at_a_size_that_is_the_same_everywhere(tmp_path):
    with (tmp_path / "big.jsonl").open("wb") as file:
        file.truncate(2 * DEFAULT_BLOCK_BYTES + 1)
    assert DEFAULT_BLOCK_BYTES == 33_554_432
    assert len(FilePartitioningStage(str(tmp_path), split="lines").partitions()) == 3
    assert len(FilePartitioningStage(str(tmp_path)).partitions()) == 1
    assert len(FilePartitioningStage(str(tmp_path), files_per_partition=1, split="lines").partitions()) == 1


def test_a_compressed_file_is_never_split(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(bytes(range(256)) * 10))
    assert len(FilePartitioningStage(str(tmp_path), blocksize=10, split="lines").partitions()) == 1


def test_a_parquet_file_is_split_between_row_groups(tmp_path):
    pq.write_table(pa.table({"a": range(1000)}), tmp_path / "a.parquet", row_group_size=100, compression="none")
    parts = FilePartitioningStage(str(tmp_path), blocksize=3000, split="row_groups").partitions()
    assert len(parts) > 2
    assert [g for t in parts for s in t.slices for g in s.part] == list(range(10))


@dataclass(frozen=True)
class Pages:
    """Splits files into pages of ten bytes, which it calls by their numbers."""

    def parts_of(self, file, block_bytes, options):
        each = block_bytes // 10
        pages = range(file.size // 10)
        return [Part(tuple(pages[i : i + each]), 10 * each) for i in range(0, len(pages), each)]


def test_a_splitter_of_ones_own_names_parts_as_it_likes(files):
    assert shape(FilePartitioningStage(files, blocksize=20, split=Pages())) == {
        "a+1": [("a", None), ("b", None)],
        "c-00000": [("c", (0, 1))],
        "c-00001": [("c", (2,))],
        "d": [("d", None)],
    }


@pytest.mark.parametrize("split", ["line", 3, None])
def test_a_split_that_is_not_known_is_refused(files, split):
    with pytest.raises(ConfigError, match="expected split to be a Splitter or one of") as raised:
        FilePartitioningStage(files, split=split)

    assert ("did you mean 'lines'?" in str(raised.value)) == (split == "line")


def test_a_slice_knows_its_files_size_and_version(files):
    part = FilePartitioningStage(files).partitions()[2].slices[0]
    assert (part.file_size, part.num_bytes) == (35, 35)
    assert part.version


def test_limit_keeps_the_first_partitions(files):
    assert list(shape(FilePartitioningStage(files, limit=2))) == ["a", "b"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"files_per_partition": 0}, "expected files_per_partition to be a whole number ≥ 1; got 0"),
        ({"limit": "3"}, "expected limit to be a whole number ≥ 1; got '3'"),
        ({"blocksize": "big"}, "file_partitioning: blocksize: expected a number of bytes"),
        ({"blocksize": 1, "files_per_partition": 1}, "expected files_per_partition or blocksize, not both"),
    ],
)
def test_wrong_parameters_are_refused_at_once(options, message):
    with pytest.raises(ConfigError, match=message):
        FilePartitioningStage("in", **options)


def test_no_input_is_an_error_of_the_plan_not_of_the_run(tmp_path):
    with pytest.raises(NoInputError, match="file_partitioning: expected a file"):
        FilePartitioningStage(str(tmp_path)).partitions()
