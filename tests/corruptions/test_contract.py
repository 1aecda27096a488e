"""What every corruption must do, at every severity and on every shape of image."""

import pytest
import torch

from varclass.data.corruptions import CORRUPTIONS, SEVERITIES, apply, corrupt

SHAPES = [(1, 28), (3, 32), (3, 64)]


def unchanged_by_nature(name, severity, channels):
    """Saturation of a gray image: there is none to change."""
    return name == "saturate" and channels == 1 and severity <= 3


@pytest.mark.parametrize(("channels", "side"), SHAPES)
@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("name", CORRUPTIONS)
def test_images_come_back_changed_and_the_same_in_any_batch(photographs, name, severity, channels, side):
    images = photographs(5, channels, side)
    kept = images.clone()
    result = corrupt(images, name, severity, seed=3, first=7)
    assert result.shape == images.shape
    assert result.dtype == torch.uint8
    assert torch.equal(images, kept), "the images themselves must stay"
    changed = (result != images).flatten(1).any(1)
    assert changed.any() == changed.all() != unchanged_by_nature(name, severity, channels)
    assert torch.equal(result, corrupt(images, name, severity, seed=3, first=7))
    parts = [corrupt(images[:2], name, severity, 3, 7), corrupt(images[2:3], name, severity, 3, 9)]
    assert torch.equal(result[:3], torch.cat(parts))


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_thousand_at_once_are_a_thousand_by_one(photographs, name):
    """A sum's order may depend on the size of a batch; the bytes must not. Sampled, since one by one is slow."""
    images = photographs(50, 3, 32).repeat(20, 1, 1, 1)
    result = corrupt(images, name, 3, seed=0)
    for place in (0, 1, 169, 170, 171, 500, 999):
        assert torch.equal(result[place], corrupt(images[place : place + 1], name, 3, seed=0, first=place)[0])


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_blocks_leave_no_seam(monkeypatch, photographs, name):
    images = photographs(7, 3, 32)
    whole = corrupt(images, name, 4, seed=1)
    monkeypatch.setitem(apply.BLOCK_BYTES, "cpu", 3 * 8 * 3 * 32 * 32)
    assert torch.equal(corrupt(images, name, 4, seed=1), whole)


RANDOM = [name for name in CORRUPTIONS if name not in {"defocus_blur", "zoom_blur", "brightness", "contrast", "pixelate"}]
RANDOM = [name for name in RANDOM if name not in {"jpeg_compression", "gaussian_blur", "saturate"}]


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_random_types_and_only_they_depend_on_seed_and_index(photographs, name):
    images = photographs(1, 3, 32).repeat(2, 1, 1, 1)
    result = corrupt(images, name, 3, seed=0)
    others = [result[1], corrupt(images, name, 3, seed=1)[0]]
    assert [not torch.equal(result[0], other) for other in others] == [name in RANDOM] * 2


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 8, 8), (3, 28, 45), (3, 96, 96), (1, 33, 31), (3, 128, 90)])
@pytest.mark.parametrize("name", CORRUPTIONS)
def test_other_sizes_work(name, shape):
    images = torch.arange(2 * shape[0] * shape[1] * shape[2]).remainder(251).to(torch.uint8).reshape(2, *shape)
    for severity in (1, 5):
        assert corrupt(images, name, severity, seed=0).shape == images.shape


@pytest.mark.parametrize("value", [0, 255])
@pytest.mark.parametrize("name", CORRUPTIONS)
def test_black_and_white_images_are_no_special_case(name, value):
    for channels in (1, 3):
        images = torch.full((2, channels, 28, 28), value, dtype=torch.uint8)
        assert corrupt(images, name, 5, seed=0).shape == images.shape


def test_layouts_and_empty_batches_make_no_difference(photographs):
    images = photographs(4, 3, 32)
    last = images.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    assert torch.equal(corrupt(last, "fog", 2, seed=0), corrupt(images, "fog", 2, seed=0))
    assert corrupt(images[:0], "fog", 2, seed=0).shape == (0, 3, 32, 32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "rain"}, "name must be one of 'gaussian_noise', .*; got 'rain'"),
        ({"severity": 0}, "severity must be a whole number from 1 to 5; got 0"),
        ({"severity": 6}, "severity must be a whole number from 1 to 5; got 6"),
        ({"severity": True}, "severity must be a whole number from 1 to 5; got True"),
        ({"seed": -1}, "seed must be a whole number of at least 0; got -1"),
        ({"first": 1.5}, "first must be a whole number of at least 0; got 1.5"),
        ({"images": torch.zeros(1, 3, 32, 32)}, r"images must be a uint8 tensor \(B, C, H, W\); got torch.float32"),
        ({"images": [1]}, r"images must be a uint8 tensor \(B, C, H, W\); got list"),
        ({"images": torch.zeros(3, 32, 32, dtype=torch.uint8)}, r"got torch.uint8 \(3, 32, 32\)"),
        ({"images": torch.zeros(1, 32, 32, 3, dtype=torch.uint8)}, r"1 or 3 channels .* got \(32, 32, 3\)"),
        ({"images": torch.zeros(1, 3, 7, 32, dtype=torch.uint8)}, r"at least 8x8 pixels; got \(3, 7, 32\)"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(change, message):
    good = {"images": torch.zeros(1, 3, 32, 32, dtype=torch.uint8), "name": "fog", "severity": 1, "seed": 0, "first": 0}
    with pytest.raises(ValueError, match=message) as caught:
        corrupt(**{**good, **change})
    assert "\n" not in str(caught.value)
