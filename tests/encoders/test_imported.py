"""Encoders by import path: features counted by a run that leaves no trace, and one-line errors."""

import pytest
import torch

from varclass.encoders.build import build_encoder

SOURCE = """
import torch
from torch import nn

class Good(nn.Module):
    def __init__(self, width=7, dropout=0.0):
        super().__init__()
        self.bn, self.frozen = nn.BatchNorm2d(3), nn.BatchNorm2d(3).eval()
        self.drop, self.linear = nn.Dropout(dropout), nn.Linear(3, width)
    def forward(self, x):
        torch.rand(1)  # uses the random state
        return self.linear(self.drop(self.frozen(self.bn(x)).mean((2, 3))))

class Maps(nn.Module):
    def forward(self, x):
        return x.mean((2, 3), keepdim=True)

class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
    def forward(self, x):
        return self.embedding(x)

class Pair(nn.Module):
    def forward(self, x):
        return x.flatten(1), None

class Whole(nn.Module):
    def forward(self, x):
        return x.flatten(1).long()

class Broken(nn.Module):
    def forward(self, x):
        raise RuntimeError("first line\\nsecond line")

def make(width=5):
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(width))

def bag():
    return nn.Sequential(nn.EmbeddingBag(9, 6))

def nothing():
    return 3

instance = nn.Identity()
class Outer:
    Inner = Good
"""
IMAGE = {"kind": "image", "shape": (3, 8, 8)}


@pytest.fixture(autouse=True)
def _modules(tmp_path, monkeypatch):
    (tmp_path / "someones_encoders.py").write_text(SOURCE)
    (tmp_path / "someones_broken.py").write_text("raise OSError('no such\\nlibrary')")
    monkeypatch.syspath_prepend(tmp_path)


def build(name, **options):
    return build_encoder(f"someones_encoders:{name}", **{**IMAGE, **options})


@pytest.mark.parametrize(
    ("name", "options", "features"),
    [("Good", {}, 7), ("Good", {"width": 9}, 9), ("make", {"width": 4}, 4), ("Outer.Inner", {}, 7)],
)
def test_features_are_counted(name, options, features):
    encoder = build(name, options=options)
    assert encoder.out_features == features
    assert encoder(torch.rand(4, 3, 8, 8)).shape == (4, features)


def test_texts_and_vectors():
    assert build("bag", kind="text", shape=(10,)).out_features == 6
    assert (
        build_encoder("torch.nn:Linear", kind="vector", shape=(4,), options={"in_features": 4, "out_features": 2}).out_features
        == 2
    )


def test_the_run_leaves_no_trace():
    torch.manual_seed(0)
    encoder = build("Good")
    after = torch.rand(3)
    torch.manual_seed(0)
    from someones_encoders import Good  # noqa: PLC0415 (exists while the fixture lives)

    alone = Good()
    assert torch.equal(after, torch.rand(3))
    assert all(
        torch.equal(a, b) for a, b in zip(encoder.module.state_dict().values(), alone.state_dict().values(), strict=True)
    )
    assert [m.training for m in encoder.module.modules()] == [m.training for m in alone.modules()]
    assert all(parameter.grad is None and parameter.requires_grad for parameter in encoder.parameters())


def test_dropout_is_passed_on_where_it_is_asked_for():
    assert build("Good", dropout=0.4).module.drop.p == 0.4
    with pytest.raises(ValueError, match=r"^.*make.*dropout.*$"):
        build("make", dropout=0.4)


@pytest.mark.parametrize(
    ("name", "kind", "parts"),
    [
        ("someones_encoders:", ValueError, ["package.module:ClassName"]),
        (":Good", ValueError, ["package.module:ClassName"]),
        ("no_such_package:Good", ValueError, ["could not be imported", "ModuleNotFoundError", "no_such_package"]),
        ("someones_broken:Good", ValueError, ["could not be imported", "OSError", "no such"]),
        ("someones_encoders:Missing", ValueError, ["could not be imported", "Missing"]),
        ("someones_encoders:torch", TypeError, ["nn.Module class or a function", "module 'torch'"]),
        ("someones_encoders:instance", TypeError, ["nn.Module class or a function", "Identity"]),
        ("someones_encoders:nothing", TypeError, ["it returned int"]),
        ("someones_encoders:Maps", ValueError, ["(B, F)", "(2, 3, 1, 1)", "nn.Flatten"]),
        ("someones_encoders:Pair", TypeError, ["(B, F)", "tuple"]),
        ("someones_encoders:Whole", TypeError, ["floating-point", "torch.int64"]),
        ("someones_encoders:Broken", ValueError, ["failed on inputs of shape (2, 3, 8, 8)", "RuntimeError: first line"]),
    ],
)
def test_errors(name, kind, parts):
    with pytest.raises(kind) as caught:
        build_encoder(name, **IMAGE)
    text = str(caught.value)
    assert "\n" not in text
    assert [part for part in parts if part not in text] == []


def test_errors_of_the_constructor_and_of_token_maps():
    with pytest.raises(ValueError, match=r"could not be built with options .*'depth'.*TypeError"):
        build("Good", options={"depth": 3})
    with pytest.raises(ValueError, match=r"\(2, 10, 4\).*mean over places"):
        build("Tokens", kind="text", shape=(10,))
