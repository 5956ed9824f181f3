"""`RankingStrategy`: whom to keep within a cluster, by columns of the documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gristmill.errors import ConfigError


@dataclass(frozen=True)
class RankingStrategy:
    """Prefer documents by `metadata_cols`, the first one first: low values with `ascending`, else high ones."""

    metadata_cols: Sequence[str]
    ascending: bool | Sequence[bool] = True
    strategy: Literal["sort"] = "sort"

    def __post_init__(self) -> None:
        if self.strategy != "sort":
            raise ConfigError(
                f"RankingStrategy: expected strategy 'sort'; got {self.strategy!r} (which_to_keep='random' is random)"
            )
        if not isinstance(self.ascending, bool) and len(self.ascending) != len(self.metadata_cols):
            raise ConfigError(
                f"RankingStrategy: expected ascending to be one bool, or one for each of {list(self.metadata_cols)}; "
                f"got {self.ascending!r}"
            )

    @classmethod
    def metadata_based(
        cls, metadata_cols: Sequence[str], *, ascending: bool | Sequence[bool] = True
    ) -> "RankingStrategy":
        """Return a strategy that sorts by columns."""
        return cls(tuple(metadata_cols), ascending)

    @property
    def directions(self) -> list[tuple[str, bool]]:
        """Each column, and whether low values are better."""
        ascending = [self.ascending] * len(self.metadata_cols) if isinstance(self.ascending, bool) else self.ascending
        return list(zip(self.metadata_cols, ascending, strict=True))
