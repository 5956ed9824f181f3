"""`gristmill rethreshold`: what other thresholds would do to documents that were scored."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from gristmill.cli.options import AllowModules, Debug, RecipeArgument
from gristmill.errors import ConfigError, nearest

if TYPE_CHECKING:
    from gristmill.workflows.thresholds import Difference, Outcome, Rule

PLACE = "."  # `build` wants paths for reader and writer; nothing is read or written there


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
        str | None, typer.Option("--output", "-o", metavar="DIR", help="Write what is kept, as JSONL.")
    ] = None,
    allow_module: AllowModules = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Apply a recipe's thresholds, or others, to scores; count what each rule would drop."""
    from gristmill.workflows.thresholds import apply_rules, kept_pipeline

    rules = _changed(_rules(recipe, allow_module or []), thresholds or [])
    others = None if against is None else _rules(against, allow_module or [])
    outcome = apply_rules(scored, rules, against=others)
    if output is not None:
        kept_pipeline(scored, rules, output).run(checkpoint_path=f"{output.rstrip('/')}/.gristmill")
    here = f"{recipe} as changed" if thresholds else recipe
    typer.echo(json.dumps(asdict(outcome), ensure_ascii=False) if as_json else _words(outcome, here, against))


def _rules(recipe: str, allow_modules: Sequence[str]) -> "list[Rule]":
    from gristmill.config.shipped import find_recipe
    from gristmill.workflows.thresholds import rules_of

    found = find_recipe(recipe)
    values = dict.fromkeys(found.variable_names() - set(found.variables or {}), PLACE)
    return rules_of(found.build(values, allow_modules=allow_modules))


def _changed(rules: "list[Rule]", thresholds: Sequence[str]) -> "list[Rule]":
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
