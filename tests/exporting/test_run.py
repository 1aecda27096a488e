"""varclass export: a run without its data, the model card, and the program on it."""

import json
import re
import shutil

import numpy as np
import pytest
import torch

from varclass.cli.app import run as command
from varclass.encoders.tokenizer import HashTokenizer
from varclass.exporting.run import export_run
from varclass.training.loop import fit
from varclass.training.runs import Run
from varclass.training.spec import DataSpec, EncoderSpec, HeadSpec, RunSpec, TrainingSpec

pytest.importorskip("onnxruntime", reason="pip install 'varclass[onnx]'")
SMALL = EncoderSpec("mlp", options={"hidden": [16], "features": 8})


def train(folder, data="digits", **changes):
    values = {"encoder": SMALL, "head": HeadSpec("gm"), "training": TrainingSpec(epochs=1, lr=0.01)} | changes
    return fit(RunSpec(data=DataSpec(str(data), length=12), **values), folder)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def run(trained, tmp_path):
    return Run(shutil.copytree(trained.path, tmp_path / trained.path.name))


def blocks(card):
    return re.findall(r"```python\n(.*?)\n```", card, re.S)


def program_on(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    capsys.readouterr()
    exec(blocks((folder / "MODEL_CARD.md").read_text())[0], {})
    return capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("to", ["onnx", "torch"])
def test_the_program_on_the_card_runs_and_says_classes(run, to, monkeypatch, capsys):
    assert command(["export", str(run.path), "--to", to]) == 0
    folder = run.path / to
    assert capsys.readouterr().out.split() == [
        str(folder / name) for name in ("model.onnx" if to == "onnx" else "model.pt2", "labels.json", "MODEL_CARD.md")
    ]
    assert program_on(folder, monkeypatch, capsys).startswith("['")


def test_the_card_has_what_was_measured_and_says_what_was_not(run, capsys):
    export_run(run, "torch")
    card = (run.path / "torch" / "MODEL_CARD.md").read_text()
    assert card.count("Not measured.") == 4
    assert "32 random inputs and 32 test samples" in card
    assert run.record["provenance"]["versions"]["torch"] in card
    assert command(["evaluate", str(run.path), "--suite", "clean"]) == 0
    export_run(run, "torch")
    card = (run.path / "torch" / "MODEL_CARD.md").read_text()
    assert card.count("Not measured.") == 3
    row = next(r for r in json.loads((run.path / "scores.json").read_text())["rows"] if r["method"] == "raw")
    line = next(line for line in card.splitlines() if line.startswith("| test | as exported |"))
    assert f"| {100 * row['scores']['accuracy']:.1f} |" in line
    assert line.endswith("| 600 |")
    assert "| test | temperature scaling |" in card
    assert "--runs-dir" not in card


def test_a_run_loads_and_exports_without_its_data_and_the_path_of_the_data_stays_private(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(1000, 5, (60, 4)).astype(np.float32), np.arange(60) % 3
    secret = tmp_path / "secret"
    secret.mkdir()
    np.savez(secret / "mine.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    run = train(tmp_path / "runs", secret / "mine.npz")
    shutil.rmtree(secret)
    assert run.load_model()(torch.from_numpy(x)).shape == (60, 3)
    path = export_run(run, "onnx")
    card = path.with_name("MODEL_CARD.md").read_text()
    assert "on 32 random inputs (tolerance" in card
    assert "mine.npz" in card
    assert "secret" not in card


def test_a_text_run_exports_without_its_data_and_takes_what_its_tokenizer_gives(tmp_path, monkeypatch, capsys):
    lines = [f"{word} word number {k},<b>{word}|_x_" for k in range(20) for word in ("good", "bad")]
    (tmp_path / "mine.csv").write_text("\n".join(["text,label", *lines]))
    encoder = EncoderSpec("text", options={"width": 16, "layers": 1, "heads": 2})
    run = train(tmp_path / "runs", tmp_path / "mine.csv", encoder=encoder)
    (tmp_path / "mine.csv").unlink()
    folder = export_run(run, "onnx").parent
    assert program_on(folder, monkeypatch, capsys)
    card = (folder / "MODEL_CARD.md").read_text()
    assert r"\<b\>good\|\_x\_" in card
    assert "<b>" not in card
    found = {}
    exec(blocks(card)[1], found)
    expected = HashTokenizer(length=12)(np.array(["a text", "another"], dtype=object))
    np.testing.assert_array_equal(found["x"], expected)
    assert json.loads((folder / "labels.json").read_text())["tokenizer"]["length"] == 12


def test_a_gaussian_posterior_is_exported_and_the_card_says_how(tmp_path):
    run = train(tmp_path, head=HeadSpec("gm", posterior="gaussian"))
    assert "the draws that predictions average over are fixed" in export_run(run).with_name("MODEL_CARD.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--to", "tflite"], "to must be one of 'onnx', 'torch'"), ([], "Missing option '--to'")],
)
def test_mistakes_are_one_line_with_exit_code_2(run, arguments, message, capsys):
    assert command(["export", str(run.path), *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert "\n" not in error
    assert message in error


def test_an_unfinished_run_and_no_run_are_refused(run, capsys):
    assert command(["export", str(run.path.parent), "--to", "torch"]) == 2
    assert "is not a run" in capsys.readouterr().err
    run.weights.unlink()
    assert command(["export", str(run.path), "--to", "torch"]) == 2
    assert "no trained model yet" in capsys.readouterr().err
