"""Megatron files hold every document's tokens, say where each is, and are joined without losing a bound.

The reader below was written from the description of the format, and shares nothing with the writer.
"""

import json
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.errors import ConfigError, NoInputError
from gristmill.kernels.tokens.megatron_index import code_for, decode_header, encode_index
from gristmill.pipeline import Pipeline
from gristmill.stages.context import StageContext
from gristmill.stages.text.io import JsonlReader, MegatronTokenizerWriter
from gristmill.stages.text.io.writer.megatron import merge_file_prefixes
from gristmill.tasks import DocumentBatch
from gristmill.testing.tiny_models import write_tiny_tokenizer

WORDS = ["alpha", "beta", "gamma", "delta"]
FIRST = 4  # behind the special tokens


def read_pair(prefix):
    """Read the documents of two files as lists of token ids."""
    index = Path(f"{prefix}.idx").read_bytes()
    assert index[:9] == b"MMIDIDX\0\0"
    version, code, sequences, bounds = struct.unpack_from("<QBQQ", index, 9)
    assert version == 1
    assert len(index) == 34 + 20 * sequences + 8
    place = 34
    lengths = struct.unpack_from(f"<{sequences}i", index, place)
    offsets = struct.unpack_from(f"<{sequences}q", index, place + 4 * sequences)
    documents = struct.unpack_from(f"<{bounds}q", index, place + 12 * sequences)
    assert documents == tuple(range(sequences + 1))
    letter, width = {8: ("H", 2), 4: ("i", 4)}[code]
    tokens = Path(f"{prefix}.bin").read_bytes()
    assert len(tokens) == sum(lengths) * width
    pairs = zip(lengths, offsets, strict=True)
    return [list(struct.unpack_from(f"<{length}{letter}", tokens, offset)) for length, offset in pairs], width


@pytest.fixture
def tokenizer(tmp_path):
    directory = tmp_path / "tokenizer"
    directory.mkdir()
    write_tiny_tokenizer(directory, WORDS)
    return directory


def with_end(tokenizer):
    settings = json.loads((tokenizer / "tokenizer_config.json").read_text())
    (tokenizer / "tokenizer_config.json").write_text(json.dumps(settings | {"eos_token": "[SEP]"}))
    return tokenizer


def batch_of(*texts, task_id="part-0"):
    batch = DocumentBatch("d", pa.table({"text": pa.array(texts, pa.string())}))
    batch.task_id = task_id
    return batch


def test_every_document_has_its_tokens_without_special_ones(tmp_path, tokenizer):
    writer = MegatronTokenizerWriter(str(tmp_path / "out"), model_identifier=str(tokenizer))
    writer.process(batch_of("alpha beta", "", None, "delta", "alpha unheard"))

    assert read_pair(tmp_path / "out/part-0") == ([[4, 5], [], [], [7], [4, 1]], 2)


def test_the_end_of_text_stands_behind_each_document_also_an_empty_one(tmp_path, tokenizer):
    writer = MegatronTokenizerWriter(
        str(tmp_path / "out"), model_identifier=str(with_end(tokenizer)), append_eod=True, tokenization_batch_size=2
    )
    writer.process(batch_of("alpha", "", "beta gamma"))

    assert read_pair(tmp_path / "out/part-0")[0] == [[4, 3], [3], [5, 6, 3]]


def test_a_tokenizer_without_an_end_of_text_is_refused_before_a_run(tmp_path, tokenizer):
    (tmp_path / "in.jsonl").write_text('{"text": "alpha"}\n')
    writer = MegatronTokenizerWriter(str(tmp_path / "out"), model_identifier=str(tokenizer), append_eod=True)
    with pytest.raises(ConfigError, match="expected a tokenizer with an end-of-text token for append_eod"):
        Pipeline("p", stages=[JsonlReader(str(tmp_path / "in.jsonl")), writer]).run(quiet=True)
    assert not (tmp_path / "out").exists()


def test_a_batch_without_documents_gives_two_valid_files(tmp_path, tokenizer):
    writer = MegatronTokenizerWriter(str(tmp_path / "out"), model_identifier=str(tokenizer))
    writer.process(batch_of())

    assert read_pair(tmp_path / "out/part-0") == ([], 2)


