"""scikit-learn's digits under Lightning's Trainer: VariationalModule brings the steps and the optimizer."""

import torch
from lightning import Trainer, seed_everything
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from varclass import Classifier, VariationalHead
from varclass.integrations.lightning import VariationalModule

if __name__ == "__main__":
    seed_everything(0, verbose=False)
    x, y = load_digits(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(x / 16, y, test_size=600, stratify=y, random_state=0)
    train = TensorDataset(torch.tensor(x_train, dtype=torch.float32), torch.tensor(y_train))
    test = TensorDataset(torch.tensor(x_test, dtype=torch.float32), torch.tensor(y_test))

    encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 16))
    module = VariationalModule(Classifier(encoder, VariationalHead(16, 10, objective="vc")), lr=2e-3)
    trainer = Trainer(
        max_epochs=20,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )  # devices=2, strategy="ddp" needs no other change
    trainer.fit(module, DataLoader(train, batch_size=64, shuffle=True))
    trainer.test(module, DataLoader(test, batch_size=100), verbose=False)
    found = trainer.callback_metrics
    print(f"accuracy {found['test/accuracy']:.3f}, NLL {found['test/nll']:.3f}, n = {len(test)}")
