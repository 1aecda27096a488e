"""Damaged checkpoints, full disks, signals, other data, another process: what is lost is little, and is said."""

import json
import random
import shutil
import signal
import time

import numpy as np
import pytest

from varclass.training.checkpoint import load_checkpoint, save_checkpoint
from varclass.training.runs import Run

OPTIONS = ("--epochs", 4, "--objective", "vc", "--ema", 0.9)  # 12 steps
MANY = ("--epochs", 40, "--checkpoint-seconds", 1000)


@pytest.fixture(scope="module")
def whole(commands, tmp_path_factory, the_run):
    """A run that nothing happened to."""
    folder = tmp_path_factory.mktemp("whole")
    assert commands.fit(*OPTIONS, runs_dir=folder).wait() == 0
    return the_run(folder)


@pytest.fixture(scope="module")
def killed_once(commands, tmp_path_factory, whole):
    """The same, killed while it wrote its sixth checkpoint."""
    run = tmp_path_factory.mktemp("killed") / whole.name
    half = f"{run}/checkpoints/step-00000006.partial/optimizer"
    assert commands.fit(*OPTIONS, runs_dir=run.parent, die_at=[1, half]).wait() == -signal.SIGKILL
    return run


@pytest.fixture
def killed(killed_once, tmp_path):
    """A copy of it to damage; that it goes on elsewhere is part of the promise."""
    return shutil.copytree(killed_once, tmp_path / "moved" / "killed")


def flip(path, seed=0):
    raw = bytearray(path.read_bytes())
    raw[random.Random(seed).randrange(len(raw))] ^= 1 << random.Random(seed).randrange(8)
    path.write_bytes(raw)


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


DAMAGES = {
    "a bit of the weights flipped": lambda folder: flip(folder / "model.safetensors"),
    "a bit of the optimizer flipped": lambda folder: flip(folder / "optimizer.safetensors", 1),
    "a bit of the average flipped": lambda folder: flip(folder / "average.safetensors", 2),
    "the weights cut short": lambda folder: truncate(folder / "model.safetensors"),
    "the optimizer empty": lambda folder: (folder / "optimizer.safetensors").write_bytes(b""),
    "no weights": lambda folder: (folder / "model.safetensors").unlink(),
    "no state": lambda folder: (folder / "state.json").unlink(),
    "state cut short": lambda folder: truncate(folder / "state.json"),
    "state not text": lambda folder: (folder / "state.json").write_bytes(bytes(range(128, 256))),
    "state of another form": lambda folder: (folder / "state.json").write_text("[1, 2]"),
    "state with another step": lambda folder: (folder / "state.json").write_text(
        (folder / "state.json").read_text().replace('"step": 5', '"step": 6')
    ),
    "nothing in it": lambda folder: [file.unlink() for file in folder.iterdir()],
}


def checkpoints(run):
    return sorted(path.name for path in (run / "checkpoints").iterdir())


def test_a_kill_leaves_two_whole_checkpoints_and_what_was_half_written(killed):
    assert checkpoints(killed) == ["step-00000004", "step-00000005", "step-00000006.partial"]


def test_what_was_half_written_is_harmless(commands, killed, whole, outcome):
    process = commands.resume(killed)
    assert process.wait() == 0, process.stderr
    assert ", from step 5\n" in process.stderr
    assert "note: " not in process.stderr
    assert outcome(killed) == outcome(whole)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_falls_back_to_the_one_before_and_says_so(damage, commands, killed, whole, outcome):
    DAMAGES[damage](killed / "checkpoints" / "step-00000005")
    process = commands.resume(killed)
    assert process.wait() == 0, process.stderr
    notes = [line for line in process.stderr.splitlines() if line.startswith("note: ")]
    assert len(notes) == 1
    assert "step-00000005 is damaged (" in notes[0]
    assert "falling back to the one before it" in notes[0]
    assert ", from step 4\n" in process.stderr
    assert outcome(killed) == outcome(whole)


def test_damaged_checkpoints_do_not_crowd_out_those_made_since(commands, killed, whole, outcome):
    truncate(killed / "checkpoints" / "step-00000004" / "average.safetensors")
    truncate(killed / "checkpoints" / "step-00000005" / "optimizer.safetensors")
    # killed again after three new steps: what is new is kept, though the damaged ones had higher numbers
    assert commands.resume(killed, die_at=[1, f"{killed}/checkpoints/step-00000004.partial"]).wait() == -signal.SIGKILL
    process = commands.resume(killed)
    assert process.wait() == 0, process.stderr
    assert "note: " not in process.stderr
    assert ", from step 3\n" in process.stderr
    assert outcome(killed) == outcome(whole)


