"""varclass evaluate through the command line."""

import csv
import json
import shutil

import numpy as np
import pytest

from varclass.cli.app import run as command
from varclass.cli.evaluate import few_classes
from varclass.data import load
from varclass.evaluation.scorebook import Row
from varclass.evaluation.verdict import Verdict
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


def test_predict_writes_csv_and_json_with_and_without_validation_predictions(trained, tmp_path, capsys):
    np.save(tmp_path / "x.npy", load("digits")["test"].inputs[:5])
    bare = shutil.copytree(trained, tmp_path / "bare")
    shutil.rmtree(bare / "predictions", ignore_errors=True)
    assert command(["predict", str(bare), str(tmp_path / "x.npy")]) == 0
    shown = capsys.readouterr()
    rows = list(csv.DictReader(shown.out.splitlines()))
    assert [row["input"] for row in rows] == [f"{tmp_path / 'x.npy'}:{i}" for i in range(5)]
    assert {row["typicality"] for row in rows} == {""}
    assert f"varclass evaluate {bare}" in shown.err
    assert command(["evaluate", str(bare)]) == 0
    capsys.readouterr()
    assert command(["predict", str(bare), str(tmp_path / "x.npy"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["predicted"] for row in found] == [row["class"] for row in rows]
    assert all(0 < row["typicality"] <= 1 and isinstance(row["conformal_set"], list) for row in found)


def test_predict_tells_a_set_without_a_class_from_no_set(tmp_path, capsys, monkeypatch):
    rows = [Verdict("x", "a", 1.0, 0.0, 0.5, held) for held in (None, (), ("a", "b"))]
    monkeypatch.setattr("varclass.training.runs.Run.open", lambda path: None)
    monkeypatch.setattr("varclass.evaluation.verdict.judge", lambda *arguments: rows)
    assert command(["predict", str(tmp_path), "x.npy"]) == 0
    shown = csv.DictReader(capsys.readouterr().out.splitlines())
    assert [row["conformal_set"] for row in shown] == ["", "{}", "a|b"]


def test_predict_says_what_it_cannot_read(trained, tmp_path, capsys):
    (tmp_path / "x.txt").write_text("a text")
    assert command(["predict", str(trained), str(tmp_path / "x.txt")]) == 2
    assert "expected images, .npy or .npz" in capsys.readouterr().err


def test_compare_trains_evaluates_and_ends_with_the_path_of_a_page_and_goes_on_from_what_is_there(tmp_path, capsys):
    flags = ["--objectives", "ce,vc", "--seeds", "2", "--encoder", "mlp", "--epochs", "1", "--suite", "clean"]
    where = ["--runs-dir", str(tmp_path / "runs"), "-o", str(tmp_path / "page.html"), "--device", "cpu"]
    assert command(["compare", "digits", *flags, *where]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[-1] == str(tmp_path / "page.html")
    assert "[4/4] vc, seed 1" in shown.err
    assert "VC against CE" in (tmp_path / "page.html").read_text()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*/*")}
    assert len(list((tmp_path / "runs").iterdir())) == 4
    assert command(["compare", "digits", *flags, *where]) == 0
    assert {
        path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*/*") if path.is_file()
    }.items() <= before.items()


def test_compare_says_what_it_lacks(tmp_path, capsys):
    assert command(["compare"]) == 2
    assert command(["compare", "digits", "--objectives", "", "--runs-dir", str(tmp_path)]) == 2
    assert "objectives must be some different values" in capsys.readouterr().err


def test_an_ensemble_of_runs_is_the_average_of_their_predictions(trained, tmp_path, capsys):
    other = shutil.copytree(trained, tmp_path / "other")
    assert command(["evaluate", str(trained), str(other), "--ensemble", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    alone = next(row for row in rows if row["method"] == "raw")
    (together,) = [row for row in rows if row["method"] == "ensemble"]
    assert together["n"] == alone["n"] == 600
    assert together["scores"]["nll"] == pytest.approx(alone["scores"]["nll"], rel=1e-6)  # of twice the same model
    assert command(["evaluate", str(trained), "--ensemble"]) == 2
    assert "at least two members" in capsys.readouterr().err


def test_latents_of_many_classes_do_not_fill_the_screen():
    rows = [Row("latents", "raw", {"class": str(name)}, 5, {}) for name in range(21)]
    rows += [Row("latents", "raw", {"class": "all"}, 105, {}), Row("clean", "raw", {}, 105, {})]
    assert few_classes(rows) == (rows[-2:], 21)
    assert few_classes(rows[1:]) == (rows[1:], 0)
