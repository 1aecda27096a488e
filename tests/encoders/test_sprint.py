"""The encoder that trains fast: whitened patches, convolutions that start as identities, biases that learn fast, mirrors."""

from itertools import pairwise

import pytest
import torch
from torch.nn import functional as F

from varclass.encoders.build import build_encoder
from varclass.encoders.sprint import BIAS, FEATURE, Norm, Sprint, Stage, Whitening


def images(count=64, channels=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.randn(count, channels, 8, 8, generator=generator)
    return F.interpolate(coarse, scale_factor=4, mode="bilinear") + 0.1 * torch.randn(
        count, channels, 32, 32, generator=generator
    )


def test_whitened_patches_vary_by_one_in_every_direction_and_in_none_together():
    layer, x = Whitening(3), images()
    layer.fit(x)
    found = layer(x).detach()[:, :12].double().permute(1, 0, 2, 3).flatten(1)
    moments = found @ found.T / found.shape[1]
    off = moments - moments.diagonal().diag()
    assert off.abs().max() < 1e-3
    assert moments.diagonal().max() <= 1
    assert moments.diagonal().min() > 0.9  # but for what SMALLEST_VARIANCE takes from directions that hardly vary
    assert torch.equal(layer.filters[12:], -layer.filters[:12])


def test_before_it_saw_images_a_patch_is_its_pixels():
    x = images(2)
    found = Whitening(3)(x)
    assert torch.equal(found[:, 0], x[:, 0, :-1, :-1])
    assert torch.equal(found[:, 12], -x[:, 0, :-1, :-1])


def test_filters_are_saved_and_not_learned():
    encoder = Sprint(8)
    encoder.look_at(images())
    assert "whitening.filters" in encoder.state_dict()
    assert all(parameter is not encoder.whitening.filters for parameter in encoder.parameters())
    other = Sprint(8)
    other.load_state_dict(encoder.state_dict())
    assert torch.equal(other.whitening.filters, encoder.whitening.filters)


def test_convolutions_start_by_passing_their_input_on():
    stage, x = Stage(4, 6, 0.0), images(2, 4)
    assert torch.equal(stage.first[0](x)[:, :4], x)
    assert torch.equal(stage.residual[0](F.pad(x, (0, 0, 0, 0, 0, 2))), F.pad(x, (0, 0, 0, 0, 0, 2)))


def test_a_bias_moves_by_the_square_of_its_factor():
    norm, x = Norm(3), images(8)
    optimizer = torch.optim.SGD(norm.parameters(), lr=0.1)
    before = norm(x).detach()
    norm(x).mean().backward()
    optimizer.step()
    torch.testing.assert_close(norm(x), before - 0.1 * BIAS**2 / 3)


def test_mirrored_features_are_those_of_the_mirror_image_in_eval_mode_alone():
    torch.manual_seed(0)
    encoder, x = Sprint(8, mirror=True), images(4)
    assert not torch.allclose(encoder(x), encoder(x.flip(-1)))
    encoder.eval()
    torch.testing.assert_close(encoder(x), encoder(x.flip(-1)))
    plain = Sprint(8).eval()
    plain.load_state_dict(encoder.state_dict())
    torch.testing.assert_close(encoder(x), (plain(x) + plain(x.flip(-1))) / 2)


def test_features_are_the_largest_of_the_last_map():
    encoder, x = Sprint(8).eval(), images(2)
    last = encoder.stages(encoder.whitening(x))
    assert last.shape == (2, 32, 3, 3)
    torch.testing.assert_close(encoder(x), FEATURE * last.flatten(2).max(2).values)


def test_as_many_parameters_as_published():
    """airbench96 counts 9.9 million at width 128; by formula, with 24 + 9 norms' biases and no output layer."""
    widths = (24, 128, 384, 512)
    expected = 24 + sum(9 * (a * b + 2 * b * b) + 3 * b for a, b in pairwise(widths))
    assert sum(parameter.numel() for parameter in Sprint(128).parameters()) == expected == 9_910_296


@pytest.mark.parametrize(
    ("options", "shape", "message"),
    [
        ({"mirror": 1}, (3, 32, 32), "sprint mirror must be true or false; got 1"),
        ({}, (3, 8, 8), "sprint takes images from 16x16 on; got 8x8: use 'lenet'"),
    ],
)
def test_what_it_refuses(options, shape, message):
    with pytest.raises(ValueError, match=message):
        build_encoder("sprint-8", kind="image", shape=shape, options=options)
