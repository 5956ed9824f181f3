"""Exact deduplication removes the ground truth and nothing else, and keeps the same survivors every time."""

import json
import shutil
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import deduplication_forms
from tests.deduplication_forms import FORMS
from tests.jsonl_files import contents, read_documents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, ResumeRefused
from gristmill.stages.deduplication.exact.workflow import ExactDeduplicationWorkflow

HERE = LocalExecutor(num_workers=0)


@pytest.fixture(params=FORMS)
def deduplicate(request):
    return partial(deduplication_forms.deduplicate, request.param, "exact")


def workflow(source, out, **options):
    return deduplication_forms.deduplicate("workflow", "exact", source, out, **options)


def survivors(out):
    return [document["id"] for document in read_documents(out / "deduplicated")]


@pytest.fixture
def corpus(tmp_path):
    """Each text occurs one to four times; the truth is the first of each."""
    seen, first, number = set(), [], 0
    for file in range(6):
        documents = []
        for row in range(50):
            text = f"text {(file * 50 + row * 7) % 90}"
            documents.append({"id": f"{number}", "text": text, "url": f"http://x/{row % 30}", "score": row % 9})
            first += [f"{number}"] if text not in seen else []
            seen.add(text)
            number += 1
        write_documents(tmp_path / "in" / f"{file}.jsonl", documents)
    return tmp_path / "in", first


def test_exactly_the_ground_truth_is_removed(deduplicate, corpus, tmp_path):
    source, first = corpus
    result = deduplicate(source, tmp_path / "out")

    assert survivors(tmp_path / "out") == first
    assert result.metadata["num_duplicates"] == 300 - len(first)
    assert result.metadata["num_kept"] == len(first)


def test_the_list_of_duplicates_says_who_lost_to_whom_and_where_both_are(deduplicate, corpus, tmp_path):
    source, first = corpus
    result = deduplicate(source, tmp_path / "out")
    rows = pq.read_table(result.metadata["duplicates_path"]).to_pylist()

    texts = {document["id"]: document["text"] for document in read_documents(source)}
    assert {row["id"] for row in rows} == set(texts) - set(first)
    assert {row["kept_id"] for row in rows} <= set(first)
    assert all(texts[row["id"]] == texts[row["kept_id"]] for row in rows)
    assert {row["similarity"] for row in rows} == {1.0}
    files = {
        document["id"]: file.name
        for file in source.iterdir()
        for document in map(json.loads, file.read_text().splitlines())
    }
    assert all(row["source"].endswith(files[row["id"]]) for row in rows)
    assert all(row["kept_source"].endswith(files[row["kept_id"]]) for row in rows)


@pytest.mark.slow
def test_workers_do_not_change_a_byte(deduplicate, corpus, tmp_path):
    for workers in (0, 1, 8):
        deduplicate(corpus[0], tmp_path / f"out{workers}", executor=LocalExecutor(num_workers=workers))

    assert contents(tmp_path / "out0")
    assert contents(tmp_path / "out1") == contents(tmp_path / "out0")
    assert contents(tmp_path / "out8") == contents(tmp_path / "out0")


@pytest.mark.parametrize("num_files", [1, 3, 9])
def test_with_ids_the_survivors_do_not_depend_on_order_and_shards(deduplicate, corpus, tmp_path, num_files):
    documents = read_documents(corpus[0])
    shuffled = [documents[i * 37 % len(documents)] for i in range(len(documents))]
    for number in range(num_files):
        write_documents(tmp_path / "shuffled" / f"{number}.jsonl", shuffled[number::num_files])
    deduplicate(corpus[0], tmp_path / "a", keep="longest")
    deduplicate(tmp_path / "shuffled", tmp_path / "b", keep="longest")

    assert sorted(survivors(tmp_path / "a")) == sorted(survivors(tmp_path / "b"))


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        ("first", "a"),
        ("highest:score", "c"),
        ("newest:date", "b"),
        ("source:site=wiki,web", "d"),
    ],
)
def test_the_policy_decides_which_one_stays(deduplicate, tmp_path, keep, expected):
    rows = [
        {"id": "a", "text": "t", "score": 1, "date": "2021-01-01", "site": "web"},
        {"id": "b", "text": "t", "score": None, "date": "2024-05-05", "site": "other"},
        {"id": "c", "text": "t", "score": 9.5, "date": None, "site": "web"},
        {"id": "d", "text": "t", "score": 3, "date": "2020-01-01", "site": "wiki"},
    ]
    write_documents(tmp_path / "in" / "0.jsonl", rows)
    deduplicate(tmp_path / "in", tmp_path / "out", keep=keep)
    assert survivors(tmp_path / "out") == [expected]


