"""Variables keep the type of their value and are never left unset in silence."""

import pytest

from gristmill.config.variables import Substitution, names_in, substitute
from gristmill.errors import ConfigError


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ("${n}", 5),
        ("n=${n}", "n=5"),
        ("${ n }", 5),
        ({"a": ["${n}", {"b": "${list}"}]}, {"a": [5, {"b": ["x"]}]}),
        ("$${n}", "${n}"),
        ("$$${n}", "$${n}"),
        (7, 7),
        (None, None),
    ],
)
def test_a_variable_is_replaced_by_its_value(tree, expected):
    assert substitute(tree, {"n": 5, "list": ["x"]}, who="test") == expected


def test_all_names_of_a_tree_are_found():
    assert names_in({"a": "${x}/${y}", "b": ["${z}", "$${no}"], "c": 1}) == {"x", "y", "z"}


def test_an_unset_variable_says_how_to_set_it_and_what_is_near():
    message = r"a value for \$\{min_word\}; it is not set \(--set min_word=VALUE\); did you mean 'min_words'\?$"
    with pytest.raises(ConfigError, match=message):
        substitute("${min_word}", {"min_words": 1}, who="test")


def test_a_missing_input_names_the_option():
    with pytest.raises(ConfigError, match=r"it is not set \(--input\)"):
        substitute("${input}", {}, who="test")


def test_defaults_that_use_each_other_cannot_fill_the_memory():
    defaults = {"v0": "x" * 1_000_000} | {f"v{n}": f"${{v{n - 1}}}" * 10 for n in range(1, 10)}
    with pytest.raises(ConfigError, match=r"expected variables to be used less often"):
        Substitution({}).add_defaults(defaults, who="test")
