"""Documents that break other tools pass through every modifier, module and model filter, in worker processes too."""

import json
from dataclasses import dataclass

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.models.fasttext_model import bundled_model
from gristmill.pipeline import Pipeline
from gristmill.stages.text import rules
from gristmill.stages.text.filters import Score, ScoreFilter
from gristmill.stages.text.filters.fasttext import FastTextLangId, FastTextQualityFilter
from gristmill.stages.text.filters.heuristic import code
from gristmill.stages.text.filters.heuristic.code.comment_syntax import LANGUAGES
from gristmill.stages.text.filters.histogram import HistogramFilter
from gristmill.stages.text.filters.token import TokenCountFilter
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.stages.text.modifiers import (
    BoilerPlateStringModifier,
    FastTextLabelModifier,
    LineRemover,
    MarkdownRemover,
    Modify,
    NewlineNormalizer,
    PiiModifier,
    QuotationRemover,
    Slicer,
    UnicodeReformatter,
    UrlRemover,
)
from gristmill.stages.text.modules import AddId, DocumentJoiner, DocumentSplitter
from gristmill.tasks import DocumentBatch
from gristmill.tasks.json_lines import JsonLines

SMALL = {
    "empty": "",
    "newlines": "\n\n\n\n",
    "null": None,
    "nul": "a\x00b\x00\x00",
    "replaced_surrogate": "a\ufffdb",
    "right_to_left": "שלום עולם \u202b\u202c\u200f مرحبا",
    "combining": "e\u0301" + "a" + "\u0300" * 300,
    "one_character": '"',
    "white_space": " \t\u2003\u00a0\r\n",
    "astral": "𝄞𝒳🧑‍🤝‍🧑",
    "control": "\x01\x1b[31m\x7f\x9f\ufeff",
    "mojibake": "doesnâ€™t Ã\xa0 &amp; www.x.org a@b.de __x__ **y**",
}
LARGE = {
    "long_line": "a" * 10_000_000,
    "long_line_of_words": "word, and * [more] _ " * 500_000,
    "many_lines": "x\n" * 1_000_000,
}


@dataclass
class Characters:
    """A tokenizer that needs no package."""

    def encode(self, text):
        return text


@pytest.fixture(scope="module")
def filters(tmp_path_factory):
    directory = tmp_path_factory.mktemp("data")
    (directory / "xx").write_text("a 1\ne 1\n")
    (directory / "meta.csv").write_text(
        "language,extension,Include,Long_line_threshold,Alphanum_threshold,Alpha filter\npython,py,1,1000,0.25,0.25\n"
    )
    model = bundled_model()
    return [
        *(code.GeneralCommentToCodeFilter(language) for language in LANGUAGES),
        *(code.PythonCommentToCodeFilter(), code.NumberOfLinesOfCodeFilter(), code.XMLHeaderFilter()),
        *(code.AlphaFilter(), code.HTMLBoilerplateFilter()),
        code.PerExtensionFilter("Python", "py", str(directory / "meta.csv")),
        FastTextLangId(),
        FastTextQualityFilter(model, label="__label__en"),
        HistogramFilter("xx", cache_dir=str(directory)),
        TokenCountFilter(Characters()),
    ]


MODIFIERS = [
    *(UnicodeReformatter(), UnicodeReformatter(normalization="NFKC", fix_line_breaks=True, uncurl_quotes=True)),
    *(NewlineNormalizer(), UrlRemover(), MarkdownRemover(), QuotationRemover(), BoilerPlateStringModifier()),
    *(LineRemover(["x", ""]), Slicer(1, -1), Slicer("a", "b"), FastTextLabelModifier("__label__hq")),
    *(PiiModifier(), PiiModifier(anonymize_action="hash")),
]


def documents(texts):
    column = pa.array(list(texts.values()), pa.string())
    return DocumentBatch("odd", pa.table({"name": list(texts), "text": column}))


@pytest.mark.parametrize("modifier", MODIFIERS, ids=lambda modifier: modifier.name)
def test_a_modifier_answers_for_every_odd_document(modifier):
    result = Modify(modifier).process(documents(SMALL))
    result.column("text").validate(full=True)
    found = dict(zip(SMALL, result.column("text").to_pylist(), strict=True))

    assert found["null"] is None
    assert found == {name: None if text is None else modifier.modify_document(text) for name, text in SMALL.items()}


@pytest.mark.slow
@pytest.mark.parametrize("modifier", MODIFIERS, ids=lambda modifier: modifier.name)
def test_a_modifier_answers_for_every_large_document(modifier):
    result = Modify(modifier).process(documents(LARGE))  # in linear time, or the test times out

    assert result.column("text").null_count == 0


