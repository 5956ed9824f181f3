"""Help fits 80 columns without a cut sentence, and every example in it is a command that would be understood."""

import re
import shlex

import pytest
import typer
from typer.testing import CliRunner

from gristmill.cli import help_page
from gristmill.cli.help_page import EXAMPLES, GROUPS, coloured, listed
from gristmill.cli.main import app
from gristmill.config.shipped import shipped_recipes

ROOT = typer.main.get_command(app)


def command_paths(command=ROOT, path=""):
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from command_paths(inner, f"{path} {name}".strip())


PATHS = sorted(command_paths())


def help_of(path, columns="80"):
    result = CliRunner(env={"COLUMNS": columns, "TERMINAL_WIDTH": columns}).invoke(app, [*path.split(), "--help"])
    assert result.exit_code == 0
    return result.output


@pytest.mark.parametrize("path", PATHS)
def test_help_fits_and_cuts_nothing_off(path):
    lines = help_of(path).splitlines()
    beyond = [line for line in lines if len(line) > 80]

    assert beyond == []
    assert not [line for line in lines if line.endswith("...") and "Usage:" not in line]
    assert "\x1b" not in "".join(lines)


def test_every_command_has_examples_and_a_group():
    groups = [name for names in GROUPS.values() for name in names]

    assert sorted(EXAMPLES) == PATHS
    assert sorted(groups) == sorted(ROOT.commands)
    assert "More:" not in help_of("")


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_an_example_is_understood(line):
    words = shlex.split(re.sub(r'^eval "\$\((.*)\)"$', r"\1", line).partition(" | ")[0].partition(" > ")[0])
    assert words.pop(0) == "gristmill"
    command, context = ROOT, None
    while hasattr(command, "commands") and words:
        context = command.make_context(command.name, [], parent=context, resilient_parsing=True)
        command = command.commands[words.pop(0)]
    if not hasattr(command, "commands"):
        command.make_context(command.name, words, parent=context)  # raises for an option it does not have
    assert len(line) <= 78


def test_an_option_and_a_command_may_be_written_with_underscores():
    result = CliRunner().invoke(app, ["train_classifier", "--text_field", "t", "--no_such"])

    assert "No such option" in result.output
    assert "no-such" in result.output or "no_such" in result.output
    assert "text" not in result.output.partition("No such option")[2]


def test_colour_changes_nothing_but_colour(monkeypatch):
    plain = help_of("run")
    monkeypatch.setattr(help_page, "has_colour", lambda: True)
    shown = coloured(plain)

    assert "\x1b[36m-i, --input\x1b[0m" in shown
    assert "\x1b[1mUsage:\x1b[0m" in shown
    assert re.sub(r"\x1b\[\d*m", "", shown) == plain


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_whoever_wants_no_colour_gets_none(monkeypatch, variable, value):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert help_page.has_colour()
    monkeypatch.setenv(variable, value)
    assert not help_page.has_colour()


def test_a_list_is_wrapped_on_a_terminal_and_whole_in_a_pipe(monkeypatch):
    rows = [("name", "word " * 30), ("other", "")]
    assert list(listed(rows)) == [f"name   {'word ' * 29}word", "other"]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    wrapped = list(listed(rows))
    assert max(map(len, wrapped)) <= 60
    assert " ".join(" ".join(wrapped).split()).count("word") == 30


@pytest.mark.parametrize("line", [line for line in EXAMPLES["fetch"] if "://" not in line])
def test_no_example_fetches_a_shipped_recipe_for_none_downloads_anything(line):
    assert shlex.split(line)[2] not in shipped_recipes()
