"""`WikipediaDumpReader`: dumps to documents, with every page in the books; mistakes are said before anything starts."""

import bz2
import json

import pytest
from tests.wiki_dumps import page, site, write_dump

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, NoInputError
from gristmill.pipeline import Pipeline
from gristmill.stages.text.download import WikipediaDumpReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import FileSlice

HERE = LocalExecutor(num_workers=0)
PAGES = [
    page(1, "'''Anna''' is a [[name]].<ref>x</ref>", title="Anna & Ben"),
    page(2, "#REDIRECT [[Anna & Ben]]", title="Ann", redirect="Anna & Ben"),
    page(3, "Discussion", title="Talk:Anna", ns=1),
    page(4, "{}", title="Data", model="json"),
    page(5, None, title="Nothing"),
    page(6, "{{stub}}", title="Only a template"),
    page(7, "Ben has <math>x^2</math>.\n{|\n| cell\n|}", title="Ben/é"),
]


def run(reader, work, **options):
    pipeline = Pipeline("wiki", stages=[reader, JsonlWriter(str(work / "out"))])
    result = pipeline.run(HERE, quiet=True, max_quarantined=None, **options)
    files = sorted((work / "out").glob("*.jsonl"))
    return result, [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_articles_become_documents_and_every_other_page_has_a_reason(tmp_path):
    dump = write_dump(tmp_path / "enwiki-x.xml.bz2", PAGES)

    result, found = run(WikipediaDumpReader(dump), tmp_path)

    assert found == [
        {
            "text": "Anna is a name.", "title": "Anna & Ben", "id": "1",
            "url": "https://en.wikipedia.org/wiki/Anna%20%26%20Ben", "language": "en",
            "source_id": "enwiki-x.xml.bz2", "file_name": "enwiki-x.xml.bz2",
        },
        {
            "text": "Ben has $x^2$.", "title": "Ben/é", "id": "7",
            "url": "https://en.wikipedia.org/wiki/Ben/%C3%A9", "language": "en",
            "source_id": "enwiki-x.xml.bz2", "file_name": "enwiki-x.xml.bz2",
        },
    ]  # fmt: skip
    reasons = {reason: count for stage in result.dropped.values() for reason, count in stage.items()}
    assert (result.read, result.written, result.quarantined) == (7, 2, 0)
    assert result.dropped == {
        "iterate_wikipediaiterator": {"redirect": 1, "other_namespace": 1, "other_model": 1, "empty": 1},
        "extract_wikipediaextractor": {"empty": 1},
    }, reasons


def test_a_dump_is_cut_every_16_mib_if_nothing_is_said(tmp_path):
    dump = tmp_path / "enwiki-x.xml.bz2"
    write_dump(dump, PAGES)
    with dump.open("r+b") as file:
        file.truncate(33 * 1024**2)  # only its size is looked at

    plan = Pipeline("wiki", stages=[WikipediaDumpReader(str(dump))]).plan()
    assert [task.parts()[0].part for task in plan.sources] == [
        (0, 16 << 20),
        (16 << 20, 32 << 20),
        (32 << 20, 33 << 20),
    ]


def test_options_reach_the_scanner(tmp_path):
    dump = write_dump(tmp_path / "enwiki-x.xml.bz2", PAGES)
    reader = WikipediaDumpReader(
        dump, math="drop", tables="keep", extra=("revision_id", "timestamp"), add_filename_column=False, record_limit=3
    )
    _, found = run(reader, tmp_path)
    assert found[-1]["text"] == "Ben has.\ncell"
    assert (found[-1]["revision_id"], found[-1]["timestamp"]) == ("1007", "2024-01-01T00:00:00Z")
    assert "file_name" not in found[-1]


def test_language_and_names_come_from_the_dump(tmp_path):
    head = site("szy", file="tangan", category="kakuniza", media="Media")
    dump = write_dump(tmp_path / "szywiki-x.xml.bz2", [page(1, "a[[tangan:b.png]]\n[[Kakuniza:c]]")], head=head)
    _, [found] = run(WikipediaDumpReader(dump), tmp_path)
    assert (found["text"], found["language"], found["url"][:25]) == ("a", "szy", "https://szy.wikipedia.org")
    assert "namespace_names" not in found


def test_a_dump_that_is_split_gives_the_same_documents(tmp_path):
    pages = [page(k, f"Article number {k}. " * 20) for k in range(60)]
    dump = write_dump(tmp_path / "enwiki-x.xml.bz2", pages)
    _, whole = run(WikipediaDumpReader(dump), tmp_path / "whole")
    _, split = run(WikipediaDumpReader(dump, blocksize=300), tmp_path / "split")
    assert len(whole) == 60
    assert split == whole


def test_only_dumps_are_taken_from_a_directory(tmp_path):
    for k in (1, 2):
        write_dump(tmp_path / "d" / f"enwiki-20240101-pages-articles-multistream{k}.xml-p{k}p9.bz2", [page(k, "Text")])
    (tmp_path / "d" / "enwiki-20240101-pages-articles-multistream-index1.txt-p1p9.bz2").write_bytes(bz2.compress(b"x"))
    _, found = run(WikipediaDumpReader(str(tmp_path / "d")), tmp_path)
    assert [d["id"] for d in found] == ["1", "2"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            bz2.compress(b'{"text": "a"}\n'),
            r"expected a dump of MediaWiki in .*; got something that begins with b'{\"text\"",
        ),
        (bz2.compress("<mediawiki>".encode("utf-16")), "got text in UTF-16"),
    ],
)
def test_a_file_of_something_else_is_said_before_the_run(tmp_path, content, said):
    (tmp_path / "a.xml.bz2").write_bytes(content)
    with pytest.raises(ConfigError, match=said):
        run(WikipediaDumpReader(str(tmp_path / "a.xml.bz2")), tmp_path)


