"""WebDataset archives: samples become documents and documents samples, and no sample is lost or joined to another."""

import gzip
import io
import json
import tarfile
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, StageError
from gristmill.pipeline import Pipeline
from gristmill.stages.context import StageContext
from gristmill.stages.io.tar_members import is_shown
from gristmill.stages.text.io import JsonlReader, JsonlWriter, WebDatasetReader, WebDatasetWriter
from gristmill.stages.text.io.reader import WebDatasetReaderStage
from gristmill.stages.text.io.writer.webdataset import LONGEST_KEY, escaped
from gristmill.storage.tar import Member
from gristmill.tasks import DocumentBatch, FileGroupTask


def archive(path, members, *, kind=tarfile.REGTYPE):
    with tarfile.open(path, "w") as file:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size, info.type = len(content), kind
            file.addfile(info, io.BytesIO(content))
    return path


def read(path, **options):
    stage = WebDatasetReaderStage(**options)
    stage.context = StageContext()
    made = stage.process(FileGroupTask("d", [str(path)]))
    batches = [made] if isinstance(made, DocumentBatch) else list(made)
    rows = [row for batch in batches for row in batch.to_pyarrow().to_pylist()]
    return rows, [(record.kind, record.document_id) for record in stage.context.quarantined]


def test_a_sample_is_a_document_and_its_files_are_columns(tmp_path):
    members = [("a/1.txt", b"one"), ("a/1.cls", b" 7\n"), ("a/1.JPG", b"\xff\xd8"), ("a/1.seg.txt", b"zwei")]
    members += [("a/2.txt", "drei é".encode()), ("a/2.json", b'{"n": 1.0}')]
    rows, bad = read(archive(tmp_path / "x.tar", members))

    assert bad == []
    one = {"__key__": "a/1", "txt": "one", "cls": 7, "jpg": b"\xff\xd8", "seg.txt": "zwei", "json": None}
    two = {"__key__": "a/2", "txt": "drei é", "cls": None, "jpg": None, "seg.txt": None, "json": '{"n": 1.0}'}
    assert rows == [one, two]


def test_hidden_files_and_names_without_a_field_are_passed_over_and_cut_no_sample_in_two(tmp_path):
    members = [("1.txt", b"one"), ("._1.txt", b"x"), (".DS_Store", b"x"), ("1.cls", b"1"), ("README", b"x")]
    rows, bad = read(archive(tmp_path / "x.tar", [*members, ("__meta__.json", b"{}"), ("2.txt", b"two")]))

    assert bad == []
    assert [(row["__key__"], row["txt"], row["cls"]) for row in rows] == [("1", "one", 1), ("2", "two", None)]


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([("1.txt", b"a"), ("1.TXT", b"b")], ("repeated_field", "1")),
        ([("1.txt", b"a"), ("2.txt", b"b"), ("1.txt", b"c")], ("repeated_key", "1")),
        ([("1.txt", b"\xff")], ("bad_field", "1")),
        ([("1.json", b"{")], ("bad_field", "1")),
        ([("1.json", b"[" * 9_000)], ("bad_field", "1")),
        ([("1.cls", b"one")], ("bad_field", "1")),
        ([("1.cls", b"9" * 30)], ("bad_field", "1")),
        ([("1.txt", b"a" * 20_000)], ("too_large", "1")),
    ],
)
def test_a_bad_sample_goes_to_quarantine_and_the_next_is_read(tmp_path, members, expected):
    rows, bad = read(archive(tmp_path / "x.tar", [*members, ("9.txt", b"good")]), max_document_bytes=10_000)

    assert bad == [expected]
    assert rows[-1]["__key__"] == "9"
    assert len(rows) == len({name.partition(".")[0] for name, _ in members} - {expected[1]}) + 1 + (
        expected[0] == "repeated_key"
    )


def test_names_lead_nowhere(tmp_path):
    rows, _ = read(archive(tmp_path / "x.tar", [("../../up.txt", b"a"), ("/etc/passwd.txt", b"b")]))

    assert [row["__key__"] for row in rows] == ["../../up", "/etc/passwd"]
    assert [path.name for path in tmp_path.iterdir()] == ["x.tar"]


KINDS = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)


