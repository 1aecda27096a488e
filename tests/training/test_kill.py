"""A process that is killed, at whatever moment, and resumed ends with the bits of one that was left alone."""

import random
import signal

import pytest

EVERYTHING = (
    *("--epochs", 8, "--objective", "vc", "--ema", 0.9, "--mixup", 0.2, "--label-smoothing", 0.1, "--dropout", 0.2),
    *("--clip", 1, "--patience", 2, "--accumulate", 2, "--augment", "crop,flip,cutout", "--schedule", "one-cycle"),
)
SGD = ("--epochs", 6, "--encoder", "lenet", "--objective", "gm", "--optimizer", "sgd", "--lr", 0.02, "--augment", "crop")
LENET = ("--encoder-option", "hidden=32", "--encoder-option", "features=8", "--encoder-option", "widths=[4, 4]")
CASES = {"everything": EVERYTHING, "sgd and batch statistics": (*LENET, *SGD)}


@pytest.fixture(scope="module", params=CASES)
def case(request, commands, tmp_path_factory, the_run, outcome):
    """Options of a run, and what comes out if nothing happens to it."""
    folder = tmp_path_factory.mktemp("reference")
    process = commands.fit(*CASES[request.param], runs_dir=folder)
    assert process.wait() == 0, process.stderr
    return CASES[request.param], outcome(the_run(folder)), the_run(folder).name


def steps(run):
    return sorted(path.name for path in (run / "checkpoints").glob("step-????????"))


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_at_random_moments_and_resumed(case, seed, commands, tmp_path, outcome):
    """Up to 20 ms after up to 60 operations on checkpoints: during one, anywhere in the steps after it, or past the end.

    The first time at once, so that one attempt at least is killed; a later one may be quicker than its end.
    """
    options, expected, name = case
    chance, run = random.Random(seed), tmp_path / name
    process = commands.fit(*options, runs_dir=tmp_path, die_at=[chance.randint(30, 60), f"{run}/checkpoints/step-"])
    assert process.wait() == -signal.SIGKILL, process.stderr
    assert not (run / "model.safetensors").exists()
    said = ""
    for _ in range(4):
        doomed = [chance.randint(1, 60), f"{run}/checkpoints/step-", chance.uniform(0, 0.02)]
        process = commands.resume(run, die_at=doomed)
        assert process.wait() in (0, -signal.SIGKILL), process.stderr
        said += process.stderr
    process = commands.resume(run)
    assert process.wait() == 0, process.stderr
    assert ", from step " in said + process.stderr
    assert outcome(run) == expected


def test_killed_before_every_operation_on_files_up_to_the_third_checkpoint(commands, tmp_path, outcome, the_run):
    """Attempt k is killed before the k-th time it opens, makes, moves or removes something in the run's folder."""
    options = ("--epochs", 2, "--objective", "vc", "--ema", 0.9, "--patience", 1)
    assert commands.fit(*options, runs_dir=tmp_path / "whole").wait() == 0
    expected, name = outcome(the_run(tmp_path / "whole")), the_run(tmp_path / "whole").name
    run, most = tmp_path / "killed" / name, 0
    for count in range(1, 200):
        process = commands.fit(*options, runs_dir=tmp_path / "killed", die_at=[count, f"{run}/"])
        code = process.wait()
        if code == 0:
            break
        assert code == -signal.SIGKILL, process.stderr
        assert "damaged" not in process.stderr
        most = max(most, len(steps(run)))
    assert (code, most) == (0, 3)  # the third is whole before the first goes
    assert outcome(run) == expected


def test_killed_before_every_operation_of_the_end(commands, tmp_path, outcome, the_run):
    assert commands.fit("--epochs", 1, runs_dir=tmp_path / "whole").wait() == 0
    expected, name = outcome(the_run(tmp_path / "whole")), the_run(tmp_path / "whole").name
    run = tmp_path / "killed" / name
    process = commands.fit("--epochs", 1, runs_dir=tmp_path / "killed", die_at=[1, str(run / "model.safetensors")])
    assert process.wait() == -signal.SIGKILL
    assert steps(run)[-1] == f"step-{expected[2]['steps']:08d}"
    for count in range(1, 200):
        code = commands.resume(run, die_at=[count, f"{run}/"]).wait()
        if code == 0:
            break
        assert code == -signal.SIGKILL
    assert code == 0
    assert count > 20  # there were that many operations to be killed at
    assert outcome(run) == expected
