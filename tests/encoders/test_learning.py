"""Encoders learn: with a linear layer on top, each fits what it is for in seconds."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

from varclass.encoders.build import build_encoder
from varclass.encoders.standardize import Standardize
from varclass.encoders.tokenizer import HashTokenizer


def fit(encoder, x, y, classes, *, epochs, lr, batch=64):
    model = nn.Sequential(encoder, nn.Linear(encoder.out_features, classes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, epochs * (len(x) // batch + 1))
    for _ in range(epochs):
        for index in torch.randperm(len(x)).split(batch):
            optimizer.zero_grad()
            F.cross_entropy(model(x[index]), y[index]).backward()
            optimizer.step()
            schedule.step()
    return model.eval()


@torch.no_grad()
def accuracy(model, x, y) -> float:
    return float((model(x).argmax(1) == y).float().mean())


def digits():
    data = load_digits()
    images = np.round(data.images * (255 / 16)).astype(np.uint8)[..., None]
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = images[order], torch.from_numpy(data.target[order])
    x = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
    return Standardize.fit(images[:1200], "image"), x, labels


def test_lenet_and_mlp_learn_the_digits():
    standardize, x, y = digits()
    for name, at_least in (("lenet", 0.97), ("mlp", 0.95)):
        torch.manual_seed(0)
        encoder = build_encoder(name, kind="image", shape=(1, 8, 8), dropout=0.1)
        encoder = nn.Sequential(standardize, encoder)
        encoder.out_features = 64
        model = fit(encoder, x[:1200], y[:1200], 10, epochs=6, lr=3e-3)
        assert accuracy(model, x[1200:], y[1200:]) >= at_least, name


def test_a_wide_resnet_learns_the_digits():
    standardize, x, y = digits()
    torch.manual_seed(0)
    encoder = nn.Sequential(standardize, build_encoder("wrn-10-1", kind="image", shape=(1, 8, 8)))
    encoder.out_features = 64
    model = fit(encoder, x[:1200], y[:1200], 10, epochs=4, lr=1e-2)
    assert accuracy(model, x[1200:], y[1200:]) >= 0.95


def who_bit_whom(n: int, seed: int) -> tuple[np.ndarray, torch.Tensor]:
    """Was it the dog that bit? Both answers are made of the same words, so that a bag of words is at chance."""
    draw = np.random.default_rng(seed)
    texts, labels = [], draw.integers(0, 2, n)
    fill = ["yesterday", "again", "they", "say", "that", "once", "sadly", "then", "in", "town"]
    for label in labels:
        before, after = (" ".join(draw.choice(fill, draw.integers(0, 4))) for _ in range(2))
        who = "the dog bit the man" if label else "the man bit the dog"
        texts.append(f"{before} {who} {after}".strip())
    return np.array(texts, dtype=object), torch.from_numpy(labels)


def test_the_text_encoder_learns_what_a_bag_of_words_cannot():
    (texts, y), (test_texts, test_y) = who_bit_whom(1000, 0), who_bit_whom(300, 1)
    tokenize = HashTokenizer(vocabulary=512, length=16)
    x, test_x = tokenize(texts), tokenize(test_texts)
    torch.manual_seed(0)
    encoder = build_encoder("text", kind="text", shape=(16,), dropout=0.1, options={"vocabulary": 512, "width": 64})
    model = fit(encoder, x, y, 2, epochs=8, lr=2e-3)
    assert accuracy(model, test_x, test_y) >= 0.97
    # The sorted words of a text say nothing of the label: what was learned is their order.
    assert abs(accuracy(model, test_x.sort(1, descending=True).values, test_y) - 0.5) < 5 * 0.5 / 300**0.5