@pytest.mark.parametrize("ending", ["tar", "tar.gz"])
def test_links_devices_and_pipes_are_dropped_and_counted_and_their_samples_are_read_without_them(tmp_path, ending):
    """One alone is in a sample of its own, one stands between the files of a sample; a directory counts for nothing."""
    members = [("0.txt", b"zero"), (tarfile.DIRTYPE, "d"), (tarfile.SYMTYPE, "._1.txt")]
    for n, kind in enumerate(KINDS):
        members += [(kind, f"alone-{n}.txt"), (f"{n}-a.txt", b"a"), (kind, f"{n}-a.json"), (f"{n}-a.cls", b"1")]
    path = tmp_path / f"x.{ending}"
    with tarfile.open(path, "w:gz" if ending.endswith("gz") else "w") as file:
        for first, second in members:
            info = tarfile.TarInfo(second if isinstance(second, str) else first)
            info.type, info.linkname = (first, "/etc/passwd") if isinstance(second, str) else (tarfile.REGTYPE, "")
            info.size = 0 if isinstance(second, str) else len(second)
            file.addfile(info, None if isinstance(second, str) else io.BytesIO(second))
    reader = WebDatasetReader(str(path), blocksize=4096, file_extensions=[".tar", ".tar.gz"])
    stages = [reader, JsonlWriter(str(tmp_path / "out"))]
    here = LocalExecutor(num_workers=0)
    result = Pipeline("p", stages=stages).run(here, quiet=True, rejects_path=str(tmp_path / "rejects"))

    files = sorted((tmp_path / "out").glob("*.jsonl"))
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert [row["__key__"] for row in rows] == ["0", *(f"{n}-a" for n in range(5))]
    assert all(row["cls"] == 1 for row in rows[1:])
    assert (result.read, result.written, result.quarantined) == (16, 6, 0)
    assert result.dropped == {"webdataset_reader": {"not_a_file": 10}}
    assert result.balanced
    rejects = "".join(file.read_text() for file in (tmp_path / "rejects").rglob("*.jsonl"))
    assert all(f"alone-{n}.txt" in rejects for n in range(5))
    assert "root:" not in rejects


