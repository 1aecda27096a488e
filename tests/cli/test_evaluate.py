"""varclass evaluate through the command line."""

import json
import shutil

import pytest

from varclass.cli.app import run as command
from varclass.training.loop import fit
from varclass.training.spec import EncoderSpec, HeadSpec, RunSpec, TrainingSpec


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    spec = RunSpec(encoder=EncoderSpec("mlp"), head=HeadSpec("ce"), training=TrainingSpec(epochs=2))
    return fit(spec, tmp_path_factory.mktemp("runs")).path


def test_evaluate_prints_a_table_and_writes_beside_the_run(trained, capsys):
    assert command(["evaluate", str(trained), "--suite", "clean,latents"]) == 0
    printed = capsys.readouterr().out
    assert str(trained) in printed
    assert "temperature" in printed
    assert "class all" in printed
    assert (trained / "predictions" / "test.npz").exists()
    book = json.loads((trained / "scores.json").read_text())
    assert {row["suite"] for row in book["rows"]} == {"clean", "latents"}


def test_evaluate_as_json_is_every_row_of_every_run(trained, tmp_path, capsys):
    other = shutil.copytree(trained, tmp_path / "other")
    flags = ["--suite", "adversarial", "--samples", "20", "--epsilons", "0.1", "--pgd-steps", "2", "--json"]
    assert command(["evaluate", str(trained), str(other), *flags]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["run"] for row in rows] == [str(trained)] * 2 + [str(other)] * 2
    assert [row["condition"]["attack"] for row in rows] == ["fgsm", "pgd"] * 2
    assert rows[0]["scores"] == rows[2]["scores"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--suite", "all"], "suite must be one of"),
        (["--suite", "shift", "--severities", "a"], "--severities must be numbers"),
        (["--suite", "shift", "--severities", "6"], "severity must be a whole number from 1 to 5"),
        (["--suite", "shift", "--corruptions", "rain"], "must be one of 'gaussian_noise'"),
        (["--suite", "ood"], "--ood"),
        (["--suite", "clean", "--mc-dropout", "3"], "--dropout"),
        (["--device", "tpu?"], "device must be"),
    ],
)
def test_mistakes_are_one_line_with_exit_code_2(trained, capsys, flags, message):
    assert command(["evaluate", str(trained), *flags]) == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith("error: ")
    assert "\n" not in error
    assert message in error


def test_what_is_not_a_run_is_said(tmp_path, capsys):
    assert command(["evaluate", str(tmp_path)]) == 2
    assert "is not a run" in capsys.readouterr().err
