"""DistributedDataParallel around a Classifier: as many processes as torchrun starts, and the same model from each number."""

import os

import torch
from sklearn.datasets import load_digits
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from varclass import Classifier, VariationalHead

torch.set_num_threads(1)
if "RANK" in os.environ:
    distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
rank, world = (distributed.get_rank(), distributed.get_world_size()) if distributed.is_initialized() else (0, 1)
local = int(os.environ.get("LOCAL_RANK", "0"))
device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")

torch.manual_seed(0)
digits = load_digits()
x, y = torch.as_tensor(digits.data, dtype=torch.float32, device=device) / 16, torch.as_tensor(digits.target, device=device)
encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))
classifier = Classifier(encoder, VariationalHead(32, 10, objective="gm")).to(device)  # no prior samples: nothing is drawn
optimizer = torch.optim.AdamW(classifier.parameter_groups(lr=2e-3))
model = DistributedDataParallel(classifier) if world > 1 else classifier

for _ in range(5):
    for batch in torch.randperm(len(y))[:1792].split(128):
        share = batch[rank::world]  # every process draws the same order and takes its part of each batch
        optimizer.zero_grad()
        model(x[share], y[share]).backward()  # the loss is computed in forward: DDP averages its gradient
        optimizer.step()

if rank == 0:
    with torch.no_grad():
        terms = classifier.head.terms(classifier.encoder(x), y)
    print(f"processes: {world}; -log p(y|z) = {terms.posterior:.4f}, -log p(z|y) = {terms.prior:.4f}, n = {len(y)}", flush=True)
if world > 1:
    distributed.barrier()
    os._exit(0)  # at once: gloo's threads now and then abort a process that is torn down in order
