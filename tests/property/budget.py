"""How much is tried: a few hundred seeds in `make test`, thousands in `make test-nightly`."""

import os

SEEDS = int(os.environ.get("GRISTMILL_SEEDS", "200"))