def bomb(path, member, size):
    """An archive of little that unpacks to much: one member of zeros, and a sample behind it."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        info = tarfile.TarInfo(member)
        info.size = size
        file.write(info.tobuf())
        for _ in range(size >> 20):
            file.write(bytes(1 << 20))
        last = tarfile.TarInfo("9.txt")
        last.size = 4
        file.write(last.tobuf() + b"good".ljust(512, b"\0") + bytes(1024))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(("member", "kinds"), [("1.txt", [("too_large", "1")]), ("._1.txt", [])])
def test_an_archive_that_unpacks_to_much_more_costs_its_sample_and_little_memory(tmp_path, member, kinds):
    path = bomb(tmp_path / "x.tar.gz", member, 256 << 20)
    assert path.stat().st_size < 4 << 20
    tracemalloc.start()
    try:
        rows, bad = read(path, max_document_bytes=1 << 20)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert (bad, [row["txt"] for row in rows]) == (kinds, ["good"])
    assert most < 64 << 20


def test_a_name_that_is_not_utf8_is_a_name_like_any_other(tmp_path):
    members = [("a\udcfc.txt", b"one"), ("a\udce4.txt", b"two"), ("b.\udcff", b"three"), ("c.txt", b"four")]
    with tarfile.open(tmp_path / "x.tar", "w", format=tarfile.GNU_FORMAT) as file:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    rows, bad = read(tmp_path / "x.tar")

    assert bad == []
    assert [(row["__key__"], row["txt"]) for row in rows] == [
        ("a\\xfc", "one"), ("a\\xe4", "two"), ("b", None), ("c", "four"),
    ]  # fmt: skip
    assert rows[2]["\\xff"] == b"three"


def test_a_cut_archive_gives_the_samples_before_the_damage_and_a_record(tmp_path):
    path = archive(tmp_path / "x.tar", [(f"{n}.txt", b"text") for n in range(9)])
    path.write_bytes(path.read_bytes()[: 1024 * 5 + 100])
    rows, bad = read(path)

    assert [row["__key__"] for row in rows] == ["0", "1", "2", "3"]
    assert [kind for kind, _ in bad] == ["damaged"]


def test_a_misspelt_field_is_refused_before_a_run_with_the_nearest_name(tmp_path):
    archive(tmp_path / "x.tar", [("1.txt", b"a"), ("1.cls", b"1")])
    pipeline = Pipeline("p", stages=[WebDatasetReader(str(tmp_path), fields=["tx"]), JsonlWriter(str(tmp_path / "o"))])
    with pytest.raises(ConfigError, match="got 'tx'; did you mean 'txt'"):
        pipeline.run(quiet=True)


@pytest.mark.slow
def test_a_large_archive_is_split_and_gives_the_same_documents(tmp_path):
    members = [(f"{n:04d}.{kind}", b"word " * 100) for n in range(400) for kind in ("txt", "bin")]
    archive(tmp_path / "x.tar", members)
    (tmp_path / "x.tar.gz").write_bytes(gzip.compress((tmp_path / "x.tar").read_bytes(), mtime=0))
    found = []
    for place, blocksize in (("x.tar", "64KiB"), ("x.tar", "1GiB"), ("x.tar.gz", "64KiB")):
        out = tmp_path / f"{place}-{blocksize}"
        reader = WebDatasetReader(
            str(tmp_path / place), blocksize=blocksize, fields=["__key__", "txt"], file_extensions=[".tar", ".gz"]
        )
        result = Pipeline("p", stages=[reader, JsonlWriter(str(out))]).run(LocalExecutor(num_workers=2), quiet=True)
        assert (result.read, result.written, result.quarantined) == (400, 400, 0)
        found.append(b"".join(path.read_bytes() for path in sorted(out.glob("*.jsonl"))))

    assert found[0] == found[1] == found[2]


# Writing


def write(tmp_path, table, task_id="part", **options):
    batch = DocumentBatch("d", pa.table(table))
    batch.task_id = task_id
    return [Path(path) for path in WebDatasetWriter(str(tmp_path), **options).process(batch).data]


def members_of(path):
    with tarfile.open(path) as file:
        return [(info.name, file.extractfile(info).read()) for info in file]


def test_a_document_is_a_sample_with_its_text_its_bytes_and_the_rest_as_json(tmp_path):
    table = {"id": ["x", "y"], "text": ["one", None], "jpg": pa.array([b"\xff", None], pa.binary()), "n": [1, 2]}
    (path,) = write(tmp_path, table)

    assert path.name == "part-000000.tar"
    assert members_of(path) == [
        ("part-00000000.jpg", b"\xff"),
        ("part-00000000.json", b'{"id":"x","n":1}'),
        ("part-00000000.txt", b"one"),
        ("part-00000001.json", b'{"id":"y","n":2}'),
    ]


def test_shards_hold_so_many_samples_and_count_them(tmp_path):
    stage = WebDatasetWriter(str(tmp_path), samples_per_shard=2)
    stage.context = StageContext(session="s", attempt="0")
    (tmp_path / ".gristmill/tmp/s").mkdir(parents=True)
    batch = DocumentBatch("d", pa.table({"text": ["a", "b", "c", "d", "e"]}))
    batch.task_id = "part"
    staged = stage.process(batch).staged

    assert [Path(each.final).name for each in staged] == [f"part-{n:06d}.tar" for n in range(3)]
    assert [each.num_documents for each in staged] == [2, 2, 1]


def test_a_document_without_any_value_is_still_a_sample(tmp_path):
    (path,) = write(tmp_path, {"text": pa.array([None, "b"], pa.string())})

    assert members_of(path) == [("part-00000000.json", b"{}"), ("part-00000001.txt", b"b")]


def test_the_same_batch_gives_the_same_bytes_whoever_writes_it(tmp_path):
    table = {"text": ["a", "b"], "id": ["1", "2"]}
    (one,), (other,) = write(tmp_path / "1", table), write(tmp_path / "2", table)

    assert one.read_bytes() == other.read_bytes()
    with tarfile.open(one) as file:
        assert {(info.mtime, info.uid, info.gid, info.uname, info.mode) for info in file} == {(0, 0, 0, "", 0o644)}


def test_two_documents_of_one_key_stay_two_samples(tmp_path):
    (path,) = write(tmp_path, {"id": ["k", "k", "k\x10"], "text": ["a", "b", "c"]}, key_field="id")
    rows, bad = read(path)

    assert bad == []
    assert [row["txt"] for row in rows] == ["a", "b", "c"]
    assert [json.loads(row["json"])["id"] for row in rows] == ["k", "k", "k\x10"]


@given(key=st.text(min_size=1, max_size=200) | st.text("_/ab", min_size=1, max_size=9))
def test_any_key_becomes_a_name_that_is_one_sample_inside_the_archive(key):
    name = escaped(key)

    assert "." not in name
    assert len(name.encode("utf-8", "surrogatepass")) <= LONGEST_KEY
    assert not name.startswith("/")
    assert not any(part in ("", "..") for part in name.split("/"))
    assert is_shown(Member(f"{name}.txt", 0, 512, 0, 1024, is_file=True))


@given(keys=st.lists(st.text(max_size=12), min_size=2, max_size=6, unique=True))
def test_different_keys_have_different_names(keys):
    assert len({escaped(key) for key in keys}) == len(keys)


def test_columns_that_would_be_the_same_file_are_refused(tmp_path):
    with pytest.raises(StageError, match="expected columns that can be files of a sample; got 'txt'; 'text' is one"):
        write(tmp_path, {"text": ["a"], "txt": ["b"]})


@pytest.mark.parametrize("key", ["__meta__", "d/__", "half \\ud800", ".hidden"])
def test_a_sample_of_any_key_is_read_again(tmp_path, key):
    (tmp_path / "a.jsonl").write_text(f'{{"id": "{key}", "text": "a"}}\n{{"id": "b", "text": "b"}}\n')
    writer = WebDatasetWriter(str(tmp_path / "tars"), key_field="id")
    Pipeline("w", stages=[JsonlReader(str(tmp_path / "a.jsonl")), writer]).run(LocalExecutor(num_workers=0), quiet=True)
    rows, bad = read(next((tmp_path / "tars").glob("*.tar")))

    assert [row["txt"] for row in rows] == ["a", "b"]
    assert bad == []


@pytest.mark.slow
def test_what_was_read_is_written_again_and_the_books_balance(tmp_path):
    (tmp_path / "in").mkdir()
    lines = [json.dumps({"id": f"d{n}", "text": f"text {n}", "big": 12345678901234567890}) for n in range(25)]
    (tmp_path / "in/a.jsonl").write_text("\n".join(lines) + "\n")
    writer = WebDatasetWriter(str(tmp_path / "tars"), samples_per_shard=10, key_field="id")
    first = Pipeline("w", stages=[JsonlReader(str(tmp_path / "in")), writer]).run(quiet=True)
    again = WebDatasetWriter(str(tmp_path / "again"))
    second = Pipeline("r", stages=[WebDatasetReader(str(tmp_path / "tars")), again]).run(quiet=True)

    assert (first.written, second.read, second.written) == (25, 25, 25)
    samples = [dict(members_of(path)) for path in sorted((tmp_path / "tars").glob("*.tar"))]
    assert samples[0]["d0.json"] == b'{"id":"d0","big":12345678901234567890}'
    joined = {name: content for path in (tmp_path / "again").glob("*.tar") for name, content in members_of(path)}
    assert joined == {name: content for sample in samples for name, content in sample.items()}


@pytest.mark.slow
def test_shards_of_two_runs_are_the_same_to_the_byte_with_one_worker_and_with_two(tmp_path):
    (tmp_path / "in").mkdir()
    for part in range(3):
        rows = [{"id": f"d{part}-{n}", "text": f"text {n} " * n, "score": n / 7} for n in range(25)]
        (tmp_path / f"in/{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = []
    for run, workers in enumerate((1, 2, 2)):
        writer = WebDatasetWriter(str(tmp_path / f"out{run}"), samples_per_shard=10, key_field="id")
        pipeline = Pipeline("p", stages=[JsonlReader(str(tmp_path / "in")), writer])
        assert pipeline.run(LocalExecutor(num_workers=workers), quiet=True).written == 75
        found.append({path.name: path.read_bytes() for path in (tmp_path / f"out{run}").glob("*.tar")})

    assert len(found[0]) == 9
    assert found[0] == found[1] == found[2]
