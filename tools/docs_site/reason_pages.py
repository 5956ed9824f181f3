"""The reference page of reasons: why a document is dropped, by every stage that drops.

Filters and rule sets say their reasons themselves. What other stages call theirs is read from the calls of
`context.drop` in the source, and each needs a meaning below: a reason without one, or a meaning without its reason,
stops the build.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import gristmill
from docs_site.pages import cell, code, first_sentence, prose, table
from gristmill.cli.stages import without_parts
from gristmill.config import catalog
from gristmill.stages.base import snake_case
from gristmill.stages.text.rules import RuleSet

SOURCE = Path(gristmill.__file__).parent
INGEST_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "ingest.md"

# What other stages than filters and rule sets say, by the module that says it. A word in braces varies.
MEANINGS = {
    "null_text": "The text is missing. Any filter or rule set may say this.",
    "null_score": "A filter on a column met a document without a value there.",
    "no_prediction": "`filter_by`: the classifier had no answer, because the text is missing, empty or blank.",
    "other_label": "`filter_by`: the label is not among those wanted.",
    "faith_avg": "The mean of the five marks of a translation is below the threshold.",
    "{benchmark}": "`Decontaminate`: the text holds n-grams of this benchmark.",
    "clean": "`Decontaminate(invert=True)`: the text holds no n-grams of any benchmark.",
    "{level}_sampled_out": "`SampleByBucket`: a weight below 1 left the document out.",
    "duplicate": "Another document says the same; `duplicates.parquet` names it.",
    "{kind}_duplicate": "`ExactDeduplication`, `FuzzyDeduplication`, `SemanticDeduplication`: likewise, by its kind.",
    "too_little_left": "So much of the text was repeated elsewhere that the rest is not worth keeping.",
    "nothing_to_compare": "Exact deduplication: the text is missing or empty, and such documents are to be left out.",
    "no_candidate": "Inside fuzzy deduplication: resembles no other document, so there is nothing to verify.",
    "not_wanted": "Inside deduplication: not needed by this step.",
    "no_embedding": "Semantic deduplication: the vector is missing.",
    "not_finite": "Semantic deduplication: the vector holds a value that is not a finite number.",
    "no_content": "`ChunkMergeStage`: the chunk is missing or empty, or the model found nothing of use in it.",
    "repeated_chunk": "`ChunkMergeStage`: a chunk of this number came before.",
    "too_long": "`ChunkMergeStage`: the chunks together exceed `max_text_length`.",
    "not_a_file": "`WebDatasetReader`: the member of an archive of samples is a link, a device or a pipe.",
    "no_text": "Training a classifier: the text is missing or blank.",
}

# Reasons that are made when a document is dropped: (module, name of the variable) and how they look.
VARYING = {
    ("stages/text/decontamination/decontaminate.py", "benchmark"): ("{benchmark}",),
    ("stages/mixing/sample_by_bucket.py", "reason"): ("{level}_sampled_out",),
    ("stages/math/modifiers/chunk_merge.py", "reason"): ("no_content", "repeated_chunk", "too_long"),
    ("deduplication/deduplication_stage.py", "self.reason"): ("{kind}_duplicate",),
    ("deduplication/exact_stages.py", "NOTHING_TO_COMPARE"): ("nothing_to_compare",),
    ("stages/text/judging/judge.py", "reason"): (),  # of filters and rule sets, which have tables of their own
}
# What turns raw sources into documents declares its reasons as data, and has a page made of them.
INGEST = ("stages/text/download/", "stages/text/html/", "stages/text/pdf/", "stages/math/download/")


def reason_pages() -> Iterator[tuple[str, str]]:
    """Yield the page of reasons as (path, text)."""
    text = (
        "# Reasons\n\nEvery document that a stage drops is counted under the stage's name and one of these reasons: "
        "in the summary, `RunResult.dropped`, the report, the metrics and, with `--rejects`, beside the document.\n\n"
    )
    text += "## Stages\n\n" + table(("reason", "meaning"), _of_stages())
    if INGEST_PAGE.is_file():
        text += "\nStages for raw sources have [a page of their own](ingest.md).\n"
    text += "\n## Rule sets\n\n" + table(("rule set", "reason", "a kept document has"), _of_rule_sets())
    text += "\n## Filters\n\nThe reason is the filter's name.\n\n" + table(("reason", "filter"), _of_filters())
    yield "reference/reasons.md", text


def _of_rule_sets() -> Iterator[list[str]]:
    for name, cls in sorted(catalog.rule_sets().items()):
        rules = cls()
        assert isinstance(rules, RuleSet)
        for rule in rules.applied_rules():
            yield [f"[{name}](rule-sets.md#{name.lower()})", f"`{rule.reason}`", cell(rule.describe())]


def _of_filters() -> Iterator[list[str]]:
    for name, cls in sorted(catalog.filters().items()):
        if not issubclass(cls, tuple(without_parts(catalog.stages()).values())):
            reason = snake_case(name).removesuffix("_filter")
            yield [f"`{reason}`", f"[{name}](filters.md#{name.lower()}): {first_sentence(cls)}"]


def _of_stages() -> Iterator[list[str]]:
    """The reasons of stages with their meanings, once the calls in the source have been found to say just these."""
    said = {reason for path in SOURCE.rglob("*.py") for reason in _reasons_in(path)} | {"null_text", "null_score"}
    if said != MEANINGS.keys():
        raise SystemExit(
            f"{Path(__file__).name}: expected a meaning for every reason that stages give; without one: "
            f"{sorted(said - MEANINGS.keys())}; no longer given: {sorted(MEANINGS.keys() - said)}"
        )
    return ([code(reason), prose(meaning)] for reason, meaning in MEANINGS.items())


def _reasons_in(path: Path) -> Iterator[str]:
    """Yield the reason of every `context.drop(…, reason=…)` of a module."""
    place = path.relative_to(SOURCE).as_posix()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call) and not place.startswith(INGEST)):
        given = next((keyword.value for keyword in call.keywords if keyword.arg == "reason"), None)
        if given is None or not ast.unparse(call.func).endswith("context.drop"):
            continue
        if isinstance(given, ast.Constant):
            yield str(given.value)
        elif (place, ast.unparse(given)) in VARYING:
            yield from VARYING[place, ast.unparse(given)]
        elif ast.unparse(given) in (constants := _constants(tree)):
            yield constants[ast.unparse(given)]
        else:
            raise SystemExit(
                f"{place}: the reason {ast.unparse(given)!r} cannot be read from the code; add it to VARYING"
            )


def _constants(tree: ast.Module) -> dict[str, str]:
    """The texts a module gives names, as in `A = "a"` and `A, B = "a", "b"`."""
    found: dict[str, str] = {}
    for node in (node for node in tree.body if isinstance(node, ast.Assign)):
        target, values = node.targets[0], node.value
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        given = values.elts if isinstance(values, ast.Tuple) else [values]
        pairs = zip(names, given, strict=False)
        found |= {ast.unparse(n): str(v.value) for n, v in pairs if isinstance(v, ast.Constant)}
    return found
