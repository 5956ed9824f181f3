"""Kernels say how long their arrays must be, refuse shorter ones, and write nowhere but into what they asked for.

Every array a kernel is given is cut here to the length that is stated beside the kernel, and lies between canaries; the
texts are such that rooms are filled to the last place. A size and a kernel that disagree break a test, not a process.
Each call is made with the code for every kind of processor that this machine has: the bytes they leave are the same.
"""

import importlib
import inspect
import itertools
import json
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.heuristic_filters import FILTERS, HARD_TEXTS

import gristmill
from gristmill.deduplication.candidates import verify
from gristmill.deduplication.exact_stages import hash_texts, hash_tokens
from gristmill.deduplication.sketches import Shingling
from gristmill.errors import EngineBug
from gristmill.kernels.dedup.banding import Banding
from gristmill.kernels.tally_layout import ALL, KEPT
from gristmill.kernels.targets import host_targets
from gristmill.kernels.text import layout
from gristmill.kernels.text.layout import WORD_COLUMNS
from gristmill.models.fasttext_file import FastTextSettings
from gristmill.models.fasttext_model import bundled_model
from gristmill.stages.compiled_kernel import KERNELS_VARIABLE, CompiledKernel, Fixed
from gristmill.stages.context import StageContext
from gristmill.stages.text.decontamination.ngrams import find_ngrams, hash_ngrams
from gristmill.stages.text.filters import Score
from gristmill.stages.text.html.language_model import LanguageModel
from gristmill.stages.text.io.reader.jsonl import scan_lines
from gristmill.stages.text.judging.document_filter import has_column_form
from gristmill.stages.text.judging.judge import Judge
from gristmill.stages.text.judging.statistics import (
    NUM_CHARS,
    TextColumn,
    measure,
    short_lines,
    texts_of_lines,
    top_ngram_chars,
)
from gristmill.stages.text.judging.tables import letters
from gristmill.stages.text.quality.fasttext_classifier import RowFinder, Rows, Vocabulary, train_fasttext
from gristmill.stages.text.rules import ApplyRules, C4Quality, FineWebQuality, GopherQuality, GopherRepetition
from gristmill.tasks import DocumentBatch
from gristmill.tasks.json_lines import JsonLines
from gristmill.worker.measuring import Counter, Gone, Texts, Values, Windows

GUARD_BYTES = 1 << 16
# Tables that say themselves where their parts are: what a kernel states is the head, and they are left whole.
TABLES = {"classes", "listed", "phrases", "table", "words"}
CANARY = 0xA5


def kernel_names():
    """The module and name of every kernel that some stage calls."""
    call = re.compile(r'CompiledKernel\("([\w.]+)", "(\w+)"\)')
    sources = Path(gristmill.__file__).parent.rglob("*.py")
    texts = [path.read_text(encoding="utf-8") for path in sources if path.name != "compiled_kernel.py"]
    found = {match.groups() for text in texts for match in call.finditer(text)}
    return sorted(found)


def function_of(module, name):
    return getattr(importlib.import_module(f"gristmill.kernels.{module}"), name)


def arrays_of(function):
    return [name for name, given in inspect.signature(function).parameters.items() if given.annotation is not int]


def least_size(function, array, values):
    """What is stated about an array, in plain Python, for these arguments."""
    stated = function.least_sizes[array]
    stated = getattr(stated, "py_func", stated)
    plain = {name: getattr(value, "py_func", value) for name, value in stated.__globals__.items()}
    in_python = types.FunctionType(stated.__code__, plain)
    given = [values[name] for name in inspect.signature(stated).parameters]
    return int(in_python(*(value if isinstance(value, int) else value.reshape(-1) for value in given)))


