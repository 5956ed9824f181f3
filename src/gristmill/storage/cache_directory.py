"""Where gristmill keeps what it can do without: the user's cache directory."""

import os
from pathlib import Path


def cache_directory() -> Path:
    """Return `$GRISTMILL_CACHE_DIR`, else `gristmill` in `$XDG_CACHE_HOME` or in `~/.cache`. It need not exist."""
    own = os.environ.get("GRISTMILL_CACHE_DIR")
    if own:
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification wants relative paths ignored.
    base = Path(shared) if Path(shared).is_absolute() else Path.home() / ".cache"
    return base / "gristmill"
