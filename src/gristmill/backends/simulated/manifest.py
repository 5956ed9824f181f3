"""`Manifest`: what a simulated run has committed, so that two runs can be compared."""

import hashlib

from gristmill.engine.commands import Commit


class Manifest:
    """Committed source items and what became of each."""

    def __init__(self) -> None:
        self.roots: dict[int, tuple[str, ...]] = {}

    def add(self, commit: Commit) -> None:
        """A commit is durable."""
        self.roots[commit.root] = tuple(output.item_id for output in commit.outputs)

    def update(self, earlier: "Manifest") -> None:
        """Take over what an earlier run has committed."""
        self.roots |= earlier.roots

    def digest(self) -> str:
        """A hash of everything, whatever the order it came in."""
        state = hashlib.sha256()
        for root in sorted(self.roots):
            state.update(f"{root}:{','.join(self.roots[root])}\n".encode())
        return state.hexdigest()[:16]