class Guards:
    """Takes the place of a call of a kernel: its arrays are as long as it asked for, and lie between canaries."""

    def __init__(self, call, monkeypatch):
        self._call = call
        self._functions = {name: function_of(module, name) for module, name in kernel_names()}
        self._monkeypatch = monkeypatch
        self.called = set()

    def __call__(self, kernel, arguments):
        function = self._functions[kernel.name]
        self.called.add(kernel.name)
        given = [each.array if isinstance(each, Fixed) else each for each in arguments]
        values = dict(zip(inspect.signature(function).parameters, given, strict=True))
        (result, views), *others = (self._outcome(target, kernel, function, values) for target in host_targets())
        for again, found in others:
            assert again == result, f"{kernel.name} depends on the processor"
            differing = [name for name, view in views.items() if view.tobytes() != found[name].tobytes()]
            assert not differing, f"{kernel.name}: what it leaves in {differing} depends on the processor"
        for name, view in views.items():
            if values[name].flags.writeable:
                values[name].reshape(-1)[: view.size] = view
        return result

    def _outcome(self, target, kernel, function, values):
        passed, guarded = dict(values), {}
        for name in function.least_sizes:
            size = None if name in TABLES else least_size(function, name, values)
            flat = values[name].reshape(-1)[:size]
            guarded[name] = self._between_canaries(flat)
            passed[name] = guarded[name][1]
        self._monkeypatch.setenv(KERNELS_VARIABLE, target.name)
        result = self._call(kernel, *passed.values())
        self._monkeypatch.delenv(KERNELS_VARIABLE)
        for name, (whole, view) in guarded.items():
            end = GUARD_BYTES + view.nbytes
            assert (whole[:GUARD_BYTES] == CANARY).all(), f"{kernel.name} writes before {name!r}"
            assert (whole[end:] == CANARY).all(), f"{kernel.name} writes behind {name!r}, of {view.size} numbers"
        return result, {name: view for name, (_, view) in guarded.items()}

    @staticmethod
    def _between_canaries(array):
        whole = np.full(array.nbytes + 2 * GUARD_BYTES, CANARY, np.uint8)
        view = whole[GUARD_BYTES : GUARD_BYTES + array.nbytes].view(array.dtype)
        view[...] = array
        return whole, view


@pytest.fixture
def guards(monkeypatch):
    """All kernels, between canaries."""
    guards = Guards(CompiledKernel.__call__, monkeypatch)
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
    assert {"count_listed", "count_sentences"} <= guards.called


@pytest.mark.slow
def test_deduplication_writes_only_where_it_may(guards):
    texts = TextColumn.of(pa.chunked_array([full_texts()]))
    for by_word, length in ((True, 3), (False, 5)):
        shingling = Shingling(by_word, length)
        shingling.sketch(texts, Banding(4, 3), 1)
        values, bounds = shingling.sets(texts)
    hash_tokens(texts)
    hash_texts(texts)
    hashes, _ = hash_ngrams(texts, 3)
    find_ngrams(texts, 3, np.unique(hashes))
    buckets = np.arange(2 * len(texts)).reshape(-1, 2) // 6
    verify(buckets, int(buckets.max()) + 1, (values, bounds), np.zeros(len(texts), np.bool_), 0.5)

    assert guards.called == {
        *("sketch", "shingle_sets", "hash_tokens", "hash_long_texts", "ngram_hashes", "overlaps", "verify"),
    }


@pytest.mark.slow
def test_classifiers_write_only_where_they_may(guards):
    texts = TextColumn.of(pa.chunked_array([full_texts()]))
    settings = FastTextSettings(dim=3, epochs=1, buckets=100, min_count=1)
    vocabulary = Vocabulary(settings.min_count)
    vocabulary.add(texts)
    words, counts = vocabulary.words()
    found = list(RowFinder(words, settings.buckets).rows(texts))
    stops = np.cumsum(np.concatenate([lengths for _, lengths in found]))
    rows = Rows(np.concatenate([ids for ids, _ in found]), np.append(0, stops[:-1]), stops)
    positive = np.arange(len(texts)) % 2 == 0
    train_fasttext(words, counts, rows, positive, np.arange(len(texts)), settings, seed=1).margins(texts)

    assert guards.called == {"find_words", "fill_table", "find_rows", "train", "score_texts"}


@pytest.mark.slow
def test_a_model_of_languages_writes_only_where_it_may(guards):
    model = LanguageModel(Path(bundled_model()))
    for text in full_texts():
        model.predict(text)

    assert guards.called == {"score_text"}


