"""Marks for translations."""

import pytest

from gristmill.stages.text.experimental.translation.faith_scores import FaithScores, parse_faith

ALL = '{"Fluency": 4, "Accuracy": 5, "Idiomaticity": 3, "Terminology": 0, "Handling_of_Format": 4}'


def test_the_average_is_of_the_marks_that_apply():
    scores = parse_faith(f"Here you are:\n```json\n{ALL}\n```")

    assert scores == FaithScores((4.0, 5.0, 3.0, 0.0, 4.0))
    assert scores.average == 4.0
    assert (scores.passes(4.0), scores.passes(4.1)) == (True, False)


@pytest.mark.parametrize(
    ("answer", "average"),
    [
        ('{"scores": {"fluency": "4", "handling of format": 2}}', 3.0),
        ('{"note": "{"} {"ACCURACY": 2.5}', 2.5),
        ('{"Fluency": 0}', None),
    ],
)
def test_names_and_wrappings_differ(answer, average):
    scores = parse_faith(answer)

    assert (scores.average, scores.parse_failed) == (average, False)


@pytest.mark.parametrize(
    "answer", ["", "good", "{}", "[4]", '{"Fluency": 6}', '{"Fluency": -1}', '{"Fluency": null}', '{"Fluency": "x"}']
)
def test_what_cannot_be_read_is_kept_and_marked(answer):
    scores = parse_faith(answer)

    assert scores.parse_failed
    assert scores.passes(5.0)
    assert scores.as_object()["average"] is None
