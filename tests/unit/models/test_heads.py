"""Outputs to columns: labels in the order of their ids, edges as the models' cards have them."""

import numpy as np
import pytest

from gristmill.errors import ConfigError
from gristmill.models.heads import (
    CATEGORIES,
    DIMENSIONS,
    PromptHeads,
    aegis_label,
    cls_softmax,
    multi_head,
    poison_guard,
    regression,
    sigmoid,
    softmax,
)
from gristmill.models.known_configs import labels, max_length, pad_id, takes_longer


def array(*rows):
    return np.array(rows, dtype=np.float32)


def test_ten_does_not_sort_before_two():
    names = [f"label {number}" for number in range(11)]
    by_id = {"id2label": {str(number): name for number, name in sorted(enumerate(names), key=lambda p: str(p[0]))}}
    by_label = {"label2id": {name: number for number, name in sorted(enumerate(names), key=lambda p: str(p[0]))}}

    assert labels(by_id) == labels(by_label) == names


def test_labels_go_by_label2id_where_both_are_there():
    assert labels({"label2id": {"b": 0, "a": 1}, "id2label": {"0": "a", "1": "b"}}) == ["b", "a"]
    assert labels({}) == []


def test_the_likeliest_label_and_all_probabilities():
    found = cls_softmax(array([0, np.log(3)], [5, 5]), ["a", "b"])

    assert found.labels.tolist() == ["b", "a"]  # of equal ones the first
    np.testing.assert_allclose(found.probabilities, [[0.25, 0.75], [0.5, 0.5]])
    assert cls_softmax(np.empty((0, 2), np.float32), ["a", "b"]).labels.tolist() == []


def test_a_number_of_labels_that_does_not_fit_is_told():
    with pytest.raises(ConfigError, match=r"^Q: expected a label for each of 3 outputs; got 2 labels$"):
        cls_softmax(array([1, 2, 3]), ["a", "b"], who="Q")


def test_large_logits_do_not_overflow():
    assert softmax(array([1000, 0])).tolist() == [[1, 0]]
    assert sigmoid(array([1000, -1000, 0])).tolist() == [[1, 0, 0.5]]


@pytest.mark.parametrize(
    ("logit", "score", "whole", "label"),
    [
        (-1.0, 0.0, 0, "low_quality"),
        (0.5, 0.5, 0, "low_quality"),
        (1.5, 1.5, 2, "low_quality"),
        (2.4999, 2.4999, 2, "low_quality"),
        (2.5, 2.5, 2, "high_quality"),
        (3.5, 3.5, 4, "high_quality"),
        (7.25, 5.0, 5, "high_quality"),
    ],
)
def test_grades(logit, score, whole, label):
    found = regression(array([logit]))

    assert found.floats[0] == pytest.approx(score, abs=1e-6)
    assert (found.ints[0], found.labels[0]) == (whole, label)


def test_grades_of_nothing():
    assert [len(column) for column in regression(np.empty((0, 1), np.float32))] == [0, 0, 0]


CONFIG = {
    "task_type_map": {"10": "Other", "2": "Code", "0": "QA", "1": "Rewrite"},
    "weights_map": {
        "creativity_scope": [2, 1, 0],
        "reasoning": [0, 1],
        "contextual_knowledge": [0, 1],
        "number_of_few_shots": [0, 1, 2],
        "domain_knowledge": [3, 1, 2, 0],
        "no_label_reason": [0],
        "constraint_ct": [1, 0],
    },
    "divisor_map": dict.fromkeys(DIMENSIONS, 1) | {"creativity_scope": 2, "domain_knowledge": 3},
}


def of(*probabilities):
    with np.errstate(divide="ignore"):
        return np.log(array(probabilities))


def test_prompts_are_scored_as_on_the_card():
    outputs = [
        of(0.8, 0.05, 0.15, 1e-9),
        of(0.5, 0.25, 0.25),
        of(0.25, 0.75),
        of(0.5, 0.5),
        of(0.96, 0.04, 1e-9),
        of(0.25, 0.25, 0.25, 0.25),
        of(1.0),
        of(0.125, 0.875),
    ]
    found = {name: column.tolist() for name, column in multi_head(outputs, PromptHeads.of(CONFIG)).items()}

    assert found == {
        "task_type_1": ["QA"],
        "task_type_2": ["Code"],
        "task_type_prob": [0.8],
        "creativity_scope": [0.625],
        "reasoning": [0.75],
        "contextual_knowledge": [0.5],
        "number_of_few_shots": [0.0],  # 0.04 is below 0.05
        "domain_knowledge": [0.5],
        "no_label_reason": [0.0],
        "constraint_ct": [0.125],
        "prompt_complexity_score": [round(0.35 * 0.625 + 0.25 * 0.75 + 0.15 * 0.125 + 0.15 * 0.5 + 0.05 * 0.5, 5)],
    }


@pytest.mark.parametrize(("second", "name"), [(0.0994, "NA"), (0.0996, "Rewrite"), (0.1, "Rewrite")])
def test_an_unlikely_second_task_is_not_named(second, name):
    outputs = [of(1 - second, second, 0, 0), *(of(*[1] * len(CONFIG["weights_map"][each])) for each in DIMENSIONS)]

    assert multi_head(outputs, PromptHeads.of(CONFIG))["task_type_2"].tolist() == [name]


@pytest.mark.parametrize("lacking", ["task_type_map", "weights_map", "divisor_map"])
def test_a_config_without_a_map_is_told(lacking):
    with pytest.raises(ConfigError, match=rf"^P: expected a {lacking} in config\.json; got None$"):
        PromptHeads.of({key: value for key, value in CONFIG.items() if key != lacking}, who="P")


def test_poison_is_from_one_half_on():
    found = poison_guard(array([0.4999999], [0.5], [1.0]))

    assert found["is_poisoned"].tolist() == [False, True, True]
    assert found["instruction_data_guard_poisoning_score"].tolist() == [0.5, 0.5, 1.0]


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("safe", "safe"),
        (" safe\n", "safe"),
        ("unsafe\nO3", "O3"),
        ("unsafe\n O13 \nmore", "O13"),
        ("unsafe\nO14", "unknown"),
        ("unsafe\nO1,O3", "unknown"),
        ("unsafe", "unknown"),
        ("safety first", "unknown"),
        ("", "unknown"),
    ],
)
def test_what_aegis_says_becomes_a_label(answer, label):
    assert aegis_label(answer) == label
    assert len(CATEGORIES) == 13


@pytest.mark.parametrize(
    ("config", "length", "longer"),
    [
        ({"model_type": "bert", "max_position_embeddings": 512}, 512, False),
        ({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}, 512, False),
        ({"base_model": "microsoft/deberta-v3-base"}, 512, True),
        ({"model_type": "deberta-v2", "max_position_embeddings": 512, "relative_attention": False}, 512, False),
        ({}, 512, True),
    ],
)
def test_lengths_come_from_the_config(config, length, longer):
    assert (max_length(config), takes_longer(config), pad_id(config)) == (length, longer, config.get("pad_token_id", 0))