@pytest.mark.slow
def test_what_reads_counts_and_joins_writes_only_where_it_may(guards):
    lines = b"".join(json.dumps({"id": n, "text": text}).encode() + b"\n" for n, text in enumerate(full_texts()))
    texts = TextColumn.of(pa.chunked_array([full_texts()]))
    measure(texts, [NUM_CHARS])
    measure(texts, [short_lines(30)])
    keys, rows = np.zeros(len(texts), np.uint64), np.arange(len(texts))
    values, offsets = np.linspace(-3, 1e6, 3 * len(texts)), np.zeros(3, np.int64)
    bounds = np.array([0.1, 7e5, np.nan, 0.0, np.nan, np.nan])
    for given in (ALL, 0):
        num_last = int((values[len(texts) : 2 * len(texts)] > 5).sum())
        firsts = np.array([0, len(texts), 2 * len(texts), 2 * len(texts) + num_last])
        own = values[: firsts[-1]]
        laid = Values(own, own > 5, firsts, bounds, np.array([ALL, given, KEPT]), offsets, rows)
        gone = Gone(rows, np.array([0, 3, len(texts)]))
        Counter().count(laid, gone, keys, Windows.empty(3, 2), texts=Texts(texts.data, texts.starts, texts.stops))
    parents = np.arange(9, dtype=np.int32)
    CompiledKernel("dedup.union_find", "join_equal")(parents, np.repeat(keys[:3], 3), parents[::-1].copy(), 9)
    CompiledKernel("dedup.union_find", "flatten")(parents, 9)

    assert len(scan_lines(lines, ["text", "id"])) == len(texts)
    assert guards.called == {
        *("scan_objects", "count_characters", "count_filled_lines", "count_measures"),
        *("join_equal", "flatten"),
    }


@pytest.mark.slow
def test_texts_of_lines_are_written_only_where_they_may(guards):
    lines = [json.dumps({"id": n, "text": text}).encode() + b"\n" for n, text in enumerate(full_texts())]
    texts = texts_of_lines(JsonLines(pa.array(lines, pa.large_binary())), "text")

    assert guards.called == {"unescape_strings"}
    assert len(texts) == len(lines)


# Where the bytes of JSON texts are is anywhere in memory, counted from an array of one byte.
NOT_STATED = {("unescape_strings", "data")}


@pytest.mark.parametrize(("module", "name"), kernel_names())
def test_a_kernel_says_how_long_each_of_its_arrays_must_be(module, name):
    function = function_of(module, name)

    missing = {(name, array) for array in arrays_of(function) if array not in function.least_sizes}
    assert missing <= NOT_STATED
    assert set(function.least_sizes) <= set(arrays_of(function))


@pytest.mark.slow
@pytest.mark.parametrize("array", ["data", "starts", "stops", "letters", "counts"])
def test_an_array_that_is_too_short_is_named_and_nothing_is_touched(array):
    counts = np.zeros((2, WORD_COLUMNS), np.int64)
    texts = TextColumn.of(pa.chunked_array([["one two", "three " * 40]]))
    given = {"data": texts.data, "starts": texts.starts, "stops": texts.stops, "letters": letters(), "counts": counts}
    given[array] = given[array].reshape(-1)[: texts.stops[-1] - 1 if array == "data" else -1]
    kernel = CompiledKernel("text.words", "count_words")

    with pytest.raises(EngineBug, match=f"^count_words: expected a longer array for '{array}'; got "):
        kernel(given["data"], given["starts"], given["stops"], 2, given["letters"], given["counts"])
    assert not counts.any()


@pytest.mark.slow
def test_an_array_whose_address_is_known_is_used_and_checked_like_any_other():
    texts = TextColumn.of(pa.chunked_array([["one two", "three " * 40]]))
    kernel, counts = CompiledKernel("text.words", "count_words"), np.zeros(2 * WORD_COLUMNS, np.int64)
    fixed, plain = Fixed(counts.copy()), counts.copy()

    kernel(texts.data, texts.starts, texts.stops, 2, letters(), plain)
    kernel(texts.data, texts.starts, texts.stops, 2, letters(), fixed)
    assert plain.any()
    assert fixed.array.tolist() == plain.tolist()
    with pytest.raises(EngineBug, match=r"^count_words: expected a longer array for 'counts'; got "):
        kernel(texts.data, texts.starts, texts.stops, 2, letters(), Fixed(counts[:-1]))
    with pytest.raises(EngineBug, match=r"^count_words: expected .*; got .*int32\*$"):
        kernel(texts.data, texts.starts, texts.stops, 2, letters(), Fixed(counts.astype(np.int32)))


@pytest.mark.slow
def test_a_size_that_is_wrong_is_an_error_and_not_the_end_of_the_process(monkeypatch):
    monkeypatch.setattr(layout, "NGRAM_SCRATCH", layout.NGRAM_SCRATCH - 5)
    texts = TextColumn.of(pa.chunked_array([[" ".join(different_words(12_000))]]))

    with pytest.raises(EngineBug, match=r"^count_ngrams: expected a longer array for 'scratch'"):
        measure(texts, [top_ngram_chars(2)])


def test_sizes_are_known_without_the_compiler():
    modules = "gristmill.kernels.text.layout, gristmill.kernels.tokens.layout"
    script = f"import sys, {modules}; print([m for m in ('numba', 'llvmlite') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
