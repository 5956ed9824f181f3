"""A value fits an annotation, or the difference is said in words."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from gristmill.config.type_hints import accepts, describe_hint, options_class, parameter_hints, wants_object
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.filters import DocumentFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter


@pytest.mark.parametrize(
    ("value", "hint", "fits"),
    [
        (1, int, True),
        (True, int, False),
        (1, float, True),
        ("1", float, False),
        (None, int | None, True),
        (None, int, False),
        ("a", str | list[str], True),
        (["a"], str | list[str], True),
        (["a", 1], str | list[str], False),
        ("any", Literal["any", "prefix"], True),
        ("all", Literal["any", "prefix"], False),
        ({"a": 1}, dict[str, object], True),
        ({"a": 1}, Mapping[str, object], True),
        ("a/b", Path, True),
        (WordCountFilter(), DocumentFilter[object], True),
        ("WordCountFilter", DocumentFilter[object], False),
        (len, Callable[[str], int], True),
        ("anything", object, True),
        ([None, "a"], list[str | None], True),
    ],
)
def test_a_value_fits_a_hint_or_not(value, hint, fits):
    assert accepts(value, hint) is fits


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (str | list[str] | None, "str or list of str or None"),
        (DocumentFilter[object] | list[DocumentFilter[object]], "DocumentFilter or list of DocumentFilter"),
        (Literal["a", "b"], "'a' or 'b'"),
        (Callable[[str], bool], "function"),
    ],
)
def test_a_hint_is_said_in_words(hint, words):
    assert describe_hint(hint) == words


def test_names_stand_for_objects_only_where_an_object_is_wanted():
    assert all(wants_object(hint) for hint in (DocumentFilter[object], Callable[[str], bool]))
    assert not any(wants_object(hint) for hint in (str, int | None, list[str], object))


def test_hints_that_cannot_be_resolved_are_not_guessed():
    def function(x: "NotDefinedAnywhere"): ...  # noqa: F821

    assert parameter_hints(function) == {}


def test_a_class_that_inherits_fields_has_the_parameters_of_its_own_constructor():
    @dataclass
    class Fields:
        number: int

    class Own(Fields):
        def __init__(self, text: str) -> None: ...

    assert parameter_hints(Own)["text"] is str


def test_groups_of_options_are_frozen_data_of_ours():
    @dataclass(frozen=True)
    class Theirs:
        number: int = 0

    assert options_class(IngestLimits) is IngestLimits
    assert options_class(IngestLimits | None) is IngestLimits
    assert options_class(Theirs) is None
    assert options_class(dict[str, int]) is None
