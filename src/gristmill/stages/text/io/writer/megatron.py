"""`MegatronTokenizerWriter`: texts as token ids, in the files Megatron trains from; `merge_file_prefixes` joins them.

A batch becomes two files, the tokens (`.bin`) and where each document is in them (`.idx`). Both are committed by one
line of the ledger, so there is never one without the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from gristmill.errors import ConfigError, NoInputError
from gristmill.kernels.tokens.megatron_index import (
    CODES,
    HEADER_BYTES,
    IndexHeader,
    code_for,
    decode_header,
    encode_header,
    encode_index,
)
from gristmill.stages.io.files import FileWriter, storage_options, write_output
from gristmill.stages.text.with_tokenizer import WithTokenizer
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.storage.atomic_write import Chunk, write_file
from gristmill.tasks import DocumentBatch, FileGroupTask

if TYPE_CHECKING:
    from gristmill.models.tokenizer import Tokenizer

TOKENS, INDEX = ".bin", ".idx"
CALL_CHARS = 1 << 20  # given to the tokenizer at once: it keeps a few hundred bytes for every token until it returns
COPIED_BYTES = 1 << 24
CHECKED = 1 << 20  # entries of an index that are compared at once


@dataclass(eq=False)
class MegatronTokenizerWriter(WithTokenizer, FileWriter[DocumentBatch]):
    """Write the tokens of each batch as `<path>/<task id>.bin`, with `<task id>.idx` beside it.

    `model_identifier` is a directory, "package:NAME" or a hub id with a `tokenizer.json`. Texts get no special tokens;
    `append_eod` puts the tokenizer's end-of-text token behind each. Tokens take two bytes if the vocabulary, added
    tokens included, has at most 65,536 entries, else four. An empty or missing text is a document without tokens, and a
    batch without documents gives two valid files. At most `tokenization_batch_size` texts are tokenized in one call.
    `transformers_init_kwargs` is a name users know, and changes nothing here.
    """

    file_extension: str | list[str] = field(default_factory=lambda: [TOKENS, INDEX])  # type: ignore[assignment]
    name: str = "megatron_tokenizer_writer"
    _: KW_ONLY
    model_identifier: str
    cache_dir: str | None = None
    hf_token: str | None = None
    text_field: str = "text"
    tokenization_batch_size: int = 1000
    append_eod: bool = False
    transformers_init_kwargs: Mapping[str, object] = field(default_factory=dict)
    offline: bool | None = None

    known_kwargs: ClassVar[frozenset[str]] = frozenset({"storage_options"})

    def __post_init__(self) -> None:
        given = [self.file_extension] if isinstance(self.file_extension, str) else list(self.file_extension)
        if [f".{each.lstrip('.')}" for each in given] != [TOKENS, INDEX]:
            raise ConfigError(f"{self.name}: expected file_extension to be {[TOKENS, INDEX]}; got {given!r}")
        self.file_extension = ""
        super().__post_init__()
        # What models need is imported where it is used: a program that writes other files does not load it.
        from gristmill.models.weights import keep_token
        from gristmill.stages.text.models.files import check_positive

        check_positive(self, ("tokenization_batch_size",))
        keep_token(self.hf_token)
        self.hf_token = None
        self._revision: str | None = None
        self._tokenizer: Tokenizer | None = None

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    # Before a run

    def check_ready(self) -> None:
        if self.look_for_tokenizer().directory is not None and self.append_eod:
            self._open()

    # In a worker

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        self._tokenizer = self._open()

    def teardown(self) -> None:
        self._tokenizer = None

    def _open(self) -> "Tokenizer":
        from gristmill.models.tokenizer import open_tokenizer

        tokenizer = open_tokenizer(self.source(), threads=max(1, int(self.resources.cpus)))
        if self.append_eod and tokenizer.eos_id is None:
            raise ConfigError(
                f"{self.name}: expected a tokenizer with an end-of-text token for append_eod (eos_token in its "
                f"tokenizer_config.json); {self.model_identifier!r} has none"
            )
        return tokenizer

    def process(self, task: DocumentBatch) -> FileGroupTask:
        """Write both files of a batch; return them."""
        tokenizer = self._tokenizer = self._tokenizer or self._open()  # called by hand, without `setup`
        code = code_for(tokenizer.largest_id + 1)
        pieces, lengths = self._tokens(task, tokenizer, np.dtype(CODES[code]))
        stem = task.task_id or xxhash.xxh3_128(b"".join([*pieces, lengths.tobytes()])).hexdigest()
        final = f"{self.path.rstrip('/')}/{stem}"
        options = storage_options(self.write_kwargs)
        made = write_output(self.context, f"{final}{TOKENS}", pieces, task, storage_options=options)
        index: list[Chunk] = [encode_index(lengths, code)]
        # The documents are counted with the tokens; the file beside them holds no others.
        beside = write_output(self.context, f"{final}{INDEX}", index, task, num_items=0, storage_options=options)
        return FileGroupTask(task.dataset_name, [*made.data, *beside.data], staged=(*made.staged, *beside.staged))

    def _tokens(
        self, batch: DocumentBatch, tokenizer: "Tokenizer", dtype: np.dtype[np.generic]
    ) -> tuple[list[bytes], NDArray[np.int64]]:
        """The tokens of every document, end to end, and how many each has."""
        pieces: list[bytes] = []
        lengths = [np.zeros(0, np.int64)]
        for texts in self._calls(batch):
            found = tokenizer.encode(texts, special=False)
            ids, own = found.ids, np.diff(found.offsets)
            if self.append_eod and tokenizer.eos_id is not None:
                ids = np.insert(ids, found.offsets[1:], tokenizer.eos_id)
                own = own + 1
            pieces.append(ids.astype(dtype).tobytes())
            lengths.append(own)
        return pieces, np.concatenate(lengths)

    def _calls(self, batch: DocumentBatch) -> Iterator[list[str]]:
        """Yield the texts that go to the tokenizer together; a missing one is empty."""
        from gristmill.stages.text.judging.statistics import texts_of_batch

        column = texts_of_batch(batch, self.text_field)
        texts: list[str] = []
        size = 0
        for row in range(len(column)):
            text = column.data[column.starts[row] : column.stops[row]].tobytes().decode("utf-8", "replace")
            if texts and (len(texts) >= self.tokenization_batch_size or size + len(text) > CALL_CHARS):
                yield texts
                texts, size = [], 0
            texts.append(text)
            size += len(text)
        if texts:
            yield texts


class _Pair(NamedTuple):
    """Two files that belong together, and what the index says."""

    tokens: Path
    places: Path  # the index; a tuple has a method of that name
    header: IndexHeader

    def array(self, name: str) -> NDArray[np.generic]:
        """One of the three arrays of the index, read when it is looked at."""
        sequences, bounds = self.header.num_sequences, self.header.num_document_bounds
        lengths, offsets = HEADER_BYTES, HEADER_BYTES + 4 * sequences
        kind, place, count = {
            "lengths": ("<i4", lengths, sequences),
            "offsets": ("<i8", offsets, sequences),
            "bounds": ("<i8", offsets + 8 * sequences, bounds),
        }[name]
        if not count:
            return np.zeros(0, kind)
        return np.memmap(self.places, dtype=kind, mode="r", offset=place, shape=(count,))


def merge_file_prefixes(input_dir: str | Path, output_prefix: str | Path) -> None:
    """Join all pairs of `.bin` and `.idx` in a directory into one, in the order of their names.

    Names derive from source partitions, so that is the order of the input. Every document keeps its bounds. What does
    not fit together is refused before anything is written: a file without its partner, another kind of token, sizes
    that do not agree. Memory does not grow with the number of documents.
    """
    directory = Path(input_dir).expanduser()
    target = Path(output_prefix).expanduser()
    pairs = [pair for pair in _pairs(directory) if pair.tokens.with_suffix("") != target]
    target.parent.mkdir(parents=True, exist_ok=True)
    write_file(f"{target}{TOKENS}", _joined_tokens(pairs))
    write_file(f"{target}{INDEX}", _joined_index(pairs))


def _pairs(directory: Path) -> list[_Pair]:
    found = {path.with_suffix("") for path in directory.glob("*") if path.suffix in (TOKENS, INDEX)}
    if not found:
        raise NoInputError(f"merge_file_prefixes: expected files {TOKENS} and {INDEX} in {str(directory)!r}; got none")
    pairs = [_pair(prefix) for prefix in sorted(found, key=lambda prefix: prefix.name)]
    codes = {pair.header.code for pair in pairs}
    if len(codes) > 1:
        first, other = pairs[0], next(pair for pair in pairs if pair.header.code != pairs[0].header.code)
        raise ConfigError(
            f"merge_file_prefixes: expected tokens of one kind, as {first.header.dtype.name} in {first.tokens}; "
            f"got {other.header.dtype.name} in {other.tokens}"
        )
    return pairs


def _pair(prefix: Path) -> _Pair:
    tokens, index = (prefix.with_name(prefix.name + suffix) for suffix in (TOKENS, INDEX))
    for here, missing in ((tokens, index), (index, tokens)):
        if not missing.is_file():
            raise ConfigError(f"merge_file_prefixes: expected {missing} beside {here}; it is not there")
    try:
        with index.open("rb") as file:
            header = decode_header(file.read(HEADER_BYTES))
    except ValueError as error:
        raise ConfigError(f"merge_file_prefixes: {index}: {error}") from None
    pair = _Pair(tokens, index, header)
    if index.stat().st_size != header.index_bytes:
        raise ConfigError(
            f"merge_file_prefixes: expected {header.index_bytes} bytes in {index}; got {index.stat().st_size}"
        )
    expected = int(pair.array("lengths").sum(dtype=np.int64)) * header.dtype.itemsize
    if tokens.stat().st_size != expected:
        raise ConfigError(f"merge_file_prefixes: expected {expected} bytes in {tokens}; got {tokens.stat().st_size}")
    _check_places(pair)
    return pair


def _check_places(pair: _Pair) -> None:
    """Raise ConfigError where the index gives a sequence or document another place than follows from the lengths."""
    lengths, offsets, bounds = pair.array("lengths"), pair.array("offsets"), pair.array("bounds")
    at = 0
    for start in range(0, len(lengths), CHECKED):
        sizes = lengths[start : start + CHECKED].astype(np.int64) * pair.header.dtype.itemsize
        ends = at + np.cumsum(sizes)
        if (sizes < 0).any() or not np.array_equal(offsets[start : start + CHECKED], ends - sizes):
            raise ConfigError(
                f"merge_file_prefixes: expected each sequence of {pair.places} to begin where the one before ends"
            )
        at = int(ends[-1])
    parts = (bounds[start : start + CHECKED + 1] for start in range(0, len(bounds), CHECKED))
    in_order = all((np.diff(part) >= 0).all() for part in parts)
    if not in_order or not len(bounds) or bounds[0] != 0 or bounds[-1] != pair.header.num_sequences:
        raise ConfigError(
            f"merge_file_prefixes: expected documents of {pair.places} from its first sequence to its last"
        )


def _joined_tokens(pairs: Sequence[_Pair]) -> Iterator[Chunk]:
    for pair in pairs:
        with pair.tokens.open("rb") as file:
            while piece := file.read(COPIED_BYTES):
                yield piece


def _joined_index(pairs: Sequence[_Pair]) -> Iterator[Chunk]:
    """The header, then each array of all files before the next one."""
    sequences = sum(pair.header.num_sequences for pair in pairs)
    bounds = sum(max(0, pair.header.num_document_bounds - 1) for pair in pairs) + 1
    yield encode_header(pairs[0].header.code, sequences, bounds)
    for pair in pairs:
        yield pair.array("lengths").tobytes()
    behind = 0
    for pair in pairs:
        yield (pair.array("offsets") + np.int64(behind)).astype("<i8").tobytes()  # type: ignore[operator]
        behind += pair.tokens.stat().st_size
    behind = 0
    for pair in pairs:
        yield (pair.array("bounds")[:-1] + np.int64(behind)).astype("<i8").tobytes()  # type: ignore[operator]
        behind += pair.header.num_sequences
    yield np.array([behind], "<i8").tobytes()
