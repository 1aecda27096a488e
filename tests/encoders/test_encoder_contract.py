"""What every registered encoder does: features (B, F), gradients everywhere, dropout where asked, the same numbers twice."""

import copy

import pytest
import torch
from torch import nn

from varclass.encoders.build import build_encoder
from varclass.encoders.contract import ENCODERS

# name, kind, shape of one input, features as documented
CASES = [
    ("wrn-10-1", "image", (3, 16, 16), 64),
    ("wrn-16-2", "image", (1, 8, 8), 128),
    ("resnet-18", "image", (3, 16, 16), 512),
    ("resnet-50", "image", (1, 16, 16), 2048),
    ("sprint-8", "image", (3, 16, 16), 32),
    ("sprint-6", "image", (1, 28, 33), 24),
    ("lenet", "image", (1, 8, 8), 64),
    ("lenet", "image", (1, 28, 28), 64),
    ("lenet", "image", (3, 41, 50), 64),
    ("mlp", "image", (3, 8, 8), 64),
    ("mlp", "vector", (13,), 64),
    ("text", "text", (12,), 256),
]
IDS = [f"{name}-{kind}-{'x'.join(map(str, shape))}" for name, kind, shape, _ in CASES]
every = pytest.mark.parametrize(("name", "kind", "shape", "features"), CASES, ids=IDS)


def inputs(kind: str, shape: tuple[int, ...], batch: int = 5) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    if kind == "text":
        return torch.randint(1, 300, (batch, *shape), generator=generator)
    return torch.rand(batch, *shape, generator=generator)


def build(name, kind, shape, dropout=0.0):
    torch.manual_seed(0)
    return build_encoder(name, kind=kind, shape=shape, dropout=dropout)


def test_every_registered_encoder_is_here():
    assert {name.split("-")[0] for name, *_ in CASES} == set(ENCODERS)


@every
def test_features(name, kind, shape, features):
    encoder = build(name, kind, shape)
    assert type(encoder.out_features) is int
    assert encoder.out_features == features
    out = encoder(inputs(kind, shape))
    assert out.shape == (5, features)
    assert out.dtype == torch.float32
    assert encoder.eval()(inputs(kind, shape, 1)).shape == (1, features)


@every
def test_a_gradient_reaches_every_parameter(name, kind, shape, features):
    encoder = build(name, kind, shape)
    x = inputs(kind, shape)
    if kind == "text":
        x[:, 5] = 1  # pairs, or the embedding of the second text is not used
    encoder(x).square().sum().backward()
    assert [key for key, value in encoder.named_parameters() if value.grad is None or not value.grad.any()] == []


@every
def test_without_dropout_training_mode_is_deterministic(name, kind, shape, features):
    encoder, x = build(name, kind, shape), inputs(kind, shape)
    assert torch.equal(encoder(x), encoder(x))


@every
def test_dropout_acts_in_training_and_not_in_evaluation(name, kind, shape, features):
    encoder, x = build(name, kind, shape, dropout=0.5), inputs(kind, shape)
    first, second = encoder(x), encoder(x)
    assert not torch.equal(first, second)
    plain = build(name, kind, shape).eval()
    plain.load_state_dict(encoder.state_dict())
    assert torch.equal(encoder.eval()(x), plain(x))


@every
def test_dropout_is_a_module_and_leaves_the_features_whole(name, kind, shape, features):
    """Monte-Carlo dropout switches on the nn.Dropout modules of a model in eval mode, and them alone."""
    encoder, x = build(name, kind, shape, dropout=0.5).eval(), inputs(kind, shape)
    for module in encoder.modules():
        if isinstance(module, nn.Dropout):
            module.train()
    first, second = encoder(x), encoder(x)
    assert not torch.equal(first, second)
    last = [module for module in encoder.modules() if not list(module.children())][-1]
    assert not isinstance(last, nn.Dropout)


@every
def test_a_copy_and_a_loaded_state_give_the_same_features(name, kind, shape, features):
    encoder, x = build(name, kind, shape), inputs(kind, shape)
    encoder(x)  # batch statistics move
    copied = copy.deepcopy(encoder).eval()
    torch.manual_seed(7)
    loaded = build_encoder(name, kind=kind, shape=shape).eval()
    loaded.load_state_dict(encoder.state_dict())
    expected = encoder.eval()(x)
    assert torch.equal(copied(x), expected)
    assert torch.equal(loaded(x), expected)


@every
def test_features_of_a_sample_do_not_depend_on_its_batch_in_evaluation(name, kind, shape, features):
    encoder, x = build(name, kind, shape).double().eval(), inputs(kind, shape)
    x = x if kind == "text" else x.double()
    torch.testing.assert_close(encoder(x)[2:3], encoder(x[2:3]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("name", "shape"), [(n, s) for n, kind, s, _ in CASES if kind == "image"])
def test_channels_last_gives_the_same_numbers(name, shape):
    encoder = build(name, "image", shape).double()
    x = inputs("image", shape).double()
    expected = encoder(x)
    turned = encoder.to(memory_format=torch.channels_last)(x.contiguous(memory_format=torch.channels_last))
    torch.testing.assert_close(turned, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("name", "kind", "shape"), [("wrn-10-1", "image", (3, 8, 8)), ("text", "text", (12,))])
def test_compiles_as_one_graph(name, kind, shape):
    encoder, x = build(name, kind, shape), inputs(kind, shape)
    compiled = torch.compile(encoder, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), encoder(x), rtol=1e-5, atol=1e-5)  # float32, up to 10 layers deep
    compiled(x).sum().backward()


@every
def test_bfloat16_autocast(name, kind, shape, features):
    encoder = build(name, kind, shape)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = encoder(inputs(kind, shape))
    assert out.shape == (5, features)
    assert out.isfinite().all()
