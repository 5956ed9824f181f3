"""Each kind of ending has its exit code, and a mistake is a sentence, not a traceback."""

import pytest
from typer.testing import CliRunner

from gristmill.cli.main import app, exit_code
from gristmill.errors import (
    ConfigError,
    EngineBug,
    InputsChanged,
    Interrupted,
    MachineFailed,
    MissingDependency,
    NoInputError,
    ResumeRefused,
    RunFailed,
    StageBroken,
    StageError,
    TooManyQuarantined,
)

CODES = {
    ConfigError: 2,
    NoInputError: 2,
    ResumeRefused: 2,
    MissingDependency: 2,
    RunFailed: 1,
    StageBroken: 1,
    MachineFailed: 1,
    InputsChanged: 1,
    StageError: 1,
    EngineBug: 1,
    RuntimeError: 1,
    TooManyQuarantined: 3,
    Interrupted: 130,
    KeyboardInterrupt: 130,
}


@pytest.mark.parametrize(("kind", "code"), CODES.items(), ids=lambda value: getattr(value, "__name__", value))
def test_an_exception_decides_the_exit_code(kind, code):
    assert exit_code(kind("message")) == code


@pytest.mark.parametrize("command", ["run", "plan", "status", "stages", "recipes", "doctor"])
def test_every_command_has_help(command):
    result = CliRunner().invoke(app, [command, "--help"])

    assert result.exit_code == 0
    assert len(result.output.splitlines()) > 4


def test_an_unknown_option_is_a_user_mistake_that_names_the_nearest():
    result = CliRunner().invoke(app, ["run", "passthrough", "--outptu", "x"])

    assert result.exit_code == 2
    assert "--output" in result.output


def test_the_shipped_recipes_are_listed_with_what_they_do():
    result = CliRunner().invoke(app, ["recipes"])

    assert "basic-english" in result.output
    assert "English prose" in result.output


def test_a_shipped_recipe_can_be_printed():
    assert CliRunner().invoke(app, ["recipes", "show", "passthrough"]).output.startswith("name: passthrough\n")


def test_stages_and_filters_are_listed():
    output = CliRunner().invoke(app, ["stages"]).output

    for name in ("FastTextLangId", "TokenCountFilter", "XMLHeaderFilter", "UnicodeReformatter", "PiiModifier", "AddId"):
        assert f"  {name} " in output

    assert "JsonlReader" in output
    assert "WordCountFilter" in output


def test_a_stage_is_shown_with_its_parameters():
    assert "min_words  int, default 50" in CliRunner().invoke(app, ["stages", "WordCountFilter"]).output


def test_the_parts_of_a_composite_are_not_offered():
    assert "JsonlReaderStage" not in CliRunner().invoke(app, ["stages"]).output
