"""How sure a head should be: its confidence and its calibration against the separation of its class priors."""

import sys
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator
from sklearn.datasets import load_digits
from torch import nn

from varclass import Classifier, VariationalHead, anticipate
from varclass.metrics import Predictions, score

torch.manual_seed(0)
data = load_digits()
x, y = torch.tensor(data.data, dtype=torch.float32) / 16, torch.tensor(data.target)
train, held_out, test = torch.randperm(len(y)).split([300, 300, 1197])

head = VariationalHead(64, 10, samples=len(train))
model = Classifier(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU()), head)
model.head.widen()  # there are held-out samples to settle by
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for _ in range(200):
    for batch in train[torch.randperm(len(train))].split(64):
        optimizer.zero_grad()
        model(x[batch], y[batch]).backward()
        optimizer.step()

model.eval()
prior, distance, rows = model.head.class_prior, model.head.separation, []
assert distance is not None
with torch.no_grad():
    settled = model.head.settle(model.encoder(x[held_out]), y[held_out])
    width = prior.settled
    for r in np.geomspace(1.2, 6, 25):
        prior.settled = width * settled / r  # so wide that the means are r of it apart from their center
        predictions = Predictions.of(model(x[test]).numpy(), y[test].numpy())
        found = score(predictions)
        confidence = float(model.log_posterior(x[test]).exp().amax(1).mean())
        rows.append((r, found["accuracy"], confidence, anticipate(prior).accuracy, found["ece"], found["nll"]))
    prior.settled = width
    found = score(Predictions.of(model(x[test]).numpy(), y[test].numpy()))
print(f"settled on {len(held_out)} held-out samples: separation {settled:.2f}; trained at {distance:.2f}")
print(f"on {len(test)} test samples: accuracy {found['accuracy']:.3f}, NLL {found['nll']:.3f}, ECE {found['ece']:.3f}")

if sys.argv[1:]:
    r, accuracy, confidence, anticipated, ece, nll = np.array(rows).T
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(r, accuracy, label="accuracy")
    left.plot(r, confidence, label="mean confidence")
    left.plot(r, anticipated, "--", label="anticipated accuracy")
    right.plot(r, ece, label="ECE")
    right.plot(r, nll, label="NLL")
    for axes in (left, right):
        axes.axvline(settled, color="black", linewidth=0.8, linestyle=":", label="settled")
        axes.set(xscale="log", xlabel="separation, |mu| / sigma")
        axes.xaxis.set(major_locator=FixedLocator([1.5, 2, 3, 4, 6]), minor_locator=NullLocator(), major_formatter="{x:g}")
        axes.legend(frameon=False)
    figure.savefig(Path(sys.argv[1]) / "separation.svg")