@pytest.mark.slow
def test_every_filter_scores_every_odd_document(filters):
    fields = [f"{number}" for number in range(len(filters))]
    scored = Score(filters, fields).process(documents(SMALL))

    for name in scored.get_columns()[2:]:
        assert scored.column(name).null_count == 0
    assert ScoreFilter(filters).process(documents(SMALL)).num_items <= len(SMALL)


@pytest.mark.slow
def test_every_filter_scores_every_large_document(filters):
    for judge in filters:
        assert Score(judge, "score").process(documents(LARGE)).column("score").null_count == 0


MEASURED_IN_PYTHON = [
    *(rules.DolmaGopher(), rules.DclmGopherQuality(), rules.DclmGopherRepetition(), rules.RefinedWebLines()),
]
RULE_SETS = [
    *(rules.GopherRepetition(), rules.GopherQuality(), rules.C4Quality(), rules.FineWebQuality()),
    *MEASURED_IN_PYTHON,
]


@pytest.mark.slow
@pytest.mark.parametrize("rule_set", RULE_SETS, ids=lambda rule_set: rule_set.name)
def test_a_rule_set_judges_every_odd_document(rule_set):
    stage = rules.ApplyRules(rule_set)
    kept = stage.process(documents(SMALL)).column("name").to_pylist()

    assert kept == [name for name, text in SMALL.items() if rule_set.judge_document(text or "").reason is None]
    assert sum(stage.context.dropped.values()) == len(SMALL) - len(kept)


@pytest.mark.slow
@pytest.mark.parametrize("rule_set", RULE_SETS, ids=lambda rule_set: rule_set.name)
def test_a_rule_set_judges_half_a_character_as_the_sign_that_replaces_it(rule_set):
    text = "A line of words that goes on, and ends.\n" * 3 + "a\ud800b \udfff"
    texts = [text, text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")]
    lines = JsonLines(pa.array([json.dumps({"text": text}).encode() + b"\n" for text in texts], pa.large_binary()))
    stage = rules.ApplyRules(rule_set)
    kept = stage.process(DocumentBatch.from_lines("odd", lines)).column("text").to_pylist()

    assert len(kept) + sum(stage.context.dropped.values()) == 2
    assert kept in ([], 2 * kept[:1])


@pytest.mark.slow
@pytest.mark.parametrize("rule_set", RULE_SETS, ids=lambda rule_set: rule_set.name)
def test_a_rule_set_judges_every_large_document(rule_set):
    stage = rules.ApplyRules(rule_set)
    left = stage.process(documents(LARGE)).num_items

    assert left + sum(stage.context.dropped.values()) == len(LARGE)


@pytest.mark.slow
@pytest.mark.parametrize("rule_set", MEASURED_IN_PYTHON, ids=lambda rule_set: rule_set.name)
@pytest.mark.parametrize("name", LARGE)
def test_a_large_document_is_measured_for_the_last_rule_too(rule_set, name):
    """Most of them break the first rule, and are measured no further. In linear time, or the test times out."""
    measures = rule_set.measure_document(LARGE[name][:2_000_000])

    assert all(measures[rule.measure] >= 0 for rule in rule_set.rules())


@pytest.mark.slow
def test_documents_are_cut_and_joined_whatever_they_are():
    pieces = DocumentSplitter("\n").process(documents({**SMALL, **LARGE}))
    joined = DocumentJoiner("\n", document_id_field="name").process(pieces)

    assert joined.to_pyarrow().to_pylist() == documents({**SMALL, **LARGE}).to_pyarrow().to_pylist()


@pytest.mark.slow
def test_all_of_them_run_in_worker_processes(filters, tmp_path):
    lines = [json.dumps({"name": name, "text": text}) for name, text in SMALL.items()]
    lines += ['{"name":"lone_surrogate","text":"a\\ud800b"}', '{"name":"no_text"}']
    (tmp_path / "in.jsonl").write_text("".join(line + "\n" for line in lines))
    written = []
    for workers in (1, 2):
        out = tmp_path / f"out{workers}"
        stages = [
            JsonlReader(str(tmp_path / "in.jsonl"), blocksize=150),
            AddId("id"),
            Modify(MODIFIERS),
            Score(filters, [f"{number}" for number in range(len(filters))]),
            DocumentSplitter("\n"),
            DocumentJoiner("\n"),
            JsonlWriter(str(out)),
        ]
        result = Pipeline("odd", stages=stages).run(LocalExecutor(num_workers=workers))
        written.append(sorted(line for path in out.glob("*.jsonl") for line in path.read_text().splitlines()))
        assert (result.read, result.written, result.quarantined) == (len(lines), len(lines), 0)

    assert written[0] == written[1]
