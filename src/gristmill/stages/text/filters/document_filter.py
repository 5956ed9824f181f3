"""`DocumentFilter`: what a user subclasses to judge documents one at a time.

A filter measures a text (`score_document`) and decides on the measure (`keep_document`), and knows nothing of batches,
columns or what becomes of a document it refuses: `ScoreFilter`, `Score` and `Filter` see to that.
"""

from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar, cast

import pyarrow as pa

from gristmill.stages.names import snake_case

S = TypeVar("S")  # what the filter measures: a number, a bool, a label

Bounds = tuple[float | None, float | None]


class DocumentFilter(Generic[S]):
    """Measure a document, then keep it or not.

    Write `score_document`, and either `bounds` (kept inside them, both ends included) or `keep_document`.

    `measure`      what the score is called in rejects: "words" gives the threshold "50 ≤ words ≤ 100000"
    `score_type`   the Arrow type of a score column; found from the scores if None, which an empty batch cannot do. With
                   a struct, a score is a dict, and each of its parts becomes a column (see `score_columns`)

    A filter with a model may define `model_check_or_download` (once per machine), `load_model` and `load_tokenizer`
    (once in every worker).
    """

    measure: ClassVar[str] = "score"
    score_type: ClassVar[pa.DataType | None] = None

    def score_document(self, text: str) -> S:
        """Measure one document."""
        raise NotImplementedError(f"{type(self).__name__}: a filter must define score_document")

    def score_documents(self, texts: Sequence[str]) -> Sequence[S]:
        """Measure several documents; for a filter that is quicker with many at a time."""
        return [self.score_document(text) for text in texts]

    def keep_document(self, score: S) -> bool:
        """Return True to keep a document with this score."""
        low, high = self.bounds()
        if low is None and high is None:
            raise NotImplementedError(f"{type(self).__name__}: a filter must define keep_document or bounds")
        number = cast("float", score)
        return (low is None or low <= number) and (high is None or number <= high)

    def bounds(self) -> Bounds:
        """Return (least, greatest) score that is kept; None where there is no limit."""
        return None, None

    def for_any_threshold(self) -> "DocumentFilter[S]":
        """Return a filter whose scores serve every threshold: this one, unless it stops measuring once it knows."""
        return self

    def model_check_or_download(self) -> None:
        """See to it that the files the filter needs are on this machine."""

    def load_model(self) -> None:
        """Load what `score_document` works with."""

    def load_tokenizer(self) -> None:
        """Load the tokenizer, if there is one."""

    @property
    def name(self) -> str:
        """The name in reasons and metrics: the class name in snake_case without "Filter", unless one is set."""
        given = cast("str | None", vars(self).get("_name"))
        return given or snake_case(type(self).__name__.removesuffix("Filter"))

    @name.setter
    def name(self, name: str) -> None:
        self._name = name

    def describe_threshold(self, *, invert: bool = False) -> str | None:
        """Return the condition a kept document meets, or None if the filter does not say.

        >>> WordCountFilter(min_words=50).describe_threshold()
        '50 ≤ words ≤ 100000'
        """
        low, high = self.bounds()
        if low is None and high is None:
            return None
        left = "" if low is None else f"{low:.12g} ≤ "
        right = "" if high is None else f" ≤ {high:.12g}"
        condition = f"{left}{self.measure}{right}"
        return f"not ({condition})" if invert else condition
