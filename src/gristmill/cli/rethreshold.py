"""`gristmill rethreshold`: what other thresholds would do to documents that were scored."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from gristmill.cli.answer import answer
from gristmill.cli.options import AllowModules, Debug, Inputs, MemoryLimit, RecipeArgument, Workers
from gristmill.errors import ConfigError, RunFailed, nearest

if TYPE_CHECKING:
    from gristmill.backends.base import BaseExecutor
    from gristmill.config.recipe import Recipe
    from gristmill.pipeline import Pipeline
    from gristmill.runs.books import RunResult
    from gristmill.workflows.thresholds import Difference, FilterRule, Outcome, Scored

PLACE = "."  # `build` wants a path for the writer; nothing is written there


def rethreshold(
    recipe: RecipeArgument,
    scored: Annotated[str, typer.Argument(metavar="SCORED", help="Directory `gristmill score` wrote.")],
    thresholds: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="RULE.NAME=VALUE", help="Change a threshold.", show_default=False),
    ] = None,
    against: Annotated[
        str | None, typer.Option(metavar="RECIPE", help="Say where another recipe decides otherwise.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="DIR", help="Run the recipe with these thresholds.")
    ] = None,
    inputs: Inputs = None,
    workers: Workers = None,
    memory_limit: MemoryLimit = None,
    allow_module: AllowModules = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Apply a recipe's thresholds, or others, to scores; count what each rule would drop."""
    from gristmill.cli.choose_executor import choose_executor
    from gristmill.config.shipped import find_recipe
    from gristmill.workflows.thresholds import Scored, apply_rules, rules_of, with_rules

    known, found, allowed = Scored.read(scored), find_recipe(recipe), allow_module or []
    values = _values(found, known, inputs, output)
    pipeline = found.build(values, allow_modules=allowed)
    known.check_serves(pipeline)
    rules = _changed(rules_of(pipeline), thresholds or [])
    others = None if against is None else _rules_of_other(against, known, inputs, allowed)
    outcome = apply_rules(scored, rules, against=others)
    document: dict[str, object] = asdict(outcome)
    if output is not None:
        executor = choose_executor(found, values, workers=workers, memory_limit=memory_limit, allow_modules=allowed)
        document["run"] = _run(with_rules(pipeline, rules), known, outcome, output, executor).to_json()
    here = f"{recipe} as changed" if thresholds else recipe
    if as_json:
        answer(document)
    else:
        typer.echo(_words(outcome, here, against))


def _values(found: "Recipe", known: "Scored", inputs: list[str] | None, output: str | None) -> dict[str, object]:
    """The values of the variables a recipe has, as they were when it was scored."""
    from gristmill.cli.recipe_values import recipe_values
    from gristmill.secrets import HIDDEN

    given = {**known.values, **recipe_values(inputs or [], output or PLACE, [])}
    values = {name: value for name, value in given.items() if name in found.variable_names()}
    for name, value in values.items():
        if value == HIDDEN:
            more = ": give it again with --input" if name == "input" else ""
            raise ConfigError(f"rethreshold: expected {name!r}, which held a secret and was not written down{more}")
    return values


def _rules_of_other(
    recipe: str, known: "Scored", inputs: list[str] | None, allow_modules: Sequence[str]
) -> "list[FilterRule]":
    from gristmill.config.shipped import find_recipe
    from gristmill.workflows.thresholds import rules_of

    found = find_recipe(recipe)
    pipeline = found.build(_values(found, known, inputs, None), allow_modules=allow_modules)
    known.check_serves(pipeline)
    return rules_of(pipeline)


def _run(
    pipeline: "Pipeline", known: "Scored", outcome: "Outcome", output: str, executor: "BaseExecutor"
) -> "RunResult":
    """Run the recipe with the thresholds: only that gives the bytes and books a run gives."""
    from gristmill.cli.run import default_run_dir

    known.check_inputs(pipeline.plan(executor).inputs, who=pipeline.name)
    result = pipeline.run(executor, checkpoint_path=default_run_dir(output))
    expected = {**known.dropped, **outcome.dropped()}
    if result.dropped != expected:
        raise RunFailed(
            f"{pipeline.name}: expected the run to drop what its scores told, {expected}; it dropped {result.dropped}. "
            "A filter does not give the same score for the same text every time"
        )
    return result


def _changed(rules: "list[FilterRule]", thresholds: Sequence[str]) -> "list[FilterRule]":
    from gristmill.config.load_yaml import load_yaml

    by_name = {rule.name: rule for rule in rules}
    for setting in thresholds:
        target, equals, text = setting.partition("=")
        name, dot, parameter = target.strip().rpartition(".")
        if not equals or not dot:
            raise ConfigError(f"--set: expected RULE.NAME=VALUE, as in word_count.min_words=100; got {setting!r}")
        if name not in by_name:
            raise ConfigError(
                f"--set: expected one of the rules {', '.join(by_name)}; got {name!r}{nearest(name, by_name)}"
            )
        by_name[name] = by_name[name].with_parameter(parameter, load_yaml(text, who=f"--set {target}"))
    return [by_name[rule.name] for rule in rules]


def _words(outcome: "Outcome", recipe: str, against: str | None) -> str:
    share = outcome.kept / outcome.documents if outcome.documents else 0.0
    width = max(len(rule.name) for rule in outcome.rules)
    lines = [
        f"{outcome.kept:,} of {outcome.documents:,} documents kept ({share:.1%})",
        f"{'rule':{width}} {'refuses':>12} {'first':>12} {'alone':>12}  keeps",
    ]
    lines += [
        f"{rule.name:{width}} {rule.refused:12,} {rule.refused_first:12,} {rule.refused_alone:12,}  {rule.threshold}"
        for rule in outcome.rules
    ]
    if outcome.difference is not None and against is not None:
        lines += _difference_in_words(outcome.difference, recipe, against)
    return "\n".join(lines)


def _difference_in_words(difference: "Difference", here: str, there: str) -> list[str]:
    sides = (
        (here, there, difference.kept_here_only, difference.refused_there_by, difference.examples_here),
        (there, here, difference.kept_there_only, difference.refused_here_by, difference.examples_there),
    )
    lines = []
    for keeps, refuses, count, reasons, examples in sides:
        by = ", ".join(f"{name} {number:,}" for name, number in sorted(reasons.items(), key=lambda r: -r[1]))
        lines.append(f"{count:,} kept by {keeps} only" + (f"; {refuses} refuses them for {by}" if by else ""))
        if examples:
            lines.append(f"  such as {', '.join(examples)}")
    return lines
