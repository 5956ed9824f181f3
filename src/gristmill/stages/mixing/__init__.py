"""How often a document is in the output."""

from typing import TYPE_CHECKING

from gristmill.lazy_names import fetched_from

if TYPE_CHECKING:
    from gristmill.stages.mixing.sample_by_bucket import SampleByBucket

__all__ = ["SampleByBucket"]

_HOMES = {
    "sample_by_bucket": ("SampleByBucket",),
}

if not TYPE_CHECKING:
    __getattr__ = fetched_from(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
