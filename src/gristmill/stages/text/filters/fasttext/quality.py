"""`FastTextQualityFilter`: how much a text resembles good ones, with a chance for the others.

As for GPT-3 (Brown et al., 2020, appendix A): a document is kept if a draw from a Pareto distribution exceeds
1 − score, so that most good and a few bad ones stay.
"""

from dataclasses import dataclass
from typing import ClassVar, TypedDict

import pyarrow as pa
import xxhash

from gristmill.errors import ConfigError
from gristmill.models.fasttext_model import check_model, load, predict
from gristmill.stages.text.judging.document_filter import DocumentFilter
from gristmill.stages.text.modifiers.fasttext import one_line


class Quality(TypedDict):
    """The model's score, and the document's draw."""

    score: float
    draw: float


@dataclass
class FastTextQualityFilter(DocumentFilter[Quality]):
    """Keep a text if its draw from Pareto(`alpha`) exceeds 1 − the probability of `label`.

    The draw is a function of `seed` and the text alone, so the answer does not depend on workers or order. Asked for as
    `quality`, the scores are columns `quality` and `quality_draw`.
    """

    score_type: ClassVar[pa.DataType] = pa.struct([("score", pa.float64()), ("draw", pa.float64())])

    model_path: str | None = None
    label: str = "__label__hq"
    alpha: float = 3
    seed: int = 42

    def __post_init__(self) -> None:
        if self.model_path is None:
            raise ConfigError("FastTextQualityFilter: expected model_path to be a fastText model file; got none")
        if self.alpha <= 0:
            raise ConfigError(f"FastTextQualityFilter: expected alpha > 0; got {self.alpha!r}")

    def check_ready(self) -> None:
        check_model(self.model_path, who="FastTextQualityFilter")

    def load_model(self) -> None:
        load(str(self.model_path))

    def score_document(self, text: str) -> Quality:
        found = predict(load(str(self.model_path)), one_line(text))
        label, probability = ("", 1.0) if found is None else found
        score = probability if label == self.label else 1 - probability
        return {"score": score, "draw": pareto_draw(text, alpha=self.alpha, seed=self.seed)}

    def keep_document(self, score: Quality) -> bool:
        return score["draw"] > 1 - score["score"]

    def describe_threshold(self, *, invert: bool = False) -> str:
        return "not (draw > 1 − score)" if invert else "draw > 1 − score"


def pareto_draw(text: str, *, alpha: float, seed: int) -> float:
    """Return a text's draw from the Pareto distribution that begins at 0: u^(−1/α) − 1 for u uniform in (0, 1)."""
    digest = xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"), seed=seed % 2**64)
    uniform = (digest + 0.5) / 2**64
    return float(uniform ** (-1 / alpha)) - 1
