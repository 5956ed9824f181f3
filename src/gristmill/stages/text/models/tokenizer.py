"""`TokenizerStage`: texts to tokens, on CPUs, in processes apart from the model's.

The text column is read and never written: `max_chars` and `max_seq_length` limit what a model sees. Two models that
would be given the same tokens share one of these stages; the planner asks (`done_by`).
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError
from gristmill.kernels.arrow_arrays import from_bools
from gristmill.models.runtime import ModelSource, locate_tokenizer
from gristmill.models.weights import keep_token
from gristmill.stages.base import AnyStage, ProcessingStage
from gristmill.stages.text.judging.statistics import TextColumn, texts_of_batch
from gristmill.stages.text.models.files import check_positive
from gristmill.stages.text.models.tokens import INPUT_IDS, TOKENS, TRUNCATED, TokenLists, to_column
from gristmill.stages.text.with_tokenizer import WithTokenizer
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.tasks import DocumentBatch

if TYPE_CHECKING:
    from gristmill.models.tokenizer import Tokenizer, Tokens

# Given to the library together. It keeps a few hundred bytes for every token until a call returns.
CALL_CHARS = 1 << 18
CALL_TEXTS = 256
# A text longer than this many characters a token is tokenized by its beginning first, which nearly always has more
# tokens than the model takes: otherwise a document of 100 MB would take a minute and gigabytes to be cut to 512 tokens.
# Where the beginning has fewer, because it is one endless word, no more than the second number is looked at.
CHARS_A_TOKEN, MOST_CHARS_A_TOKEN = 32, 2048
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

PaddingSide = Literal["right", "left"]
Flags = NDArray[np.bool_]


class TokenReader(ProcessingStage[DocumentBatch, DocumentBatch]):
    """A stage that works on tokens, or ignores them, and leaves texts as they are."""

    def handing_tokens_on(self) -> Self:
        """Return the stage as it is if another one after it reads the same tokens."""
        return self


@dataclass
class TokenizerStage(WithTokenizer, TokenReader):
    """Add a column of token ids, without padding; null where a text is missing, empty or blank.

    `model_identifier` is a directory, "package:NAME" or a hub id. A text is cut to `max_chars` characters, then to
    `max_seq_length` tokens, special ones kept; if that is None, to what the model's config says. Rows keep their order,
    and padding is the model stage's: `padding_side`, `sort_by_length` and `unk_token` are names users know, and change
    nothing here. With `center_crop_chars` only that many characters on each side of the middle are seen. `prompt` is a
    text with `{document}` in it, where the document is put. `truncated_field` adds a column that says what was cut.
    `owner` is the name of the composite it is part of, and `who` what messages call that.
    """

    model_identifier: str
    cache_dir: str | None = None
    hf_token: str | None = None
    text_field: str = "text"
    max_chars: int | None = None
    max_seq_length: int | None = None
    padding_side: PaddingSide = "right"
    sort_by_length: bool = True
    unk_token: bool = False
    transformers_init_kwargs: dict[str, object] | None = None
    _: KW_ONLY
    tokens_field: str = INPUT_IDS
    truncated_field: str | None = None
    center_crop_chars: int | None = None
    prompt: str | None = None
    offline: bool | None = None
    owner: str = ""
    who: str = ""
    name: str = ""

    adds_only_declared_columns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.name = self.name or self.default_name()
        check_positive(self, ("max_chars", "max_seq_length", "center_crop_chars"))
        if self.prompt is not None and "{document}" not in self.prompt:
            raise ConfigError(f"{self.name}: expected a prompt with {{document}} in it; got {self.prompt!r:.200}")
        keep_token(self.hf_token)
        self.hf_token = None
        self._revision: str | None = None
        self._tokenizer: Tokenizer | None = None

    def default_name(self) -> str:
        return f"{self.owner}_tokenizer" if self.owner else "tokenizer"

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.tokens_field, *([self.truncated_field] if self.truncated_field else [])]

    def new_columns(self) -> list[str]:
        # Those of a composite come and go between its stages.
        return [name for name in self.outputs()[1] if name not in (TOKENS, TRUNCATED)]

    # Before a run

    def called(self) -> str:
        return self.who or self.name

    def done_by(self, before: Sequence[AnyStage]) -> Sequence[AnyStage] | None:
        """Let an earlier tokenizer do it if the tokens are the same and nothing between changes texts."""
        for place in range(len(before) - 1, -1, -1):
            earlier = before[place]
            if isinstance(earlier, TokenizerStage) and earlier.tokens_field == self.tokens_field:
                if not earlier.agrees_with(self):
                    return None
                marked = cast("TokenizerStage", earlier.with_())
                marked.truncated_field = earlier.truncated_field or self.truncated_field
                return [*before[:place], marked, *map(self._handing_on, before[place + 1 :])]
            if not isinstance(earlier, TokenReader):
                return None
        return None

    def _handing_on(self, stage: AnyStage) -> AnyStage:
        """A model on these tokens leaves them; one between that reads others, such as an embedder, stays as it is."""
        reads_others = getattr(stage, "tokens_field", self.tokens_field) != self.tokens_field
        return stage if reads_others else cast("TokenReader", stage).handing_tokens_on()

    def agrees_with(self, other: "TokenizerStage") -> bool:
        """Whether it makes the same tokens of a document."""
        same = ("text_field", "max_chars", "max_seq_length", "center_crop_chars", "prompt")
        if any(getattr(self, name) != getattr(other, name) for name in same):
            return False
        if self.model_identifier == other.model_identifier and self.cache_dir == other.cache_dir:
            return True
        mine, theirs = _digest(self.source()), _digest(other.source())
        if mine is None or mine != theirs:
            return False
        return self.max_seq_length is not None or _length_of_model(self.source()) == _length_of_model(other.source())

    # In a worker

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        from gristmill.models.tokenizer import open_tokenizer

        self._tokenizer = open_tokenizer(self.source(), threads=max(1, int(self.resources.cpus)))
        self._length = self.max_seq_length or _length_of_model(self.source())

    def teardown(self) -> None:
        self._tokenizer = None

    def process(self, task: DocumentBatch) -> DocumentBatch:
        if self._tokenizer is None:
            self.setup()  # called by hand, outside a run
        tokens, cut = self._tokenize(texts_of_batch(task, self.text_field))
        made = task.with_column(self.tokens_field, to_column(tokens))
        return made if self.truncated_field is None else made.with_column(self.truncated_field, from_bools(cut))

    def _tokenize(self, column: TextColumn) -> tuple[TokenLists, Flags]:
        lengths, is_cut = np.zeros(len(column), np.int64), np.zeros(len(column), np.bool_)
        pieces = [np.zeros(0, np.int32)]
        for rows, texts in self._calls(column, is_cut):
            found = self._encode(texts)
            lengths[rows] = np.diff(found.offsets)
            is_cut[rows] |= found.is_truncated
            pieces.append(found.ids)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        return TokenLists(np.concatenate(pieces), offsets, lengths == 0), is_cut

    def _calls(self, column: TextColumn, is_cut: Flags) -> Iterator[tuple[list[int], list[str]]]:
        """Yield what is given to the library at a time: rows, and what the model may see of their texts."""
        rows: list[int] = []
        texts: list[str] = []
        chars = 0
        for row in range(len(column)):
            seen, is_cut[row] = self._seen(column, row)
            if not seen or seen.isspace():
                continue
            rows.append(row)
            texts.append(seen if self.prompt is None else self.prompt.replace("{document}", seen))
            chars += len(seen)
            if chars > CALL_CHARS or len(texts) == CALL_TEXTS:
                yield rows, texts
                rows, texts, chars = [], [], 0
        if texts:
            yield rows, texts

    def _seen(self, column: TextColumn, row: int) -> tuple[str, bool]:
        """Return what a model may see of a text, and whether that is less than all. Nothing else is decoded."""
        start, stop = int(column.starts[row]), int(column.stops[row])
        last = stop
        if self.max_chars is not None and self.center_crop_chars is None:
            last = min(stop, start + 4 * self.max_chars)  # a character has four bytes at most
        text = column.data[start:last].tobytes().decode("utf-8", "replace")
        whole = len(text)
        if self.center_crop_chars is not None and whole > 2 * self.center_crop_chars:
            text = text[whole // 2 - self.center_crop_chars : whole // 2 + self.center_crop_chars]
        text = text if self.max_chars is None else text[: self.max_chars]
        is_cut = last < stop or len(text) < whole
        return (text.replace("\0", REPLACEMENT) if "\0" in text else text), is_cut

    def _encode(self, texts: list[str]) -> "Tokens":
        assert self._tokenizer is not None  # noqa: S101  # setup has made it
        most = self._length
        if self._tokenizer.keeps_end:
            return self._tokenizer.encode(texts, max_length=most)
        beginnings = [_beginning(text, most * CHARS_A_TOKEN) for text in texts]
        found = self._tokenizer.encode(beginnings, max_length=most)
        if all(found.is_truncated[row] for row, text in enumerate(beginnings) if len(text) < len(texts[row])):
            return found
        looked_at = [text[: most * MOST_CHARS_A_TOKEN] for text in texts]
        found = self._tokenizer.encode(looked_at, max_length=most)
        is_cut = np.array([len(seen) < len(text) for seen, text in zip(looked_at, texts, strict=True)])
        return found._replace(is_truncated=found.is_truncated | is_cut)


def _beginning(text: str, chars: int) -> str:
    """Return the beginning of a long text, up to the end of a word if there is one, so that its words are whole."""
    if len(text) <= chars:
        return text
    end = max(text.rfind(" ", 0, chars), text.rfind("\n", 0, chars))
    return text[: end if end > chars // 2 else chars]


def _length_of_model(source: ModelSource) -> int:
    from gristmill.models.known_configs import max_length, read_config

    return max_length(read_config(locate_tokenizer(source)))


def _digest(source: ModelSource) -> str | None:
    """Return what distinguishes tokenizers, or None if the files are not on this machine."""
    try:
        file = locate_tokenizer(source) / "tokenizer.json"
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except (ConfigError, OSError):
        return None
