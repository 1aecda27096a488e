"""A plain training loop on scikit-learn's digits: the head in place of nn.Linear, its loss in place of cross-entropy."""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from varclass import Classifier, VariationalHead

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(x / 16, y, test_size=600, stratify=y, random_state=0)
x_train, x_test = (torch.tensor(part, dtype=torch.float32) for part in (x_train, x_test))
y_train, y_test = torch.tensor(y_train), torch.tensor(y_test)

encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 16))
model = Classifier(encoder, VariationalHead(16, 10, objective="vc"))
optimizer = torch.optim.AdamW(model.parameter_groups(lr=2e-3))

for _ in range(20):
    for inputs, labels in DataLoader(TensorDataset(x_train, y_train), batch_size=64, shuffle=True):
        loss = model(inputs, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    log_p = model.log_posterior(x_test)
accuracy, nll = (log_p.argmax(1) == y_test).float().mean(), F.nll_loss(log_p, y_test)
print(f"accuracy {accuracy:.3f}, NLL {nll:.3f}, n = {len(y_test)}")
