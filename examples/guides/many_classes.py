"""Classes by the thousand: the log joint in chunks, one adversary for all of them, and how far apart their means must be."""

import sys
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor

from varclass import VariationalHead

torch.manual_seed(0)
CLASSES, FEATURES, BATCH = 20_000, 64, 256
x, y = torch.randn(BATCH, FEATURES), torch.randint(CLASSES, (BATCH,))


def loss_and_gradient(head: VariationalHead) -> tuple[Tensor, Tensor]:
    """The posterior's term, which alone looks at every class, and its gradient at the features."""
    features = x.clone().requires_grad_()
    loss = head.terms(features, y).posterior
    return loss.detach(), torch.autograd.grad(loss, features)[0]


head = VariationalHead(FEATURES, CLASSES, objective="vc", ratio="shared")
direct, gradient = loss_and_gradient(head)
head.class_chunk = 4096
chunked, again = loss_and_gradient(head)
print(f"{CLASSES} classes, {BATCH} samples: a log joint of {BATCH * CLASSES} numbers, {BATCH * head.class_chunk} at a time")
change, largest = abs(chunked - direct), (again - gradient).abs().max()
print(f"loss {direct:.4f}; in chunks it differs by {change:.0e}, its gradient by {largest:.0e}")
print(f"parameters of the shared ratio: {sum(p.numel() for p in head.ratio.parameters())}")


@torch.no_grad()
def anticipated(num_classes: int, separation: float, samples: int = 2000) -> float:
    """The accuracy that a head expects of itself: draw z from its own priors, and ask it for the class."""
    head = VariationalHead(128, num_classes, objective="ce", means="simplex", covariance="unit", separation=separation)
    labels = torch.randint(num_classes, (samples,))
    return float((head.log_posterior(head.sample(labels)).argmax(1) == labels).float().mean())


distances = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
curves = {classes: [anticipated(classes, r) for r in distances] for classes in (10, 100, 1000)}
print("anticipated accuracy, by the means' distance from their center in sigma:")
print("classes " + "".join(f"{r:7g}" for r in distances))
for classes, values in curves.items():
    print(f"{classes:7} " + "".join(f"{value:7.2f}" for value in values))

if sys.argv[1:]:
    figure = Figure(figsize=(5.5, 3.4), layout="constrained")
    ax = figure.subplots()
    for classes, values in curves.items():
        ax.plot(distances, values, marker="o", label=f"{classes} classes")
    ax.set(xlabel="separation, sigma", ylabel="anticipated accuracy", ylim=(0, 1.02))
    ax.legend(frameon=False)
    figure.savefig(Path(sys.argv[1]) / "many_classes.svg")
