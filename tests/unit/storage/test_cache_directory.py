"""The cache is where the user's environment says."""

from pathlib import Path

import pytest

from gristmill.storage.cache_directory import cache_directory


@pytest.mark.parametrize(
    ("own", "shared", "expected"),
    [
        ("/own", "/shared", "/own"),
        ("", "/shared", "/shared/gristmill"),
        ("", "relative", "~/.cache/gristmill"),
        ("", "", "~/.cache/gristmill"),
        ("~/mine", "", "~/mine"),
    ],
)
def test_the_more_particular_variable_wins(monkeypatch, own, shared, expected):
    monkeypatch.setenv("GRISTMILL_CACHE_DIR", own)
    monkeypatch.setenv("XDG_CACHE_HOME", shared)

    assert cache_directory() == Path(expected).expanduser()
