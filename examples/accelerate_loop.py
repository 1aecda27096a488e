"""The plain loop under Hugging Face Accelerate: run it by itself, or on every GPU with `accelerate launch`."""

import torch
from accelerate import Accelerator
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from varclass import Classifier, VariationalHead

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(x / 16, y, test_size=600, stratify=y, random_state=0)
train = TensorDataset(torch.tensor(x_train, dtype=torch.float32), torch.tensor(y_train))
test = TensorDataset(torch.tensor(x_test, dtype=torch.float32), torch.tensor(y_test))

accelerator = Accelerator()
encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 16))
model = Classifier(encoder, VariationalHead(16, 10, objective="vc"))
optimizer = torch.optim.AdamW(model.parameter_groups(lr=2e-3))
loaders = DataLoader(train, batch_size=64, shuffle=True), DataLoader(test, batch_size=100)
model, optimizer, train_loader, test_loader = accelerator.prepare(model, optimizer, *loaders)

for _ in range(20):
    for inputs, labels in train_loader:
        loss = model(inputs, labels)  # inside forward, where DDP sees it
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()

model.eval()
with torch.no_grad():
    found = [accelerator.gather_for_metrics((model(inputs), labels)) for inputs, labels in test_loader]
log_p, labels = torch.cat([each for each, _ in found]).log_softmax(-1), torch.cat([each for _, each in found])
accuracy, nll = (log_p.argmax(1) == labels).float().mean(), F.nll_loss(log_p, labels)
accelerator.print(f"accuracy {accuracy:.3f}, NLL {nll:.3f}, n = {len(labels)}")
