"""Texts lose their secrets and nothing else."""

import pytest

from gristmill.errors import ConfigError, NoInputError, ReadError
from gristmill.secrets import (
    has_secrets,
    is_secret,
    remember,
    remember_those_of,
    without_secrets,
    without_url_secrets,
)
from gristmill.stages.context import Quarantined, StageContext
from gristmill.stages.io.partitions import FileNames
from gristmill.workflows.thresholds.scored import digest_of_inputs


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:pw@host/a", "https://***@host/a"),
        ("https://ghp_token@host/a", "https://***@host/a"),
        ("s3://KEY:se/cret@bucket/a@b", "s3://***@bucket/a@b"),
        ("s3://KEY:se%2Fcret@bucket/a", "s3://***@bucket/a"),
        ("ftp://me:p@ss@host/a b", "ftp://***@host/a b"),
        ("https://h/a.jsonl?X-Amz-Date=1&X-Amz-Signature=abc&X-Amz-Credential=k", "https://h/a.jsonl?***"),
        ("https://h/a?sv=2020&sig=abc", "https://h/a?***"),
        ("https://h/a?page=2&access_token=abc#x", "https://h/a?page=2&access_token=***#x"),
        ("no 'https://me:pw@h/a', but \"http://u:p@h\".", "no 'https://***@h/a', but \"http://***@h\"."),
        ("Authorization: Bearer abcdefghijk", "Authorization: Bearer ***"),
    ],
)
def test_passwords_and_signatures_are_taken_out(text, shown):
    assert without_secrets(text) == shown
    assert without_secrets(shown) == shown
    assert has_secrets(text) == (text != shown and "Bearer" not in text)  # which no URL holds


@pytest.mark.parametrize(
    "text",
    [
        "abfs://container@account.dfs.core.windows.net/a",
        "hf://datasets/me/repo@main/a.parquet",
        "s3://bucket/a?versionId=3",
        "https://host:8080/a@b?page=2",
        "me@host.org said 3:4 @ 5",
        "Basic English",
        "a token, a key and a password",
    ],
)
def test_what_is_no_secret_stays(text):
    assert without_secrets(text) == text


SECRET = (
    "hf_token token api_key apikey aws_secret_access_key password db_password storage_options session_token "
    "id_generator_storage_options client_secret account_key connection_string aws_access_key_id"
)
NOT_SECRET = (
    "min_tokens tokenizer pad_token key keys hash_key id_field author token_field password_count eos_token secretary"
)


@pytest.mark.parametrize("name", SECRET.split())
def test_a_name_of_a_secret_is_known(name):
    assert is_secret(name)


@pytest.mark.parametrize("name", NOT_SECRET.split())
def test_a_parameter_that_says_what_is_done_is_no_secret(name):
    assert not is_secret(name)


def test_what_was_given_as_a_secret_is_recognised_in_any_text():
    remember({"key": "K3Y-of-test", "anon": False, "client_kwargs": {"aws_session_token": "T0KEN-of-test"}})
    remember({"headers": {"X-Auth": "AUTH-of-test"}, "endpoint_url": "http://127.0.0.1:9000", "secret": "abc"})

    text = "K3Y-of-test T0KEN-of-test AUTH-of-test http://127.0.0.1:9000 abc"
    assert without_secrets(text) == "*** *** *** http://127.0.0.1:9000 abc"


def test_names_digests_and_sources_do_not_depend_on_the_secrets_that_were_seen():
    files = ["s3://corpus/unlikely-key-7/a.jsonl", "s3://corpus/b.jsonl"]

    def derived():
        context = StageContext()
        context.quarantine(Quarantined(error="unlikely-key-7", kind="error", source=files[0]))
        (record,) = context.quarantined
        names = list(FileNames(files))
        return names, digest_of_inputs([(path, 1, "v") for path in files]), record.source, has_secrets(files[0])

    before = derived()
    remember({"key": "unlikely-key-7"})

    assert "unlikely-key-7" not in without_secrets(files[0])
    assert derived() == before
    assert before[0] == ["unlikely-key-7__a", "b"]
    assert without_url_secrets("s3://k:pw@b/unlikely-key-7") == "s3://***@b/unlikely-key-7"


class _Holder:
    def __init__(self, **values):
        self.__dict__.update(values)


def test_the_secrets_a_stage_holds_are_found_however_deep():
    judge = _Holder(hf_token="T0KEN-in-judge", name="ordinary")
    options = {"storage_options": {"secret": "S3CRET-in-options", "region": "ordinary"}}
    remember_those_of(_Holder(judges=[judge], read_kwargs=options, password="P4SSWORD", title="ordinary"))

    assert without_secrets("T0KEN-in-judge S3CRET-in-options P4SSWORD ordinary") == "*** *** *** ordinary"


def test_a_holder_that_holds_itself_is_searched_and_left():
    holder = _Holder()
    holder.itself = [holder]

    remember_those_of(holder)


@pytest.mark.parametrize("kind", [ConfigError, NoInputError, ReadError])
def test_no_error_of_ours_repeats_a_password(kind):
    assert str(kind("in: expected a file at 'https://me:pw@host/a'")) == "in: expected a file at 'https://***@host/a'"


@pytest.mark.timeout(60)
def test_a_long_word_beside_a_url_takes_no_longer_than_other_text():
    """It took a time that grew with the square of the word: hours for an error that quotes a picture."""
    word = "x" * 1_000_000

    assert without_secrets(f"{word} https://me:pw@host/a {word}") == f"{word} https://***@host/a {word}"
