"""The order of the files, how the documents are cut into them and into blocks: none of it changes what stays."""

import json

import pyarrow.parquet as pq
import pytest
from tests import deduplication_forms
from tests.deduplication_forms import FORMS
from tests.jsonl_files import contents
from tests.near_duplicates import make_corpus

from gristmill.backends.local import LocalExecutor

pytestmark = pytest.mark.slow
NUM_FILES = 5
KINDS = [(form, kind) for kind in ("exact", "fuzzy") for form in FORMS]


def deduplicate(kind, source, out, *, workers=0, **options):
    options |= {"total_nparts": 3} if kind[1] == "exact" else {}
    executor = LocalExecutor(num_workers=workers)
    deduplication_forms.deduplicate(*kind, source, out, executor=executor, keep="longest", **options)


def lines_of(directory):
    """All lines, sorted: the bytes of every document, wherever it is."""
    return sorted(line for file in directory.glob("*.jsonl") for line in file.read_bytes().splitlines(keepends=True))


def pairs(out):
    """Who lost to whom, and how similar they are."""
    rows = pq.read_table(out / "duplicates.parquet", columns=["id", "kept_id", "similarity"]).to_pylist()
    return sorted((row["id"], row["kept_id"], row["similarity"]) for row in rows)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Near-duplicates; and each text of the first fifth once more, in another file and under another id."""
    corpus = make_corpus(num_documents=150)
    copies = {f"{key}-copy": words for key, words in list(corpus.documents.items())[: len(corpus.documents) // 5]}
    corpus.documents |= copies
    return corpus.write(tmp_path_factory.mktemp("order") / "in", num_files=NUM_FILES, order=1)


@pytest.fixture(scope="module", params=KINDS, ids="-".join)
def finished(request, source, tmp_path_factory):
    out = tmp_path_factory.mktemp(request.param[1]) / "out"
    deduplicate(request.param, source, out)
    assert pairs(out)
    return request.param, out


@pytest.mark.parametrize("workers", [1, 8])
def test_workers_do_not_change_a_byte(finished, source, tmp_path, workers):
    kind, before = finished
    deduplicate(kind, source, tmp_path / "out", workers=workers)
    assert contents(tmp_path / "out") == contents(before)


def test_files_in_another_order_keep_the_same_bytes(finished, source, tmp_path):
    kind, before = finished
    shuffled = {f"{number:03d}": f"{number * 3 % NUM_FILES:03d}" for number in range(NUM_FILES)}
    (tmp_path / "in").mkdir()
    for old, new in shuffled.items():
        (tmp_path / "in" / f"{new}.jsonl").write_bytes((source / f"{old}.jsonl").read_bytes())
    deduplicate(kind, tmp_path / "in", tmp_path / "out", workers=2)

    for old, new in shuffled.items():
        kept = tmp_path / "out" / "deduplicated" / f"{new}.jsonl"
        assert kept.read_bytes() == (before / "deduplicated" / f"{old}.jsonl").read_bytes()
    assert pairs(tmp_path / "out") == pairs(before)


@pytest.mark.parametrize("num_files", [1, 12])
def test_other_shards_keep_the_same_documents(finished, source, tmp_path, num_files):
    kind, before = finished
    lines = lines_of(source)
    (tmp_path / "in").mkdir()
    for number in range(num_files):
        (tmp_path / "in" / f"{number:03d}.jsonl").write_bytes(b"".join(lines[number::num_files]))
    deduplicate(kind, tmp_path / "in", tmp_path / "out", workers=2)

    assert lines_of(tmp_path / "out" / "deduplicated") == lines_of(before / "deduplicated")
    assert pairs(tmp_path / "out") == pairs(before)


@pytest.mark.parametrize("blocksize", [5_000, 40_000])
def test_other_blocks_keep_the_same_documents(finished, source, tmp_path, blocksize):
    kind, before = finished
    deduplicate(kind, source, tmp_path / "out", workers=2, input_blocksize=blocksize)

    assert lines_of(tmp_path / "out" / "deduplicated") == lines_of(before / "deduplicated")
    assert pairs(tmp_path / "out") == pairs(before)
    assert len(json.loads((tmp_path / "out" / "report.json").read_text())["sources"]) == NUM_FILES
