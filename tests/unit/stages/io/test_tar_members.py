"""Tar archives are split between samples: another kind of part, which tasks and engine carry and do not know."""

import gzip
import io
import json
import tarfile
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.backends.local import LocalExecutor
from gristmill.errors import DamagedFile
from gristmill.pipeline import Pipeline
from gristmill.stages.io.files import FileReader, ReadingStage, lost_part, part_options, planned, too_large
from gristmill.stages.io.splitting import Splitter
from gristmill.stages.io.tar_members import File, TarMembers, read_members, read_samples, sample_of
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.storage.file_system import FileStatus
from gristmill.storage.open_read import InputFile
from gristmill.tasks import DocumentBatch, FileGroupTask


@dataclass(eq=False)
class _TarTextsStage(ReadingStage[DocumentBatch]):
    """A document for each sample: the text in its `.txt` and the label in its `.cls`."""

    name: str = field(default="tar_texts", kw_only=True)

    def process(self, task: FileGroupTask) -> DocumentBatch:
        documents: list[dict[str, str]] = []
        options = part_options(task.reader_config, self.read_kwargs)
        for part in task.parts():
            with InputFile(part.path, planned=planned(part), storage_options=options) as file:
                try:
                    for sample in read_samples(file, part.part, self.most_bytes()):
                        documents += self._document(file.path, sample)
                except DamagedFile as error:
                    self.context.quarantine(lost_part(error, file.path))
        columns = {key: [document[key] for document in documents] for key in ("key", "txt", "cls")}
        return DocumentBatch(task.dataset_name, pa.table(columns))

    def _document(self, path: str, sample: list[File]) -> list[dict[str, str]]:
        document = {"key": sample_of(sample[0][0].name)}
        for member, content in sample:
            if content is None:
                self.context.quarantine(too_large(path, f"member {member.name!r}", member.size, self.most_bytes()))
                return []
            document[member.name.rpartition(".")[2]] = content.decode()
        return [document]


@dataclass(eq=False)
class _TarTexts(FileReader[DocumentBatch]):
    split: ClassVar[Splitter] = TarMembers()
    file_extensions: list[str] = field(default_factory=lambda: [".tar"])
    name: str = "tar_texts"

    def reading_stage(self) -> ReadingStage[DocumentBatch]:
        return _TarTextsStage(self.fields, self.read_kwargs, name=self.name)


