"""Values in what a model says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.errors import ConfigError
from gristmill.stages.synthetic.answers import answer_parser, json_objects


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("4", 4),
        (" 0\n", 0),
        ("**Score: 4/5**", 4),
        ("Educational score: 3\nIt has 10 good lines.", 3),
        ("I give it 4 out of 5.", 4),
        ("On a scale of 0 to 5 this is a 2.", 2),
        ("0-5: 3", 3),
        ("3.0", 3),
        ("5 points, 5", 5),
        ("", None),
        ("none", None),
        ("3.5", None),
        ("-1", None),
        ("7", None),
        ("score 12", None),
        ("it is 3 or 4", None),
    ],
)
def test_an_integer_is_taken_where_it_is_clear_which_is_meant(answer, value):
    assert answer_parser("int:0-5", who="stage")(answer) == value


@given(st.integers(0, 20), st.sampled_from(["{}", "Score: {}", "{}/20", "**{}**", "rating is {}."]))
def test_a_score_is_found_in_any_of_its_forms(score, form):
    assert answer_parser("int:0-20", who="stage")(form.format(score)) == score


@pytest.mark.parametrize(
    ("spec", "answer", "value"),
    [
        ("json:score", '{"score": 3}', 3.0),
        ("json:score", '```json\n{"score": "2.5"}\n```', 2.5),
        ("json:score", 'I think {so}: {"score": 1} and {"score": 2}', 1.0),
        ("json:a.b", '{"a": {"b": 4}}', 4.0),
        ("json:score", '{"score": true}', None),
        ("json:score", '{"score": "high"}', None),
        ("json:score", '{"score": NaN}', None),
        ("json:score", '{"other": 1}', None),
        ("regex:label is (\\w+)", "the label is news.", "news"),
        ("regex:news|sport", "it is sport", "sport"),
        ("regex:x", "y", None),
    ],
)
def test_fields_and_patterns(spec, answer, value):
    assert answer_parser(spec, who="stage")(answer) == value


def test_the_type_of_the_column_is_known_without_an_answer():
    kinds = {spec: str(answer_parser(spec, who="stage").arrow_type) for spec in ("int:0-5", "json:score", "regex:(.*)")}
    assert kinds == {"int:0-5": "int64", "json:score": "double", "regex:(.*)": "string"}
    assert answer_parser("json:label", "text", who="stage")('{"label": "a"}') == "a"
    assert answer_parser("regex:(\\d+)", "int", who="stage")("n 12") == 12


@pytest.mark.parametrize("spec", ["", "int", "int:", "int:5-0", "int:a-b", "json:", "regex:", "regex:(", "yaml:x"])
def test_a_specification_that_means_nothing_is_refused(spec):
    with pytest.raises(ConfigError, match=r"^stage: expected"):
        answer_parser(spec, who="stage")


def test_a_hundred_thousand_braces_are_given_up_on():
    assert list(json_objects("{" * 100_000)) == []
    assert list(json_objects('{"a": ' * 50_000)) == []
