"""A trained softmax model, converted without a change of its predictions, fine-tuned, calibrated, and turned back."""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F

import varclass

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
x_rest, x_test, y_rest, y_test = train_test_split(x.astype("float32") / 16, y, test_size=600, stratify=y, random_state=0)
parts = train_test_split(x_rest, y_rest, test_size=300, stratify=y_rest, random_state=0)
x_train, x_held, y_train, y_held = map(torch.as_tensor, parts)
x_test, y_test = torch.as_tensor(x_test), torch.as_tensor(y_test)

trained = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.AdamW(trained.parameters(), 2e-3)
for _ in range(20):
    for batch in torch.randperm(len(y_train)).split(64):
        optimizer.zero_grad()
        F.cross_entropy(trained(x_train[batch]), y_train[batch]).backward()
        optimizer.step()

model = varclass.from_model(trained, example=x_test, samples=len(y_train))  # example: inputs to compare predictions on
with torch.no_grad():
    before, after = torch.softmax(trained(x_test), 1), model.log_posterior(x_test).exp()
    print(f"largest change of a probability by converting: {(before - after).abs().max():.0e}")


def report(stage: str) -> None:
    """NLL on test images, and the median log p(z), which a softmax layer does not have."""
    with torch.no_grad():
        nll, evidence = F.nll_loss(model.log_posterior(x_test), y_test), model.log_evidence(x_test).median()
    print(f"{stage:11}  test NLL {nll:.3f}, median log p(z) {evidence:.1f}, n = {len(y_test)}")


report("converted")
optimizer = torch.optim.AdamW(model.parameter_groups(lr=5e-4))
for _ in range(5):
    for batch in torch.randperm(len(y_train)).split(64):
        optimizer.zero_grad()
        model(x_train[batch], y_train[batch]).backward()
        optimizer.step()
report("fine-tuned")

factor = model.eval().calibrate(x_held, y_held)
report("calibrated")
print(f"every sigma times {factor:.2f}")

layer = model.head.as_linear()  # possible because from_model keeps one covariance for all classes
with torch.no_grad():
    change = torch.softmax(layer(model.encoder(x_test)), 1) - model.log_posterior(x_test).exp()
print(f"largest change of a probability by turning back: {change.abs().max():.0e}")
