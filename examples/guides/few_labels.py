"""A handful of labels a class, none to spare: softmax beside the default head, and one with a stronger pull."""

import sys
from collections.abc import Callable
from pathlib import Path

import torch
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn import functional as F

from varclass import Classifier, VariationalHead

SIZES, SEEDS = (2, 5, 10, 20, 50), 3
x, y = load_digits(return_X_y=True)
parts = train_test_split(x.astype("float32") / 16, y, test_size=600, stratify=y, random_state=0)
x_train, x_test, y_train, y_test = map(torch.as_tensor, parts)


def head_on(samples: int, beta: str) -> nn.Module:
    """The same layers, with the pull of this weight."""
    head = VariationalHead(128, 10, beta=beta, samples=samples)
    return Classifier(nn.Sequential(nn.Linear(64, 128), nn.ReLU()), head)


MODELS: dict[str, Callable[[int], nn.Module]] = {
    "softmax": lambda samples: nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)),
    "default": lambda samples: head_on(samples, "auto"),
    "beta 10/D": lambda samples: head_on(samples, "10/D"),
}


def run(make: Callable[[int], nn.Module], per_class: int, seed: int) -> Tensor:
    """Accuracy and NLL on the test images after 100 full-batch steps."""
    torch.manual_seed(seed)
    order = torch.randperm(len(y_train))
    chosen = torch.cat([order[y_train[order] == label][:per_class] for label in range(10)])  # the same for all models
    model = make(len(chosen))
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    for _ in range(100):
        optimizer.zero_grad()
        inputs, labels = x_train[chosen], y_train[chosen]
        loss = model(inputs, labels) if isinstance(model, Classifier) else F.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
    log_p = torch.log_softmax(model.eval()(x_test).detach(), 1)
    return torch.stack([(log_p.argmax(1) == y_test).float().mean(), F.nll_loss(log_p, y_test)])


print(f"labels a class: accuracy / NLL, means over {SEEDS} draws of the labels, n = {len(y_test)} test images")
found: dict[str, list[Tensor]] = {name: [] for name in MODELS}
for size in SIZES:
    for name, make in MODELS.items():
        found[name].append(torch.stack([run(make, size, seed) for seed in range(SEEDS)]).mean(0))
    print(f"{size:3}: " + ";  ".join(f"{name} {v[-1][0]:.3f} / {v[-1][1]:.3f}" for name, v in found.items()))

if sys.argv[1:]:
    figure = Figure(figsize=(7.5, 3.2), layout="constrained")
    for column, (ax, label) in enumerate(zip(figure.subplots(1, 2), ("accuracy", "NLL"), strict=True)):
        for name, values in found.items():
            ax.plot(SIZES, [float(value[column]) for value in values], marker="o", label=name)
        ax.set(xlabel="labels a class", ylabel=label, xscale="log", xticks=SIZES, xticklabels=SIZES)
        ax.minorticks_off()
    ax.legend(frameon=False)
    figure.savefig(Path(sys.argv[1]) / "few_labels.svg")
