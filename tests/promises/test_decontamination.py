"""Decontamination finds documents that hold n words in a row of a benchmark, and says of which."""

import json

import pytest
from tests.jsonl_files import read_documents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.deduplication.decontamination import DecontaminationWorkflow
from gristmill.errors import ConfigError, NoInputError
from gristmill.pipeline import Pipeline
from gristmill.stages.text.decontamination import Decontaminate
from gristmill.stages.text.io import JsonlReader

pytestmark = pytest.mark.slow  # the kernels are compiled first
HERE = LocalExecutor(num_workers=0)
QUESTION = "How many apples does Anna have if she buys seven and eats two of them?"
POEM = "tiger tiger burning bright in the forests of the night what immortal hand"


@pytest.fixture
def corpus(tmp_path):
    texts = [
        "Nothing of the kind.",
        "Quiz: how many APPLES does Anna have -- if she buys seven, and eats two of them? Answer: five",
        "how many apples does Ben have now that he buys six and eats two of them",
        f"a poem: {POEM} or eye",
        None,
        "",
    ]
    write_documents(tmp_path / "in" / "a.jsonl", [{"id": str(i), "text": text} for i, text in enumerate(texts)])
    write_documents(tmp_path / "benchmarks" / "school.jsonl", [{"question": QUESTION, "answers": ["five", "six"]}])
    (tmp_path / "benchmarks" / "poems.txt").write_text(POEM + "\n")
    return tmp_path


def test_documents_with_a_part_of_a_benchmark_are_dropped_under_its_name(corpus):
    stage = Decontaminate(str(corpus / "benchmarks"), ngram_words=8)
    result = Pipeline("p", stages=[JsonlReader(str(corpus / "in")), stage]).run(HERE)

    assert result.dropped == {"decontaminate": {"school": 1, "poems": 1}}
    assert [row for task in result for row in task.column("id").to_pylist()] == ["0", "2", "4", "5"]


def test_characters_that_end_lines_elsewhere_are_part_of_a_text(corpus):
    odd = "a\u2028b\u2029c\x85"
    line = json.dumps({"id": "odd", "text": f"{odd} {POEM}"}, ensure_ascii=False)
    (corpus / "in" / "b.jsonl").write_text(line + "\n", encoding="utf-8")
    question = json.dumps({"question": f"{odd} {QUESTION}"}, ensure_ascii=False)
    (corpus / "benchmarks" / "school.jsonl").write_text(question + "\n", encoding="utf-8")
    workflow = DecontaminationWorkflow(
        str(corpus / "out"), str(corpus / "in"), str(corpus / "benchmarks"), ngram_words=8
    )

    assert workflow.run(HERE).metadata["by_benchmark"] == {"poems": 2, "school": 1}


def test_fewer_words_in_a_row_find_more_and_more_hits_find_less(corpus):
    def kept(**options):
        stage = Decontaminate(str(corpus / "benchmarks"), **options)
        return Pipeline("p", stages=[JsonlReader(str(corpus / "in")), stage]).run(HERE).written

    assert kept(ngram_words=13) == 4
    assert kept(ngram_words=5) == 3
    assert kept(ngram_words=5, min_hits=9) == 4
    assert kept(ngram_words=5, min_hits=10) == 5


def test_the_report_names_benchmark_words_and_documents(corpus):
    workflow = DecontaminationWorkflow(
        str(corpus / "out"), str(corpus / "in"), str(corpus / "benchmarks"), ngram_words=8
    )
    result = workflow.run(HERE)
    report = json.loads((corpus / "out" / "report.json").read_text())

    assert result.metadata["by_benchmark"] == {"poems": 1, "school": 1}
    assert report["school"]["words"] == {"how many apples does anna have if she": 1}
    assert [example["id"] for example in report["poems"]["examples"]] == ["3"]
    assert [row["id"] for row in read_documents(corpus / "out" / "clean")] == ["0", "2", "4", "5"]
    assert [row["contaminated_by"] for row in read_documents(corpus / "out" / "contaminated")] == ["school", "poems"]


def test_a_question_shorter_than_the_n_gram_is_not_looked_for(corpus):
    assert Decontaminate(str(corpus / "benchmarks"), ngram_words=40)._known.hashes.tolist() == []


def test_missing_benchmarks_and_senseless_lengths_are_errors(corpus, tmp_path):
    with pytest.raises(NoInputError):
        Decontaminate(str(tmp_path / "nowhere")).setup()
    with pytest.raises(NoInputError, match="nowhere"):  # before any worker is started
        Pipeline("p", stages=[JsonlReader(str(corpus / "in")), Decontaminate(str(tmp_path / "nowhere"))]).plan()
    with pytest.raises(ConfigError, match="ngram_words ≥ 2; got 1"):
        Decontaminate(str(corpus / "benchmarks"), ngram_words=1)
