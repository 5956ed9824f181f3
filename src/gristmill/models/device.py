"""Which device a model runs on. "auto" takes an accelerator this worker was given, else the CPU."""

from collections.abc import Sequence

from gristmill.errors import ConfigError

CPU = "cpu"
# Padded tokens of a batch, unless set otherwise. On a CPU small batches are the fastest: 1,024 beat 4,096 and 16,384 in
# each of five rounds (docs/log). The number for accelerators is a guess that memory corrects.
CPU_BATCH_TOKENS = 1024
ACCELERATOR_BATCH_TOKENS = 65_536


def choose_device(wanted: str, available: Sequence[str], *, who: str) -> str:
    """Return the device to use, out of those a library can reach here, best first.

    >>> choose_device("auto", ["cuda:0", "cpu"], who="model")
    'cuda:0'
    """
    if wanted == "auto":
        return available[0]
    full = "cuda:0" if wanted == "cuda" else wanted
    if full not in available:
        raise ConfigError(f"{who}: expected device to be 'auto' or one of {list(available)}; got {wanted!r}")
    return full


def default_batch_tokens(device: str) -> int:
    """Return the token budget of a batch on a device."""
    return CPU_BATCH_TOKENS if device == CPU else ACCELERATOR_BATCH_TOKENS
