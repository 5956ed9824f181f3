"""Personal data is found by its form and its check digits, and replaced as asked."""

import hashlib
import ipaddress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.errors import ConfigError
from gristmill.stages.text.modifiers.pii import PiiModifier
from gristmill.stages.text.modifiers.pii.entities import ENTITIES

FOUND = {
    "EMAIL_ADDRESS": ["ann@example.org", "a.b+c_d@mail.example.co.uk", "o'neil@example.museum", "1@2.de"],
    "IP_ADDRESS": [
        *("192.168.0.1", "8.8.8.8", "1.2.3.40"),
        *("2001:db8::1", "::1", "fe80::1:2", "1:2:3:4:5:6:7:8", "::ffff:10.0.0.1"),
    ],
    "PHONE_NUMBER": [
        *("+1 (212) 555-0123", "+49 30 1234567", "+442071838750", "0049 30 1234567", "(212) 555-0123", "212-555-0123"),
        "212.555.0123",
    ],
    "CREDIT_CARD": ["4111 1111 1111 1111", "4111-1111-1111-1111", "378282246310005", "5555555555554444"],
    "IBAN_CODE": [
        "DE89 3704 0044 0532 0130 00",
        "GB82WEST12345698765432",
        "NO9386011117947",
        "FR1420041010050500013M02606",
    ],
    "US_SSN": ["078-05-1120"],
    "API_KEY": [
        *("AKIAIOSFODNN7EXAMPLE", "ghp_" + "a1" * 18, "xoxb-1234567890-abc", "AIza" + "b" * 35, "sk_live_" + "c" * 24),
        *("sk-" + "d" * 30, "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2Q", "hf_" + "e" * 34),
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow/+=\n-----END RSA PRIVATE KEY-----",
    ],
}
OTHERS = [
    *(
        "ann@example",
        "@handle",
        "a@b",
        "..@example.org",
        "1.2.3.4.5",
        "1.2.3.4",
        "2.0.1.1",
        "256.1.1.1",
        "10:30:00",
        "std::string",
        "a::b",
        "::",
    ),
    *("4111 1111 1111 1112", "0000 0000 0000 0000", "12345678901234567890", "978-3-16-148410-0", "3.14159265358979"),
    *("DE88 3704 0044 0532 0130 00", "XX89 3704 0044 0532 0130 00", "000-12-3456", "666-12-3456", "900-12-3456"),
    *("2019-2020", "1234567", "1,000,000.00", "+5", "task-based-" + "x" * 30, "AKIASHORT", "2024-01-31 1500"),
]


@pytest.mark.parametrize(("entity", "text"), [(entity, text) for entity, texts in FOUND.items() for text in texts])
@pytest.mark.parametrize("around", ["{}", "see {}, please", "({})\n", "é{}é", "{}\x00"])
def test_what_has_the_form_is_found(entity, text, around):
    assert PiiModifier().modify_document(around.format(text)) == around.format(f"<{entity}>")


@pytest.mark.parametrize("text", OTHERS)
def test_what_only_looks_like_it_stays(text):
    assert PiiModifier().modify_document(f"it is {text} here") == f"it is {text} here"


def test_a_card_is_found_before_other_numbers():
    assert PiiModifier().modify_document("4111 1111 1111 1111 123") == "<CREDIT_CARD> 123"


def test_an_account_is_found_before_other_words():
    text = "DE89 3704 0044 0532 0130 00 BIC and more"

    assert PiiModifier().modify_document(text) == "<IBAN_CODE> BIC and more"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "to <EMAIL_ADDRESS>."),
        ({"new_value": "someone"}, "to someone."),
        ({"anonymize_action": "redact"}, "to ."),
        ({"anonymize_action": "mask"}, "to ********."),
        ({"anonymize_action": "mask", "masking_char": "#", "chars_to_mask": 3}, "to ###x.org."),
        ({"anonymize_action": "mask", "chars_to_mask": 4, "from_end": True}, "to a@xx****."),
        ({"anonymize_action": "mask", "chars_to_mask": 99}, "to ********."),
        ({"anonymize_action": "hash"}, f"to {hashlib.sha256(b'a@xx.org').hexdigest()}."),
        (
            {"anonymize_action": "hash", "salt": "s", "hash_type": "sha512"},
            f"to {hashlib.sha512(b'sa@xx.org').hexdigest()}.",
        ),
    ],
    ids=str,
)
def test_a_finding_becomes_what_was_asked(options, expected):
    assert PiiModifier(**options).modify_document("to a@xx.org.") == expected


def test_only_the_kinds_asked_for_are_looked_for():
    text = "a@xx.org and 8.8.8.8"

    assert PiiModifier(supported_entities=["IP_ADDRESS"]).modify_document(text) == "a@xx.org and <IP_ADDRESS>"


pieces = st.sampled_from([text for texts in FOUND.values() for text in texts] + [*OTHERS, " ", ",", "-", "x", "7", "é"])


@given(texts=st.lists(st.lists(pieces, max_size=4).map("".join), max_size=4))
def test_every_text_that_would_change_is_a_candidate(texts):
    modifier = PiiModifier()
    candidates = modifier.find_candidates(pa.chunked_array([pa.array(texts, pa.string())]))

    assert all(may or modifier.modify_document(text) == text for may, text in zip(candidates, texts, strict=True))


@pytest.mark.parametrize("entity", ENTITIES)
@given(texts=st.lists(pieces, max_size=4).map("".join))
def test_a_hint_misses_nothing(entity, texts):
    modifier = PiiModifier(supported_entities=[entity])
    candidates = modifier.find_candidates(pa.chunked_array([pa.array([texts], pa.string())]))

    assert candidates[0] or modifier.modify_document(texts) == texts


@given(number=st.integers(0, 2**128 - 1), zeros=st.integers(0, 2**8 - 1))
def test_every_way_to_write_an_address_is_found(number, zeros):
    groups = [0 if zeros >> i & 1 else number >> 16 * i & 0xFFFF for i in range(8)]
    address = ipaddress.IPv6Address(sum(group << 16 * i for i, group in enumerate(groups)))
    text = f"at {address} now"
    plausible = any(c.isdigit() for c in str(address)) and (str(address)[0] == ":" or len(str(address)) > 5)
    candidates = PiiModifier().find_candidates(pa.chunked_array([pa.array([text])]))

    assert PiiModifier().modify_document(text) == ("at <IP_ADDRESS> now" if plausible else text)
    assert candidates[0] or not plausible


UNITS = [
    "a",
    "7",
    "+1",
    "+111111111111111111 ",
    "00",
    "1:",
    "::",
    "a@",
    "DE89 3704 ",
    "eyJ",
    "sk-",
    "4111 ",
    "-----BEGIN ",
    "(2",
]


@pytest.mark.parametrize("unit", UNITS)
def test_long_texts_take_no_longer_than_others(unit):
    text = unit * (500_000 // len(unit))

    assert isinstance(PiiModifier().modify_document(text), str)  # or the test times out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"supported_entities": ["EMAIL"]}, "got 'EMAIL'; did you mean 'EMAIL_ADDRESS'"),
        ({"anonymize_action": "masks"}, "expected anonymize_action to be one of .*; got 'masks'; did you mean 'mask'"),
        ({"hash_type": "md5"}, "expected hash_type to be one of .*; got 'md5'"),
    ],
)
def test_a_mistake_is_named(options, message):
    with pytest.raises(ConfigError, match=message):
        PiiModifier(**options)
