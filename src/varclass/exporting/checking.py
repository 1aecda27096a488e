"""check_same: an exported model against the classifier it came from, at several batch sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from varclass.exporting.outputs import OUTPUTS, Outputs

BATCHES = (1, 2, 7)
# Probabilities: absolute. Log densities are sums over D dimensions and may be of any size, of which float32 has seven digits:
# the same 1e-4, and 1e-5 of the value.
ABSOLUTE, RELATIVE = 1e-4, {"log_joint": 1e-5, "posterior": 0.0, "log_evidence": 1e-5}
TOLERANCE = "1e-4 on probabilities, 1e-4 + 1e-5 |value| on logs"

Runner = Callable[[Tensor], Mapping[str, Any]]


def check_same(run: Runner, outputs: Outputs, inputs: Tensor) -> dict[str, float]:
    """The largest difference of each output; a ValueError where one is beyond the tolerance, or not finite."""
    worst = dict.fromkeys(OUTPUTS, 0.0)
    for rows in _batches(inputs):
        found, expected = run(rows), outputs.expected(rows)
        for name in OUTPUTS:
            got, wanted = np.asarray(found[name]), expected[name].numpy()
            if got.shape != wanted.shape:
                raise ValueError(f"the exported {name} must have shape {wanted.shape} for B = {len(rows)}; got {got.shape}")
            error = np.abs(got.astype(np.float64) - wanted)
            if not bool((error <= ABSOLUTE + RELATIVE[name] * np.abs(wanted)).all()):
                raise ValueError(
                    f"the exported model's {name} must be PyTorch's within {TOLERANCE}; got a difference of "
                    f"{error.max():.2g} at B = {len(rows)}: nothing was written"
                )
            worst[name] = max(worst[name], float(error.max()))
    return worst


def enough_rows(example: Tensor) -> Tensor:
    """The example's rows, at least as many as a check takes; what is added is the same rows with a little noise."""
    count = sum(BATCHES)
    if len(example) >= count:
        return example
    more = example.repeat(-(-count // len(example)), *[1] * (example.dim() - 1))[len(example) :]
    if example.is_floating_point():
        spread = float(example.std()) if example.numel() > 1 else 1.0
        more = more + 0.1 * (spread or 1.0) * torch.randn(more.shape, generator=torch.Generator().manual_seed(0))
    return torch.cat([example, more])


def _batches(inputs: Tensor) -> list[Tensor]:
    """Batches of 1, 2 and 7, and what is left."""
    return [*inputs[: sum(BATCHES)].split(BATCHES), *([inputs] if len(inputs) > sum(BATCHES) else [])]
