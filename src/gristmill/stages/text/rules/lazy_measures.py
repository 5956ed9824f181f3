"""`LazyMeasures`: the measures of one text, each taken when it is asked for. Nothing here knows a measure."""

from collections.abc import Callable, Iterator, Mapping


class LazyMeasures(Mapping[str, float]):
    """A text that breaks the first rule is never asked for what the later ones need, which may be most of the work."""

    def __init__(self, ways: Mapping[str, Callable[[], float]]) -> None:
        self._ways = ways
        self._taken: dict[str, float] = {}

    def __getitem__(self, name: str) -> float:
        if name not in self._taken:
            self._taken[name] = self._ways[name]()
        return self._taken[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ways)

    def __len__(self) -> int:
        return len(self._ways)
