"""Random numbers that are the same on every machine and under every version of numpy."""

from __future__ import annotations

import numpy as np

from varclass.metrics.arguments import check_count


def uniform(count: int, seed: int, stream: int = 0) -> np.ndarray:
    """`count` draws from U[0, 1), (count,); streams of one seed are independent of each other.

    >>> uniform(2, seed=0).tolist() == uniform(3, seed=0)[:2].tolist(), uniform(1, seed=0) == uniform(1, seed=0, stream=1)
    (True, array([False]))
    """
    bits = np.random.PCG64(np.random.SeedSequence([check_count("seed", seed, 0), stream]))
    # The raw output of PCG64 is fixed for good; what a Generator makes of it may change between versions.
    raw = np.asarray(bits.random_raw(count), dtype=np.uint64)
    return (raw >> np.uint64(11)) * 2.0**-53
