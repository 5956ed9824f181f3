"""What was scored, and how: `scored.json` beside the scores. Counts are given only where a run would give them too.

Scores tell what thresholds do if they were measured on the same texts by the same filters. A recipe that was edited in
between, another recipe, or an input that changed would give counts that are true of no run.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from gristmill.errors import ConfigError, ReadError
from gristmill.pipeline import Pipeline
from gristmill.pipeline.compile import canonical, fingerprint, stage_config
from gristmill.runs.books import RunResult
from gristmill.runs.ledger import is_sealed, sealed
from gristmill.secrets import HIDDEN, is_secret, without_secrets, without_url_secrets
from gristmill.stages.text.filters import ScoreFilter
from gristmill.storage.atomic_write import remove, write_file
from gristmill.storage.file_system import absolute
from gristmill.storage.open_read import read_all
from gristmill.workflows.thresholds.rule import FilterRule, rules_of, thresholds_of
from gristmill.workflows.thresholds.score import FIRST_STAGE

if TYPE_CHECKING:
    from gristmill.engine.plan import AnyStage

FILE = ".gristmill/scored.json"


@dataclass
class Scored:
    """`stages` are those texts went through, with a digest of what they do; `measures` are columns, with a digest.

    `inputs` is a digest of all files read, `values` are those of the recipe's variables, `unmeasured` the documents
    quarantined where measuring had begun, by stage, `dropped` those that stages before the filters left out.
    """

    stages: list[list[str]]
    measures: dict[str, str]
    inputs: str = ""
    values: dict[str, object] = field(default_factory=dict)
    unmeasured: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, dict[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, pipeline: Pipeline) -> "Scored":
        """Say how the filters of a pipeline measure."""
        rules = rules_of(pipeline)
        last_filter = max(place for place, stage in enumerate(pipeline.stages) if isinstance(stage, ScoreFilter))
        before = [stage for stage in pipeline.stages[:last_filter] if not isinstance(stage, ScoreFilter)]
        stages = [[stage.stage_name(), _digest_of_stage(stage)] for stage in before]
        return cls(stages, {rule.column: _digest(rule) for rule in rules})

    @classmethod
    def read(cls, directory: str) -> "Scored":
        """Read what was noted with scores."""
        path = f"{directory.rstrip('/')}/{FILE}"
        try:
            found = cls(**_unsealed(read_all(path).decode()))
        except (ReadError, ValueError, TypeError) as error:
            raise ConfigError(
                f"{directory}: expected scores that `gristmill score` has written to the end; {path} cannot be read "
                f"({error}). Score again"
            ) from None
        return found

    def write(self, directory: str) -> None:
        """Write this down with the scores."""
        text = sealed(json.dumps(vars(self), indent=1, default=str))
        write_file(f"{directory.rstrip('/')}/{FILE}", [text.encode()])

    def check_serves(self, pipeline: Pipeline) -> None:
        """Refuse a pipeline that measures in another way than these scores were measured."""
        wanted = Scored.of(pipeline)
        for (name, digest), (then, known) in zip(wanted.stages, self.stages, strict=False):
            if (name, digest) != (then, known):
                raise ConfigError(
                    f"{pipeline.name}: these scores do not fit stage {name}: expected what texts went through when "
                    f"they were scored, {then}{' with other settings or code' if name == then else ''}. Score again"
                )
        if len(wanted.stages) != len(self.stages):
            longer = max(wanted.stages, self.stages, key=len)
            extra = longer[min(len(wanted.stages), len(self.stages))][0]
            raise ConfigError(
                f"{pipeline.name}: these scores do not fit stage {extra}: only one of recipe and scores has it. "
                "Score again"
            )
        for column, digest in wanted.measures.items():
            if self.measures.get(column, digest) != digest:
                raise ConfigError(
                    f"{pipeline.name}: these scores do not fit rule {column}: it is measured differently now. Score "
                    "again"
                )
        for stage, number in self.unmeasured.items():
            raise ConfigError(
                f"{pipeline.name}: these scores do not fit stage {stage}: it failed on {number:,} documents while "
                "scoring (they are in quarantine), and whether a run would have dropped them before is not known"
            )

    def check_inputs(self, inputs: Sequence[tuple[str, int, str]], *, who: str) -> None:
        """Refuse files that are not those that were scored."""
        if digest_of_inputs(inputs) != self.inputs:
            raise ConfigError(
                f"{who}: expected the input that was scored; files are missing, new or changed. Score again"
            )


def noted(
    pipeline: Pipeline, result: RunResult, inputs: Sequence[tuple[str, int, str]], values: Mapping[str, object]
) -> Scored:
    """Return what to note about a finished run of a `score_pipeline`; `pipeline` is the one with the filters."""
    scored = Scored.of(pipeline)
    start = list(result.counts).index(FIRST_STAGE)
    for place, (name, counts) in enumerate(result.counts.items()):
        if place >= start and counts.quarantined:
            scored.unmeasured[name] = counts.quarantined
        if place < start and counts.dropped:
            scored.dropped[name] = dict(counts.dropped)
    scored.inputs = digest_of_inputs(inputs)
    scored.values = {name: _safe(name, value) for name, value in values.items() if name != "output"}
    return scored


def forget(directory: str) -> None:
    """Remove the note before scores are written again: until all are written, it would describe the old ones."""
    remove(f"{directory.rstrip('/')}/{FILE}")


def digest_of_inputs(inputs: Sequence[tuple[str, int, str]]) -> str:
    """A hash of names, sizes and versions."""
    lines = sorted(f"{without_url_secrets(absolute(path))} {size} {version}" for path, size, version in inputs)
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _unsealed(text: str) -> dict[str, Any]:
    if not is_sealed(text):
        raise ValueError("it is damaged")
    found: dict[str, object] = json.loads(text)
    return {name: value for name, value in found.items() if name in Scored.__annotations__}


def _digest_of_stage(stage: "AnyStage") -> str:
    config: dict[str, object] = json.loads(stage_config(stage))
    config.pop("file_paths", None)  # which files they are is in the digest of the inputs, however they are spelled
    return fingerprint([json.dumps(config)])


def _digest(rule: FilterRule) -> str:
    """Tells measures apart: the filter's class, code and parameters, thresholds left out."""
    described = cast("dict[str, object]", canonical(rule.measure))
    kept = {name: value for name, value in described.items() if name not in thresholds_of(rule.judge)}
    return fingerprint([json.dumps(kept), rule.text_field])


def _safe(name: str, value: object) -> object:
    """A variable's value as it may be written down; paths of the input are absolute, to mean the same everywhere."""
    if is_secret(name) or without_secrets(str(value)) != str(value):
        return HIDDEN
    if name == "input":
        return [absolute(str(path)) for path in value] if isinstance(value, list) else absolute(str(value))
    return value
