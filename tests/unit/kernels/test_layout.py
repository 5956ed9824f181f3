"""Kernels write nowhere but into the arrays they are given.

They get pointers without lengths, and the sizes in `layout` are what keeps them from ending the process. Here every
array a kernel is given lies between canaries, and texts are such that rooms are filled to the last place.
"""

import importlib
import itertools
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from tests.heuristic_filters import FILTERS, HARD_TEXTS

from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.context import StageContext
from gristmill.stages.text.filters.column_filter import has_column_form
from gristmill.stages.text.filters.filter_runner import FilterRunner
from gristmill.stages.text.filters.step import Kind, Step
from gristmill.stages.text.rules import ApplyRules, C4Quality, FineWebQuality, GopherQuality, GopherRepetition
from gristmill.tasks import DocumentBatch

CALLERS = [
    "gristmill.stages.text.statistics.measure",
    "gristmill.stages.text.statistics.texts_of_lines",
    "gristmill.stages.text.rules.c4_lines",
    "gristmill.stages.text.rules.line_measures",
    "gristmill.stages.text.rules.token_measures",
    "gristmill.stages.text.rules.tokenizer",
    "gristmill.stages.text.io.reader.line_scan",
]
GUARD_BYTES = 1 << 16
CANARY = 0xA5


class Guarded:
    """A kernel whose arrays lie between canaries."""

    def __init__(self, kernel: CompiledKernel, name: str) -> None:
        self._kernel, self._name = kernel, name
        self.calls = 0

    def __call__(self, *arguments):
        self.calls += 1
        guarded = [given if isinstance(given, int) else self._between_canaries(given) for given in arguments]
        result = self._kernel(*(given if isinstance(given, int) else given[1] for given in guarded))
        for place, (given, own) in enumerate(zip(guarded, arguments, strict=True)):
            if isinstance(given, int):
                continue
            whole, view = given
            end = GUARD_BYTES + view.nbytes
            assert (whole[:GUARD_BYTES] == CANARY).all(), f"{self._name} writes before argument {place}"
            assert (whole[end:] == CANARY).all(), f"{self._name} writes behind argument {place}, of {own.size} numbers"
            if own.flags.writeable:
                own[...] = view
        return result

    @staticmethod
    def _between_canaries(array):
        whole = np.full(array.nbytes + 2 * GUARD_BYTES, CANARY, np.uint8)
        view = whole[GUARD_BYTES : GUARD_BYTES + array.nbytes].view(array.dtype).reshape(array.shape)
        view[...] = array
        return whole, view


@pytest.fixture
def guards(monkeypatch):
    """All kernels that text stages call, between canaries."""
    made = {}
    for module in map(importlib.import_module, CALLERS):
        for name, value in list(vars(module).items()):
            if isinstance(value, CompiledKernel):
                made[name] = Guarded(value, f"{module.__name__}.{name}")
                monkeypatch.setattr(module, name, made[name])
    return made


def different_words(number):
    letters = "bcdfghjklmnp"
    return [f"{a}o{b}u{c}e{d}" for a, b, c, d in itertools.islice(itertools.product(letters, repeat=4), number)]


def full_texts():
    """Texts whose words, lines and repetitions fill tables to where they are largest for what is in them."""
    many = different_words(4097)  # one more than a power of two: a table of four slots for each
    return [
        *HARD_TEXTS.values(),
        " ".join(many),
        " ".join(many[:2049] * 2),
        "\n".join(many[:1025]),
        "\n\n".join(many[:1025]),
        ". ".join(word.capitalize() for word in many[:600]) + ".",
        "a b " * (1 << 14) + "a",  # as many words as a text of its length can have
        "don't you'll can't I'm U.S. e.g. :-) " * 300,
        "x." * 3000,
        "'" * 3000,
        "https://example.org/" + "a" * 3000,
    ]


@pytest.mark.slow
def test_filters_write_only_where_they_may(guards):
    judges = [judge for judge in FILTERS if has_column_form(judge)]
    runner = FilterRunner([[Step(Kind.SCORE, judge, "text", f"s{n}") for n, judge in enumerate(judges)]], small_bytes=0)
    texts = full_texts()
    for part in (texts, texts[::-1], *([text] for text in texts[-12:])):
        runner.run(DocumentBatch("b", pa.table({"text": part})), [StageContext()])

    called = {name for name, guard in guards.items() if guard.calls}
    assert {"_count_classes", "_count_words", "_count_lines", "_count_pieces", "_count_ngrams"} <= called
    assert {"_count_urls", "_count_phrases"} <= called


@pytest.mark.slow
def test_rule_sets_write_only_where_they_may(guards):
    off = {"dup_para_frac": None, "dup_para_char_frac": None, "dup_line_frac": None, "dup_line_char_frac": None}
    sets = [
        GopherRepetition(**off, top_n_grams=[(2, 0.999), (3, 0.999)], dup_n_grams=[(5, 0.999), (6, 0.999)]),
        GopherQuality(min_doc_words=1, max_doc_words=10**6),
        FineWebQuality(),
        C4Quality(),
    ]
    texts = full_texts()
    for rules in sets:
        for part in (texts, texts[::-1]):
            ApplyRules(rules).process(DocumentBatch("b", pa.table({"text": part})))

    called = {name for name, guard in guards.items() if guard.calls}
    assert {"_tokenize", "_top_ngrams", "_duplicate_ngrams", "_count_line_shapes", "_clean_lines"} <= called


def test_sizes_are_known_without_the_compiler():
    modules = "gristmill.kernels.text.layout, gristmill.kernels.tokens.layout"
    script = f"import sys, {modules}; print([m for m in ('numba', 'llvmlite') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
