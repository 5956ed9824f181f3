"""Which texts become candidates: the S-curve of a banding, and the smallest banding that finds what it should.

Two texts of similarity s share at least one of b bands of r positions with probability 1 - (1 - s**r)**b.
"""

from typing import NamedTuple

DEFAULT_ROWS = 5  # a narrow band finds more at the price of more candidates, all of which are verified
DEFAULT_RECALL = 0.9998  # 22 bands of 5 at 0.8; the hash family is not perfect, so a little more than 0.999
MAX_BANDS = 512


class Banding(NamedTuple):
    """How a signature is cut."""

    num_bands: int
    rows: int

    def probability(self, similarity: float) -> float:
        """Return how likely two texts of this similarity become candidates."""
        return float(1 - (1 - similarity**self.rows) ** self.num_bands)

    def curve(self) -> str:
        """Return the S-curve as lines for people to read."""
        shares = [(step / 20, self.probability(step / 20)) for step in range(6, 21)]
        lines = [f"{similarity:6.2f}  {'#' * round(40 * share):<40}  {share:8.3%}" for similarity, share in shares]
        head = f"candidates at {self.num_bands} bands of {self.rows}: similarity, share of pairs that are compared"
        return "\n".join([head, *lines])


def choose_bands(threshold: float, *, rows: int = DEFAULT_ROWS, recall: float = DEFAULT_RECALL) -> Banding:
    """Return the fewest bands that find a pair at the threshold with this probability.

    >>> choose_bands(0.8)
    Banding(num_bands=22, rows=5)
    """
    for num_bands in range(1, MAX_BANDS + 1):
        if Banding(num_bands, rows).probability(threshold) >= recall:
            return Banding(num_bands, rows)
    # A low threshold needs narrower bands: with one row a band is a single minimum.
    return choose_bands(threshold, rows=rows - 1, recall=recall) if rows > 1 else Banding(MAX_BANDS, 1)
