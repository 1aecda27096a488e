"""Two processes with half a batch each are one with the whole: the same weights, history and score, to rounding.

Float32 sums in another order differ by some 1e-7 of the summands, and a handful of SGD steps amplifies that little: the
bound is 1e-5. What a process would do wrong, such as draws of its own, is at least ten times the bound.
"""

import json
import os
import signal
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

from varclass.training import loop
from varclass.training.launch import Launch
from varclass.training.runs import Run

SGD = ("--epochs", 2, "--optimizer", "sgd", "--lr", 0.02)
CASES = {
    "ce": ("--objective", "ce"),
    "gm": ("--objective", "gm"),
    "gm, its means settling": ("--objective", "gm", "--means", "simplex", "--covariance", "unit", "--separation", "auto"),
    "vc": ("--objective", "vc"),
    "vc, smoothed labels in parts": ("--objective", "vc", "--label-smoothing", 0.1, "--accumulate", 2),
    "vc, augmented, clipped, averaged": ("--objective", "vc", "--augment", "crop,flip,cutout", "--clip", 1, "--ema", 0.9),
}
BOUND = {"rtol": 1e-5, "atol": 1e-5}


def numbers(row):
    """Every number of a row of the history, however deep."""
    return [x for value in row.values() for x in (numbers(value) if isinstance(value, dict) else [float(value)])]


def one_process(commands, folder, the_run, options):
    process = commands.fit(*SGD, *options, runs_dir=folder)
    assert process.wait() == 0, process.stderr
    return the_run(folder)


@pytest.mark.parametrize("case", CASES)
def test_two_processes_give_what_one_gives(case, commands, tmp_path, the_run):
    one = one_process(commands, tmp_path / "one", the_run, CASES[case])
    both = commands.fit_by_two(*SGD, *CASES[case], runs_dir=tmp_path / "two")
    assert [process.wait() for process in both] == [0, 0], both[0].stderr + both[1].stderr
    assert both[1].stderr == ""  # one of them talks
    two = the_run(tmp_path / "two")
    assert two.name == one.name
    assert Run.open(two).record["processes"] == 2
    expected = load_file(one / "model.safetensors")
    for name, value in load_file(two / "model.safetensors").items():
        torch.testing.assert_close(value, expected[name], **BOUND)
    rows, expected_rows = Run.open(two).history.rows(), Run.open(one).history.rows()
    assert [list(row) for row in rows] == [list(row) for row in expected_rows]
    for row, expected_row in zip(rows, expected_rows, strict=True):
        assert numbers(row) == pytest.approx(numbers(expected_row), rel=1e-4, abs=1e-4)


def test_draws_of_their_own_would_be_seen(spec, tmp_path, monkeypatch):
    """The second half of every batch with other prior samples, as a process that draws for itself would have."""
    vc = spec(head={"objective": "vc"}, training={"optimizer": "sgd", "lr": 0.02})
    shared = loop.fit(vc, tmp_path / "shared", launch=Launch("cpu"))
    plain = loop.Trainer._draw

    def draw(self, labels, share):
        drawn, (_, other) = plain(self, labels, share), plain(self, labels, share)
        half = len(labels) // 2
        return drawn[0], torch.cat([drawn[1][:half], other[half:]])

    monkeypatch.setattr(loop.Trainer, "_draw", draw)
    own = loop.fit(vc, tmp_path / "own", launch=Launch("cpu"))
    expected, found = load_file(shared.weights), load_file(own.weights)
    beyond = [
        ((found[name] - value).abs() / (BOUND["atol"] + BOUND["rtol"] * value.abs())).max() for name, value in expected.items()
    ]
    assert max(beyond) > 10


def test_two_processes_stop_together_save_and_go_on_alone(commands, tmp_path, the_run, until):
    options = ("--epochs", 30, "--objective", "vc", "--optimizer", "sgd", "--lr", 0.01, "--checkpoint-seconds", 1000)
    both = commands.fit_by_two(*options, runs_dir=tmp_path, freeze_at="history.jsonl")
    until(both[0].frozen)
    both[1].send(signal.SIGTERM)  # not the one that writes
    both[0].send(signal.SIGCONT)
    assert [process.wait() for process in both] == [143, 143], both[0].stderr + both[1].stderr
    run = the_run(tmp_path)
    assert "stopped and saved" in both[0].stderr
    assert both[1].stderr == ""
    (saved,) = (run / "checkpoints").iterdir()
    process = commands.resume(run)
    assert process.wait() == 0, process.stderr
    assert f", from step {int(saved.name.removeprefix('step-'))}\n" in process.stderr


def test_batches_that_do_not_divide_among_the_processes_are_refused(commands, tmp_path):
    both = commands.fit_by_two("--batch-size", 61, runs_dir=tmp_path)
    assert [process.wait() for process in both] == [2, 2]
    assert "batch_size must be a multiple of processes x accumulate = 2" in both[0].stderr
    assert not list(tmp_path.iterdir())


def test_accelerate_launch(commands, tmp_path, the_run):
    """The launcher's own processes; --multi_gpu is what makes it start several (with --cpu it starts one), on the CPU here."""
    one = one_process(commands, tmp_path / "one", the_run, CASES["vc"])
    launcher = ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", 2, "--main_process_port", 0]
    options = [*SGD, *CASES["vc"], "--device", "cpu", "--runs-dir", tmp_path / "two", "--json"]
    line = [sys.executable, *launcher, "-m", "varclass", "fit", *commands.digits, *commands.small, *options]
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [str(each) for each in line], capture_output=True, text=True, env=environment, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert (record["processes"], record["id"]) == (2, one.name)
    expected = load_file(one / "model.safetensors")
    for name, value in load_file(the_run(tmp_path / "two") / "model.safetensors").items():
        torch.testing.assert_close(value, expected[name], **BOUND)
