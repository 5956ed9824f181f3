"""How much there is to learn from a document, from 0 to 5: three models that were taught by three language models."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from gristmill.stages.text.classifiers.base import Classifier, Label, ModelOptions
from gristmill.stages.text.classifiers.models import RegressionModelStage, most_tokens
from gristmill.stages.text.models.model import ModelStage


@dataclass
class EducationClassifier(Classifier):
    """What the three have in common: the score, the integer nearest to it, and high_quality or low_quality.

    The label compares the raw score with 2.5, the integer rounds half to even: exactly 2.5 is 2 and high quality.
    """

    cache_dir: str | None = None
    label_field: str = "score-label"
    float_score_field: str = "score-float"
    int_score_field: str = "score-int"
    text_field: str = "text"
    filter_by: list[str] | None = None
    max_chars: int | None = None
    sort_by_length: bool = True
    model_inference_batch_size: int = 256
    autocast: bool = True
    keep_tokens: bool = False
    use_existing_tokens: bool = False
    _: KW_ONLY
    hf_token: str | None = None

    hub_id: ClassVar[str] = ""
    usual_labels: ClassVar[tuple[Label, ...]] = ("high_quality", "low_quality")

    def _identifier(self) -> str:
        return self.model_path or self.hub_id

    def _tokens(self) -> int | None:
        return most_tokens(self._source(), 512)

    def _known_labels(self) -> tuple[Label, ...]:
        return self.usual_labels  # ours, and not what a config calls its one output

    def _model(self, options: ModelOptions) -> ModelStage:
        return RegressionModelStage(
            **options,
            label_field=self.label_field,
            float_score_field=self.float_score_field,
            int_score_field=self.int_score_field,
        )


@dataclass
class FineWebEduClassifier(EducationClassifier):
    """Grade documents from 0 to 5 by what can be learnt from them, with HuggingFaceFW/fineweb-edu-classifier."""

    label_field: str = "fineweb-edu-score-label"
    float_score_field: str = "fineweb-edu-score-float"
    int_score_field: str = "fineweb-edu-score-int"

    hub_id: ClassVar[str] = "HuggingFaceFW/fineweb-edu-classifier"


@dataclass
class FineWebMixtralEduClassifier(EducationClassifier):
    """The same with a model taught by Mixtral 8x22B: nvidia/nemocurator-fineweb-mixtral-edu-classifier."""

    label_field: str = "fineweb-mixtral-edu-score-label"
    float_score_field: str = "fineweb-mixtral-edu-score-float"
    int_score_field: str = "fineweb-mixtral-edu-score-int"
    model_inference_batch_size: int = 1024

    hub_id: ClassVar[str] = "nvidia/nemocurator-fineweb-mixtral-edu-classifier"


@dataclass
class FineWebNemotronEduClassifier(EducationClassifier):
    """The same with a model taught by Nemotron-4-340B: nvidia/nemocurator-fineweb-nemotron-4-edu-classifier."""

    label_field: str = "fineweb-nemotron-edu-score-label"
    float_score_field: str = "fineweb-nemotron-edu-score-float"
    int_score_field: str = "fineweb-nemotron-edu-score-int"
    model_inference_batch_size: int = 1024

    hub_id: ClassVar[str] = "nvidia/nemocurator-fineweb-nemotron-4-edu-classifier"
