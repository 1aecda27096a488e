"""Two processes under DDP (gloo), half a batch each, give the gradients of one process on the whole batch.

The test runs this file as a script in two processes; each handles every objective in turn.
"""

import os
import subprocess
import sys

import pytest
import torch
import torch.distributed as dist
from tests.combinations import refused
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from varclass import Classifier, VariationalHead
from varclass.core.head import OBJECTIVES, PRIORS

B, C, FEATURES = 8, 3, 5
CASES = [(objective, prior) for objective in OBJECTIVES for prior in PRIORS if not refused(objective, prior)]


def make(objective: str, prior: str) -> Classifier:
    """A model whose prior samples depend on the label alone and latents on the features, so that both ways see the same."""
    torch.manual_seed(0)
    head = VariationalHead(FEATURES, C, latent_dim=4, objective=objective, prior=prior, ratio="mlp", class_chunk=2)
    model = Classifier(nn.Sequential(nn.Linear(2, FEATURES), nn.ReLU()), head).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    table = head.class_prior.sample(torch.arange(C))
    head.class_prior.sample = lambda y: table[y]
    if head.objective.uses_spread:
        head.posterior.sample = lambda features, mean: mean + 0.3 * head.posterior.scale(features)
    return model


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(B, 2, dtype=torch.float64, generator=generator), torch.arange(B) % C


def gradients(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
    for _ in range(2):  # a second step fails under DDP if a parameter went without a gradient in the first
        model.zero_grad()
        model(x, y).backward()
    return {name.removeprefix("module."): parameter.grad for name, parameter in model.named_parameters()}


def worker(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    x, y = batch()
    mine = slice(rank * B // 2, (rank + 1) * B // 2)
    found = {}
    for objective, prior in CASES:
        model = DistributedDataParallel(make(objective, prior), find_unused_parameters=False)
        found[f"{objective} {prior}"] = gradients(model, x[mine], y[mine])
    torch.save(found, f"{folder}/{rank}.pt")
    dist.barrier()
    os._exit(0)  # gloo's threads now and then abort a process that is torn down in order; the results are on disk


@pytest.fixture(scope="module")
def found_by_two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ddp")
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": os.pathsep.join(sys.path)}
    processes = [
        subprocess.Popen([sys.executable, __file__, str(rank), str(folder)], stderr=subprocess.PIPE, text=True, env=environment)
        for rank in range(2)
    ]
    try:
        errors = [process.communicate(timeout=120)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], "\n".join(errors)
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.mark.parametrize(("objective", "prior"), CASES)
def test_half_batches_on_two_processes_give_the_gradients_of_the_whole_on_one(found_by_two, objective, prior):
    expected = gradients(make(objective, prior), *batch())
    for found in found_by_two:
        got = found[f"{objective} {prior}"]
        assert set(got) == set(expected)
        for name, gradient in got.items():
            torch.testing.assert_close(gradient, expected[name], rtol=1e-9, atol=1e-12)


def test_the_halves_differ_so_that_averaging_them_is_what_is_tested():
    x, y = batch()
    first, second = (gradients(make("vc", "gaussian"), x[part], y[part]) for part in (slice(0, 4), slice(4, 8)))
    assert all(not torch.allclose(first[name], second[name]) for name in first)


if __name__ == "__main__":
    worker(int(sys.argv[1]), sys.argv[2])
