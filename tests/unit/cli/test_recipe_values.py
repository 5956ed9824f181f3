"""Options become values of the recipe's variables."""

import pytest

from gristmill.cli.recipe_values import recipe_values
from gristmill.cli.run import default_run_dir, parse_limit
from gristmill.engine.breaker import DEFAULT_LIMIT, QuarantineLimit
from gristmill.errors import ConfigError


def test_values_are_read_as_yaml():
    values = recipe_values(["a"], "b", ["n=5", "share=0.5", "names=[x, y]", "text=a=b", "nothing="])

    assert values == {
        "input": "a", "output": "b", "n": 5, "share": 0.5, "names": ["x", "y"], "text": "a=b", "nothing": "",
    }  # fmt: skip


def test_several_inputs_are_a_list():
    assert recipe_values(["a", "b"], None, []) == {"input": ["a", "b"]}


@pytest.mark.parametrize("setting", ["n", "=5", " =5"])
def test_a_setting_without_name_or_value_is_refused(setting):
    with pytest.raises(ConfigError, match=r"^--set: expected NAME=VALUE; got "):
        recipe_values([], None, [setting])


@pytest.mark.parametrize(("text", "limit"), [("0", 0), ("100", 100), ("0.5", 0.5), ("1%", 0.01)])
def test_a_limit_is_a_number_or_a_share(text, limit):
    assert parse_limit(text) == QuarantineLimit(limit)


def test_without_a_limit_the_default_holds():
    assert parse_limit(None) == DEFAULT_LIMIT


def test_a_number_of_documents_stays_an_integer_and_a_share_a_float():
    assert [type(parse_limit(text).most) for text in ("1", "1.0")] == [int, float]


@pytest.mark.parametrize("text", ["-1", "many", "1.5", "200%", "nan", "0.0"])
def test_a_limit_that_is_neither_is_refused(text):
    with pytest.raises(ConfigError, match="expected a number of documents"):
        parse_limit(text)


def test_the_run_directory_is_with_the_output():
    assert [default_run_dir(output) for output in (None, "out", "out/")] == [None, "out/.gristmill", "out/.gristmill"]
