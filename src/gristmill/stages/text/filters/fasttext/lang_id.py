"""`FastTextLangId`: the language of a text."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, TypedDict

import pyarrow as pa

from gristmill.models.fasttext_model import Model, bundled_model, check_model, load, predict
from gristmill.stages.text.judging.document_filter import DocumentFilter
from gristmill.stages.text.modifiers.fasttext import LABEL_MARK

UNDETERMINED = "und"  # the code of ISO 639-2 for a language that cannot be told


class Language(TypedDict):
    """A language and how sure the model is."""

    language: str
    score: float


@dataclass
class FastTextLangId(DocumentFilter[Language]):
    """Keep texts whose language the model is sure of; with `lang`, only those in that language.

    `model_path` is a fastText model; by default lid.176.ftz, which the extra `langid` installs, with 176 languages as
    ISO 639 codes. `lang` is compared without regard to case, and "eng" also means "eng_Latn". `first_chars` limits how
    much of a text is looked at. Asked for as `language`, the scores are columns `language` and `language_score`; a text
    without a word has the language "und" and the score 0.
    """

    score_type: ClassVar[pa.DataType] = pa.struct([("language", pa.string()), ("score", pa.float64())])

    model_path: str | None = None
    min_langid_score: float = 0.3
    lang: str | None = None
    _: KW_ONLY
    first_chars: int | None = None

    def check_ready(self) -> None:
        check_model(self.model_path, who="FastTextLangId")

    def load_model(self) -> None:
        load(self._path())

    def score_document(self, text: str) -> Language:
        return self.score_documents([text])[0]

    def score_documents(self, texts: Sequence[str]) -> list[Language]:
        model = load(self._path())
        return [self._score(model, text) for text in texts]

    def _score(self, model: Model, text: str) -> Language:
        line = (text if self.first_chars is None else text[: self.first_chars]).strip().replace("\n", " ")
        found = predict(model, line) if line else None
        if found is None:
            return {"language": UNDETERMINED, "score": 0.0}
        return {"language": found[0].removeprefix(LABEL_MARK), "score": found[1]}

    def keep_document(self, score: Language) -> bool:
        if score["score"] < self.min_langid_score:
            return False
        if self.lang is None:
            return True
        wanted, found = self.lang.casefold(), score["language"].casefold()
        return found == wanted or ("_" not in wanted and found.partition("_")[0] == wanted)

    def describe_threshold(self, *, invert: bool = False) -> str:
        condition = f"{self.min_langid_score:.12g} ≤ score"
        condition += "" if self.lang is None else f" and language = {self.lang}"
        return f"not ({condition})" if invert else condition

    def _path(self) -> str:
        return bundled_model() if self.model_path is None else self.model_path
