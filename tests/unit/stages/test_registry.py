"""Stage classes are found by name; two of one name are an error."""

import pytest

from gristmill.errors import ConfigError
from gristmill.stages.base import ProcessingStage, get_stage_class
from gristmill.stages.registry import stage_classes


class RegisteredOnce(ProcessingStage):
    """Found by its name."""


def test_a_stage_class_is_found_by_its_name():
    assert get_stage_class("RegisteredOnce") is RegisteredOnce


def test_a_second_class_of_a_name_is_an_error_that_names_both():
    with pytest.raises(
        ConfigError, match=r"expected one class named 'RegisteredOnce'; got .*test_registry\.Registered"
    ):
        type("RegisteredOnce", (ProcessingStage,), {"__module__": "elsewhere"})

    assert get_stage_class("RegisteredOnce") is RegisteredOnce


def test_the_same_class_defined_again_replaces_itself():
    body = {"__module__": __name__, "__qualname__": "RegisteredAgain"}
    type("RegisteredAgain", (ProcessingStage,), dict(body))
    second = type("RegisteredAgain", (ProcessingStage,), dict(body))

    assert get_stage_class("RegisteredAgain") is second


def test_a_private_class_is_not_registered():
    class _Hidden(ProcessingStage):
        pass

    assert "_Hidden" not in stage_classes()


def test_an_unknown_name_is_an_error_with_the_nearest_one():
    with pytest.raises(ConfigError, match=r"^stage 'RegisteredOne': .*did you mean 'RegisteredOnce'\?$"):
        get_stage_class("RegisteredOne")
