"""varclass fit: each objective, settings from files and flags, going on, JSON, and every mistake in one line."""

import json
import os
import re
import subprocess
import sys
import tomllib

import numpy as np
import pytest
import torch

import varclass
from varclass.__main__ import leave
from varclass.training.runs import Run


def only(folder):
    (path,) = folder.iterdir()
    return path


@pytest.mark.parametrize("objective", ["ce", "gm", "vc"])
def test_each_objective_from_the_command_to_a_model_that_predicts(objective, fit, tmp_path):
    result = fit("--objective", objective, "--epochs", 6, "--lr", 0.01, "--limit", 1000, "--runs-dir", tmp_path)
    assert result.code == 0, result.stderr
    assert result.stdout == ""
    run = Run.open(only(tmp_path))
    assert run.spec.head.objective == objective
    lines = result.stderr.splitlines()
    assert lines[0] == f"{run.path}: 900 training samples, 100 for validation, 90 steps"
    assert re.match(
        r"head: VariationalHead\(8, 10, latent_dim=8, objective=.*, covariance=.*, means=learned, separation=", lines[1]
    )
    assert [line.partition(":")[0] for line in lines[2:8]] == [f"epoch {n}/6" for n in range(1, 7)]
    score = run.record["validation"]
    assert lines[-2].startswith(f"validation (n=100): accuracy {score['accuracy']:.2%}, NLL {score['nll']:.4f}; ")
    assert lines[-1] == str(run.path)
    # 900 images teach it more than guessing: 5 standard errors of a guess of one in ten above it
    assert score["accuracy"] > 0.1 + 5 * (0.1 * 0.9 / 100) ** 0.5
    model = run.load_model()
    with torch.no_grad():
        assert model(torch.zeros(2, 1, 8, 8)).shape == (2, 10)


def test_as_a_program(tmp_path):
    """python -m varclass, as a user has it: JSON alone on stdout, the rest on stderr, exit code 0."""
    line = "fit digits --encoder mlp --limit 200 --epochs 1 --device cpu --json --runs-dir"
    done = subprocess.run(
        [sys.executable, "-m", "varclass", *line.split(), tmp_path],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout, parse_constant=pytest.fail)
    assert record["path"] == str(only(tmp_path))
    assert record["status"] == "finished"
    assert {"warning", "Traceback"} & set(done.stderr.split()) == set()


@pytest.mark.parametrize("code", [0, 2, 143])
def test_one_of_several_processes_leaves_without_the_teardown_that_aborts(code, monkeypatch):
    class Left(Exception):
        pass

    def leave_now(with_code):
        raise Left(with_code)

    met = []
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "barrier", lambda: met.append(code))
    monkeypatch.setattr(os, "_exit", leave_now)
    with pytest.raises(Left) as left:
        leave(code)
    assert left.value.args == (code,)
    assert met == [0] * (code == 0)  # a process that failed does not wait for the others
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: False)
    with pytest.raises(SystemExit) as exited:
        leave(code)
    assert exited.value.code == code


def test_flags_override_the_file_and_the_complete_spec_is_written_back(call, fit, tmp_path):
    config = tmp_path / "run.toml"
    config.write_text(
        'seed = 3\n[data]\nname = "digits"\nlimit = 200\n[encoder]\nname = "mlp"\noptions = {hidden = [16], features = 8}\n'
        '[head]\nobjective = "gm"\n[training]\nepochs = 1\nlr = 0.5\nbatch_size = 60\nlr_multipliers = {theta = 2}\n'
    )
    result = call(
        "fit", "--config", config, "--lr", 0.02, "--objective", "vc", "--device", "cpu", "--runs-dir", tmp_path / "runs"
    )
    assert result.code == 0, result.stderr
    run = only(tmp_path / "runs")
    values = tomllib.loads((run / "spec.toml").read_text())
    assert values["seed"] == 3
    assert values["head"]["objective"] == "vc"
    assert values["head"]["beta"] == "1/D"
    assert values["encoder"] == {"name": "mlp", "dropout": 0.0, "options": {"hidden": [16], "features": 8}}
    assert values["training"]["lr"] == 0.02
    assert values["training"]["epochs"] == 1
    assert values["training"]["optimizer"] == "adamw"
    assert values["training"]["lr_multipliers"] == {"theta": 2.0}

    again = call("fit", "--config", run / "spec.toml", "--device", "cpu", "--runs-dir", tmp_path / "runs")
    assert again.code == 0
    assert again.stderr.splitlines()[0] == f"already trained: {run}"
    assert only(tmp_path / "runs") == run