def test_if_all_are_damaged_training_starts_again_and_says_so(commands, killed, whole, outcome):
    for folder in (killed / "checkpoints").glob("step-????????"):
        (folder / "state.json").write_text("{}")
    process = commands.resume(killed)
    assert process.wait() == 0, process.stderr
    assert process.stderr.count("is damaged (") == 2
    assert f"no checkpoint in {killed / 'checkpoints'} is whole: training starts again" in process.stderr
    assert ", from step " not in process.stderr
    assert outcome(killed) == outcome(whole)


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_full_disk_is_an_error_that_leaves_the_last_checkpoint(commands, killed, whole, outcome):
    """The system refuses to write files as large as the weights, in the middle of one."""
    shutil.rmtree(killed / "checkpoints" / "step-00000006.partial")
    before = contents(killed / "checkpoints")
    size = (killed / "checkpoints" / "step-00000005" / "model.safetensors").stat().st_size
    process = commands.resume(killed, largest_file=size - 100)
    assert process.wait() == 2
    (line,) = (line for line in process.stderr.splitlines() if line.startswith("error: "))
    assert line.startswith(f"error: cannot save a checkpoint in {killed / 'checkpoints'}: ")
    assert "File too large" in line
    assert f"the last good one is step-00000005: make room, then varclass fit --resume {killed}" in line
    assert contents(killed / "checkpoints") == before
    record = Run.open(killed).record
    assert record["status"] == "failed"
    assert "File too large" in record["error"]
    process = commands.resume(killed)
    assert process.wait() == 0, process.stderr
    assert outcome(killed) == outcome(whole)  # without the error


def test_a_disk_that_fills_up_at_the_very_end_leaves_no_half_a_model(commands, tmp_path, whole, outcome):
    run = tmp_path / whole.name
    size = (whole / "model.safetensors").stat().st_size
    process = commands.fit(*OPTIONS, "--checkpoint-seconds", 1000, runs_dir=tmp_path, largest_file=size - 100)
    assert process.wait() == 2
    assert "model.safetensors" in process.stderr.splitlines()[-1]
    assert sorted(path.name for path in run.iterdir()) == ["history.jsonl", "lock", "record.json", "spec.toml"]
    assert commands.resume(run).wait() == 0
    assert outcome(run) == outcome(whole)


def test_folders_that_cannot_be_written_are_named(commands, tmp_path, killed):
    (tmp_path / "file").write_text("")
    process = commands.fit(runs_dir=tmp_path / "file")
    assert process.wait() == 2
    (line,) = process.stderr.splitlines()
    assert line.startswith("error: ")
    assert str(tmp_path / "file") in line
    shutil.rmtree(killed / "checkpoints")
    (killed / "checkpoints").write_text("")
    process = commands.resume(killed)
    assert process.wait() == 2
    assert process.stderr.splitlines()[-1].startswith(f"error: cannot save a checkpoint in {killed / 'checkpoints'}: ")
    assert "there was none before" in process.stderr


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_the_step_saves_and_says_how_to_go_on(signum, commands, tmp_path, the_run, until, outcome, long_run):
    process = commands.fit(*MANY, runs_dir=tmp_path, freeze_at="history.jsonl")  # one epoch of 40 is over
    until(process.frozen)
    process.send(signum)
    process.send(signal.SIGCONT)
    assert process.wait() == 128 + signum, process.stderr
    run = the_run(tmp_path)
    assert process.stderr.splitlines()[-1] == f"note: stopped and saved: go on with varclass fit --resume {run}"
    assert Run.open(run).record["status"] == "stopped"
    (saved,) = checkpoints(run)
    process = commands.resume(run, "--checkpoint-seconds", 1000)
    assert process.wait() == 0, process.stderr
    assert f", from step {int(saved.removeprefix('step-'))}\n" in process.stderr
    assert outcome(run) == outcome(long_run)


@pytest.fixture(scope="module")
def long_run(commands, tmp_path_factory, the_run):
    folder = tmp_path_factory.mktemp("long")
    assert commands.fit(*MANY, runs_dir=folder).wait() == 0
    return the_run(folder)


