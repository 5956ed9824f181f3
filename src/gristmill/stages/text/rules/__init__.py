"""Published rule sets for web text, under the names and with the thresholds they were published with."""

from typing import TYPE_CHECKING

from gristmill.lazy_names import fetched_from
from gristmill.stages.text.judging.rule import Rule, RuleSet, Verdict
from gristmill.stages.text.judging.stages import ApplyRules

if TYPE_CHECKING:
    from gristmill.stages.text.rules.c4 import C4Quality
    from gristmill.stages.text.rules.fineweb import FineWebQuality
    from gristmill.stages.text.rules.gopher_datatrove import GopherQuality, GopherRepetition
    from gristmill.stages.text.rules.gopher_dclm import DclmGopherQuality, DclmGopherRepetition
    from gristmill.stages.text.rules.gopher_dolma import DolmaGopher
    from gristmill.stages.text.rules.refinedweb import RefinedWebLines

__all__ = [
    "ApplyRules",
    "C4Quality",
    "DclmGopherQuality",
    "DclmGopherRepetition",
    "DolmaGopher",
    "FineWebQuality",
    "GopherQuality",
    "GopherRepetition",
    "RefinedWebLines",
    "Rule",
    "RuleSet",
    "Verdict",
]

_HOMES = {
    "c4": ("C4Quality",),
    "fineweb": ("FineWebQuality",),
    "gopher_datatrove": (
        "GopherQuality",
        "GopherRepetition",
    ),
    "gopher_dclm": (
        "DclmGopherQuality",
        "DclmGopherRepetition",
    ),
    "gopher_dolma": ("DolmaGopher",),
    "refinedweb": ("RefinedWebLines",),
}

if not TYPE_CHECKING:
    __getattr__ = fetched_from(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
