"""Is a confidence of 80% right 80% of the time? Measured on test data, and repaired with held-out data."""

import sys
from pathlib import Path

import torch
from matplotlib.figure import Figure
from sklearn.datasets import make_classification
from torch import nn

from varclass import Classifier, VariationalHead
from varclass.metrics import Predictions, reliability, score

torch.manual_seed(0)
x, y = make_classification(5000, 20, n_informative=8, n_classes=5, flip_y=0.1, class_sep=1.5, random_state=0)
x, y = torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y)
(x_train, x_held, x_test), (y_train, y_held, y_test) = x.split([1000, 1000, 3000]), y.split([1000, 1000, 3000])


def fit(head: VariationalHead, epochs: int = 40) -> Classifier:
    """Train; a head with separation="auto" also looks at held-out data after each epoch."""
    model = Classifier(nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 32)), head)
    optimizer = torch.optim.AdamW(model.parameter_groups(lr=2e-3))
    for _ in range(epochs):
        for batch in torch.randperm(len(y_train)).split(100):
            optimizer.zero_grad()
            model(x_train[batch], y_train[batch]).backward()
            optimizer.step()
        if head.settles:
            model.eval()
            head.settle(model.encoder(x_held).detach(), y_held)
            model.train()
    return model.eval()


@torch.no_grad()
def predict(name: str, model: Classifier) -> Predictions:
    """Predictions on the test set, and a line about them."""
    made = Predictions.of(model(x_test).numpy(), y_test.numpy())
    s = score(made)
    rates = f"accuracy {s['accuracy']:.3f}  confidence {s['mean_confidence']:.3f}"
    print(f"{name:18} {rates}  ECE {s['ece']:.3f}  NLL {s['nll']:.3f}")
    return made


print(f"n = {len(y_test)} test samples, {len(y_held)} held out")
model = fit(VariationalHead(32, 5, objective="gm", means="learned", covariance="shared", separation=4.0))
shown = {"trained": predict("trained", model)}
factor = model.calibrate(x_held, y_held)
shown["calibrated"] = predict("calibrated", model)
print(f"calibrate multiplied every sigma by {factor:.2f}: above 1, the model was too sure")
shown["default, settled"] = predict("default, settled", fit(VariationalHead(32, 5, samples=len(y_train))))

if sys.argv[1:]:
    figure = Figure(figsize=(5, 4.4), layout="constrained")
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1], color="gray", linewidth=1, label="right")
    for name, made in shown.items():
        diagram = reliability(made, bins=10)
        ax.plot(diagram.confidence, diagram.accuracy, marker="o", label=name)
    ax.set(xlabel="confidence", ylabel="accuracy", xlim=(0.2, 1), ylim=(0, 1))
    ax.legend(frameon=False)
    figure.savefig(Path(sys.argv[1]) / "calibration.svg")
