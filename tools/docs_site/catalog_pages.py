"""Reference pages of what recipes are made of: stages, filters, modifiers, rule sets, recipes."""

import inspect
import sys
from collections.abc import Iterator, Mapping

from docs_site.pages import class_section, first_sentence, prose, table
from gristmill.cli.stages import without_parts
from gristmill.config import catalog
from gristmill.config.recipe import PLACES
from gristmill.config.shipped import find_recipe, shipped_recipes
from gristmill.stages.text.rules import RuleSet

# The packages of stages, in the order of a pipeline; what has no line here stands under its own package.
GROUPS = {
    "gristmill.stages.text.io": "Readers and writers",
    "gristmill.stages.text.download": "Raw sources",
    "gristmill.stages.text.html": "HTML",
    "gristmill.stages.text.pdf": "PDF",
    "gristmill.stages.file_partitioning": "Readers and writers",
    "gristmill.stages.text.judging": "Filtering",
    "gristmill.stages.text.filters": "Filtering",
    "gristmill.stages.text.rules": "Filtering",
    "gristmill.stages.text.modifiers": "Changing texts",
    "gristmill.stages.text.modules": "Changing texts",
    "gristmill.deduplication": "Deduplication",
    "gristmill.stages.text.decontamination": "Deduplication",
    "gristmill.stages.text.classifiers": "Classifiers",
    "gristmill.stages.math.classifiers": "Classifiers",
    "gristmill.stages.math": "Mathematics",
    "gristmill.stages.text.quality": "Scores, levels and mixtures",
    "gristmill.stages.mixing": "Scores, levels and mixtures",
    "gristmill.stages.text.models": "Models",
    "gristmill.stages.text.embedders": "Models",
    "gristmill.stages.synthetic": "Asking a language model",
    "gristmill.stages.text.experimental.translation": "Asking a language model",
    "gristmill.stages.exchange": "Regrouping rows",
}


def catalog_pages() -> Iterator[tuple[str, str]]:
    """Yield the pages of stages, filters, modifiers, rule sets and recipes as (path, text)."""
    yield "reference/stages.md", _stages()
    yield "reference/filters.md", _filters()
    yield "reference/modifiers.md", _modifiers()
    yield "reference/rule-sets.md", _rule_sets()
    yield "reference/recipes.md", _recipes()


def _stages() -> str:
    groups: dict[str, dict[str, type]] = {}
    for name, cls in sorted(without_parts(catalog.stages()).items()):
        groups.setdefault(_group(cls), {})[name] = cls
    order = [*dict.fromkeys(GROUPS.values()), *sorted(groups.keys() - set(GROUPS.values()))]
    text = (
        "# Stages\n\nWhat a pipeline is made of. In Python a stage is imported from the path below its name; "
        "in a recipe its name is enough. `gristmill stages NAME` prints the same.\n\n"
    )
    for group in order:
        if group in groups:
            text += f"## {group}\n\n{_overview(groups[group])}\n"
            text += "".join(class_section(name, cls) for name, cls in groups[group].items())
    return text


def _group(cls: type) -> str:
    home = cls.__module__
    while home:
        if home in GROUPS:
            return GROUPS[home]
        home = home.rpartition(".")[0]
    return "Other stages"


def _overview(classes: Mapping[str, type]) -> str:
    return table(("name", "what it does"), ([f"[{n}](#{n.lower()})", first_sentence(c)] for n, c in classes.items()))


def _filters() -> str:
    text = (
        "# Filters\n\nA filter measures a text and says which values are kept. "
        "`ScoreFilter(WordCountFilter(min_words=50))` drops the others, with the filter's name as the reason. "
        "Both bounds are kept. Where a threshold was published, the docstring names the source.\n\n"
    )
    groups: dict[str, dict[str, type]] = {}
    for name, cls in sorted(catalog.filters().items()):
        groups.setdefault(_filter_group(cls), {})[name] = cls
    for group, classes in groups.items():
        text += f"## {group}\n\n{_overview(classes)}\n"
        text += "".join(
            class_section(name, cls, extra=f"Reason: {_reason(cls)}.\n\n{_module_source(cls)}")
            for name, cls in classes.items()
        )
    return text


def _filter_group(cls: type) -> str:
    known = {
        "heuristic.code": "Source code",
        "heuristic": "By counting",
        "fasttext": "With a fastText model",
        "token": "By tokens",
        "histogram": "By characters",
    }
    return next((title for part, title in known.items() if f"filters.{part}" in cls.__module__), "With your own model")


def _reason(cls: type) -> str:
    from gristmill.stages.base import snake_case

    return f"`{snake_case(cls.__name__).removesuffix('_filter')}`, unless the filter is given a `name`"


def _module_source(cls: type) -> str:
    """Where the thresholds of a module come from, if its docstring has a link."""
    doc = inspect.getdoc(sys.modules[cls.__module__]) or ""
    sentences = [part for part in doc.replace("\n", " ").split(". ") if "http" in part]
    return f"Source: {prose('. '.join(sentences))}\n\n" if sentences else ""


def _modifiers() -> str:
    classes = dict(sorted(catalog.modifiers().items()))
    text = "# Modifiers\n\n`Modify(NewlineNormalizer())` changes the text column; other columns stay as they are.\n\n"
    return text + _overview(classes) + "\n" + "".join(class_section(n, c, level=2) for n, c in classes.items())


def _rule_sets() -> str:
    classes = dict(sorted(catalog.rule_sets().items()))
    text = (
        "# Rule sets\n\nRules that were published together, with the thresholds, the order and the reasons of their "
        "source. `ApplyRules(GopherQuality())` applies one; a document is dropped for the first rule it breaks.\n\n"
    )
    text += _overview(classes) + "\n"
    for name, cls in classes.items():
        rules = cls()
        assert isinstance(rules, RuleSet)
        rows = [[f"`{rule.reason}`", rule.describe().replace("|", "\\|")] for rule in rules.applied_rules()]
        conditions = table(("reason", "a kept document has"), rows)
        source = prose(inspect.getdoc(sys.modules[cls.__module__]))
        text += class_section(name, cls, level=2, extra=f"{source}\n\n{conditions}\n")
    return text


def _recipes() -> str:
    text = (
        "# Recipes\n\nEach comes with the package: `gristmill run NAME --input DIR --output DIR`. "
        "`gristmill recipes show NAME` prints the file, to be copied and changed. "
        "Variables are set with `--set NAME=VALUE`.\n\n"
    )
    for name, path in shipped_recipes().items():
        recipe = find_recipe(name)
        defaults = dict(recipe.variables or {})
        own = sorted(recipe.variable_names() - set(PLACES))
        rows = [[f"`{v}`", f"`{defaults[v]}`" if v in defaults else "**required**"] for v in own]
        text += f"## {name}\n\n{prose(recipe.description)}\n\n{table(('variable', 'default'), rows)}\n"
        text += (
            f'??? note "The whole recipe"\n\n    ```yaml\n{_indented(path.read_text(encoding="utf-8"))}\n    ```\n\n'
        )
    return text


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.rstrip().splitlines())
