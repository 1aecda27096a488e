"""The same encoder and the same loop, once with nn.Linear and cross-entropy, once with a VariationalHead."""

from collections.abc import Callable

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn import functional as F

from varclass import VariationalHead
from varclass.metrics import Predictions, score

x, y = load_digits(return_X_y=True)
x_rest, x_test, y_rest, y_test = train_test_split(x.astype("float32") / 16, y, test_size=600, stratify=y, random_state=0)
parts = train_test_split(x_rest, y_rest, test_size=300, stratify=y_rest, random_state=0)
x_train, x_held, y_train, y_held = map(torch.as_tensor, parts)
x_test, y_test = torch.as_tensor(x_test), torch.as_tensor(y_test)


def make_encoder() -> nn.Module:
    """Pixels to 32 features; no ReLU at the end."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))


def fit(optimizer: torch.optim.Optimizer, loss: Callable[[Tensor, Tensor], Tensor], epochs: int = 20) -> None:
    """A loop that knows nothing of the output layer."""
    for _ in range(epochs):
        for batch in torch.randperm(len(y_train)).split(64):
            optimizer.zero_grad()
            loss(x_train[batch], y_train[batch]).backward()
            optimizer.step()


def show(name: str, outputs: Tensor) -> None:
    """Softmax of a log joint is p(y|x), as softmax of logits is: one function scores both."""
    found = score(Predictions.of(outputs.detach().numpy(), y_test.numpy()))
    print(f"{name:8}  accuracy {found['accuracy']:.3f}  NLL {found['nll']:.3f}  ECE {found['ece']:.3f}  n = {found['n']}")


encoder, layer = make_encoder(), nn.Linear(32, 10)
fit(torch.optim.AdamW([*encoder.parameters(), *layer.parameters()], 2e-3), lambda x, y: F.cross_entropy(layer(encoder(x)), y))
show("softmax", layer(encoder(x_test)))

encoder, head = make_encoder(), VariationalHead(32, 10, samples=len(y_train))
fit(torch.optim.AdamW(head.parameter_groups(lr=2e-3, encoder=encoder)), lambda x, y: head.loss(encoder(x), y))
head.eval()
if head.settles:  # separation="auto": as sure as held-out data justify
    head.settle(encoder(x_held).detach(), y_held)
show("varclass", head(encoder(x_test)))
