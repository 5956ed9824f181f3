"""`gristmill diff` names what changed, and exactly the documents `rethreshold --against` names."""

import json

import pytest
from tests.jsonl_files import read_documents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.cli.diff import diff
from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import NonAlphaNumericFilter, WordCountFilter
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.workflows.thresholds import apply_rules, rules_of, score_pipeline

HERE = LocalExecutor(num_workers=0)


def pipeline(work, out, least):
    filters = ScoreFilter([NonAlphaNumericFilter(), WordCountFilter(min_words=least)])
    return Pipeline("compare", stages=[JsonlReader(str(work / "in")), filters, JsonlWriter(str(work / out))])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    work = tmp_path_factory.mktemp("diff")
    for part in range(3):
        texts = ["!? " * 40 if n % 11 == 0 else "word " * (n % 60) for n in range(part, 300, 3)]
        write_documents(work / "in" / f"{part}.jsonl", [{"id": f"{part}-{n}", "text": t} for n, t in enumerate(texts)])
    for out, least in (("a", 20), ("b", 22)):
        pipeline(work, out, least).run(HERE, checkpoint_path=work / f"run-{out}", rejects_path=work / f"rejects-{out}")
    return work


def told(capsys, *arguments, **options):
    diff(*map(str, arguments), as_json=True, **options)
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_one_changed_threshold_names_the_documents_rethreshold_names(runs, capsys):
    a, b = (pipeline(runs, out, least) for out, least in (("a", 20), ("b", 22)))
    score_pipeline(a, str(runs / "scored")).run(HERE, checkpoint_path=runs / "run-scored")
    expected = apply_rules(str(runs / "scored"), rules_of(a), against=rules_of(b)).difference
    found = told(capsys, runs / "run-a", runs / "run-b", ids=True)["ids"]
    kept = [{document["id"] for document in read_documents(runs / out)} for out in ("a", "b")]

    assert expected.kept_here_only > 5
    assert (found["kept_by_a_only"], found["kept_by_b_only"]) == (expected.kept_here_only, expected.kept_there_only)
    [one] = found["disagreements"]
    assert {one["b"].rpartition(" ")[2]: one["documents"]} == expected.refused_there_by
    assert one["a"] == "kept"
    names = {document["id"] for document in found["named"]}
    assert names == kept[0] - kept[1]
    assert set(expected.examples_here) <= names


def test_configuration_funnel_and_words(runs, capsys):
    diff(str(runs / "run-a"), str(runs / "run-b"), ids=True)
    said = capsys.readouterr().out

    assert "non_alpha_numeric_and_1_more: filter_obj[1].min_words 20 then, 22 now" in said
    found = told(capsys, runs / "run-a", runs / "run-b")
    funnel = {row["reason"]: (row["a"], row["b"]) for row in found["funnel"]}
    assert (
        funnel["word_count"][1] - funnel["word_count"][0]
        == found["books"]["written"]["a"] - found["books"]["written"]["b"]
    )
    assert funnel["non_alpha_numeric"][0] == funnel["non_alpha_numeric"][1] > 0
    assert found["ids"] is None


def test_a_run_and_itself_have_no_difference(runs, capsys):
    found = told(capsys, runs / "run-a", runs / "run-a", ids=True)

    assert found["configuration"] == []
    assert found["ids"]["disagreements"] == []
    diff(str(runs / "run-a"), str(runs / "run-a"))
    assert "Both ran the same pipeline on the same input." in capsys.readouterr().out


def test_what_is_not_one_run_is_refused(runs):
    with pytest.raises(ConfigError, match="diff: expected the directory of one run"):
        diff(str(runs), str(runs / "run-a"))
    with pytest.raises(ConfigError, match="diff: expected the directory of a run"):
        diff(str(runs / "run-a"), str(runs / "in"))
