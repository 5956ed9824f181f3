"""A model run by torch, on a CPU, a GPU or Apple's MPS. With torch_layouts.py, the one place that imports torch."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import EngineBug, OutOfMemory, require
from gristmill.models.device import CPU, choose_device
from gristmill.models.known_configs import max_length, pad_id
from gristmill.models.memory_limits import is_out_of_memory
from gristmill.models.runtime import Head, ModelSource, Precision

if TYPE_CHECKING:
    from gristmill.models.torch_layouts import Forward


class TorchRuntime:
    """A module on a device, without gradients."""

    def __init__(
        self,
        source: ModelSource,
        directory: Path,
        *,
        config: Mapping[str, object],
        device: str,
        threads: int,
        precision: Precision,
        head: Head,
    ) -> None:
        from gristmill.models.torch_layouts import build

        torch = require("torch", extra="torch")
        torch.set_num_threads(threads)
        self.device = choose_device(device, available_devices(torch), who=source.who)
        self.max_length = max_length(config)
        self.pad_id = pad_id(config)
        module, forward = build(source, directory, config, head)
        self._forward: Forward | None = forward
        # Half precision is for accelerators; a CPU would compute in it if weights were stored in it. A language model
        # of billions of weights stays as it is: twice the size might not fit.
        if self.device == CPU and head not in ("poison_guard", "generate"):
            module = module.float()
        self._module = module.eval().requires_grad_(requires_grad=False).to(self.device)
        self._autocast = autocast_type(torch, self.device, precision)
        self._torch = torch

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> tuple[NDArray[np.float32], ...]:
        """Return what the model answers for a padded batch."""
        torch, forward = self._torch, self._forward
        if forward is None:
            raise EngineBug("TorchRuntime: run after close")
        try:
            with torch.inference_mode(), self._casting():
                ids = torch.from_numpy(np.ascontiguousarray(input_ids)).to(self.device)
                mask = torch.from_numpy(np.ascontiguousarray(attention_mask)).to(self.device)
                return tuple(output.float().cpu().numpy() for output in forward(ids, mask))
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        # Outside of the handler: its traceback holds the tensors of the failed attempt.
        release(torch, self.device)
        rows, longest = input_ids.shape
        raise OutOfMemory(f"torch on {self.device}: {rows} rows of {longest} tokens do not fit")

    def close(self) -> None:
        """Drop the module."""
        self._module = self._forward = None
        release(self._torch, self.device)

    def _casting(self) -> Any:
        if self._autocast is None:
            return contextlib.nullcontext()
        return self._torch.autocast(self.device.partition(":")[0], dtype=self._autocast)


def available_devices(torch: Any) -> list[str]:
    """Return what torch can reach here, the best first."""
    devices = [f"cuda:{number}" for number in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    devices += ["mps"] if torch.backends.mps.is_available() else []
    return [*devices, CPU]


def autocast_type(torch: Any, device: str, precision: Precision) -> Any:
    """Return the type to compute in, or None for float32: what "auto" means on a CPU."""
    if precision == "float32" or (precision == "auto" and device == CPU):
        return None
    if precision == "auto":
        has_bfloat16 = device.startswith("cuda") and torch.cuda.is_bf16_supported()
        return torch.bfloat16 if has_bfloat16 else torch.float16
    return getattr(torch, precision)


def release(torch: Any, device: str) -> None:
    """Give back what torch keeps for later."""
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
    elif device == "mps":
        torch.mps.empty_cache()
