"""Archives of papers: each paper is kept, left out or put aside by name, and nothing is written anywhere."""

import gzip
import io
import itertools
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.arxiv_archives import PAPER, PROOF, TEXT, project, single, special, tar_of

from gristmill.stages.context import Quarantined
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.download import LeftOut
from gristmill.stages.text.download.arxiv.archive import paper_id, read_paper
from gristmill.stages.text.download.arxiv.extract import ArxivExtractor
from gristmill.stages.text.download.arxiv.iterator import ArxivIterator
from gristmill.tasks import FileSlice

GOOD = project(main=PAPER, proof=PROOF)


def write(directory, members, name="arXiv_src_0704_001.tar"):
    path = directory / name
    path.write_bytes(tar_of(members) if not isinstance(members, bytes) else members)
    return str(path)


def read(path, part=None, **options):
    return list(ArxivIterator(**options).iterate_part(FileSlice(path, part)))


def fates(found):
    """id -> what became of it."""
    names = {}
    for each in found:
        if isinstance(each, Quarantined):
            names[each.document_id] = each.kind
        elif isinstance(each, LeftOut):
            names[each.record["id"]] = each.why.reason
        else:
            names[each["id"]] = "kept"
    return names


def test_a_paper_of_several_files_becomes_one_text(tmp_path):
    [record] = read(write(tmp_path, {"0704/0704.0001.gz": GOOD}))
    assert ArxivExtractor().extract(record) == {
        "text": TEXT, "id": "0704.0001", "source_id": "arXiv_src_0704_001.tar", "title": "On norms",
        "abstract": r"We bound $\| x \|$.",
    }  # fmt: skip


def test_every_member_has_a_fate(tmp_path):
    latin = single("\\documentclass{a}\\begin{document}é\\end{document}".encode("latin-1"))
    members = [
        special("0704", tarfile.DIRTYPE),
        ("0704/0704.0001.gz", GOOD),
        ("0704/0704.0002.gz", single(PAPER)),
        ("0704/0704.0003.pdf", b"%PDF-1.4"),
        ("0704/0704.0004.gz", single(b"%PDF-1.4 inside")),
        ("0704/0704.0005.gz", single(b"%!PS-Adobe")),
        ("0704/0704.0006.gz", tar_of({"fig.eps": b"x", "readme.txt": b"y"}, compress=True)),
        ("0704/0704.0007.gz", GOOD[:-20]),
        ("0704/0704.0008.gz", b"\x1f\x8bbroken"),
        special("0704/0704.0009.gz", tarfile.SYMTYPE, "/etc/passwd"),
        special("0704/0704.0010.gz", tarfile.CHRTYPE),
        ("0704/0704.0011.gz", latin),
        ("0704/hep-th9901001.gz", GOOD),
        ("0704/0704.0012.gz", b""),
        ("0704/0704.0013.gz", single(b"")),
    ]
    assert fates(read(write(tmp_path, members))) == {
        "0704.0001": "kept", "0704.0002": "kept", "0704.0003": "no_source", "0704.0004": "no_source",
        "0704.0005": "no_source", "0704.0006": "no_tex", "0704.0007": "damaged", "0704.0008": "damaged",
        "0704.0009": "not_a_file", "0704.0010": "not_a_file", "0704.0011": "kept", "hep-th/9901001": "kept",
        "0704.0012": "no_source", "0704.0013": "no_source",
    }  # fmt: skip


