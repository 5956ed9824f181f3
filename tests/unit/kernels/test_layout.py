"""Kernels write nowhere but into the arrays they are given.

They get pointers without lengths, and the sizes in `layout` are what keeps them from ending the process. Here every
array a kernel is given lies between canaries, and texts are such that rooms are filled to the last place.
"""

import itertools
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from tests.heuristic_filters import FILTERS, HARD_TEXTS

from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.context import StageContext
from gristmill.stages.text.filters import Score
from gristmill.stages.text.judging.document_filter import has_column_form
from gristmill.stages.text.judging.judge import Judge
from gristmill.stages.text.rules import ApplyRules, C4Quality, FineWebQuality, GopherQuality, GopherRepetition
from gristmill.tasks import DocumentBatch

GUARD_BYTES = 1 << 16
CANARY = 0xA5


class Guards:
    """Takes the place of a call of a kernel: its arrays lie between canaries."""

    def __init__(self, call):
        self._call = call
        self.called = set()

    def __call__(self, kernel, arguments):
        name = kernel.name
        self.called.add(name)
        guarded = [given if isinstance(given, int) else self._between_canaries(given) for given in arguments]
        result = self._call(kernel, *(given if isinstance(given, int) else given[1] for given in guarded))
        for place, (given, own) in enumerate(zip(guarded, arguments, strict=True)):
            if isinstance(given, int):
                continue
            whole, view = given
            end = GUARD_BYTES + view.nbytes
            assert (whole[:GUARD_BYTES] == CANARY).all(), f"{name} writes before argument {place}"
            assert (whole[end:] == CANARY).all(), f"{name} writes behind argument {place}, of {own.size} numbers"
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
    """All kernels, between canaries."""
    guards = Guards(CompiledKernel.__call__)
    monkeypatch.setattr(CompiledKernel, "__call__", lambda kernel, *arguments: guards(kernel, arguments))
    return guards


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
    runner = Judge([Score(judges, [f"s{n}" for n in range(len(judges))]).steps()], small_bytes=0)
    texts = full_texts()
    for part in (texts, texts[::-1], *([text] for text in texts[-12:])):
        runner.run(DocumentBatch("b", pa.table({"text": part})), [StageContext()])

    assert {"count_classes", "count_words", "count_lines", "count_pieces", "count_ngrams"} <= guards.called
    assert {"count_urls", "count_paragraphs_with_phrases"} <= guards.called


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

    assert {"tokenize", "top_ngrams", "duplicate_ngrams", "count_line_shapes", "clean_lines"} <= guards.called


def test_sizes_are_known_without_the_compiler():
    modules = "gristmill.kernels.text.layout, gristmill.kernels.tokens.layout"
    script = f"import sys, {modules}; print([m for m in ('numba', 'llvmlite') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
