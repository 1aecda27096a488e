"""The text encoder: padding counts for nothing, order counts, an empty text is a text."""

import pytest
import torch

from varclass.encoders.text import TextEncoder


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return TextEncoder(length=16, vocabulary=100, width=32).double()


def test_padding_does_not_change_the_features(encoder):
    short = torch.randint(1, 100, (4, 7))
    padded = torch.cat([short, torch.zeros(4, 9, dtype=torch.int64)], dim=1)
    torch.testing.assert_close(encoder(padded), encoder(short), rtol=1e-9, atol=1e-12)
    with torch.no_grad():
        encoder.token.weight[0] += 100.0
    torch.testing.assert_close(encoder(padded), encoder(short), rtol=1e-9, atol=1e-12)


def test_a_text_does_not_see_the_others_in_its_batch(encoder):
    texts = torch.randint(1, 100, (3, 16))
    texts[1, 4:] = 0
    texts[2] = 0
    alone = torch.cat([encoder(row.unsqueeze(0)) for row in texts])
    torch.testing.assert_close(encoder(texts), alone, rtol=1e-9, atol=1e-12)


def test_empty_texts_have_finite_features_and_gradients(encoder):
    out = encoder(torch.zeros(2, 16, dtype=torch.int64))
    out.square().sum().backward()
    assert out.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in encoder.parameters())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_empty_texts_in_half_precision(encoder, dtype):
    assert encoder.to(dtype)(torch.tensor([[0, 0, 0], [5, 0, 0]])).isfinite().all()


def test_the_order_of_words_and_of_a_pair_counts(encoder):
    assert not torch.allclose(encoder(torch.tensor([[5, 6, 7]])), encoder(torch.tensor([[7, 6, 5]])))
    assert not torch.allclose(encoder(torch.tensor([[5, 6, 1, 8, 9]])), encoder(torch.tensor([[8, 9, 1, 5, 6]])))


def test_the_second_text_of_a_pair_is_told_apart(encoder):
    pair = torch.tensor([[5, 1, 8]])
    before = encoder(pair)
    single = encoder(pair.clamp(min=2))
    with torch.no_grad():
        encoder.segment.weight[1] += torch.linspace(-1, 1, 32, dtype=torch.float64)
    assert not torch.allclose(encoder(pair), before)
    assert torch.equal(encoder(pair.clamp(min=2)), single)


def test_too_many_tokens(encoder):
    with pytest.raises(ValueError, match=r"L up to 16; got shape \(2, 17\)"):
        encoder(torch.ones(2, 17, dtype=torch.int64))
