"""Pretended work that is a function of the item alone, so that a task done again makes the same outputs."""

import zlib
from dataclasses import dataclass

from gristmill.engine.commands import Assignment
from gristmill.testing.virtual_run import Deed


@dataclass(frozen=True)
class Fanning:
    """0 to `fan_out` outputs of up to `max_bytes`, some of them streamed, as the seed and the item's name say."""

    seed: int = 0
    fan_out: int = 3
    max_bytes: int = 40
    streaming: bool = True

    def __call__(self, group: int, assignment: Assignment) -> Deed:
        dice = zlib.crc32(f"{self.seed}:{group}:{assignment.item_id}".encode())
        made = dice % (self.fan_out + 1)
        sizes = tuple((dice >> (4 + n)) % (self.max_bytes + 1) for n in range(made))
        streamed = (dice >> 16) % (made + 1) if self.streaming else 0
        return Deed(sizes, streamed, service_s=0.001 * (1 + (dice >> 20) % 50))
