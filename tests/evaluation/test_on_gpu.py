"""On a GPU: a run in bf16, compiled, stopped and resumed; and every suite on it, with what a CPU in fp32 finds."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from varclass.evaluation.evaluate import evaluate
from varclass.evaluation.subject import Options
from varclass.training.interruption import Interrupted
from varclass.training.launch import Launch
from varclass.training.loop import fit, resume
from varclass.training.reporting import Reporter
from varclass.training.spec import DataSpec, EncoderSpec, HeadSpec, RunSpec, TrainingSpec

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
SPEC = RunSpec(
    data=DataSpec("digits"),
    encoder=EncoderSpec("lenet", options={"widths": [16, 32]}),
    head=HeadSpec("vc"),
    training=TrainingSpec(epochs=4, batch_size=64, precision="bf16", augment=("crop",), ema=0.9),
)
LAUNCH = Launch("cuda", compile=True, checkpoint_seconds=0)
SUITES = ("clean", "shift", "ood", "adversarial", "latents")
OPTIONS = Options(
    corruptions=("fog", "gaussian_noise"), severities=(1, 5), outliers=("noise",), epsilons=(0.05,), pgd_steps=5, samples=100
)


class StopsAt(Reporter):
    def __init__(self, step):
        self.at = step

    def step(self, done, row):
        if done == self.at:
            raise Interrupted(2)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return fit(SPEC, tmp_path_factory.mktemp("gpu"), launch=LAUNCH)


def weights(run):
    return {name: value.cpu() for name, value in run.load_model().state_dict().items()}


def test_a_resumed_run_ends_where_a_whole_one_does(trained, tmp_path):
    with pytest.raises(Interrupted):
        fit(SPEC, tmp_path, launch=LAUNCH, reporter=StopsAt(37))
    resumed = weights(resume(tmp_path / trained.path.name, launch=LAUNCH))
    for name, value in weights(trained).items():
        torch.testing.assert_close(resumed[name], value, msg=lambda text, name=name: f"{name}: {text}")


def test_it_records_the_gpu_and_learns(trained):
    assert trained.record["provenance"]["device"]["name"] == torch.cuda.get_device_name()
    assert trained.record["validation"]["accuracy"] > 0.8


def test_every_suite_agrees_with_a_cpu(trained, tmp_path):
    """As far as bf16 allows: p(y|x) to a few hundredths, and accuracies to a few samples of a hundred."""
    found = {}
    for device in ("cpu", "cuda"):
        run = type(trained)(shutil.copytree(trained.path, tmp_path / device / trained.path.name))
        evaluate(run, SUITES, replace(OPTIONS, device=device))
        found[device] = run
    joint = [np.load(found[device].path / "predictions" / "test.npz")["log_joint"] for device in found]
    posterior = [torch.from_numpy(each).double().softmax(1) for each in joint]
    assert (posterior[0] - posterior[1]).abs().mean() < 0.01
    rows = [json.loads((found[device].path / "scores.json").read_text())["rows"] for device in found]
    assert len(rows[0]) == len(rows[1]) > 10
    for a, b in zip(*rows, strict=True):
        assert (a["suite"], a["method"], a["n"]) == (b["suite"], b["method"], b["n"])
        if "accuracy" in a["scores"]:
            assert abs(a["scores"]["accuracy"] - b["scores"]["accuracy"]) <= 0.06, (a["suite"], a["condition"])