def test_documents_without_text_are_kept(deduplicate, tmp_path):
    rows = [{"id": str(i), "text": text} for i, text in enumerate(["", "", None, None, "a", "a"])] + [{"id": "6"}]
    write_documents(tmp_path / "in" / "0.jsonl", rows)
    deduplicate(tmp_path / "in", tmp_path / "out")
    assert survivors(tmp_path / "out") == ["0", "1", "2", "3", "4", "6"]


def test_a_text_is_the_same_whatever_else_is_in_its_block(deduplicate, tmp_path):
    write_documents(tmp_path / "in" / "0.jsonl", [{"id": "a", "text": "x"}, {"id": "b", "text": 5}])
    write_documents(tmp_path / "in" / "1.jsonl", [{"id": "c", "text": "x"}, {"id": "d", "text": "y"}])
    write_documents(tmp_path / "in" / "2.jsonl", [{"id": "e", "text": 5}, {"id": "f", "text": 5.5}])
    deduplicate(tmp_path / "in", tmp_path / "out")
    assert survivors(tmp_path / "out") == ["a", "b", "d", "f"]


@pytest.mark.slow
def test_normalised_texts_are_the_same_whatever_their_case_accents_and_punctuation(deduplicate, tmp_path):
    texts = ["Voilà, un café!", "voila un cafe", "voila un the", "...", "???"]
    write_documents(tmp_path / "in" / "0.jsonl", [{"id": str(i), "text": text} for i, text in enumerate(texts)])
    deduplicate(tmp_path / "in", tmp_path / "plain")
    deduplicate(tmp_path / "in", tmp_path / "out", normalize=True)

    assert survivors(tmp_path / "plain") == ["0", "1", "2", "3", "4"]
    assert survivors(tmp_path / "out") == ["0", "2", "3", "4"]


def test_any_column_can_be_what_is_compared(deduplicate, corpus, tmp_path):
    deduplicate(corpus[0], tmp_path / "out", text_field="url")
    urls = [document["url"] for document in read_documents(tmp_path / "out" / "deduplicated")]
    assert len(urls) == len(set(urls)) == 30


def test_parquet_in_is_parquet_out(tmp_path):
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"text": ["a", "b", "a"], "n": [1, 2, 3]}), tmp_path / "in" / "x.parquet")
    ExactDeduplicationWorkflow(str(tmp_path / "out"), str(tmp_path / "in")).run(executor=HERE)

    assert pq.read_table(tmp_path / "out" / "deduplicated").to_pydict() == {"text": ["a", "b"], "n": [1, 2]}
    rows = pq.read_table(tmp_path / "out" / "duplicates.parquet").to_pylist()
    assert [(row["id"], row["kept_id"]) for row in rows] == [("x:2", "x:0")]


def test_without_removal_only_the_list_and_the_report_are_written(corpus, tmp_path):
    workflow(corpus[0], tmp_path / "out", perform_removal=False)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        ".gristmill",
        "duplicates.parquet",
        "report.json",
    ]


def test_the_same_call_again_changes_nothing_and_another_is_refused(deduplicate, corpus, tmp_path):
    deduplicate(corpus[0], tmp_path / "out")
    before = contents(tmp_path / "out")
    deduplicate(corpus[0], tmp_path / "out")
    assert contents(tmp_path / "out") == before

    with pytest.raises(ResumeRefused):
        deduplicate(corpus[0], tmp_path / "out", keep="longest")
    deduplicate(corpus[0], tmp_path / "out", keep="longest", fresh=True)


