"""A mixture: wanted against got, the same bytes each time, nothing left out that nobody mentioned."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.jsonl_files import contents, read_documents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.config.load_yaml import load_yaml
from gristmill.errors import ConfigError, ResumeRefused
from gristmill.workflows.mixing import Mixture, MixWorkflow, Target

HERE = LocalExecutor(num_workers=0)
EXAMPLE = Path(__file__).parents[2] / "examples" / "mix.yaml"
LEVELS = ("low", "low", "low", "medium", "medium", "high", None)


def write_corpus(root, num_documents):
    """Seven parts of pages with levels, three of books without."""
    for file in range(4):
        rows = range(file, num_documents * 7 // 10, 4)
        documents = [{"id": f"w{n}", "quality_level": LEVELS[n % 7], "tokens": 10 + n * 7919 % 1000} for n in rows]
        write_documents(root / "web" / f"{file}.jsonl", documents)
    (root / "books").mkdir()
    books = num_documents * 3 // 10
    columns = {"id": [f"b{n}" for n in range(books)], "tokens": pa.array([2000] * books, pa.int32())}
    pq.write_table(pa.table(columns), root / "books" / "all.parquet")
    return root


@pytest.fixture(scope="module")
def large_corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("large"), 100_000)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("small"), 5_000)


def settings(corpus, **changed):
    return {
        "sources": {
            "web": {"path": str(corpus / "web")},
            "books": {"path": str(corpus / "books"), "format": "parquet", "weight": 3, "weights": {}},
        },
        "weights": {"quality_level": {"high": 2.5, "low": 0.5}},
        "token_field": "tokens",
        **changed,
    }


def mixed(given, out, executor=HERE, **options):
    mixture = Mixture.parse({**given, "output": str(out)})
    return MixWorkflow(mixture, **options).run(executor, quiet=True).metadata


@pytest.mark.parametrize(
    ("target", "unit", "wanted"),
    [
        (None, "documents", 70_000 * (3 * 0.5 + 2 + 2.5 + 1) / 7 + 90_000),
        ("50k documents", "documents", 50_000),
        ("30M tokens", "tokens", 30_000_000),
    ],
    ids=str,
)
def test_what_is_got_is_within_one_percent_of_what_is_wanted(large_corpus, tmp_path, target, unit, wanted):
    report = mixed(settings(large_corpus, target=target), tmp_path / "out")
    documents = read_documents(tmp_path / "out" / "mixed" / "web")
    books = pq.read_table(tmp_path / "out" / "mixed" / "books" / "all.parquet")

    assert report["unit"] == unit
    assert report["wanted"] == pytest.approx(wanted, abs=1)
    assert report["got"] == pytest.approx(wanted, rel=0.01)
    in_files = len(documents) + books.num_rows
    tokens = sum(document["tokens"] for document in documents) + sum(books["tokens"].to_pylist())
    assert report["got"] == (in_files if unit == "documents" else tokens)
    assert report["read"] + report["created"] == report["written"] + report["dropped_total"]
    assert report["written"] == in_files


def test_the_same_mixture_twice_is_the_same_bytes(corpus, tmp_path):
    given = settings(corpus, target="4k documents")
    mixed(given, tmp_path / "one")
    mixed(given, tmp_path / "other", LocalExecutor(num_workers=3))
    mixed({**given, "seed": 43}, tmp_path / "seed")

    assert contents(tmp_path / "one") == contents(tmp_path / "other")
    assert contents(tmp_path / "one") != contents(tmp_path / "seed")
    assert json.loads((tmp_path / "one" / "report.json").read_text())["written"] == pytest.approx(4_000, rel=0.05)


def small(tmp_path, levels, **changed):
    documents = [{"id": f"d{n}", "level": level} for n, level in enumerate(levels)]
    write_documents(tmp_path / "in" / "a.jsonl", documents)
    return {"sources": {"web": {"path": str(tmp_path / "in")}}, **changed}


def kept(out):
    return [(document["id"], document["level"]) for document in read_documents(out / "mixed" / "web")]


def test_weights_multiply_and_what_has_none_is_kept_once(tmp_path):
    given = small(tmp_path, ["high", "low", "new", None], weights={"level": {"high": 1.5, "low": 0}})
    given["sources"]["web"]["weight"] = 2
    report = mixed(given, tmp_path / "out")

    copies = [("d0", "high"), ("d0#1", "high"), ("d0#2", "high")]
    rest = [("d2", "new"), ("d2#1", "new"), ("d3", None), ("d3#1", None)]
    assert kept(tmp_path / "out") == [*copies, *rest]
    found = {line["label"]: (line["weight"], line["wanted"], line["got"]) for line in report["groups"]}
    assert found == {"web high": (3, 3, 3), "web new": (2, 2, 2), "web none": (2, 2, 2), "web low": (0, 0, 0)}


def test_a_mixture_without_weights_is_its_sources_byte_for_byte(tmp_path):
    given = small(tmp_path, ["high", "low"])
    mixed(given, tmp_path / "out")

    assert contents(tmp_path / "out" / "mixed" / "web") == contents(tmp_path / "in")


def test_a_dry_run_says_what_is_wanted_and_writes_no_document(corpus, tmp_path):
    report = mixed(settings(corpus, target="50k documents"), tmp_path / "out", dry_run=True)

    assert (report["wanted"], report["got"]) == (50_000, None)
    assert report["warnings"][0] == "books: 18.75 epochs, more than max_epochs (4)"
    assert not (tmp_path / "out" / "mixed").exists()
    assert not (tmp_path / "out" / "report.json").exists()


def test_a_level_that_was_misspelt_is_found_before_anything_is_written(tmp_path):
    given = small(tmp_path, ["high", "low"], weights={"level": {"hihg": 2, "unscored": 0}})

    with pytest.raises(ConfigError, match=r"no document of web has 'hihg'; did you mean 'high'\?"):
        mixed(given, tmp_path / "out")
    assert not (tmp_path / "out" / "mixed").exists()


def test_other_weights_in_the_same_place_are_refused_until_it_is_started_over(tmp_path):
    mixed(small(tmp_path, ["high", "low"]), tmp_path / "out")
    changed = small(tmp_path, ["high", "low"], seed=1)
    changed["sources"]["web"]["weight"] = 2

    with pytest.raises(ResumeRefused):
        mixed(changed, tmp_path / "out")
    mixed(changed, tmp_path / "out", fresh=True)
    assert len(kept(tmp_path / "out")) == 4


def test_documents_of_a_source_that_is_no_longer_one_are_not_left_among_the_others(tmp_path):
    given = small(tmp_path, ["high", "low"])
    mixed(given, tmp_path / "out")
    renamed = {"sources": {"crawl": given["sources"]["web"]}}

    with pytest.raises(ConfigError, match=r"got \['web'\] of an earlier mixture"):
        mixed(renamed, tmp_path / "out")
    mixed(renamed, tmp_path / "out", fresh=True)
    assert [path.name for path in (tmp_path / "out" / "mixed").iterdir()] == ["crawl"]


def test_values_beyond_those_with_a_line_of_their_own_share_one(tmp_path):
    given = small(tmp_path, [f"site-{n % 60}" for n in range(600)], weights={"level": {"site-0": 2}})
    report = mixed(given, tmp_path / "out")

    assert len(report["groups"]) == 41
    assert (report["wanted"], report["got"], report["written"]) == (610, 610, 610)
    assert report["groups"][-1]["label"] == "web others"


def test_a_column_of_other_things_than_labels_is_refused(tmp_path):
    given = small(tmp_path, [f"text {n}" for n in range(10_001)], weights={"level": {"good": 2}})

    with pytest.raises(ConfigError, match=r"\['level'\] have more than 10,000 different values"):
        mixed(given, tmp_path / "out")


def test_a_column_that_a_source_lacks_is_refused_before_it_is_read(corpus, tmp_path):
    given = settings(corpus)
    del given["sources"]["books"]["weights"]

    with pytest.raises(ConfigError, match=r"count_books: expected a column 'quality_level' from parquet_reader"):
        mixed(given, tmp_path / "out")


def test_documents_without_a_weight_above_0_cannot_reach_a_target(tmp_path):
    given = small(tmp_path, ["low"], weights={"level": {"low": 0}}, target="5 documents")

    with pytest.raises(ConfigError, match=r"expected documents with a weight above 0 for a target of 5 documents"):
        mixed(given, tmp_path / "out")


def test_the_example_is_a_mixture():
    found = Mixture.parse(load_yaml(EXAMPLE.read_text(encoding="utf-8"), who="mix.yaml"))

    assert found.target == Target(10**10, "tokens")
    assert found.columns("web") == ["quality_level", "language"]
    assert found.columns("books") == []


@pytest.mark.parametrize(
    ("text", "number"),
    [("10B tokens", 10**10), ("2e6 documents", 2_000_000), ("1.5 k Tokens", 1500), ("1_000,000 documents", 10**6)],
    ids=str,
)
def test_a_target_is_a_number_and_a_unit(text, number):
    assert Target.parse(text).number == number


@pytest.mark.parametrize(
    "text", ["10B", "tokens", "-5 tokens", "0 documents", "10X tokens", "1e400 tokens", None, 7], ids=str
)
def test_anything_else_is_not_a_target(text):
    with pytest.raises(ConfigError, match=r"expected a target like '10B tokens' or '2e6 documents'; got"):
        Target.parse(text)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"sorces": {}}, r"expected one of \['output', 'sources', .*; got 'sorces'; did you mean 'sources'"),
        ({"sources": {}}, r"expected sources; got none"),
        ({"sources": ["a"]}, r"expected sources by name; got \['a'\]"),
        ({"sources": {"../up": {"path": "x"}}}, r"expected the name of a source to be letters"),
        ({"sources": {"a": {}}}, r"source a: expected a path; got none"),
        ({"sources": {"a": {"path": "x", "format": "jsnl"}}}, r"source a: expected format .*did you mean 'jsonl'"),
        ({"sources": {"a": {"path": "x", "weigth": 1}}}, r"source a: .*got 'weigth'; did you mean 'weight'"),
        (
            {"sources": {"a": {"path": "x", "weight": -1}}},
            r"source a: expected weight to be a number from 0 on; got -1",
        ),
        ({"weights": {"level": 2}}, r"expected weights of level by value; got 2"),
        (
            {"weights": {"level": {"low": "much"}}},
            r"expected weights of level low to be a number from 0 on; got 'much'",
        ),
        ({"target": "5 tokens"}, r"expected token_field for a target in tokens"),
        ({"seed": "x"}, r"expected seed to be int; got 'x'"),
        ({"max_epochs": True}, r"expected max_epochs to be a number from 0 on; got True"),
        ({"output": None}, r"expected output; got none"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_mistake_in_the_file_is_said_by_name(changed, words):
    given = {"output": "out", "sources": {"web": {"path": "in"}}, **changed}

    with pytest.raises(ConfigError, match=words):
        Mixture.parse(given)
