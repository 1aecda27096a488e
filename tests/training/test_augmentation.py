"""Augmentations against plain loops over one image at a time."""

import numpy as np
import pytest
import torch

from varclass.training.augmentation import AUGMENTATIONS, CHANCES, augment, smooth

B, C, H, W = 40, 3, 16, 24


@pytest.fixture
def images():
    return torch.from_numpy(np.random.default_rng(0).integers(0, 256, (B, C, H, W), dtype=np.uint8))


@pytest.fixture
def chance():
    return torch.from_numpy(np.random.default_rng(1).random((B, CHANCES)))


def plain_crop(image, chance):
    padded = np.pad(image, ((0, 0), (2, 2), (2, 2)), mode="reflect")  # 4 pixels on 32, 2 on 16
    top, left = int(chance[0] * 5), int(chance[1] * 5)
    return padded[:, top : top + H, left : left + W]


def plain_flip(image, chance):
    return image[:, :, ::-1] if chance[2] < 0.5 else image


def plain_cutout(image, chance):
    out, mean = image.copy(), image.astype(np.float32).mean()
    for row in range(H):
        for column in range(W):
            if abs(row + 0.5 - chance[3] * H) < H / 4 and abs(column + 0.5 - chance[4] * W) < W / 4:
                out[:, row, column] = np.uint8(mean)
    return out


PLAIN = {"crop": plain_crop, "flip": plain_flip, "cutout": plain_cutout}


@pytest.mark.parametrize("names", [(name,) for name in AUGMENTATIONS] + [("crop", "flip", "cutout"), ("cutout", "crop")])
def test_each_image_is_what_a_plain_loop_makes_of_it(names, images, chance):
    out = augment(images, names, chance)
    assert out.dtype == images.dtype
    for i in range(B):
        expected = images[i].numpy()
        for name in names:
            expected = PLAIN[name](expected, chance[i].numpy())
        assert np.array_equal(out[i].numpy(), expected)


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_images_are_augmented_each_in_its_own_way(name, images, chance):
    alike = images[:1].expand(B, -1, -1, -1)
    ways = {image.numpy().tobytes() for image in AUGMENTATIONS[name](alike, chance)}
    assert (
        len(ways) == (2 if name == "flip" else len({PLAIN[name](images[0].numpy(), c.numpy()).tobytes() for c in chance})) > 1
    )


def test_chances_at_their_ends_stay_inside_the_image(images):
    for value in (0.0, 1 - 2**-24):
        out = augment(images.float(), ("crop", "flip", "cutout"), torch.full((B, CHANCES), value))
        assert out.shape == images.shape
        assert out.isfinite().all()


def test_smoothing_gives_away_the_same_to_every_class():
    soft = smooth(torch.tensor([2, 0]), 4, 0.2)
    np.testing.assert_allclose(soft, [[0.05, 0.05, 0.85, 0.05], [0.85, 0.05, 0.05, 0.05]], rtol=1e-6)