def test_an_option_that_means_nothing_here_is_accepted_with_a_warning(corpus, tmp_path):
    with pytest.warns(UserWarning, match="rmm_pool_size has no effect"):
        ExactDeduplicationWorkflow(str(tmp_path / "out"), str(corpus[0]), rmm_pool_size=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": "longst"}, "did you mean 'longest'"),
        ({"keep": "newest"}, "expected keep to read 'newest:COLUMN'"),
        ({"keep": "source:site"}, "expected keep to read 'source:COLUMN=first,second'"),
        ({"text_field": "txt"}, "did you mean 'text'"),
    ],
)
def test_a_mistake_is_named_before_anything_runs(deduplicate, corpus, tmp_path, options, message):
    with pytest.raises(ConfigError, match=message):
        deduplicate(corpus[0], tmp_path / "out", **options)
    assert not (tmp_path / "out" / "deduplicated").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_filetype": "json"}, "did you mean 'jsonl'"),
        ({"id_field": None, "assign_id": False}, "expected id_field"),
    ],
)
def test_a_mistake_about_the_workflow_is_named_too(corpus, tmp_path, options, message):
    with pytest.raises(ConfigError, match=message):
        workflow(corpus[0], tmp_path / "out", **options)


@pytest.mark.parametrize("id_field", ["id", None])
def test_the_second_dataset_loses_to_the_index_what_it_would_lose_to_the_first(deduplicate, corpus, tmp_path, id_field):
    files = sorted(corpus[0].iterdir())
    for part, own in (("a", files[:3]), ("b", files[3:])):
        for file in own:
            write_documents(tmp_path / part / file.name, [json.loads(line) for line in file.read_text().splitlines()])
    options = {"index": str(tmp_path / "index"), "id_field": id_field}
    deduplicate(tmp_path / "a", tmp_path / "out_a", **options)
    deduplicate(tmp_path / "b", tmp_path / "out_b", **options)
    deduplicate(tmp_path / "b", tmp_path / "out_b", **options)  # again: it does not find itself

    of_b = {document["id"] for document in read_documents(tmp_path / "b")}
    assert survivors(tmp_path / "out_b") == [key for key in corpus[1] if key in of_b]
    if id_field:
        rows = pq.read_table(tmp_path / "out_b" / "duplicates.parquet").to_pylist()
        assert {row["kept_id"] for row in rows} <= set(corpus[1])
        assert any(row["kept_source"] == "index" for row in rows)


@pytest.mark.parametrize("how", ["fresh", "removed"])
def test_a_dataset_done_anew_replaces_what_it_added_to_the_index(deduplicate, corpus, tmp_path, how):
    options = {"index": str(tmp_path / "index")}
    deduplicate(corpus[0], tmp_path / "out", **options)
    files = sorted(corpus[0].iterdir())
    files[0].write_text(files[0].read_text().replace('"text 0"', '"another text"'))
    if how == "removed":
        shutil.rmtree(tmp_path / "out")
    deduplicate(corpus[0], tmp_path / "out", fresh=how == "fresh", **options)

    write_documents(tmp_path / "more" / "0.jsonl", [{"id": "a", "text": "another text"}, {"id": "b", "text": "new"}])
    deduplicate(tmp_path / "more", tmp_path / "more_out", **options)
    assert survivors(tmp_path / "more_out") == ["b"]


@pytest.mark.parametrize("indexed", [False, True])
def test_the_report_shows_the_text_of_each_large_cluster(deduplicate, corpus, tmp_path, indexed):
    options = {"index": str(tmp_path / "index")} if indexed else {}
    if indexed:
        deduplicate(corpus[0], tmp_path / "earlier", **options)
    deduplicate(corpus[0], tmp_path / "out", **options)
    texts = {document["id"]: document["text"] for document in read_documents(corpus[0])}
    clusters = json.loads((tmp_path / "out" / "report.json").read_text())["largest_clusters"]

    assert len(clusters) == 20
    for cluster in clusters:
        assert cluster["text"] == texts[cluster["kept_id"]] == texts[cluster["compared_id"]]
        assert cluster["size"] == list(texts.values()).count(cluster["text"]) + indexed
        assert cluster["differences"] == []


