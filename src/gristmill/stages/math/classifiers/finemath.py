"""`FineMathClassifier`: how good a document is as a text about mathematics, from 0 to 5."""

from dataclasses import dataclass

from gristmill.stages.text.classifiers.base import Classifier, ModelOptions
from gristmill.stages.text.classifiers.models import RegressionModelStage, most_tokens
from gristmill.stages.text.models.model import ModelStage

HUB_ID = "HuggingFaceTB/finemath-classifier"


@dataclass(kw_only=True)
class FineMathClassifier(Classifier):
    """Grade documents from 0 to 5 with HuggingFaceTB/finemath-classifier.

    The model sees the middle of a long document: `center_crop_chars` characters on each side of it.
    """

    cache_dir: str | None = None
    float_score_column: str = "finemath_scores"
    int_score_column: str = "finemath_int_scores"
    text_field: str = "text"
    max_chars: int | None = None
    max_seq_length: int = 512
    sort_by_length: bool = False
    model_inference_batch_size: int = 1024
    autocast: bool = True
    center_crop_chars: int | None = 10_000
    keep_tokens: bool = False
    use_existing_tokens: bool = False
    hf_token: str | None = None

    def _identifier(self) -> str:
        return self.model_path or HUB_ID

    def _tokens(self) -> int | None:
        return most_tokens(self._source(), self.max_seq_length)

    def _truncated_name(self) -> str:
        return f"{self.float_score_column}_truncated"

    def _model(self, options: ModelOptions) -> ModelStage:
        return RegressionModelStage(
            **options, float_score_field=self.float_score_column, int_score_field=self.int_score_column
        )
