"""`PromptTaskComplexityClassifier`: what a prompt asks for, and how hard that is."""

from dataclasses import KW_ONLY, dataclass

from gristmill.errors import ConfigError
from gristmill.stages.text.classifiers.base import Classifier, ModelOptions
from gristmill.stages.text.classifiers.models import PromptModelStage, most_tokens
from gristmill.stages.text.models.model import ModelStage

HUB_ID = "nvidia/prompt-task-and-complexity-classifier"


@dataclass
class PromptTaskComplexityClassifier(Classifier):
    """Add eleven columns about English prompts, with nvidia/prompt-task-and-complexity-classifier.

    `task_type_1` and `task_type_2` are the two likeliest kinds of task, the second "NA" if it is unlikely, with
    `task_type_prob` for the first. Seven columns grade what the task takes, such as `reasoning` and `domain_knowledge`,
    and `prompt_complexity_score` sums six of them up. No one label can be filtered by: `filter_by` is refused.
    """

    cache_dir: str | None = None
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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.filter_by is not None:
            raise ConfigError(
                f"PromptTaskComplexityClassifier: expected no filter_by; got {self.filter_by!r}. It has 11 columns: "
                "filter by one of them with Filter(function, filter_field=...)"
            )

    def _identifier(self) -> str:
        return self.model_path or HUB_ID

    def _tokens(self) -> int | None:
        return most_tokens(self._source(), 512)

    def _truncated_name(self) -> str:
        return "prompt_complexity_truncated"

    def _model(self, options: ModelOptions) -> ModelStage:
        return PromptModelStage(**options)
