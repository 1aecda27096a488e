"""VariationalModule under Lightning's Trainer: alone, and in two processes that train as one does on the joined batch.

The distributed test runs this file as a script in two processes.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

lightning = pytest.importorskip("lightning", reason="pip install 'varclass[lightning]'")

from varclass import Classifier, VariationalHead  # noqa: E402
from varclass.integrations.lightning import VariationalModule  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's advice on workers, loggers and the trees of torch
B, STEPS = 8, 3
QUIET = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}


def make(objective: str = "vc") -> VariationalModule:
    """SGD, and prior samples that depend on the label alone, so that both ways see the same ones."""
    torch.manual_seed(0)
    head = VariationalHead(5, 3, objective=objective)
    table = head.class_prior.sample(torch.arange(3))
    head.class_prior.sample = lambda y: table[y]
    model = Classifier(nn.Sequential(nn.Linear(2, 5), nn.Tanh()), head).double()
    table.data = table.double()
    return VariationalModule(model, lr=0.1, optimizer=torch.optim.SGD)


def data() -> TensorDataset:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(B * STEPS, 2, dtype=torch.float64, generator=generator)
    return TensorDataset(x, torch.tensor([0, 1, 1, 2]).repeat(B * STEPS // 4))  # unbalanced: p(y) must move


def train(module: VariationalModule, batch: int, rows: slice = slice(None), **options) -> VariationalModule:
    trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", **QUIET, **options)
    trainer.fit(module, DataLoader(TensorDataset(*data()[rows]), batch_size=batch), DataLoader(data(), batch_size=batch))
    return module


def test_two_processes_train_as_one_does_on_the_joined_batches(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, str(tmp_path)],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            env=environment
            | {"LOCAL_RANK": str(rank), "NODE_RANK": "0", "RANK": str(rank), "PL_TORCH_DISTRIBUTED_BACKEND": "gloo"},
        )
        for rank in range(2)
    ]
    try:
        errors = [process.communicate(timeout=100)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], "\n".join(errors)
    expected, start = train(make(), B).model.state_dict(), make().model.state_dict()
    for rank in range(2):
        found = torch.load(tmp_path / f"{rank}.pt")
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=1e-9, atol=1e-12)
    assert not torch.allclose(expected["encoder.0.weight"], start["encoder.0.weight"])


def test_one_optimizer_moves_every_group_and_terms_are_logged():
    module = make()
    before = {name: value.clone() for name, value in module.model.named_parameters()}
    trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", **QUIET, accumulate_grad_batches=2)
    trainer.fit(module, DataLoader(data(), batch_size=B), DataLoader(data(), batch_size=B))
    assert trainer.global_step == 2  # of 3 batches; at the first, the ratio's bias has no gradient yet
    assert all(not torch.equal(value, before[name]) for name, value in module.model.named_parameters())
    assert {"train/loss", "train/posterior", "train/ratio", "train/discriminator"} <= set(trainer.callback_metrics)
    assert {"val/nll", "val/accuracy", "val/log_evidence"} <= set(trainer.callback_metrics)
    groups = {group["name"]: group["lr"] for group in trainer.optimizers[0].param_groups}
    assert set(groups) == {"phi", "theta", "pi", "psi"}
    assert groups["phi"] == 0.1


def test_validation_scores_and_predictions_are_the_classifiers():
    module = make()
    trainer = lightning.Trainer(accelerator="cpu", **QUIET)
    found = torch.cat([each["posterior"] for each in trainer.predict(module, DataLoader(data(), batch_size=5))])
    x, y = data().tensors
    with torch.no_grad():
        log_p = module.model.log_posterior(x)
    torch.testing.assert_close(found, log_p.exp())
    trainer.validate(module, DataLoader(data(), batch_size=7), verbose=False)
    expected = nn.functional.nll_loss(log_p, y)
    torch.testing.assert_close(trainer.callback_metrics["val/nll"].double(), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("batch", [8, 24])
def test_the_default_head_settles_by_the_whole_validation_set_and_not_by_the_sanity_check(batch):
    """As `settle` on all of it at once, from the same weights; 24 samples are enough, the sanity check's would be too few."""
    torch.manual_seed(0)
    model = Classifier(nn.Sequential(nn.Linear(2, 5), nn.Tanh()), VariationalHead(5, 3)).double()
    module = train(VariationalModule(model, lr=0.1), batch)
    found = module.model.head.class_prior.settled
    module.model.head.class_prior.settled = 1.0
    module.model.eval().settle(*data().tensors)
    assert found == pytest.approx(module.model.head.class_prior.settled, rel=1e-6)
    assert found != 1


def test_held_out_losses_that_are_no_numbers_settle_nothing_and_stop_nobody():
    class Broken(nn.Module):
        def forward(self, x):
            return x if self.training else x * float("nan")

    torch.manual_seed(0)
    module = train(VariationalModule(Classifier(Broken(), VariationalHead(2, 3)).double(), lr=0.1), 24)
    assert module.model.head.class_prior.settled == 1
    assert bool(module.model.head.projection.weight.isfinite().all())


def test_bf16_autocast_leaves_the_loss_finite_and_only_a_classifier_is_taken():
    module = make()
    module.model.float()
    module.model.head.class_prior.sample = type(module.model.head.class_prior).sample.__get__(module.model.head.class_prior)
    x, y = data().tensors
    loader = DataLoader(TensorDataset(x.float(), y), batch_size=B)
    trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", precision="bf16-mixed", **QUIET)
    trainer.fit(module, loader)
    assert torch.isfinite(trainer.callback_metrics["train/loss"])
    with pytest.raises(TypeError, match="takes a Classifier; got Linear"):
        VariationalModule(nn.Linear(2, 3))


def test_without_lightning_the_import_says_what_to_install():
    code = "import sys; sys.modules['lightning'] = None; import varclass.integrations.lightning"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'varclass[lightning]'" in done.stderr.splitlines()[-1]


if __name__ == "__main__":
    torch.set_num_threads(1)
    # every second sample: batches of half the size join to the same batches
    mine = slice(int(os.environ["LOCAL_RANK"]), None, 2)
    trained = train(make(), B // 2, mine, devices=2, strategy="ddp", use_distributed_sampler=False)
    torch.save(trained.model.state_dict(), Path(sys.argv[1]) / f"{trained.global_rank}.pt")
    torch.distributed.barrier()
    os._exit(0)  # gloo's threads now and then abort a process that is torn down in order; the results are on disk