def test_an_index_of_another_kind_is_refused(deduplicate, corpus, tmp_path):
    deduplicate(corpus[0], tmp_path / "a", index=str(tmp_path / "index"))
    with pytest.raises(ConfigError, match="normalize False; got normalize True"):
        deduplicate(corpus[0], tmp_path / "b", index=str(tmp_path / "index"), normalize=True)


@pytest.mark.parametrize("damaged", ["[]", '{"files": []}', None], ids=["emptied", "rewritten", "removed"])
def test_a_run_that_no_longer_knows_which_files_it_consults_is_refused(corpus, tmp_path, damaged):
    options = {"consult": [str(tmp_path / "index")]}
    workflow(corpus[0], tmp_path / "earlier", index=str(tmp_path / "index"))
    workflow(corpus[0], tmp_path / "out", perform_removal=False, **options)
    [noted] = (tmp_path / "out" / ".gristmill" / "exact").rglob("consulted.json")
    noted.unlink() if damaged is None else noted.write_text(damaged)
    with pytest.raises(ResumeRefused, match=r"consulted\.json: expected the files of indexes .* fresh=True"):
        workflow(corpus[0], tmp_path / "out", **options)
    workflow(corpus[0], tmp_path / "out", fresh=True, **options)

    assert survivors(tmp_path / "out") == []


def test_an_index_that_was_not_named_when_the_run_began_is_not_passed_over_in_silence(corpus, tmp_path):
    workflow(corpus[0], tmp_path / "earlier", index=str(tmp_path / "index"))
    workflow(corpus[0], tmp_path / "out", perform_removal=False)

    with pytest.raises(
        ResumeRefused, match=r"index .*: expected the indexes this run began with, \[\]; this one is new"
    ):
        workflow(corpus[0], tmp_path / "out", consult=[str(tmp_path / "index")])


def flip_a_bit(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


HARM = {
    "a bit": (flip_a_bit, r"index .*\.arrow: expected the file as it was written; it is gone or damaged"),
    "a cut": (lambda file: file.write_bytes(file.read_bytes()[:-1]), "expected the file as it was written"),
    "a file": (lambda file: file.unlink(), "expected the file as it was written"),
    "the list": (lambda file: (file.parents[1] / "files.json").unlink(), "a dataset that was added completely"),
    "half the list": (
        lambda file: (file.parents[1] / "files.json").write_text('{"files": {'),
        "a dataset that was added completely",
    ),
    "the version": (
        lambda file: (file.parents[2] / "header.json").write_text('{"format": 1}'),
        "expected an index of format 2; got format 1",
    ),
}


@pytest.mark.parametrize("harm", HARM)
def test_an_index_that_is_not_as_it_was_written_is_refused(deduplicate, corpus, tmp_path, harm):
    deduplicate(corpus[0], tmp_path / "earlier", index=str(tmp_path / "index"))
    do, words = HARM[harm]
    do(sorted((tmp_path / "index").glob("*/rows/*.arrow"))[2])

    with pytest.raises(ConfigError, match=words):
        deduplicate(corpus[0], tmp_path / "out", consult=[str(tmp_path / "index")])
    assert not (tmp_path / "out" / "deduplicated").exists()


def test_a_run_is_not_continued_on_an_index_that_has_changed(corpus, tmp_path):
    workflow(corpus[0], tmp_path / "earlier", index=str(tmp_path / "index"))
    options = {"consult": [str(tmp_path / "index")]}
    workflow(corpus[0], tmp_path / "out", perform_removal=False, **options)
    flip_a_bit(next((tmp_path / "index").glob("*/rows/*.arrow")))

    with pytest.raises(ResumeRefused, match=r"expected the file of an index as it was when this run began"):
        workflow(corpus[0], tmp_path / "out", **options)