@pytest.mark.parametrize(("entries", "width"), [(65_536, 2), (65_537, 4)])
def test_ids_beyond_two_bytes_take_four_added_tokens_included(tmp_path, entries, width):
    """The last id is a token that was added to the vocabulary, not one of the model's own."""
    words = [f"w{number}" for number in range(entries - FIRST - 1)]
    write_tiny_tokenizer(tmp_path, words)
    document = json.loads((tmp_path / "tokenizer.json").read_text())
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    document["added_tokens"].append({"id": entries - 1, "content": "[LAST]", **flags})
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    MegatronTokenizerWriter(str(tmp_path / "out"), model_identifier=str(tmp_path)).process(batch_of("[LAST] w0"))

    assert read_pair(tmp_path / "out/part-0") == ([[entries - 1, FIRST]], width)


def test_inside_a_run_both_files_wait_and_count_their_documents_once(tmp_path, tokenizer):
    writer = MegatronTokenizerWriter(str(tmp_path), model_identifier=str(tokenizer))
    writer.context = StageContext(session="s", attempt="0")
    (tmp_path / ".gristmill/tmp/s").mkdir(parents=True)
    staged = writer.process(batch_of("alpha", "beta")).staged

    assert [Path(each.final).name for each in staged] == ["part-0.bin", "part-0.idx"]
    assert [each.num_documents for each in staged] == [2, 0]
    assert not any(Path(each.final).exists() for each in staged)


@pytest.mark.slow
def test_a_pipeline_writes_the_same_files_with_one_and_two_workers_and_its_books_balance(tmp_path, tokenizer):
    from gristmill.backends.local import LocalExecutor

    (tmp_path / "in").mkdir()
    for part in range(3):
        texts = [" ".join(WORDS[: (part + row) % 5]) for row in range(7)]
        lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        (tmp_path / f"in/{part}.jsonl").write_text(lines)
    found = []
    for workers in (1, 2):
        out = tmp_path / f"out{workers}"
        writer = MegatronTokenizerWriter(str(out), model_identifier=str(tokenizer))
        result = Pipeline("p", stages=[JsonlReader(str(tmp_path / "in")), writer]).run(
            LocalExecutor(num_workers=workers), quiet=True
        )
        assert (result.read, result.written) == (21, 21)
        found.append({path.name: path.read_bytes() for path in out.glob("*.*") if path.is_file()})

    assert found[0] == found[1]
    assert sorted(found[0]) == [f"{part}.{suffix}" for part in range(3) for suffix in ("bin", "idx")]


@pytest.mark.heavy
@pytest.mark.slow
def test_megatrons_own_reader_finds_the_same_documents(tmp_path, tokenizer):
    """Where Megatron is installed: its reader needs torch, and the package is not among those of `make test-heavy`."""
    theirs = pytest.importorskip("megatron.core.datasets.indexed_dataset", reason="megatron-core is not installed")
    writer = MegatronTokenizerWriter(str(tmp_path / "out"), model_identifier=str(with_end(tokenizer)), append_eod=True)
    for name, texts in {"a": ("alpha beta", "", "gamma"), "b": (), "c": ("delta " * 3,)}.items():
        writer.process(batch_of(*texts, task_id=name))
    merge_file_prefixes(tmp_path / "out", tmp_path / "all")

    for prefix in (tmp_path / "out/a", tmp_path / "out/c", tmp_path / "all"):
        dataset = theirs.IndexedDataset(str(prefix))
        expected, _ = read_pair(prefix)
        assert [dataset[number].tolist() for number in range(len(dataset))] == expected
        assert dataset.document_indices.tolist() == list(range(len(expected) + 1))


def test_another_extension_is_refused(tmp_path, tokenizer):
    with pytest.raises(ConfigError, match=r"expected file_extension to be \['.bin', '.idx'\]; got \['.npy'\]"):
        MegatronTokenizerWriter(str(tmp_path), file_extension=".npy", model_identifier=str(tokenizer))


# Joining


