"""What servers answer, in all the shapes it comes in, and what they are sent."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.models.client.chat_format import Parsed, Question, encoded, parsed
from gristmill.models.client.llm_client import Answer, GenerationConfig
from gristmill.models.client.retry import Failure
from gristmill.models.client.transport import Response


def choice(content, **more):
    return {"message": {"role": "assistant", "content": content}, **more}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<html>It works!</html>", "not_json"),
        (b"", "not_json"),
        (b'{"choices": [{"mess', "not_json"),
        (b'"just a text"', "no_choice"),
        (b"[]", "no_choice"),
        (b'{"choices": []}', "no_choice"),
        (b'{"choices": null}', "no_choice"),
        (b'{"error": {"message": "overloaded"}}', "no_choice"),
        (json.dumps({"choices": [choice(None)]}).encode(), "null_content"),
        (json.dumps({"choices": [choice("one"), choice(None)]}).encode(), "null_content"),
        (json.dumps({"choices": [choice(["parts"])]}).encode(), "null_content"),
        (b'{"choices": ["text"]}', "null_content"),
    ],
)
def test_a_body_without_an_answer_is_a_failure_that_is_tried_again(body, kind):
    outcome = parsed(Response(200, body), streamed=False)

    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.is_retried) == (kind, True)


@pytest.mark.parametrize("status", [301, 400, 401, 429, 500])
def test_a_status_is_kept_with_the_end_of_what_was_said(status):
    outcome = parsed(Response(status, b"x" * 1000 + "é".encode(), 2.5), streamed=False)

    assert (outcome.kind, outcome.status, outcome.retry_after_s) == (str(status), status, 2.5)
    assert outcome.detail == "x" * 299 + "é"


@pytest.mark.parametrize("usage", [None, "none", {}, {"prompt_tokens": None}, {"prompt_tokens": -3}])
def test_an_answer_without_usable_counts_is_an_answer(usage):
    body = json.dumps({"choices": [choice("", finish_reason=None)], "usage": usage}).encode()

    assert parsed(Response(200, body), streamed=False) == Parsed((Answer(""),), "", 0, 0)


def stream(*events, done=True):
    lines = [f"data: {json.dumps(event)}" for event in events] + ["data: [DONE]"] * done
    return Response(200, "\n\n".join([": a comment", *lines, ""]).encode())


def test_a_stream_of_two_answers_is_joined_by_number():
    made = parsed(
        stream(
            {"model": "m-1", "choices": [{"index": 1, "delta": {"content": "b"}}]},
            {"choices": [{"index": 0, "delta": {"role": "assistant"}}, {"index": 0, "delta": {"content": "a"}}]},
            {"choices": [{"index": 1, "delta": {"content": "c"}, "finish_reason": "length"}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
        ),
        streamed=True,
    )
    assert made == Parsed((Answer("a"), Answer("bc", "length")), "m-1", 3, 2)


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (stream({"choices": [{"index": 0, "delta": {"content": "a"}}]}, done=False), "cut"),
        (stream({"error": {"message": "overloaded"}}), "no_choice"),
        (Response(200, b'{"choices": []}'), "not_json"),
        (Response(200, b"data: {cut"), "not_json"),
    ],
)
def test_a_stream_that_ends_before_its_answer_is_a_failure(response, kind):
    assert parsed(response, streamed=True).kind == kind


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["choices", "message", "content", "delta", "index", "usage", "text"]), inner)
    ),
)


@given(value=values, streamed=st.booleans())
def test_whatever_json_comes_is_an_answer_or_a_failure(value, streamed):
    body = json.dumps(value).encode()
    assert isinstance(
        parsed(Response(200, b"data: " + body if streamed else body), streamed=streamed), Parsed | Failure
    )


def question(content="q", **options):
    config = GenerationConfig(**options)
    return Question("http://h/v1", [{"role": "user", "content": content}], "m", None, config, 0)


def test_what_is_none_is_left_to_the_server_and_extra_fields_are_sent_as_they_are():
    extra = {"guided_json": {"b": 1, "a": 2}, "extra_body": {"min_p": 0.1}}
    sent = json.loads(question(top_k=None, seed=None, extra_kwargs=extra).body)

    assert sent == {
        "model": "m",
        "messages": [{"role": "user", "content": "q"}],
        "max_tokens": 2048,
        "n": 1,
        "temperature": 0.0,
        "top_p": 0.95,
        "guided_json": {"a": 2, "b": 1},
        "min_p": 0.1,
    }


def test_lone_surrogates_are_replaced_for_the_model():
    assert json.loads(encoded({"content": ["a\udc80b"]})) == {"content": ["a?b"]}


def test_every_parameter_is_part_of_the_key():
    variants = [{}, {"seed": 1}, {"temperature": 0.5}, {"stop": "x"}, {"n": 2}, {"extra_kwargs": {"x": 1}}]

    assert len({question(**options).key for options in variants} | {question("other").key}) == 7
    assert question(extra_kwargs={"a": 1, "b": 2}).key == question(extra_kwargs={"b": 2, "a": 1}).key
