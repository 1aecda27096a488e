"""Inputs of classes that were never trained on, told from the others by max p(y|x), by log p(z) and by the energy."""

import sys
from pathlib import Path

import torch
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from varclass import Classifier, VariationalHead
from varclass.metrics import Predictions, auroc, typicality

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
x = x.astype("float32") / 16
known = y < 8
x_rest, x_test, y_rest, _ = train_test_split(x[known], y[known], test_size=400, stratify=y[known], random_state=0)
x_train, x_held, y_train, _ = train_test_split(x_rest, y_rest, test_size=200, stratify=y_rest, random_state=0)
x_train, x_held, x_test, y_train = map(torch.as_tensor, (x_train, x_held, x_test, y_train))
outliers = {"digits 8 and 9": torch.as_tensor(x[~known]), "uniform noise": torch.rand(400, 64)}

head = VariationalHead(32, 8, samples=len(y_train))
model = Classifier(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32)), head)
optimizer = torch.optim.AdamW(model.parameter_groups(lr=2e-3))
for _ in range(30):
    for batch in torch.randperm(len(y_train)).split(64):
        optimizer.zero_grad()
        model(x_train[batch], y_train[batch]).backward()
        optimizer.step()
model.eval()


@torch.no_grad()
def predict(inputs: torch.Tensor) -> Predictions:
    """The log joint, from which max p(y|x) and log p(z) follow."""
    return Predictions.of(model(inputs).numpy())


@torch.no_grad()
def familiar(inputs: torch.Tensor) -> torch.Tensor:
    """The energy, negated: as the other two, higher for more in-distribution."""
    return -model.energy(inputs)


held, inside = predict(x_held), predict(x_test)
outside = {name: predict(inputs) for name, inputs in outliers.items()}
print(f"inside: n = {len(inside)} test images of the digits 0 to 7; AUROC 1 tells all apart, 0.5 none")
for name, out in outside.items():
    scores = auroc(inside.confidence, out.confidence), auroc(inside.log_evidence, out.log_evidence)
    by_p, by_evidence, by_energy = *scores, auroc(familiar(x_test), familiar(outliers[name]))
    print(f"{name}, n = {len(out)}: AUROC {by_p:.3f} by max p(y|x), {by_evidence:.3f} by log p(z), {by_energy:.3f} by energy")
    print(f"  with p < 0.05: {(typicality(out.log_evidence, held.log_evidence) < 0.05).mean():.0%}")
print(f"test images with p < 0.05: {(typicality(inside.log_evidence, held.log_evidence) < 0.05).mean():.0%}")

if sys.argv[1:]:
    figure = Figure(figsize=(6.5, 3.4), layout="constrained")
    ax = figure.subplots()
    for name, made in {"digits 0 to 7": inside, **outside}.items():
        ax.hist(made.log_evidence, bins=40, density=True, alpha=0.6, label=name)
    ax.set(xlabel="log p(z), nats", ylabel="density")
    ax.legend(frameon=False)
    figure.savefig(Path(sys.argv[1]) / "outliers.svg")
