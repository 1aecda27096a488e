"""The paper's three objectives beside softmax, on scikit-learn's digits: a table, and a picture of what each does to z.

1,797 images of 8x8 pixels, scaled to [0, 1] and split once, by class: 897 to train on, 300 for validation, 600 to test on.
Five classifiers share the encoder (an MLP to 16 dimensions), the split, the schedule and the seeds:

    softmax   nn.Linear + F.cross_entropy
    softmax*  the same, started where GM and VC start: the `as_linear()` of a new head, means four sigma from their center
    CE        the head at maximum likelihood, by default a softmax layer: latents may lie anywhere the posterior is right
    GM        CE + log p(z|y): latents are drawn to the modes of their class prior
    VC        CE - beta KL(q(z|y) || p(z|y)): latents are to follow their class prior

The table gives means over 5 seeds with 95% t-intervals: of the seeds, for one split and one test set. The picture,
out/digits.png, is the paper's fig:splodges in small: the test set in a latent space of two dimensions, with the class
priors that the output layer anticipates.

`python examples/digits.py tune` repeats the choice of the learning rates, on validation data.
"""

from __future__ import annotations

import copy
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import matplotlib
import torch
from matplotlib.axes import Axes
from scipy.stats import t as student_t
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn import functional as F
from torchmetrics.functional.classification import multiclass_calibration_error

from varclass import Classifier, VariationalHead

matplotlib.use("Agg")
from matplotlib import pyplot as plt

SEEDS = 5
FGSM_EPSILON = 0.1  # of a pixel range of 1
CLASSES, LATENT_DIM, BATCH = 10, 16, 64
METRICS = ("accuracy %", "NLL", "ECE %", "FGSM acc. %")
PICTURE = Path("out/digits.png")

RATES = (5e-4, 1e-3, 2e-3, 4e-3)
CHOSEN = {"softmax": 2e-3, "softmax*": 2e-3, "CE": 2e-3, "GM": 2e-3, "VC": 1e-3}  # the RATES of least validation NLL, by `tune`

Data = tuple[Tensor, Tensor]
M = TypeVar("M", bound=nn.Module)


class Softmax(nn.Module):
    """The usual output layer, called as `Classifier` is: logits of x, or the loss given y."""

    def __init__(self, encoder: nn.Module, output: nn.Linear) -> None:
        super().__init__()
        self.encoder, self.output = encoder, output

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        logits: Tensor = self.output(self.encoder(x))
        return logits if y is None else F.cross_entropy(logits, y)


def make_encoder(dim: int) -> nn.Module:
    """x (B, 64) -> z (B, dim)."""
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, dim))


# GM's weight is the paper's, 1. VC has the library's defaults: beta = 1/D and the paper's linear T.
MODELS: dict[str, Callable[[], nn.Module]] = {
    "softmax": lambda: Softmax(make_encoder(LATENT_DIM), nn.Linear(LATENT_DIM, CLASSES)),
    "softmax*": lambda: Softmax(
        make_encoder(LATENT_DIM), VariationalHead(LATENT_DIM, CLASSES, covariance="shared").as_linear()
    ),
    "CE": lambda: Classifier(make_encoder(LATENT_DIM), VariationalHead(LATENT_DIM, CLASSES, objective="ce")),
    "GM": lambda: Classifier(make_encoder(LATENT_DIM), VariationalHead(LATENT_DIM, CLASSES, objective="gm", beta=1.0)),
    "VC": lambda: Classifier(make_encoder(LATENT_DIM), VariationalHead(LATENT_DIM, CLASSES, objective="vc")),
}


def load() -> dict[str, Data]:
    """Stratified "train", "val" and "test"; the test set takes no part in any choice."""
    x, y = load_digits(return_X_y=True)
    x_rest, x_test, y_rest, y_test = train_test_split(x / 16, y, test_size=600, stratify=y, random_state=0)
    x_train, x_val, y_train, y_val = train_test_split(x_rest, y_rest, test_size=300, stratify=y_rest, random_state=0)
    parts = {"train": (x_train, y_train), "val": (x_val, y_val), "test": (x_test, y_test)}
    return {name: (torch.tensor(a, dtype=torch.float32), torch.tensor(b)) for name, (a, b) in parts.items()}


def train(make: Callable[[], M], data: Data, seed: int, *, lr: float, epochs: int = 40) -> M:
    """Adam with one cycle of the learning rate; one backward pass trains encoder, priors and T together."""
    torch.manual_seed(seed)
    model, (x, y) = make(), data
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, fused=True)
    steps = epochs * -(-len(y) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps)
    for _ in range(epochs):
        for batch in torch.randperm(len(y)).split(BATCH):
            optimizer.zero_grad()
            model(x[batch], y[batch]).backward()
            optimizer.step()
            schedule.step()
    return model.eval()


def score(model: nn.Module, data: Data) -> list[float]:
    """The four METRICS, in float64: in float32 a saturated posterior has no gradient left, and FGSM would find nothing."""
    model, (x, y) = copy.deepcopy(model).double(), (data[0].double().requires_grad_(), data[1])
    log_posterior = torch.log_softmax(model(x), dim=1)
    nll = F.nll_loss(log_posterior, y)
    (gradient,) = torch.autograd.grad(nll, x)
    attacked = (x + FGSM_EPSILON * gradient.sign()).clamp(0, 1)
    with torch.no_grad():
        error = multiclass_calibration_error(log_posterior.exp(), y, CLASSES, n_bins=20, norm="l1")
        return [accuracy(log_posterior, y), nll.item(), 100 * error.item(), accuracy(model(attacked), y)]


