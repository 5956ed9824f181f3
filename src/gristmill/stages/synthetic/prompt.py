"""`Prompt`: what a model is asked, as a file with a version, filled in by name.

A prompt has variables, such as `{document}`, and only those are filled in, in one pass. Every other brace in a prompt,
and every brace in a document, stays as it is: a document about JSON, or one that contains "{document}", is asked about
like any other. A variable that is declared and not used, or needed and not given, is found before the run.

The files are `prompts/NAME.yaml`:

    version: "1"                  part of the fingerprint, like the text itself
    system: "..."                 may be left out
    user: "... {document} ..."
    variables: [document]
    output: text                  or json, or prefix: what an answer is expected to be
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from gristmill.errors import ConfigError, nearest
from gristmill.models.client.llm_client import Message

PROMPTS = Path(__file__).parent / "prompts"
OUTPUTS = ("text", "json", "prefix")
_KEYS = ("version", "system", "user", "variables", "output", "prefix")
_REFERENCE = re.compile(r"[\w-]+|[^{}\n]+\.ya?ml")  # a name, or a path
_NAMED = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True)
class Prompt:
    """A question with gaps. `prefix` is what an answer is expected to begin with, where `output` is "prefix"."""

    user: str
    system: str = ""
    variables: tuple[str, ...] = ("document",)
    version: str = ""
    output: str = "text"
    prefix: str = ""
    name: str = "prompt"

    def __post_init__(self) -> None:
        if self.output not in OUTPUTS:
            raise ConfigError(
                f"{self.name}: expected output to be one of {OUTPUTS}; got {self.output!r}"
                f"{nearest(str(self.output), OUTPUTS)}"
            )
        found = {match[1] for match in _NAMED.finditer(f"{self.system}\n{self.user}")}
        for variable in self.variables:
            if variable not in found:
                raise ConfigError(
                    f"{self.name}: expected {{{variable}}} in the prompt; got {self.user[:80]!r}"
                    f"{nearest(variable, found)}"
                )

    @classmethod
    def named(cls, name: str) -> "Prompt":
        """Return one of the prompts that come with gristmill."""
        path = PROMPTS / f"{name}.yaml"
        if not path.exists():
            known = sorted(each.stem for each in PROMPTS.glob("*.yaml"))
            raise ConfigError(
                f"prompt {name!r}: expected one of {', '.join(known) or 'none'}; got no such file{nearest(name, known)}"
            )
        return cls.from_file(path)

    @classmethod
    def from_file(cls, path: str | Path, *, offered: Sequence[str] = ("document",)) -> "Prompt":
        """Read a prompt from a YAML file. One that names no variables has those of `offered` that occur in it."""
        import yaml

        try:
            text = Path(path).read_text(encoding="utf-8")
            given = yaml.safe_load(text)
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ConfigError(f"prompt {path}: expected a YAML file; {error}") from error
        if not isinstance(given, Mapping) or not isinstance(given.get("user"), str):
            raise ConfigError(f"prompt {path}: expected a mapping with the text of the question as 'user'")
        for key in given:
            if key not in _KEYS:
                raise ConfigError(f"prompt {path}: expected keys {_KEYS}; got {key!r}{nearest(str(key), _KEYS)}")
        texts_given = f"{given.get('system') or ''} {given['user']}"
        variables = given.get("variables", [each for each in offered if f"{{{each}}}" in texts_given])
        if not isinstance(variables, list) or not all(isinstance(each, str) for each in variables):
            raise ConfigError(f"prompt {path}: expected variables to be a list of names; got {variables!r}")
        texts = {
            key: str(given[key]) for key in ("system", "version", "output", "prefix") if given.get(key) is not None
        }
        return cls(user=given["user"], variables=tuple(variables), name=Path(path).stem, **texts)

    @classmethod
    def of(cls, given: "str | Prompt", *, system: str | None = None, who: str = "prompt") -> "Prompt":
        """Return a prompt for what a user gave: one, its name or file, or a text with `{document}` in it."""
        if isinstance(given, str) and _REFERENCE.fullmatch(given):
            given = cls.from_file(given) if given.endswith((".yaml", ".yml")) else cls.named(given)
        if isinstance(given, Prompt):
            return given if system is None else replace(given, system=system)
        if not isinstance(given, str):
            raise ConfigError(f"{who}: expected prompt to be a text with {{document}} in it; got {given!r:.80}")
        return cls(user=given, system=system or "", name=f"{who}: prompt")

    def check(self, given: Collection[str], *, who: str) -> None:
        """Raise ConfigError if a variable of the prompt is not among those that will be given."""
        for variable in self.variables:
            if variable not in given:
                raise ConfigError(
                    f"{who}: expected a value for {{{variable}}} of {self.name}; got values for {sorted(given)}"
                    f"{nearest(variable, given)}"
                )

    def fill(self, values: Mapping[str, str]) -> list[Message]:
        """Return the messages of a request."""
        messages: list[Message] = []
        if self.system:
            messages.append({"role": "system", "content": self._filled(self.system, values)})
        messages.append({"role": "user", "content": self._filled(self.user, values)})
        return messages

    @cached_property
    def _gaps(self) -> "re.Pattern[str]":
        return re.compile(r"\{(" + "|".join(map(re.escape, self.variables)) + r")\}")

    def _filled(self, text: str, values: Mapping[str, str]) -> str:
        if not self.variables:
            return text
        return self._gaps.sub(lambda match: values[match[1]], text)
