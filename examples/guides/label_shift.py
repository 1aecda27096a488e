"""Test data whose classes are as frequent as they never were in training: p(y) estimated without labels, and replaced."""

import sys
from pathlib import Path

import torch
from matplotlib.figure import Figure
from sklearn.datasets import make_classification
from torch import nn
from torch.nn import functional as F

from varclass import Classifier, VariationalHead, estimate_label_prior

torch.manual_seed(0)
x, y = make_classification(12000, 20, n_informative=8, n_classes=5, flip_y=0, class_sep=1.0, random_state=0)
x, y = torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y)
(x_train, x_held, x_pool), (y_train, y_held, y_pool) = x.split([2000, 1000, 9000]), y.split([2000, 1000, 9000])

true = torch.tensor([0.6, 0.2, 0.1, 0.06, 0.04])  # at test time; in training the classes are equally frequent
test = torch.cat([torch.where(y_pool == label)[0][: int(2500 * share)] for label, share in enumerate(true.tolist())])
x_test, y_test = x_pool[test], y_pool[test]

head = VariationalHead(32, 5, samples=len(y_train))
model = Classifier(nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 32)), head)
optimizer = torch.optim.AdamW(model.parameter_groups(lr=2e-3))
for _ in range(20):
    for batch in torch.randperm(len(y_train)).split(100):
        optimizer.zero_grad()
        model(x_train[batch], y_train[batch]).backward()
        optimizer.step()
model.eval().calibrate(x_held, y_held)  # the estimate takes the predictions at their word

with torch.no_grad():
    trained = model.head.label_prior.probs()
    estimated = estimate_label_prior(model.log_posterior(x_test), trained)  # needs no labels
    features = model.encoder(x_test)
    print(f"n = {len(y_test)} test samples")
    for name, p_y in {"trained": trained, "estimated": estimated, "true": true}.items():
        log_p = model.head.with_label_prior(p_y).log_posterior(features)
        accuracy, nll = (log_p.argmax(1) == y_test).float().mean(), F.nll_loss(log_p, y_test)
        print(f"{name:9} p(y) = {[round(p, 2) for p in p_y.tolist()]}: accuracy {accuracy:.3f}, NLL {nll:.3f}")

if sys.argv[1:]:
    figure = Figure(figsize=(6, 3), layout="constrained")
    ax = figure.subplots()
    for shift, (name, p_y) in enumerate({"trained": trained, "estimated": estimated, "true": true}.items()):
        ax.bar([label + 0.27 * (shift - 1) for label in range(5)], p_y.tolist(), width=0.25, label=name)
    ax.set(xlabel="class", ylabel="p(y)")
    ax.legend(frameon=False)
    figure.savefig(Path(sys.argv[1]) / "label_shift.svg")