@pytest.mark.parametrize(("limit", "n", "told"), [(300, 30, ", which it was settled by"), (100, 10, "")])
def test_the_score_says_whether_the_same_samples_settled_the_model(limit, n, told, call, tmp_path):
    result = call("fit", "digits", "--limit", limit, "--cross-fit", 0, "--epochs", 1, "--device", "cpu", "--runs-dir", tmp_path)
    assert result.code == 0, result.stderr
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("validation (")]
    assert line.startswith(f"validation (n={n}{told}): accuracy ")
    heads = [line for line in result.stderr.splitlines() if line.startswith("head: ")]
    assert all("separation=auto, now " in head for head in heads)
    assert len(heads) == 2


def test_the_same_settings_are_the_same_run_however_they_are_given(fit, tmp_path):
    result = fit("--objective", "vc", "--json", "--runs-dir", tmp_path)
    run = only(tmp_path)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in run.iterdir()}
    config = tmp_path.parent / f"{tmp_path.name}.toml"
    config.write_text('[training]\nschedule = "cosine"\noptimizer = "adamw"\n[head]\nobjective = "ce"\n')
    again = fit("--config", config, "--objective", "vc", "--json", "--runs-dir", tmp_path)
    assert json.loads(again.stdout) == json.loads(result.stdout)
    assert again.stderr.startswith(f"already trained: {run}\n")
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in run.iterdir()} == before


def test_a_changed_setting_is_another_run(fit, tmp_path):
    for options in ((), ("--seed", 1), ("--lr", 0.002), ("--dropout", 0.1), ("--augment", "crop,flip"), ("--validation", 0.2)):
        assert fit("--epochs", 1, "--runs-dir", tmp_path, *options).code == 0
    assert len(list(tmp_path.iterdir())) == 6


def test_a_beta_is_a_number_or_a_word_and_auto_is_the_default(fit, tmp_path):
    for options, named, weight in (
        ((), "auto", "Pull(beta=0.1) (auto: 18 samples a class)"),
        (("--beta", "auto"), "auto", "Pull(beta=0.1) (auto: 18 samples a class)"),
        (("--beta", "3/D"), "3/D", "Pull(beta=0.3)"),
        (("--beta", "0.5"), 0.5, "Pull(beta=0.5)"),
    ):
        assert fit("--epochs", 1, "--runs-dir", tmp_path / str(named).replace("/", ""), *options).code == 0
        run = Run.open(only(tmp_path / str(named).replace("/", "")))
        assert run.spec.head.beta == named
        assert f"objective={weight}, covariance" in run.record["head"]


def test_where_and_how_are_not_settings(fit, tmp_path):
    for options in ((), ("--checkpoint-seconds", 0), ("--no-deterministic",)):
        assert fit("--epochs", 1, "--runs-dir", tmp_path, *options).code == 0
    assert len(list(tmp_path.iterdir())) == 1


def test_a_path_with_brackets_is_printed_as_it_is(fit, tmp_path):
    result = fit("--epochs", 1, "--runs-dir", tmp_path / "runs[bold] :cat:")
    assert result.stderr.splitlines()[-1] == str(only(tmp_path / "runs[bold] :cat:"))


def test_resume_of_a_finished_run_trains_nothing(call, runs_dir):
    run = next(path for path in sorted(runs_dir.iterdir()) if Run.open(path).finished)
    result = call("fit", "--resume", run, "--json", "--device", "cpu")
    assert result.code == 0
    assert json.loads(result.stdout)["id"] == run.name
    assert result.stderr.splitlines()[0] == f"already trained: {run}"


