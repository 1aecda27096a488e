"""Train a classifier on scikit-learn's digits and ask it for p(y|x) and log p(z)."""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from varclass import Classifier, VariationalHead

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
parts = train_test_split(x.astype("float32") / 16, y, test_size=600, stratify=y, random_state=0)
x_train, x_test, y_train, y_test = map(torch.as_tensor, parts)

encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))
model = Classifier(encoder, VariationalHead(in_features=32, num_classes=10, samples=len(y_train)))
optimizer = torch.optim.AdamW(model.parameter_groups(lr=2e-3))

for _ in range(20):
    for batch in torch.randperm(len(y_train)).split(64):
        optimizer.zero_grad()
        model(x_train[batch], y_train[batch]).backward()  # with labels, forward is the loss
        optimizer.step()

model.eval()
with torch.no_grad():
    p = model.log_posterior(x_test).exp()  # p(y|x), (600, 10)
    surprise = -model.log_evidence(x_test)  # -log p(z), (600,)
    noise = -model.log_evidence(torch.rand(600, 64))

print(f"accuracy {(p.argmax(1) == y_test).float().mean():.3f}, n = {len(y_test)}")
print(f"first test image: class {int(p[0].argmax())} with probability {p[0].max():.3f}; it is a {y_test[0]}")
print(f"median surprise, in nats: test images {surprise.median():.1f}, uniform noise {noise.median():.1f}")