def write_pair(prefix, documents, *, code=8):
    lengths = np.array([len(tokens) for tokens in documents], np.int64)
    flat = [token for tokens in documents for token in tokens]
    Path(f"{prefix}.bin").write_bytes(np.array(flat, "<u2" if code == 8 else "<i4").tobytes())
    Path(f"{prefix}.idx").write_bytes(encode_index(lengths, code))


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def test_joining_keeps_every_document_in_the_order_of_names(tmp_path):
    write_pair(tmp_path / "b", [[4], []])
    write_pair(tmp_path / "a", [[1, 2], [], [3]])
    write_pair(tmp_path / "c", [])
    merge_file_prefixes(tmp_path, tmp_path / "joined/all")

    assert read_pair(tmp_path / "joined/all") == ([[1, 2], [], [3], [4], []], 2)


def test_joining_into_the_same_directory_twice_gives_the_same(tmp_path):
    write_pair(tmp_path / "a", [[1, 2]])
    merge_file_prefixes(tmp_path, tmp_path / "all")
    merge_file_prefixes(tmp_path, tmp_path / "all")

    assert read_pair(tmp_path / "all")[0] == [[1, 2]]


def change(path, at, value):
    content = bytearray(path.read_bytes())
    content[at] = value
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: (d / "b.idx").unlink(), r"expected .*b\.idx beside .*b\.bin; it is not there"),
        (lambda d: (d / "b.bin").unlink(), r"expected .*b\.bin beside .*b\.idx; it is not there"),
        (lambda d: (d / "b.bin").write_bytes(b"\0"), r"expected 2 bytes in .*b\.bin; got 1"),
        (lambda d: (d / "b.idx").write_bytes(b"other"), r"b\.idx: expected at least 34 bytes; got 5"),
        (lambda d: (d / "b.idx").write_bytes(b"x" * 62), r"b\.idx: expected it to begin with"),
        (
            lambda d: (d / "b.idx").write_bytes((d / "b.idx").read_bytes()[:-1]),
            r"expected 62 bytes in .*b\.idx; got 61",
        ),
        (
            lambda d: change(d / "b.idx", 38, 1),
            r"expected each sequence of .*b\.idx to begin where the one before ends",
        ),
        (lambda d: change(d / "b.idx", 46, 1), r"expected documents of .*b\.idx from its first sequence to its last"),
        (lambda d: change(d / "b.idx", 54, 5), r"expected documents of .*b\.idx from its first sequence to its last"),
        (lambda d: write_pair(d / "b", [[4]], code=4), r"expected tokens of one kind, as uint16 .*; got int32"),
    ],
)
def test_what_does_not_fit_together_is_refused_and_nothing_is_written(tmp_path, damage, message):
    write_pair(tmp_path / "a", [[1, 2]])
    write_pair(tmp_path / "b", [[4]])
    damage(tmp_path)
    with pytest.raises(ConfigError, match=message):
        merge_file_prefixes(tmp_path, tmp_path / "joined/all")
    assert not (tmp_path / "joined").exists()


def test_an_empty_directory_is_refused(tmp_path):
    with pytest.raises(NoInputError, match=r"expected files \.bin and \.idx"):
        merge_file_prefixes(tmp_path, tmp_path / "all")


# The kernel


@given(lengths=st.lists(st.integers(0, 2**31 - 1), max_size=20), code=st.sampled_from([4, 8]))
def test_an_index_has_the_size_and_offsets_of_its_definition(lengths, code):
    index = encode_index(np.array(lengths, np.int64), code)
    header = decode_header(index)
    width = {4: 4, 8: 2}[code]

    assert len(index) == header.index_bytes == 34 + 20 * len(lengths) + 8
    offsets = struct.unpack_from(f"<{len(lengths)}q", index, 34 + 4 * len(lengths))
    assert list(offsets) == [width * sum(lengths[:row]) for row in range(len(lengths))]


def test_a_document_of_more_tokens_than_a_length_can_say_is_refused():
    with pytest.raises(ValueError, match="expected documents of at most 2147483647 tokens; got 2147483648"):
        encode_index(np.array([2**31]), 8)


@pytest.mark.parametrize(("size", "code"), [(1, 8), (65_536, 8), (65_537, 4)])
def test_the_kind_of_token_follows_the_vocabulary(size, code):
    assert code_for(size) == code
