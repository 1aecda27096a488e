"""Natural images of any size for the tests of corruptions: crops of scikit-learn's two photographs."""

from functools import lru_cache

import numpy as np
import pytest
import torch


@pytest.fixture(scope="session")
def photographs():
    """uint8 (N, C, side, side): crops at random places, scaled down from four times the side so that they hold real detail."""
    datasets = pytest.importorskip("sklearn.datasets")
    image = pytest.importorskip("PIL.Image")
    pictures = [datasets.load_sample_image(name) for name in ("china.jpg", "flower.jpg")]

    @lru_cache(maxsize=32)
    def made(count, channels, side):
        rng, kept = np.random.default_rng(0), []
        for number in range(count):
            picture = pictures[number % 2]
            top, left = rng.integers(0, [length - 4 * side + 1 for length in picture.shape[:2]])
            crop = image.fromarray(picture[top : top + 4 * side, left : left + 4 * side])
            crop = crop.convert("L" if channels == 1 else "RGB").resize((side, side), image.Resampling.BOX)
            kept.append(np.asarray(crop).reshape(side, side, channels))
        return torch.from_numpy(np.stack(kept)).permute(0, 3, 1, 2).contiguous()

    return lambda count, channels, side: made(count, channels, side).clone()
