"""Sizes are read as people write them, and anything else is refused."""

import pytest

from gristmill.errors import ConfigError
from gristmill.storage.sizes import parse_size


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (7, 7),
        ("7", 7),
        ("1kB", 1000),
        ("1KiB", 1024),
        ("256MiB", 256 * 1024**2),
        ("1.5 GB", 1_500_000_000),
        ("2g", 2 * 10**9),
    ],
)
def test_a_size_is_bytes(written, expected):
    assert parse_size(written) == expected


@pytest.mark.parametrize("written", ["", "big", "-1", "1XB", 0, "0", 1.5, True, None])
def test_what_is_no_size_is_refused_with_an_example(written):
    with pytest.raises(ConfigError, match=r"^blocksize: expected "):
        parse_size(written, who="blocksize")
