"""Sizes in bytes as people write them."""

import re

from gristmill.errors import ConfigError

_UNITS = {
    "": 1, "b": 1,
    "k": 1000, "kb": 1000, "kib": 1024,
    "m": 1000**2, "mb": 1000**2, "mib": 1024**2,
    "g": 1000**3, "gb": 1000**3, "gib": 1024**3,
    "t": 1000**4, "tb": 1000**4, "tib": 1024**4,
}  # fmt: skip


def parse_size(size: int | str, *, who: str = "size") -> int:
    """Return a number of bytes.

    >>> parse_size("256MiB"), parse_size("1.5 GB"), parse_size(100)
    (268435456, 1500000000, 100)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(size))
    if match is None or match[2].lower() not in _UNITS or isinstance(size, bool | float):
        raise ConfigError(f'{who}: expected a number of bytes or a size like "256MiB" or "1GB"; got {size!r}')
    count = (
        int(float(match[1]) * _UNITS[match[2].lower()]) if "." in match[1] else int(match[1]) * _UNITS[match[2].lower()]
    )
    if count < 1:
        raise ConfigError(f"{who}: expected at least one byte; got {size!r}")
    return count
