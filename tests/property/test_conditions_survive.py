"""Whatever is written as a condition is understood or refused in words: nothing else, and nothing is run."""

import codecs
import contextlib
import os
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from tests.property.budget import SEEDS

from gristmill.errors import ConfigError
from gristmill.inspection.columns import kinds_of_schema
from gristmill.inspection.expression import parse

ROOT = Path(__file__).parents[2]
EACH = 500  # sources a seed: 100,000 in `make test`
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


def try_many() -> tuple[int, int]:
    """Parse and answer conditions of all seeds; return how many were understood and how many were refused in words."""
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
    return accepted, refused


def watch() -> list[str]:
    """From now on, to the end of this process, note whatever Python opens, imports, starts, connects to or runs.

    But for "compile": that is said of reading a syntax tree too, and what is compiled to be run has to be run, which is
    another event.
    """
    happened: list[str] = []
    sys.addaudithook(lambda event, arguments: None if event == "compile" else happened.append(f"{event} {arguments}"))
    return happened


def main() -> None:
    # Whatever is loaded when it is first used is loaded before the watch begins: also what finds the nearest name.
    codecs.lookup("unicode_escape")  # of Python's own parser
    for source in (*RIGHT, "txet == 'a'"):
        with contextlib.suppress(ConfigError):
            parse(source, KINDS).mask(TABLE)
    happened = watch()
    accepted, refused = try_many()
    assert happened == [], happened[:20]
    # Both ways were taken often, and the watch was awake.
    assert min(accepted, refused) > EACH * SEEDS / 50
    eval("1")
    Path(os.devnull).read_bytes()
    assert [event.split()[0] for event in happened] == ["exec", "open"]


@pytest.mark.slow
def test_any_text_is_a_condition_or_is_refused_in_words_and_nothing_is_run():
    """In a process of its own: what watches it cannot be taken away again."""
    command = [sys.executable, "-m", "tests.property.test_conditions_survive"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    main()
