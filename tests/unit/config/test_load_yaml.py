"""YAML costs what it looks like: whatever would grow without bounds is refused at once."""

import time

import pytest

from gristmill.config.load_yaml import MAX_BYTES, MAX_DEPTH, load_yaml, read_yaml_file
from gristmill.config.recipe import Recipe
from gristmill.errors import ConfigError

LISTS = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9) if n else 1}]\n" for n in range(9))
MERGES = "a0: &a0 {k: 1}\n" + "".join(f"a{n}: &a{n}\n  <<: [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))
KEYS = "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} {{? [{', '.join([f'*a{n - 1}'] * 9)}] : 1}}\n" for n in range(1, 9))
CHAIN = "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 1000))
BOMBS = {
    "aliases of aliases": (LISTS, "values"),
    "merges of merges": (MERGES, "values"),
    "aliases as keys": (KEYS, "values"),
    "a long chain of aliases": (CHAIN, "levels"),
    "lists in lists": ("[" * 10_000, "levels of nesting"),
    "mappings in mappings": ("".join(f"{' ' * n}a:\n" for n in range(200)), "levels of nesting"),
    "an alias within itself": ("a: &a [*a]", "no alias within what it stands for"),
    "a long text": ("a: " + "b" * MAX_BYTES, "characters of YAML"),
}


@pytest.mark.parametrize(("text", "words"), BOMBS.values(), ids=BOMBS)
def test_what_would_grow_without_bounds_is_refused(text, words):
    started = time.process_time()

    with pytest.raises(ConfigError, match=words):
        load_yaml(text, who="bomb")
    assert time.process_time() - started < 2  # the chain has 100 kB to be parsed; written out, the others take hours


def test_four_hundred_bytes_of_aliases_are_refused_in_milliseconds():
    assert len(LISTS) < 500
    started = time.process_time()
    with pytest.raises(ConfigError, match="with aliases written out"):
        load_yaml(LISTS, who="bomb")
    assert time.process_time() - started < 0.1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: &a [1, 2]\nb: *a\nc: [*a, *a]", {"a": [1, 2], "b": [1, 2], "c": [[1, 2], [1, 2]]}),
        ("a: &a {x: 1}\nb: {<<: *a, y: 2}", {"a": {"x": 1}, "b": {"x": 1, "y": 2}}),
        ("[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1), None),
        ("", None),
    ],
)
def test_ordinary_aliases_and_nesting_are_read(text, value):
    assert value is None or load_yaml(text, who="test") == value
    load_yaml(text, who="test")


@pytest.mark.parametrize("text", ["a: 2001-99-99", "a: !!int x", "a: !!bool x", "a: !!int ''", "a: " + "1" * 5000])
def test_a_value_that_cannot_be_read_is_a_mistake_and_no_traceback(text):
    with pytest.raises(ConfigError, match=r"^r: expected YAML; got a value that cannot be read"):
        load_yaml(text, who="r")


def test_a_tag_that_makes_objects_is_refused():
    with pytest.raises(ConfigError, match="could not determine a constructor"):
        load_yaml("!!python/object/apply:os.system ['touch PWNED']", who="r")


def test_of_a_huge_file_no_more_is_read_than_a_recipe_may_have(tmp_path):
    with (tmp_path / "huge.yaml").open("wb") as file:
        file.truncate(1 << 40)

    with pytest.raises(ConfigError, match="expected at most"):
        read_yaml_file(tmp_path / "huge.yaml", who="recipe")


@pytest.mark.parametrize("use", ["${long}", "x${long}"])
def test_a_variable_used_everywhere_cannot_fill_the_memory(use):
    uses = ", ".join([f'"{use}"'] * 400)
    text = f"variables: {{long: {'b' * 300_000}}}\nstages:\n- JsonlReader: {{file_paths: [{uses}]}}\n"

    with pytest.raises(ConfigError, match=r"\$\{long\} would make it too large"):
        Recipe.parse(text, source="r.yaml").build()
