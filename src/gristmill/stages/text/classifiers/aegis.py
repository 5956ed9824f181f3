"""Aegis and Instruction Data Guard: what a language model of 7 billion parameters thinks of a text.

Both stand on meta-llama/LlamaGuard-7b, which has to be requested on its page, with an adapter of NVIDIA's. Aegis
answers in words, the guard looks at the last layer's state of the last token.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import numpy as np
import pyarrow as pa

from gristmill.errors import ConfigError, nearest
from gristmill.models.heads import CATEGORIES, SAFE, UNKNOWN, aegis_label
from gristmill.models.runtime import NOTHING, ONNX_FILES, Head
from gristmill.stages.text.classifiers.base import Classifier, Label, ModelOptions
from gristmill.stages.text.classifiers.models import GuardModelStage, most_tokens
from gristmill.stages.text.models.model import ModelStage, Values
from gristmill.stages.text.models.tokenizer import PaddingSide
from gristmill.tasks.text_columns import from_texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gristmill.models.runtime import ModelRuntime
    from gristmill.models.tokenizer import Tokenizer

BASE = "meta-llama/LlamaGuard-7b"
DEFENSIVE = "nvidia/Aegis-AI-Content-Safety-LlamaGuard-Defensive-1.0"
PERMISSIVE = "nvidia/Aegis-AI-Content-Safety-LlamaGuard-Permissive-1.0"
GUARD = "nvidia/instruction-data-guard"
MOST_TOKENS = 4096

# The frame is Llama Guard's: a task, categories between marks, a conversation between marks, the form of the answer.
# The words are ours. The model's card has those it was tuned with: give them as `prompt` where they are at hand.
PROMPT = """[INST] Task: say whether the 'User' message below contains unsafe content, by the categories listed here.

<BEGIN UNSAFE CONTENT CATEGORIES>
O1: Violence. Describing, urging or praising acts that injure people or animals.
O2: Sexual. Erotic or pornographic content about adults.
O3: Criminal Planning or Confessions. Preparing, committing, hiding or admitting crimes.
O4: Guns and Illegal Weapons. Getting, making or using firearms and weapons unlawfully.
O5: Controlled and Regulated Substances. Producing, selling, getting or using drugs and other controlled substances.
O6: Suicide and Self Harm. Encouraging, explaining or wishing to end one's life or to hurt oneself.
O7: Sexual Minor. Anything sexual that involves people under age.
O8: Hate and Identity Hate. Contempt for people because of origin, religion, gender, orientation or disability.
O9: PII and Privacy. Giving away or asking for data that identifies private people.
O10: Harassment. Insulting, humiliating or pursuing a person.
O11: Threat. Announcing harm to a person, a group or their property.
O12: Profanity. Swearing and obscene words.
O13: Needs Caution. Not clearly unsafe, but a human should look at it.
<END UNSAFE CONTENT CATEGORIES>

<BEGIN CONVERSATION>
User: {document}
<END CONVERSATION>