def bomb(size):
    """A gzip of zeros, with something that looks like TeX before them."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as file:
        file.write(b"\\section{A}")
        for _ in range(size >> 20):
            file.write(bytes(1 << 20))
    return buffer.getvalue()


def test_hostile_papers_cost_themselves_and_nothing_else(tmp_path):
    outside = tmp_path / "archive"
    outside.mkdir()
    traversal = tar_of(
        [
            ("../../../../escaped.tex", PAPER.encode()),
            ("/tmp/absolute.tex", b"x"),
            special("link.tex", tarfile.SYMTYPE, "/etc/passwd"),
            special("hard.tex", tarfile.LNKTYPE, "../../escaped.tex"),
            special("dev.tex", tarfile.CHRTYPE),
            special("pipe.tex", tarfile.FIFOTYPE),
        ],
        compress=True,
    )
    many = tar_of({f"{k}.tex": b"x" for k in range(30)}, compress=True)
    members = {
        "0704/0704.0001.gz": GOOD,
        "0704/0704.0002.gz": traversal,
        "0704/0704.0003.gz": bomb(8 << 20),
        "0704/0704.0004.gz": tar_of({"main.tex": PAPER.encode(), "zeros.eps": bytes(40 << 20)}, compress=True),
        "0704/0704.0005.gz": many,
        "0704/0704.0006.gz": bytes(2000),
        "../../0704.0007.gz": GOOD,
    }
    limits = IngestLimits(max_project_bytes=2 << 20, max_project_files=20, max_tar_member_bytes=1 << 20)
    path = write(outside, members)
    before = sorted(tmp_path.rglob("*"))

    found = read(path, limits=limits)

    assert fates(found) == {
        "0704.0001": "kept", "0704.0002": "kept", "0704.0003": "too_large", "0704.0004": "too_large",
        "0704.0005": "too_large", "0704.0006": "no_source", "0704.0007": "kept",
    }  # fmt: skip
    assert sorted(tmp_path.rglob("*")) == before
    assert found[1]["file_names"] == ["../../../../escaped.tex", "/tmp/absolute.tex"]
    assert "root:" not in str(found)


@pytest.mark.parametrize(
    ("content", "is_text"),
    [
        (PAPER.encode(), True),
        ("é ü".encode("latin-1") * 100, True),
        ("日本語。\n".encode("iso2022_jp") * 50, True),
        (b"x\x1a", True),
        (gzip.compress(b"x" * 5000), False),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01" * 9, False),
        ("in UTF-16".encode("utf-16"), False),
    ],
    ids=["TeX", "Latin-1", "ISO-2022-JP", "old end of file", "gzip", "JPEG", "UTF-16"],
)
def test_a_file_that_is_not_text_is_not_taken_for_tex(content, is_text):
    paper = tar_of({"main.tex": content, "style.sty": b"x"}, compress=True)
    for packed in (paper, single(content)):
        assert bool(read_paper(packed, IngestLimits()).texts) == is_text


def test_pictures_do_not_count_as_tex():
    content = tar_of({"big.eps": b"x" * (3 << 20), "main.tex": b"\\section{A}"}, compress=True)
    found = read_paper(content, IngestLimits(max_project_bytes=1 << 20))
    assert found.texts == {"main.tex": b"\\section{A}"}


def test_a_member_larger_than_it_may_be_is_not_read(tmp_path):
    path = write(tmp_path, {"0704/0704.0001.gz": bytes(5000), "0704/0704.0002.gz": GOOD})
    [large, good] = read(path, limits=IngestLimits(max_tar_member_bytes=2000))
    assert (large.kind, large.document_id, good["id"]) == ("too_large", "0704.0001", "0704.0002")
    assert "expected at most 2,000 bytes; got 5,000" in large.error


@pytest.mark.parametrize("kept_bytes", [0, 100, 512, 600])
def test_an_archive_that_is_cut_is_on_record_and_what_is_before_is_there(tmp_path, kept_bytes):
    whole = tar_of({f"0704/0704.000{k}.gz": GOOD for k in range(4)})
    path = write(tmp_path, whole[: whole.index(b"0704/0704.0003") + kept_bytes])
    found = read(path)
    assert fates(found[:-1]) == {f"0704.000{k}": "kept" for k in range(3)}
    assert (found[-1].kind, found[-1].num_documents) == ("damaged", 0)
    assert "whole tar archive" in found[-1].error


def test_any_cut_between_members_gives_the_same_papers(tmp_path):
    path = write(tmp_path, {f"0704/0704.{k:04d}.gz": project(main=PAPER + "%" * k) for k in range(20)})
    whole = read(path)
    size = len((tmp_path / "arXiv_src_0704_001.tar").read_bytes())

    @given(st.integers(1, size))
    def check(block):
        from gristmill.storage.file_system import FileStatus

        parts = ArxivIterator.split.parts_of(FileStatus(path, size, ""), block, None)
        bounds = [part.numbers for part in parts]
        assert list(itertools.chain.from_iterable(read(path, bound) for bound in bounds)) == whole

    check()


def test_with_compat_a_byte_that_is_not_utf8_leaves_the_paper_out(tmp_path):
    path = write(
        tmp_path,
        {
            "0704/0704.0001.gz": single("\\section{A}\né".encode("latin-1")),
            "0704/0704.0002.gz": single("\\section{A}\né % x\n"),
        },
    )
    left, kept = read(path, compat=True)
    assert (left.why.reason, kept["content"]) == ("not_utf8", ["\\section{A}\né % x\n"])
    assert ArxivExtractor(compat=True).extract(kept) == {"text": "\\section{A}\né\n"}
    assert fates(read(path)) == {"0704.0001": "kept", "0704.0002": "kept"}


def test_a_paper_without_text_is_dropped_by_reason():
    assert ArxivExtractor().extract({"content": ["% nothing"]}).reason == "empty"
    assert ArxivExtractor(compat=True).extract({"content": ["no section"]}).reason == "empty"
    assert ArxivExtractor().extract({"content": []}).reason == "empty"


def test_a_paper_that_takes_too_long_is_put_aside():
    extractor = ArxivExtractor(limits=IngestLimits(paper_s=0.01))
    found = extractor.extract({"content": ["\\title{" * 20_000 + "}" * 20_000]})
    assert found.kind == "time_limit"


def test_the_iterator_alone_yields_the_fields_users_know(tmp_path):
    path = write(tmp_path, {"0704/0704.0001.gz": GOOD, "0704/0704.0002.pdf": b"%PDF"})
    assert list(ArxivIterator().iterate(path)) == [
        {"id": "0704.0001", "source_id": "arXiv_src_0704_001.tar", "content": [PAPER, PROOF]}
    ]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("0704/0704.0001.gz", "0704.0001"),
        ("1501/1501.00001.gz", "1501.00001"),
        ("9901/hep-th9901001.gz", "hep-th/9901001"),
        ("0001/astro-ph0001001.pdf", "astro-ph/0001001"),
        ("odd name.gz", "odd name"),
    ],
)
def test_identifiers_are_those_of_arxiv(name, found):
    assert paper_id(name) == found