def test_of_two_processes_on_one_run_the_second_is_refused(commands, tmp_path, the_run, until, outcome, long_run):
    first = commands.fit(*MANY, runs_dir=tmp_path, freeze_at="history.jsonl")
    until(first.frozen)
    second = commands.fit(*MANY, runs_dir=tmp_path)
    assert second.wait() == 2
    assert second.stderr == f"error: {the_run(tmp_path)} is being trained by another process\n"
    first.send(signal.SIGCONT)
    assert first.wait() == 0, first.stderr
    assert outcome(the_run(tmp_path)) == outcome(long_run)


def test_a_run_is_not_continued_on_other_data(commands, tmp_path, the_run):
    data, chance = tmp_path / "mine.npz", np.random.default_rng(0)
    x, y = chance.normal(size=(90, 5)).astype(np.float32), np.arange(90) % 3
    np.savez(data, x_train=x, y_train=y, x_test=x, y_test=y)
    shared = ("--batch-size", 40, "--cross-fit", 0, "--device", "cpu", "--runs-dir", tmp_path / "runs")
    options = (data, "--epochs", 2, *shared)
    doomed = [40, f"{tmp_path / 'runs'}/mine-mlp-pull-s0-"]
    assert commands.start("fit", *options, "--checkpoint-seconds", 0, die_at=doomed).wait() == -signal.SIGKILL
    run = the_run(tmp_path / "runs")
    before = contents(run)
    assert checkpoints(run)
    np.savez(data, x_train=x + 1, y_train=y, x_test=x, y_test=y)
    for start in (lambda: commands.resume(run), lambda: commands.start("fit", *options)):  # one after the other: both lock it
        process = start()
        assert process.wait() == 2
        (line,) = process.stderr.splitlines()
        assert line.startswith(f"error: {run} ")
        assert f"on other data than {data} holds now" in line
    assert contents(run) == before
    np.savez(data, x_train=x, y_train=y, x_test=x, y_test=y)
    assert commands.resume(run).wait() == 0
    np.savez(data, x_train=x, y_train=(y + 1) % 3, x_test=x, y_test=y)
    finished = commands.start("fit", *options)
    assert finished.wait() == 2
    assert f"on other data than {data} holds now" in finished.stderr


@pytest.mark.parametrize(
    "options", [("--lr", 1e30, "--optimizer", "sgd"), ("--lr", 1e30, "--optimizer", "sgd", "--accumulate", 2)]
)
def test_a_loss_that_is_not_finite_stops_the_run_and_names_the_term_and_the_step(options, commands, tmp_path, the_run):
    process = commands.fit(*OPTIONS, *options, runs_dir=tmp_path)
    assert process.wait() == 2
    line = process.stderr.splitlines()[-1]
    run = the_run(tmp_path)
    last = int(checkpoints(run)[-1].removeprefix("step-"))
    assert line.startswith("error: the ")
    assert f"term became nan at step {last + 1} of 12; training stopped: try a smaller --lr" in line
    record = json.loads((run / "record.json").read_text())
    assert (record["status"], f"error: {record['error']}") == ("failed", line)
    assert not (run / "model.safetensors").exists()
    assert not list(run.rglob("*.partial"))
    before = contents(run / "checkpoints")
    process = commands.resume(run)
    assert (process.wait(), process.stderr.splitlines()[-1]) == (2, line)  # it read them, so they are whole
    assert contents(run / "checkpoints") == before


def test_weights_that_break_in_the_last_step_do_not_make_a_finished_run(commands, tmp_path, the_run):
    process = commands.fit("--epochs", 1, "--batch-size", 180, "--lr", 1e30, "--optimizer", "sgd", runs_dir=tmp_path)
    assert process.wait() == 2
    assert process.stderr.splitlines()[-1].startswith("error: the validation NLL became nan after step 1 of 1; ")
    assert Run.open(the_run(tmp_path)).record["status"] == "failed"


def test_time_is_counted_over_all_parts_of_a_run(commands, killed):
    before = load_checkpoint(killed / "checkpoints", pytest.fail)
    before.progress["seconds"] = 1000.0
    save_checkpoint(killed / "checkpoints", before)
    began = time.monotonic()
    assert commands.resume(killed).wait() == 0
    assert 1000 < Run.open(killed).record["seconds"] < 1000 + time.monotonic() - began