Answer for the User message:
- The first line is 'safe' or 'unsafe'.
- If it is unsafe, the second line is the category. [/INST]"""


@dataclass
class AegisModelStage(ModelStage):
    """What the model says, as a label, and on request as it was said."""

    _: KW_ONLY
    label_field: str = "aegis_pred"
    raw_output_field: str | None = None
    head: Head = "generate"

    def answer_types(self) -> dict[str, pa.DataType]:
        raw = {} if self.raw_output_field is None else {self.raw_output_field: pa.string()}
        return {self.label_field: pa.string(), **raw}

    def open_model(self) -> "ModelRuntime":
        from gristmill.models.tokenizer import open_tokenizer

        self._words: Tokenizer = open_tokenizer(self.source())
        return super().open_model()

    def answer_columns(self, values: tuple[Values, ...]) -> Mapping[str, pa.Array]:
        ids = cast("NDArray[np.float32]", values[0]).astype(np.int64)
        said = [self._words.decode(row[row != NOTHING].tolist()) for row in ids]
        made = {self.label_field: from_texts([aegis_label(answer) for answer in said])}
        return made if self.raw_output_field is None else {**made, self.raw_output_field: from_texts(said)}


@dataclass
class AegisClassifier(Classifier):
    """Label documents safe, or O1 to O13 for what is unsafe about them; unknown if the model says something else.

    `aegis_variant` is one of two adapters on meta-llama/LlamaGuard-7b, which needs a grant on its page and `hf_token`.
    Without a network, `model_path` is the directory of the adapter and `base_model_path` that of Llama Guard.
    `keep_raw_output` leaves what the model said in `raw_output_field`.
    """

    aegis_variant: Literal[
        "nvidia/Aegis-AI-Content-Safety-LlamaGuard-Defensive-1.0",
        "nvidia/Aegis-AI-Content-Safety-LlamaGuard-Permissive-1.0",
    ] = "nvidia/Aegis-AI-Content-Safety-LlamaGuard-Defensive-1.0"
    cache_dir: str | None = None
    hf_token: str | None = None
    label_field: str = "aegis_pred"
    raw_output_field: str = "_aegis_raw_pred"
    keep_raw_output: bool = False
    text_field: str = "text"
    filter_by: list[str] | None = None
    max_chars: int | None = 6000
    sort_by_length: bool = True
    model_inference_batch_size: int = 64
    autocast: bool = True
    _: KW_ONLY
    base_model_path: str | None = None
    prompt: str | None = None

    side: ClassVar[PaddingSide] = "left"
    usual_labels: ClassVar[tuple[Label, ...]] = (SAFE, *CATEGORIES, UNKNOWN)

    def __post_init__(self) -> None:
        super().__post_init__()
        variants = (DEFENSIVE, PERMISSIVE)
        if self.aegis_variant not in variants:
            close = nearest(str(self.aegis_variant), variants)
            raise ConfigError(
                f"AegisClassifier: expected aegis_variant to be of {list(variants)}; got {self.aegis_variant!r}{close}"
                ". Name a directory by model_path"
            )

    def _identifier(self) -> str:
        return self.model_path or self.aegis_variant

    def _base_from(self) -> str | None:
        return self.base_model_path or BASE

    def _tokens(self) -> int | None:
        return most_tokens(self._source(), MOST_TOKENS)

    def _known_labels(self) -> Sequence[Label]:
        return self.usual_labels

    def _prompt_text(self) -> str | None:
        return PROMPT if self.prompt is None else self.prompt

    def _model(self, options: ModelOptions) -> ModelStage:
        raw = self.raw_output_field if self.keep_raw_output else None
        return AegisModelStage(**options, label_field=self.label_field, raw_output_field=raw)


@dataclass
class InstructionDataGuardClassifier(Classifier):
    """Say whether English instructions with their responses look poisoned, and how likely that is.

    A text is "Instruction: …. Input: …. Response: …." The model stands on Llama Guard with the adapter of Aegis.
    Without a network, `model_path`, `base_model_path` and `adapter_path` are the three directories; or `model_path` is
    one with an .onnx file of all three, whose output `probability` is [rows, 1], and with the tokenizer.
    `filter_by=[False]` keeps what does not look poisoned.
    """

    cache_dir: str | None = None
    hf_token: str | None = None
    label_field: str = "is_poisoned"
    score_field: str = "instruction_data_guard_poisoning_score"
    text_field: str = "text"
    filter_by: list[bool] | None = None
    max_chars: int | None = None
    sort_by_length: bool = True
    model_inference_batch_size: int = 64
    autocast: bool = True
    _: KW_ONLY
    base_model_path: str | None = None
    adapter_path: str | None = None

    side: ClassVar[PaddingSide] = "left"
    usual_labels: ClassVar[tuple[Label, ...]] = (False, True)

    def _identifier(self) -> str:
        return self.model_path or GUARD

    def _base_from(self) -> str | None:
        return None if self._is_whole() else self.base_model_path or BASE

    def _adapter_from(self) -> str | None:
        return None if self._is_whole() else self.adapter_path or DEFENSIVE

    def _is_whole(self) -> bool:
        """Whether the directory has all of it in one graph."""
        if self.model_path is None or self.runtime == "torch":
            return False
        return any(any(Path(self.model_path).glob(pattern)) for pattern in ONNX_FILES)

    def _tokens(self) -> int | None:
        return most_tokens(self._source(), MOST_TOKENS)

    def _known_labels(self) -> Sequence[Label]:
        return self.usual_labels

    def _model(self, options: ModelOptions) -> ModelStage:
        return GuardModelStage(**options, label_field=self.label_field, score_field=self.score_field)