def accuracy(log_joint: Tensor, y: Tensor) -> float:
    """In per cent."""
    return 100 * (log_joint.argmax(1) == y).double().mean().item()


def scores(name: str, data: dict[str, Data], part: str, lr: float) -> Tensor:
    """One model trained from every seed, (SEEDS, METRICS)."""
    rows = []
    for seed in range(SEEDS):
        show_progress(f"training {name}, seed {seed + 1} of {SEEDS} ...")
        rows.append(score(train(MODELS[name], data["train"], seed, lr=lr), data[part]))
    show_progress("")
    return torch.tensor(rows)


def show_progress(line: str) -> None:
    """Overwrite the line before it, on a terminal; a file gets the results alone."""
    if sys.stdout.isatty():
        print(f"\r{line:50}\r", end="", flush=True)


def tune(data: dict[str, Data]) -> None:
    """Validation NLL by learning rate."""
    for name in MODELS:
        found = {lr: scores(name, data, "val", lr)[:, 1].mean().item() for lr in RATES}
        print(f"{name:10}" + "".join(f"   lr {lr:g}: {nll:.4f}" for lr, nll in found.items()))


def print_table(data: dict[str, Data]) -> None:
    """Mean +- half-width of the 95% t-interval over seeds."""
    n = len(data["test"][1])
    print(f"digits, n = {n} test images, {SEEDS} seeds: mean +- 95% t-interval over seeds; FGSM epsilon {FGSM_EPSILON}")
    print(f"torch {torch.__version__} on CPU, Python {platform.python_version()}\n")
    print(f"{'':10}" + "".join(f"{metric:>18}" for metric in METRICS))
    for name in MODELS:
        rows = scores(name, data, "test", CHOSEN[name])
        half = float(student_t.ppf(0.975, SEEDS - 1)) * rows.std(0) / SEEDS**0.5
        cells = (f"{m:.{d}f} +- {h:.{d}f}" for m, h, d in zip(rows.mean(0), half, (1, 3, 1, 1), strict=True))
        print(f"{name:10}" + "".join(f"{cell:>18}" for cell in cells), flush=True)


def make_flat(**options: Any) -> Classifier:
    """Two dimensions; the covariance is held at I, so that GM cannot shrink its priors around the modes it pulls to."""
    return Classifier(make_encoder(2), VariationalHead(2, CLASSES, covariance="unit", separation=8.0, **options))


FLAT_MODELS: dict[str, Callable[[], Classifier]] = {
    "CE, maximum likelihood": lambda: make_flat(objective="ce"),
    "GM, maximum a posteriori": lambda: make_flat(objective="gm", beta=1.0),
    "VC, Bayesian": lambda: make_flat(objective="vc", beta=1.0, ratio="mlp"),  # a linear T sees only means
}
CAPTION = (
    "{n} test images; rings: 1 and 2 sigma of each class prior (covariance I, learned means). VC with an MLP as the ratio T.\n"
    "Distance: median of |z - mu_y| / sigma. For latents that follow their priors it would be 1.18."
)


def draw_picture(data: dict[str, Data]) -> None:
    """One panel per objective; the file appears whole or not at all."""
    figure, axes = plt.subplots(1, 3, figsize=(13, 5.2), sharex=True, sharey=True, layout="constrained")
    for ax, (title, make) in zip(axes, FLAT_MODELS.items(), strict=True):
        show_progress(f"drawing {title} ...")
        draw_latents(ax, train(make, data["train"], seed=0, lr=5e-3, epochs=80), data["test"], title)
    show_progress("")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", title="digit", markerscale=2.5, frameon=False)
    figure.supxlabel(CAPTION.format(n=len(data["test"][1])), fontsize=10)
    PICTURE.parent.mkdir(exist_ok=True)
    partial = PICTURE.with_suffix(".partial.png")
    figure.savefig(partial, dpi=120)
    os.replace(partial, PICTURE)


@torch.no_grad()
def draw_latents(ax: Axes, model: Classifier, data: Data, title: str) -> None:
    """Latents by class, and the class priors' 1- and 2-sigma ellipses."""
    x, y = data
    z = model.latent(x)
    side = torch.linspace(-15, 15, 300)
    plane = torch.cartesian_prod(side, side)
    for digit in range(CLASSES):
        color = f"C{digit}"
        ax.scatter(z[y == digit, 0], z[y == digit, 1], s=9, color=color, label=str(digit), alpha=0.75, linewidths=0)
        sigmas = model.head.standardize(plane, torch.full((len(plane),), digit)).norm(dim=1)
        ax.contour(side, side, sigmas.reshape(300, 300).T, levels=[1, 2], colors=color, linewidths=1)
    distance = model.head.standardize(z, y).norm(dim=1).median()
    ax.set_title(f"{title}\naccuracy {accuracy(model(x), y):.1f}%, distance {distance:.2f}", fontsize=11)
    ax.set_aspect("equal")


if __name__ == "__main__":
    torch.set_num_threads(1)  # matrices this small gain nothing from a second one
    digits = load()
    if sys.argv[1:] == ["tune"]:
        tune(digits)
    else:
        print_table(digits)
        draw_picture(digits)
        print(f"\nlatents in two dimensions: {PICTURE}")
