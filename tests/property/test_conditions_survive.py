"""Whatever is written as a condition is understood or refused in words: nothing else, and nothing is run."""

import random

import pyarrow as pa
import pytest
from tests.property.budget import SEEDS

from gristmill.errors import ConfigError
from gristmill.inspection.columns import kinds_of_schema
from gristmill.inspection.expression import parse

EACH = 20  # sources a seed: 4,000 in `make test`, 100,000 in `make test-nightly`
ROWS = [
    {"n": 1, "x": 0.5, "text": "alpha", "ok": True, "tags": ["a"], "meta": {"lang": "en"}},
    {"n": -7, "x": None, "text": "http", "ok": None, "tags": [], "meta": None},
]
TABLE = pa.Table.from_pylist(ROWS)
KINDS = kinds_of_schema(TABLE.schema)
RIGHT = (
    "n == 1", "-8 < n <= 1", "n < 1 or x > 2", "not ok", "x is None", "len(text) == 9", "'http' not in text",
    "contains(text, 'alp')", "'a' in tags", "n in (1, -7)", "x in [None, 3.0]", "meta.lang == 'en'",
    "n % 3 == 2 and n // 2 == -4", "(n + x) * 2 >= 1.5", "column('text') != 'b'",
)  # fmt: skip
PIECES = (
    *"()[]{}.,:;=<>!+-*/%~^&|@'\"\\`$?# \n\t\0\x1bé0_", "n", "x", "text", "ok", "tags", "meta.lang", "len", "contains",
    "column", "and", "or", "not", "in", "is", "None", "True", "lambda", "if", "else", "for", "await", "yield", "f'",
    "b'", "'''", "1", "2.5", "1e999", "0x", "9" * 30, "__class__", "__import__('os')", ":=", "**", "//", "<<", "...",
    "\ud800", "\u202e", "(" * 250, "not " * 60, "-" * 300, "[" * 90,
)  # fmt: skip


def random_source(chance: random.Random) -> str:
    """Pieces in any order, or a right condition with some of its characters changed."""
    if chance.random() < 0.4:
        return chance.choice(("", " ")).join(chance.choices(PIECES, k=chance.randint(1, 14)))
    text = list(chance.choice(RIGHT))
    for _ in range(chance.randint(0, 2)):
        text[chance.randrange(len(text))] = chance.choice(PIECES)
    return "".join(text)


@pytest.mark.slow
def test_any_text_is_a_condition_or_is_refused_in_words():
    accepted = refused = 0
    for seed in range(SEEDS):
        chance = random.Random(seed)
        for source in (random_source(chance) for _ in range(EACH)):
            try:
                found = parse(source, KINDS)
            except ConfigError:
                refused += 1
            else:
                accepted += 1
                assert len(found.mask(TABLE)) == len(ROWS), source

    # Both ways were taken often.
    assert min(accepted, refused) > EACH * SEEDS / 50