def test_vectors_and_texts_of_ones_own(call, tmp_path):
    chance = np.random.default_rng(0)
    x, y = chance.normal(size=(60, 4)).astype(np.float32), np.arange(60) % 3
    np.savez(tmp_path / "vectors.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    rows = "\n".join(f"{'good' if i % 2 else 'bad'} words {i},{i % 2}" for i in range(60))
    (tmp_path / "texts.csv").write_text(f"text,label\n{rows}\n")
    for data, encoder in (("vectors.npz", "mlp"), ("texts.csv", "text")):
        options = ("--epochs", 1, "--batch-size", 20, "--length", 8, "--device", "cpu", "--runs-dir", tmp_path / encoder)
        result = call("fit", tmp_path / data, *options)
        assert result.code == 0, result.stderr
        run = Run.open(only(tmp_path / encoder))
        assert run.spec.encoder.name == encoder
        assert run.load_model().head.num_classes == len(run.record["task"]["classes"])


# --------------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--objective", "vcc"), "objective must be one of 'ce', 'gm', 'pull', 'vc', 'bottleneck', 'authors'; got 'vcc'"),
        (("--encoder", "vgg"), "'package.module:ClassName'; got 'vgg'"),
        (("--encoder-option", "depth=3"), "encoder 'mlp' has no option 'depth'; its options are hidden, features"),
        (("--encoder-option", "depth"), "--encoder-option must be name=value; got 'depth'"),
        (("--lr", -0.1), "training.lr must be a finite number > 0; got -0.1"),
        (("--epochs", 0), "training.epochs must be a whole number of at least 1; got 0"),
        (("--batch-size", 60, "--accumulate", 7), "training.batch_size must be a multiple of training.accumulate=7; got 60"),
        (("--augment", "crop,blur"), "training.augment must be one of 'crop', 'flip', 'cutout'; got 'blur'"),
        (("--covariance", "full"), "head.covariance must be one of"),
        (("--beta", "some"), "--beta must be a number or auto, or a text such as 1/D; got 'some'"),
        (("--beta", "x/D"), "head.beta must be a finite number >= 0, 'auto', or a text such as '1/D'; got 'x/D'"),
        (("--beta", "auto", "--objective", "vc"), "head.beta='auto' is for the objective 'pull': write '1/D' or nothing"),
        (("--limit", 5, "--per-class", 2), "data.limit and data.per_class exclude each other; got both"),
        (("--device", "tpu9"), "device must be cpu, cuda or cuda:<number>; got 'tpu9'"),
        (("--epochs", "many"), "Invalid value for '--epochs': "),
        (("--objctive", "vc"), "No such option: --objctive"),
        (("--resume", "somewhere"), "--resume goes on with the settings of the run; got"),
        (("--config", "no.toml"), "No such file or directory: 'no.toml'"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(options, message, fit, tmp_path):
    result = fit("--runs-dir", tmp_path / "runs", *options)
    assert message in result.error
    assert not (tmp_path / "runs").exists()


def test_a_gpu_that_is_not_there_is_said(fit, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for device in ("cuda", "cuda:1"):
        assert (
            f"device '{device}' was asked for, but torch sees no GPU here"
            in fit("--device", device, "--runs-dir", tmp_path).error
        )
    assert not list(tmp_path.iterdir())


def test_data_that_is_not_there_is_said(call, tmp_path):
    assert "did you mean 'digits'?" in call("fit", "digit", "--runs-dir", tmp_path).error
    assert "'varclass data get cifar10'" in call("fit", "cifar10", "--data-root", tmp_path, "--runs-dir", tmp_path).error
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[training]\nlearning_rate = 1", "training: no setting 'learning_rate'; there are accumulate, augment"),
        ("[training]\nepochs = 'three'", "training: epochs: expected 'int'; got 'three'"),
        ("[training\n", "expected TOML; "),
        ("[head]\nobjective = 'vcc'", "objective must be one of 'ce', 'gm', 'pull', 'vc', 'bottleneck', 'authors'; got 'vcc'"),
    ],
)
def test_mistakes_in_a_file_are_one_line(toml, message, call, tmp_path):
    (tmp_path / "run.toml").write_text(toml)
    assert message in call("fit", "--config", tmp_path / "run.toml", "--runs-dir", tmp_path / "runs").error


def test_resume_takes_no_other_settings_and_needs_a_run(call, runs_dir, tmp_path):
    run = sorted(runs_dir.iterdir())[0]
    assert call("fit", "--resume", run, "--lr", 0.1).error.endswith("got training.lr beside it")
    assert call("fit", "--resume", run, "--config", run / "spec.toml").error.endswith("got --config beside it")
    assert call("fit", "--resume", tmp_path).error == f"{tmp_path} is not a run: it has no spec.toml (varclass runs lists them)"
    assert f"{tmp_path / 'none'} is not a run" in call("fit", "--resume", tmp_path / "none").error


def test_fit_without_data_or_file_says_what_it_needs(call):
    assert "fit needs DATA, --config or --resume" in call("fit", "--epochs", 3).error


def test_a_traceback_is_there_for_who_asks(fit, tmp_path, monkeypatch):
    monkeypatch.setenv("VARCLASS_TRACEBACK", "1")
    with pytest.raises(ValueError, match="objective"):
        fit("--objective", "vcc", "--runs-dir", tmp_path)


def test_help_has_an_example_and_an_unknown_verb_is_an_error(call):
    help_page = call("fit", "--help")
    assert help_page.code == 0
    assert "varclass fit digits" in help_page.stdout
    assert call("--version").stdout.strip() == varclass.__version__
    assert {"fit", "runs", "data"} <= set(call("--help").stdout.split())
    assert call("fit").code == 2
    assert call("fitt").error.startswith("No such command 'fitt'.")


def test_too_few_samples_to_hold_some_out_says_what_to_do_and_leaves_no_run(call, tmp_path):
    x, y = np.zeros((2, 4), dtype=np.float32), np.arange(2)
    np.savez(tmp_path / "two.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    result = call("fit", tmp_path / "two.npz", "--runs-dir", tmp_path / "runs", "--epochs", "1")
    assert "--validation 0 trains on all of them" in result.error
    assert not (tmp_path / "runs").exists()
    assert call("fit", tmp_path / "two.npz", "--runs-dir", tmp_path / "runs", "--epochs", "1", "--validation", "0").code == 0
    assert [path.name.split("-")[0] for path in (tmp_path / "runs").iterdir()] == ["two"]