def test_a_dump_of_another_language_is_said_before_the_run(tmp_path):
    dump = write_dump(tmp_path / "dewiki-x.xml.bz2", [page(1, "a")], head=site("de"))
    with pytest.raises(ConfigError, match=r"expected a dump in the language 'en'; .* is of dewiki"):
        run(WikipediaDumpReader(dump, language="en"), tmp_path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"language": "germn"}, "expected the code of a language that has a Wikipedia; got 'germn'"),
        ({"language": "zh-yu"}, "did you mean 'zh-yue'"),
        ({"parser": "mwparser"}, "did you mean 'mwparserfromhell'"),
        ({"math": "no"}, r"expected math of \('keep', 'drop'\); got 'no'"),
        ({"tables": "html"}, r"expected tables of \('keep', 'drop'\); got 'html'"),
        ({"extra": ("revision",)}, "did you mean 'revision_id'"),
        ({"record_limit": 0}, "expected record_limit ≥ 1 or None; got 0"),
    ],
)
def test_a_wrong_option_is_said_at_once(options, said):
    with pytest.raises(ConfigError, match=said):
        WikipediaDumpReader("dumps", **options)


def test_a_directory_without_dumps_is_said(tmp_path):
    (tmp_path / "a.jsonl").write_text("{}")
    with pytest.raises(NoInputError, match=r"expected dumps, with .xml in their names; got only a.jsonl"):
        run(WikipediaDumpReader(str(tmp_path)), tmp_path)


def test_the_iterator_alone_yields_articles_with_the_fields_it_names(tmp_path):
    from gristmill.stages.text.download.wikipedia.iterator import WikipediaIterator

    dump = write_dump(tmp_path / "enwiki-x.xml.bz2", PAGES)
    iterator = WikipediaIterator("en")
    records = list(iterator.iterate(dump))
    assert [record["id"] for record in records] == ["1", "6", "7"]
    assert all(list(record) == iterator.output_columns() for record in records)
    assert len(list(iterator.iterate_part(FileSlice(dump)))) == 7
