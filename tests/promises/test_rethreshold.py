"""Thresholds tried on scores give what a run with those thresholds gives, to the byte, or are refused by stage.

Each recipe goes both ways: `run` with the thresholds written into it, and `score` followed by `rethreshold`.
"""

import json
from pathlib import Path

import pytest
from tests.jsonl_files import contents

from gristmill.backends.local import LocalExecutor
from gristmill.cli.rethreshold import rethreshold
from gristmill.cli.score import score
from gristmill.config.shipped import find_recipe, shipped_recipes
from gristmill.errors import ConfigError, RunFailed
from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import DocumentFilter, ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.workflows.thresholds import Scored, apply_rules, noted, rules_of, score_pipeline, with_rules

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[1] / "data"
SCORED = {"basic-english", "english-heuristics", "multilingual-heuristics"}  # the others are refused
HEAD = 'name: own\nvariables: {least: 20}\nstages:\n  - JsonlReader: {file_paths: "${input}"}\n'
TAIL = '  - JsonlWriter: {path: "${output}"}\n'
WORDS = '  - ScoreFilter: {filter_obj: {WordCountFilter: {min_words: "${least}"}}, score_field: words}\n'
PII = "  - Modify: {modifier_fn: PiiModifier}\n"
LETTERS = "  - ScoreFilter: {filter_obj: [NonAlphaNumericFilter, {NumbersFilter: {max_number_to_text_ratio: 0.05}}]}\n"
AGAIN = "  - ScoreFilter: {filter_obj: {WordCountFilter: {min_words: 25}}, invert: true}\n"
SLICE = "  - Modify: {modifier_fn: {Slicer: {right: 150}}}\n"
FEW = "  - Filter: {filter_fn: {WordCountFilter: {max_words: 60}}, filter_field: n}\n"
RULES = "  - ApplyRules: {rules: GopherQuality}\n"
RECIPES = {
    "a modifier behind the filters": HEAD + WORDS + LETTERS + PII + TAIL,
    "a modifier before the filters": HEAD + PII + WORDS + LETTERS + TAIL,
    "a modifier between filters": HEAD + WORDS + PII + LETTERS + TAIL,
    "the same filter before and behind a change": HEAD + WORDS + SLICE + AGAIN + TAIL,
    "ids behind the filters": HEAD + WORDS + "  - AddId: {id_field: number}\n" + TAIL,
    "scores behind the filters": HEAD + WORDS + "  - Score: {score_fn: NumbersFilter, score_field: n}\n" + TAIL,
    "a stage that drops before the filters": HEAD + FEW + WORDS + TAIL,
    "parquet": HEAD + WORDS + LETTERS + TAIL.replace("JsonlWriter", "ParquetWriter"),
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Texts made to be hard for every filter, some with addresses in them, one missing, one null, one line broken."""
    directory = tmp_path_factory.mktemp("corpus")
    texts = [json.loads(line)["text"] for file in ("heuristic_scores", "rule_sets") for line in lines_of(file)[::6]]
    texts = [text[:500] for text in texts]  # together less than is worth loading compiled code for
    texts += [f"{text} Write to someone{n}@example.org or 192.168.1.{n}." for n, text in enumerate(texts[20:40])]
    documents = [{"id": f"d{n}", "n": n, "text": text} for n, text in enumerate(texts)]
    documents += [{"id": "null", "n": 1, "text": None}, {"n": 2.5, "id": "missing"}]
    written = [json.dumps(document, ensure_ascii=n % 2 == 0) for n, document in enumerate(documents)]
    middle = len(written) // 2
    (directory / "a.jsonl").write_text("\n".join(written[:middle]) + "\n{broken\n")
    (directory / "b.jsonl").write_text("\n".join(written[middle:]) + "\n")
    return directory


def lines_of(name):
    return (DATA / f"{name}.jsonl").read_text(encoding="utf-8").removesuffix("\n").split("\n")


def ran(recipe, corpus, output, **values):
    pipeline = find_recipe(str(recipe)).build({"input": str(corpus), "output": str(output), **values})
    return pipeline.run(LocalExecutor(num_workers=0), checkpoint_path=output / ".gristmill")


def files_of(output):
    return {name: content for name, content in contents(output).items() if ".gristmill" not in str(name)}


def books(report):
    return {key: report[key] for key in ("read", "created", "written", "dropped", "quarantined")}


def both_ways(recipe, corpus, tmp_path, capsys, *, changes=(), **values):
    """Run with the thresholds, and score and apply them; return books and what rethreshold printed."""
    direct = ran(recipe, corpus, tmp_path / "direct", **values)
    score(str(recipe), str(tmp_path / "scored"), inputs=[str(corpus)], workers=0, quiet=True)
    capsys.readouterr()
    settings = [f"{rule}={value}" for rule, value in changes]
    out = str(tmp_path / "kept")
    rethreshold(str(recipe), str(tmp_path / "scored"), thresholds=settings, output=out, workers=0, as_json=True)
    told = json.loads(capsys.readouterr().out.splitlines()[-1])

    assert files_of(tmp_path / "kept") == files_of(tmp_path / "direct")
    assert books(told["run"]) == books(direct.to_json())
    assert told["kept"] == direct.written
    return direct, told


@pytest.mark.parametrize("name", shipped_recipes())
def test_a_shipped_recipe_goes_both_ways_or_names_the_stage_that_prevents_it(name, corpus, tmp_path, capsys):
    if name not in SCORED:
        refusals = (
            r"expected at least one ScoreFilter.*; got .*(ApplyRules|Writer)",
            r"cannot be scored because of stage \w+ \(ApplyRules\)",
            r"expected a value for \$\{model_name\}",
        )
        with pytest.raises(ConfigError, match="|".join(refusals)):
            score(name, str(tmp_path / "scored"), inputs=[str(corpus)], quiet=True)
        assert list(tmp_path.iterdir()) == []
        return
    direct, told = both_ways(name, corpus, tmp_path, capsys, changes=[("word_count.min_words", 30)], min_words=30)

    refused = [rule["refused"] for rule in told["rules"]]
    assert sum(number > 0 for number in refused) >= len(refused) * 3 // 4  # the texts try most of the filters
    assert sum(direct.dropped[stage].get("null_text", 0) for stage in direct.dropped) == 2
    assert direct.quarantined == 1


@pytest.mark.parametrize("text", RECIPES.values(), ids=RECIPES)
def test_other_recipes_go_both_ways(text, corpus, tmp_path, capsys):
    (tmp_path / "own.yaml").write_text(text)
    direct, _ = both_ways(
        tmp_path / "own.yaml", corpus, tmp_path, capsys, changes=[("word_count.min_words", 12)], least=12
    )

    assert direct.written
    assert direct.dropped_total


def test_addresses_are_redacted_whichever_way(corpus, tmp_path, capsys):
    (tmp_path / "own.yaml").write_text(RECIPES["a modifier behind the filters"])
    both_ways(tmp_path / "own.yaml", corpus, tmp_path, capsys)

    kept = b"".join(files_of(tmp_path / "kept").values())
    assert b"<EMAIL_ADDRESS>" in kept or b"EMAIL" in kept
    assert b"@example.org" not in kept


REFUSED = {
    "rules behind": (HEAD + WORDS + RULES + TAIL, r"gopher_quality \(ApplyRules\) behind"),
    "ids between": (HEAD + WORDS + "  - AddId: {id_field: n}\n" + LETTERS + TAIL, r"add_id \(AddId\) between"),
    "pieces between": (
        HEAD + WORDS + "  - DocumentSplitter: {separator: ' '}\n" + LETTERS + TAIL,
        r"\(DocumentSplitter\) between",
    ),
    "a filter of scores": (
        HEAD + WORDS + "  - Filter: {filter_fn: WordCountFilter, filter_field: words}\n" + TAIL,
        r"\(Filter\) behind",
    ),
    "a modifier of scores": (
        HEAD + WORDS + "  - Modify: {modifier_fn: Slicer, input_fields: words, output_fields: w}\n" + LETTERS + TAIL,
        "it reads 'words', a score",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), REFUSED.values(), ids=REFUSED)
def test_what_scores_cannot_tell_is_refused_by_its_stage_before_anything_is_written(text, words, corpus, tmp_path):
    (tmp_path / "own.yaml").write_text(text)

    with pytest.raises(ConfigError, match=words):
        score(str(tmp_path / "own.yaml"), str(tmp_path / "scored"), inputs=[str(corpus)], quiet=True)
    assert [path.name for path in tmp_path.iterdir()] == ["own.yaml"]


def scored_own(corpus, tmp_path, text):
    (tmp_path / "own.yaml").write_text(text)
    score(str(tmp_path / "own.yaml"), str(tmp_path / "scored"), inputs=[str(corpus)], workers=0, quiet=True)


@pytest.mark.parametrize(
    ("then", "now", "words"),
    [
        (HEAD + WORDS + TAIL, HEAD + PII + WORDS + TAIL, "these scores do not fit stage pii_modifier:"),
        (HEAD + SLICE + WORDS + TAIL, HEAD + SLICE.replace("150", "9") + WORDS + TAIL, "with other settings or code"),
        (HEAD + SLICE + WORDS + TAIL, HEAD + WORDS + TAIL, "these scores do not fit stage slicer:"),
        (HEAD + WORDS + TAIL, HEAD + WORDS + LETTERS + TAIL, "expected the column 'score_non_alpha_numeric'"),
    ],
)
def test_a_recipe_that_was_edited_since_is_refused(then, now, words, corpus, tmp_path):
    scored_own(corpus, tmp_path, then)
    (tmp_path / "own.yaml").write_text(now)

    with pytest.raises(ConfigError, match=words):
        rethreshold(str(tmp_path / "own.yaml"), str(tmp_path / "scored"), output=str(tmp_path / "kept"))
    assert not (tmp_path / "kept").exists()


def test_an_input_that_changed_since_is_refused(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": "one two"}\n')
    scored_own(tmp_path / "in.jsonl", tmp_path, HEAD + WORDS + TAIL)
    (tmp_path / "in.jsonl").write_text('{"text": "one two three"}\n')

    with pytest.raises(ConfigError, match="expected the input that was scored"):
        rethreshold(str(tmp_path / "own.yaml"), str(tmp_path / "scored"), output=str(tmp_path / "kept"))
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("damage", ["gone", "cut", "flipped", "empty"])
def test_scores_that_are_not_complete_are_refused(corpus, tmp_path, damage):
    scored_own(corpus, tmp_path, HEAD + WORDS + TAIL)
    note = tmp_path / "scored" / ".gristmill" / "scored.json"
    content = note.read_bytes()
    damaged = {"cut": content[:-30], "flipped": content.replace(b"jsonl", b"jsonm", 1), "empty": b""}
    note.unlink() if damage == "gone" else note.write_bytes(damaged[damage])

    with pytest.raises(ConfigError, match="expected scores that `gristmill score` has written to the end"):
        rethreshold(str(tmp_path / "own.yaml"), str(tmp_path / "scored"))


class FailsOnDigits(DocumentFilter[int]):
    def score_document(self, text):
        return len(text) if not text.isdigit() else 1 // 0

    def bounds(self):
        return 1, None


class Moody(DocumentFilter[int]):
    """Scores by what it has seen, not by the text."""

    seen = 0

    def score_document(self, text):
        Moody.seen += 1
        return Moody.seen

    def bounds(self):
        return 4, None


def pipeline_of(judges, tmp_path):
    texts = ["one two three four", "7", "", "five six seven"]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    stages = [JsonlReader(str(tmp_path / "in.jsonl")), ScoreFilter(judges), JsonlWriter(str(tmp_path / "out"))]
    return Pipeline("p", stages=stages)


def scored_in_python(pipeline, tmp_path):
    made = score_pipeline(pipeline, str(tmp_path / "scored"))
    executor = LocalExecutor(num_workers=0)
    noted(pipeline, made.run(executor), made.plan(executor).inputs, {}).write(str(tmp_path / "scored"))
    return str(tmp_path / "scored")


def test_documents_that_failed_while_scored_are_not_guessed_about(tmp_path):
    """A run drops "7" for its one word before the other filter could fail on it."""
    pipeline = pipeline_of([WordCountFilter(2), FailsOnDigits()], tmp_path)
    where = scored_in_python(pipeline, tmp_path)

    with pytest.raises(ConfigError, match=r"these scores do not fit stage score_\S+: it failed on 1 documents"):
        Scored.read(where).check_serves(pipeline)
    assert with_rules(pipeline, rules_of(pipeline)).run(LocalExecutor(num_workers=0)).quarantined == 0


def test_a_filter_that_scores_by_mood_is_found_out(
    tmp_path,
):
    from gristmill.cli.rethreshold import _run

    pipeline = pipeline_of([Moody()], tmp_path)
    where = scored_in_python(pipeline, tmp_path)
    outcome = apply_rules(where, rules_of(pipeline))

    with pytest.raises(RunFailed, match="does not give the same score for the same text"):
        _run(pipeline, Scored.read(where), outcome, str(tmp_path / "out"), LocalExecutor(num_workers=0))
