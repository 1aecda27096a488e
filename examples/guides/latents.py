"""Test images in a latent space of two dimensions, and the class priors that each objective anticipates them to follow."""

import sys
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from varclass import Classifier, VariationalHead

CHOICES: dict[str, dict[str, Any]] = {
    "ce": {},
    "gm": {"beta": 1.0},
    "vc": {"beta": 1.0, "ratio": "mlp"},
}  # a linear ratio sees only means
x, y = load_digits(return_X_y=True)
parts = train_test_split(x.astype("float32") / 16, y, test_size=600, stratify=y, random_state=0)
x_train, x_test, y_train, y_test = map(torch.as_tensor, parts)


def fit(objective: str) -> Classifier:
    """The same encoder, priors and schedule for each objective."""
    torch.manual_seed(0)
    head = VariationalHead(2, 10, objective=objective, means="learned", covariance="unit", separation=8.0, **CHOICES[objective])
    encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))
    model, epochs, steps = Classifier(encoder, head), 40, -(-len(y_train) // 64)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=epochs * steps)
    for _ in range(epochs):
        for batch in torch.randperm(len(y_train)).split(64):
            optimizer.zero_grad()
            model(x_train[batch], y_train[batch]).backward()
            optimizer.step()
            schedule.step()
    return model.eval()


figure = Figure(figsize=(11, 4.1), layout="constrained")
print(f"n = {len(y_test)} test images; the distance of latents that follow their priors would be 1.18")
for ax, objective in zip(figure.subplots(1, 3, sharex=True, sharey=True), CHOICES, strict=True):
    model = fit(objective).requires_grad_(False)
    z = model.latent(x_test)
    distance = model.head.standardize(z, y_test).norm(dim=1).median()
    accuracy = (model(x_test).argmax(1) == y_test).float().mean()
    print(f"{objective}: accuracy {accuracy:.3f}, median of |z - mu_y| / sigma {distance:.2f}")
    drawn = model.head.sample(torch.arange(10).repeat(300))
    ax.scatter(*drawn.T, s=3, color="lightgray", linewidths=0)
    ax.scatter(*z.T, s=6, c=y_test, cmap="tab10", linewidths=0)
    ax.set(title=objective, xlim=(-16, 16), ylim=(-16, 16), aspect="equal")
if sys.argv[1:]:
    figure.savefig(Path(sys.argv[1]) / "latents.png", dpi=110)