def archive(samples, form=tarfile.PAX_FORMAT):
    """Each sample is two members; sizes vary, so that blocks end anywhere."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as out:
        for number, (key, text) in enumerate(samples):
            for extension, content in (("txt", text.encode()), ("cls", b"%d" % number)):
                info = tarfile.TarInfo(f"{key}.{extension}")
                info.size = len(content)
                out.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


SAMPLES = [(f"dir.v1/{n:03d}{'x' * (n % 3) * 60}", f"text {n} " * (n % 17)) for n in range(60)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("tars")


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3000)), max_size=12),
    st.integers(1, 8000),
    st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
)
def test_parts_hold_every_member_once_in_order_and_no_sample_is_divided(directory, samples, block, form):
    path = directory / "a.tar"
    given_samples = [(f"{n:03d}{'é' * (length * 40)}", "t" * size) for n, (length, size) in enumerate(samples)]
    try:
        path.write_bytes(archive(given_samples, form))
    except ValueError:  # a name too long for the oldest form
        return
    parts = TarMembers().parts_of(FileStatus(str(path), path.stat().st_size, ""), block, None)
    with InputFile(str(path)) as file:
        each = [[m.name for m, _ in read_members(file, part.numbers, 1 << 20)] for part in parts]
        whole = [m.name for m, _ in read_members(file, None, 1 << 20)]

    assert [name for names in each for name in names] == whole
    assert whole == [f"{key}.{extension}" for key, _ in given_samples for extension in ("txt", "cls")]
    assert all(len({sample_of(name) for name in names} & {sample_of(n) for n in others}) == 0
               for i, names in enumerate(each) for others in each[i + 1 :])  # fmt: skip
    assert all(part.num_bytes < block + 8192 for part in parts[:-1])


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])
def test_what_is_not_a_file_does_not_cut_a_sample_in_two(tmp_path, kind):
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as out:
        for number in range(20):
            for name, of in ((f"{number}.txt", tarfile.REGTYPE), ("latest", kind), (f"{number}.cls", tarfile.REGTYPE)):
                info = tarfile.TarInfo(name)
                info.type, info.linkname = of, "0.txt"
                info.size = 600 if of == tarfile.REGTYPE else 0
                out.addfile(info, io.BytesIO(b"x" * info.size))
    parts = TarMembers().parts_of(FileStatus(str(path), path.stat().st_size, ""), 1000, None)
    with InputFile(str(path)) as file:
        samples = [
            [m.name for m, _ in sample] for part in parts for sample in read_samples(file, part.numbers, 1 << 20)
        ]

    assert len(parts) > 10
    assert samples == [[f"{number}.txt", f"{number}.cls"] for number in range(20)]


def written(tmp_path, name="out"):
    lines = [line for file in sorted((tmp_path / name).glob("*.jsonl")) for line in file.read_text().splitlines()]
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("workers", [0, 2])
def test_an_archive_in_many_parts_gives_the_documents_of_one_in_one_part(tmp_path, workers):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.tar").write_bytes(archive(SAMPLES))
    for blocksize, out in (("10KB", "split"), (None, "whole")):
        reader = _TarTexts(str(tmp_path / "in"), blocksize=blocksize)
        pipeline = Pipeline("tars", stages=[reader, JsonlWriter(str(tmp_path / out))])
        result = pipeline.run(LocalExecutor(num_workers=workers), quiet=True)
        assert (result.read, result.written, result.quarantined) == (60, 60, 0)

    assert len(list((tmp_path / "split").glob("*.jsonl"))) > 3
    assert written(tmp_path, "split") == written(tmp_path, "whole")
    assert [(d["key"], d["txt"], d["cls"]) for d in written(tmp_path, "split")] == [
        (key, text, str(number)) for number, (key, text) in enumerate(SAMPLES)
    ]


def test_what_is_damaged_is_on_record_and_the_members_before_it_are_read(tmp_path):
    """Of sample 40 the text is whole and the label is not: it is lost with what is behind it, not half a document."""
    data = bytearray(archive(SAMPLES))
    with tarfile.open(fileobj=io.BytesIO(data)) as opened:
        text, label = opened.getmembers()[80:82]
    data[label.offset] ^= 0xFF
    (tmp_path / "a.tar").write_bytes(data)
    reader = _TarTexts(str(tmp_path / "a.tar"), blocksize="10KB")
    pipeline = Pipeline("tars", stages=[reader, JsonlWriter(str(tmp_path / "out"))])
    result = pipeline.run(LocalExecutor(num_workers=0), quiet=True, max_quarantined=None)

    assert [d["cls"] for d in written(tmp_path)] == [*map(str, range(40))]
    (error,) = result.errors
    assert (error.kind, error.lost_parts, error.lost_bytes) == ("damaged", 1, len(data) - text.offset)


def test_a_compressed_archive_is_read_from_its_beginning_and_a_bomb_is_not_held(tmp_path):
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(archive([*SAMPLES, ("bomb", "0" * 5_000_000), ("last", "t")])))
    reader = _TarTexts(str(path), file_extensions=[".tar.gz"], blocksize=1000, max_document_bytes=10_000)
    partitioning, stage = reader.decompose()
    (task,) = partitioning.partitions()
    batch = stage.process(task)

    assert batch.to_pyarrow()["txt"].to_pylist()[-2:] == [SAMPLES[-1][1], "t"]
    assert [(r.kind, "member 'bomb.txt'" in r.error) for r in stage.context.quarantined] == [("too_large", True)]


def test_a_compressed_archive_that_is_cut_says_so(tmp_path):
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(archive(SAMPLES)[:20_000]))
    with InputFile(str(path)) as file, pytest.raises(DamagedFile, match="expected a whole tar archive") as raised:
        list(read_members(file, None, 1 << 20))

    assert 0 < raised.value.lost_bytes <= path.stat().st_size


def test_the_last_sample_of_an_archive_without_an_end_is_kept_and_that_is_said(tmp_path):
    """Every member is whole, but nothing tells whether there were more."""
    path = tmp_path / "a.tar"
    data = archive(SAMPLES, tarfile.GNU_FORMAT)
    with tarfile.open(fileobj=io.BytesIO(data)) as opened:
        last = opened.getmembers()[-1]
    path.write_bytes(data[: last.offset_data + 512])
    samples = []
    with InputFile(str(path)) as file, pytest.raises(DamagedFile, match="may have been cut") as raised:
        samples.extend(read_samples(file, None, 1 << 20))

    assert [sample_of(sample[0][0].name) for sample in samples] == [key for key, _ in SAMPLES]
    assert (raised.value.is_complete, raised.value.lost_bytes) == (True, 0)


def test_tar_members_can_be_asked_for_by_name(tmp_path):
    from gristmill.stages.file_partitioning import FilePartitioningStage

    (tmp_path / "a.tar").write_bytes(archive(SAMPLES))

    assert len(FilePartitioningStage(str(tmp_path), blocksize="10KB", split="tar_members").partitions()) > 3
