"""Stage classes are found by name; two of one name are an error."""

import pytest

from gristmill.config.catalog import find_class
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


@pytest.fixture
def namesake():
    """A user's class that is called like one of ours, for the time of a test."""
    from gristmill.stages import registry
    from gristmill.stages.text.modules import AddId

    yield type("AddId", (ProcessingStage,), {"__module__": "a_users_script"}), AddId
    del registry._NAMESAKES["AddId"]


def test_a_user_may_call_a_stage_like_one_of_ours(namesake):
    _, ours = namesake

    assert stage_classes()["AddId"] is ours


def test_a_recipe_has_to_say_which_of_two_it_means(namesake):
    theirs, _ = namesake

    for find in (get_stage_class, lambda name: find_class(name, who="recipe")):
        with pytest.raises(ConfigError, match=r"say gristmill\.stages\.text\S*\.AddId or a_users_script\.AddId$"):
            find("AddId")
    assert find_class("a_users_script.AddId", who="recipe").__module__ == theirs.__module__
