"""log p(z) over many classes without ever holding the (B, C) log joint: class by chunk, recomputed in the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from varclass.core.targets import Target

DIRECT_LIMIT = 2**26  # entries of the log joint; past it (256 MiB in float32) the classes are taken in chunks
CHUNK_ENTRIES = 2**25


def choose_chunk(batch: int, num_classes: int) -> int | None:
    """Classes per chunk for a batch of this size, or None where the direct form is small enough."""
    if batch * num_classes <= DIRECT_LIMIT:
        return None
    return max(1, CHUNK_ENTRIES // batch)


def class_slices(num_classes: int, chunk: int) -> Iterator[slice]:
    """0..C in slices of at most `chunk` classes."""
    for start in range(0, num_classes, chunk):
        yield slice(start, min(start + chunk, num_classes))


def chunked_log_evidence(log_joint: Callable[[Tensor, slice], Tensor], z: Tensor, num_classes: int, chunk: int) -> Tensor:
    """logsumexp_y log p(z, y), (B, D) -> (B,), equal to the direct form in value and gradient.

    Peak memory is that of one chunk's (B, chunk) instead of (B, C); the price is one more forward product per chunk.
    """

    def evidence(z: Tensor, classes: slice) -> Tensor:
        return torch.logsumexp(log_joint(z, classes), dim=1)

    parts = [checkpoint(evidence, z, classes, use_reentrant=False) for classes in class_slices(num_classes, chunk)]
    return torch.logsumexp(torch.stack(parts, dim=1), dim=1)


def expected_over_classes(
    log_density: Callable[[Tensor, slice], Tensor], z: Tensor, target: Target, chunk: int | None
) -> Tensor:
    """E[ log density(z, y) ] under soft labels, a scalar; in one piece if `chunk` is None."""
    assert target.weight is not None

    def expectation(z: Tensor, weight: Tensor, classes: slice) -> Tensor:
        return (weight * log_density(z, classes)).sum()

    total = z.new_zeros(())
    for classes in class_slices(target.weight.shape[1], chunk or target.weight.shape[1]):
        weight = target.weight[:, classes]
        total = total + (
            checkpoint(expectation, z, weight, classes, use_reentrant=False) if chunk else expectation(z, weight, classes)
        )
    return total / target.weight.sum()
