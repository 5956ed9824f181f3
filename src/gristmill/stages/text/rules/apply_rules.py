"""`ApplyRules`: drop the documents that break a rule, and clean the text where a rule set does."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError
from gristmill.kernels.arrow_arrays import from_bools, from_numbers
from gristmill.stages.base import ProcessingStage
from gristmill.stages.names import join_names
from gristmill.stages.text.rules.rule_set import Column, RuleSet
from gristmill.stages.text.rules.texts import Texts
from gristmill.stages.text.rules.tokenizer import Tokenizer
from gristmill.tasks import DocumentBatch

NULL_TEXT = "null_text"


@dataclass
class ApplyRules(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Apply rule sets in order, each to what the ones before it left.

    A document is dropped for the first rule it breaks, with that rule's reason, the value measured and the condition it
    did not meet. Sets next to each other share what they measure: tokens are made once for all of them.
    """

    adds_only_declared_columns: ClassVar[bool] = True

    rules: RuleSet | list[RuleSet]
    text_field: str = "text"
    _: KW_ONLY
    name: str = ""

    def __post_init__(self) -> None:
        if not self._sets():
            raise ConfigError("ApplyRules: expected at least one rule set; got an empty list")
        for rules in self._sets():
            if not isinstance(rules, RuleSet):
                raise ConfigError(f"ApplyRules: expected rules to be a RuleSet; got {rules!r}")
        self.name = self.name or self.default_name()

    def default_name(self) -> str:
        return join_names(self._sets())

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], []

    def process(self, task: DocumentBatch) -> DocumentBatch:
        texts = Texts.of(task, self.text_field, self._tokenizer())
        kept = np.ones(len(texts), np.bool_)
        for rules in self._sets():
            kept = self._apply(rules, task, texts, kept)
            cleaned = rules.rewrite(texts, kept)
            if cleaned is not texts:
                texts = cleaned.select(kept)
                task = task.filter(from_bools(kept)).with_column(self.text_field, texts.to_arrow())
                kept = np.ones(len(texts), np.bool_)
        return task.filter(from_bools(kept))

    def _apply(self, rules: RuleSet, batch: DocumentBatch, texts: Texts, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
        known: dict[str, Column] = {}
        for rule in rules.rules():
            if rule.is_off() or not kept.any():
                continue
            values = known[rule.measure] if rule.measure in known else rules.measure(rule.measure, texts, kept, known)
            dropped = kept & rule.drops(values)
            for mask, reason in ((dropped & ~texts.missing, rule.reason), (dropped & texts.missing, NULL_TEXT)):
                if mask.any():
                    self.context.drop(
                        batch, from_bools(mask), reason=reason, values=from_numbers(values), threshold=rule.describe()
                    )
            kept = kept & ~dropped
        return kept

    def _tokenizer(self) -> Tokenizer:
        """What tokens are made with, kept from batch to batch: it remembers what it has cut."""
        tokenizer = self.__dict__.setdefault("_remembering", Tokenizer())
        return cast("Tokenizer", tokenizer)

    def _sets(self) -> list[RuleSet]:
        return list(self.rules) if isinstance(self.rules, list | tuple) else [self.rules]
