"""Exported files against PyTorch: every prior, posterior and encoder, named outputs, any batch, nothing left by a failure."""

import json
import subprocess
import sys
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import varclass
from varclass import Classifier, VariationalHead
from varclass.core.priors import PRIORS
from varclass.encoders.build import build_encoder
from varclass.exporting import checking, onnx
from varclass.exporting.checking import check_same
from varclass.exporting.markdown import fenced, text
from varclass.exporting.outputs import OUTPUTS, Outputs
from varclass.exporting.program import trace

onnxruntime = pytest.importorskip("onnxruntime", reason="pip install 'varclass[onnx]'")
HEADS = [(prior, covariance) for prior in PRIORS for covariance in PRIORS[prior].covariances]


def make(features: int = 8, **options) -> Classifier:
    torch.manual_seed(0)
    model = Classifier(nn.Sequential(nn.Linear(5, features), nn.Tanh()), VariationalHead(features, 3, **options))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def session_of(path):
    return onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])


def assert_same(found, model, x):
    """By the classifier itself, not by what the exporter compares with."""
    with torch.no_grad():
        model = model.eval()
        expected = (model(x), model.log_posterior(x).exp(), model.log_evidence(x))
    for got, wanted, rtol in zip(found, expected, (1e-5, 0, 1e-5), strict=True):
        np.testing.assert_allclose(got, wanted.numpy(), rtol=rtol, atol=1e-4)


@pytest.mark.parametrize(("prior", "covariance"), HEADS)
def test_every_prior_is_traced_with_a_dynamic_batch(prior, covariance):
    outputs = Outputs(make(prior=prior, covariance=covariance, objective="vc", latent_dim=4))
    program = trace(outputs, torch.randn(2, 5)).module()
    worst = check_same(program, outputs, torch.randn(20, 5))
    assert set(worst) == set(OUTPUTS)
    assert max(worst.values()) < 1e-4


@pytest.mark.parametrize(("prior", "covariance"), [("gaussian", "diagonal"), ("gaussian", "shared"), ("vmf", "isotropic")])
def test_onnx_says_what_pytorch_says_at_every_batch_size(tmp_path, prior, covariance):
    model = make(prior=prior, covariance=covariance).train()
    model.head.class_prior.scale_factor = 1.3
    path = varclass.export(model, torch.randn(1, 5), tmp_path / "out", classes=["a", "b", "c"])
    assert model.training
    session = session_of(path)
    assert [(each.name, each.shape) for each in session.get_inputs()] == [("input", ["batch", 5])]
    assert [each.name for each in session.get_outputs()] == ["log_joint", "posterior", "log_evidence"]
    assert [each.shape for each in session.get_outputs()] == [["batch", 3], ["batch", 3], ["batch"]]
    assert json.loads(session.get_modelmeta().custom_metadata_map["classes"]) == ["a", "b", "c"]
    for batch in (1, 2, 7, 64):
        x = torch.randn(batch, 5)
        assert_same(session.run(list(OUTPUTS), {"input": x.numpy()}), model, x)


def test_onnx_of_the_recommended_head_that_has_settled_and_is_calibrated(tmp_path):
    model = make().eval()
    x, y = torch.randn(50, 5), torch.randint(3, (50,))
    before = model.head.separation
    assert model.head.settle(model.encoder(x), y) != pytest.approx(before, rel=1e-3)
    assert model.calibrate(x, y) != pytest.approx(1.0, rel=1e-3)
    path = varclass.export(model, torch.randn(1, 5), tmp_path / "out")
    for batch in (1, 7):
        x = torch.randn(batch, 5)
        assert_same(session_of(path).run(list(OUTPUTS), {"input": x.numpy()}), model, x)


@pytest.mark.parametrize("to", ["onnx", "torch"])
def test_a_settled_covariance_is_exported(to, tmp_path):
    model = make().eval()
    model.head.class_prior.root = torch.eye(3) + 0.1 * torch.tensor([[0.0, 1.0, 2.0], [1.0, 1.0, 0.0], [2.0, 0.0, -1.0]])
    path = varclass.export(model, torch.randn(1, 5), tmp_path / "out", to=to)
    for batch in (1, 7):
        x = torch.randn(batch, 5)
        if to == "onnx":
            assert_same(session_of(path).run(list(OUTPUTS), {"input": x.numpy()}), model, x)
        else:
            found = torch.export.load(path).module()(x)
            assert_same([found[name].detach().numpy() for name in OUTPUTS], model, x)


def test_the_bottlenecks_draws_are_kept_in_the_prior_s_units():
    """Of a posterior that is all but a point, every draw is the mean, wherever the length stands."""
    model = make(objective="bottleneck").eval()
    with torch.no_grad():
        model.head.posterior.log_scale.weight.zero_()
        model.head.posterior.log_scale.bias.fill_(-9.0)
    x = torch.randn(20, 5)
    outputs, point = Outputs(model), model.head.log_joint(model.head.latent(model.encoder(x)))
    torch.testing.assert_close(outputs(x)["posterior"], torch.softmax(point, 1), rtol=0.01, atol=1e-3)
    torch.testing.assert_close(outputs(x)["log_evidence"], torch.logsumexp(point, 1), rtol=0.01, atol=1e-3)
    check_same(trace(outputs, x[:2]).module(), outputs, x)


@pytest.mark.parametrize(
    ("name", "kind", "shape"),
    [("lenet", "image", (1, 28, 28)), ("wrn-10-1", "image", (3, 32, 32)), ("text", "text", (12,))],
)
def test_onnx_of_the_encoders(tmp_path, name, kind, shape):
    encoder = build_encoder(name, kind=kind, shape=shape)
    model = Classifier(encoder, VariationalHead(encoder.out_features, 4))
    make_input = (lambda n: torch.randint(0, 9, (n, *shape))) if kind == "text" else (lambda n: torch.rand(n, *shape))
    session = session_of(varclass.export(model, make_input(3), tmp_path / "out"))
    x = make_input(5)
    assert_same(session.run(list(OUTPUTS), {"input": x.numpy()}), model, x)


def test_a_resnet_is_traced():
    encoder = build_encoder("resnet-18", kind="image", shape=(3, 16, 16))
    outputs = Outputs(Classifier(encoder, VariationalHead(encoder.out_features, 4)))
    check_same(trace(outputs, torch.rand(2, 3, 16, 16)).module(), outputs, torch.rand(10, 3, 16, 16))


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_torch_program_reloads_with_its_labels_and_holds_no_input_and_no_path(tmp_path):
    model = make()
    path = varclass.export(model, torch.full((3, 5), 0.25), tmp_path / "out", to="torch", classes="abc")
    extra = {"labels.json": ""}
    program = torch.export.load(path, extra_files=extra).module()
    assert json.loads(extra["labels.json"])["classes"] == ["a", "b", "c"]
    for batch in (1, 2, 7):
        x = torch.randn(batch, 5)
        with torch.no_grad():
            found = program(x)
        assert list(found) == list(OUTPUTS)
        assert_same([value.numpy() for value in found.values()], model, x)
    with zipfile.ZipFile(path) as archive:
        held = b"".join(archive.read(name) for name in archive.namelist())
    assert b"site-packages" not in held
    assert np.full(5, 0.25, np.float32).tobytes() not in held
    assert not any("ratio" in name for name in program.state_dict())


@pytest.mark.parametrize("draws", [5, 16])
def test_a_gaussian_posterior_has_its_noise_fixed_and_agrees_with_the_head_on_average(draws):
    model = make(posterior="gaussian", draws=draws).eval()
    outputs, x = Outputs(model), torch.randn(6, 5)
    assert outputs.noise.shape == (draws, 8)
    np.testing.assert_array_equal(outputs(x)["log_joint"], outputs(x)["log_joint"])
    found = outputs(x)
    torch.testing.assert_close(torch.softmax(found["log_joint"], -1), found["posterior"], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(torch.logsumexp(found["log_joint"], -1), found["log_evidence"], rtol=1e-5, atol=1e-5)
    with torch.no_grad():
        each = torch.stack([model.log_posterior(x).exp() for _ in range(400)])
    # the frozen average is one more draw from the spread of the head's own averages
    assert bool(((found["posterior"] - each.mean(0)).abs() <= 5 * each.std(0) + 1e-6).all())
    check_same(trace(outputs, x).module(), outputs, torch.randn(10, 5))


def test_a_file_that_says_something_else_fails_and_leaves_nothing(tmp_path, monkeypatch):
    folder = tmp_path / "out"
    varclass.export(make(), torch.randn(2, 5), folder, to="torch")
    before = {each.name: each.read_bytes() for each in folder.iterdir()}
    expected = Outputs.expected
    monkeypatch.setattr(Outputs, "expected", lambda self, x: {k: v + 1e-3 for k, v in expected(self, x).items()})
    for to, where in (("torch", folder), ("onnx", tmp_path / "new")):
        with pytest.raises(ValueError, match=r"log_joint must be PyTorch's within .* nothing was written"):
            varclass.export(make(), torch.randn(2, 5), where, to=to)
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == before
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_the_check_compares_every_output_at_every_batch_size_and_refuses_nan():
    outputs, x = Outputs(make()), torch.randn(30, 5)
    sizes = []

    def run(rows):
        sizes.append(len(rows))
        return outputs(rows)

    check_same(run, outputs, x)
    assert sizes == [1, 2, 7, 30]
    for name in OUTPUTS:
        for wrong in (lambda v: v + 2e-3, lambda v: v * float("nan"), lambda v: v[:1]):
            with pytest.raises(ValueError, match=name):
                check_same(lambda rows, n=name, w=wrong: {**outputs(rows), n: w(outputs(rows)[n])}, outputs, x[:10])
    assert checking.enough_rows(torch.zeros(1, 5)).std() > 0
    assert checking.enough_rows(torch.ones(3, 5, dtype=torch.int64)).shape == (12, 5)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"to": "tflite"}, ValueError, "to must be one of 'onnx', 'torch'; got 'tflite'"),
        ({"classes": ["a"]}, ValueError, "classes must have 3 names"),
        ({"example": [1.0]}, TypeError, "example must be one tensor"),
        ({"example": torch.zeros(0, 5)}, TypeError, "example must be one tensor"),
        ({"example": torch.zeros(2, 5, dtype=torch.uint8)}, TypeError, "floats or token ids"),
        ({"model": nn.Linear(5, 3)}, TypeError, "export takes a Classifier; got Linear"),
    ],
)
def test_mistakes_are_one_line(tmp_path, change, error, message):
    given = {"model": make(), "example": torch.randn(2, 5), "folder": tmp_path / "out"} | change
    with pytest.raises(error, match=message) as found:
        varclass.export(**given)
    assert "\n" not in str(found.value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match=r"it has thesis\.tex: name another folder"):
        varclass.export(make(), torch.randn(2, 5), tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "mine"


class Branching(nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x


def test_a_model_that_cannot_be_traced_is_one_line(tmp_path):
    with pytest.raises(ValueError, match=r"torch\.export could not trace the model") as found:
        varclass.export(Classifier(Branching(), VariationalHead(5, 3)), torch.randn(2, 5), tmp_path / "out", to="torch")
    assert "\n" not in str(found.value)
    assert list(tmp_path.iterdir()) == []


def test_missing_packages_are_named_with_the_line_that_installs_them(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx, "find_spec", lambda name: None if name == "onnxscript" else SimpleNamespace())
    with pytest.raises(ImportError, match=r"needs onnxscript: pip install 'varclass\[onnx\]'"):
        varclass.export(make(), torch.randn(2, 5), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_weights_beyond_one_file_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx, "LARGEST", 10)
    with pytest.raises(ValueError, match=r"up to 2 GiB; .*--to torch"):
        varclass.export(make(), torch.randn(2, 5), tmp_path / "out")


def test_names_cannot_become_markup():
    assert text("<b>|x_y*\n# [a](http://b)") == r"\<b\>\|x\_y\* \# \[a\](http\://b)"
    assert fenced("a ``` b").startswith("````\n")


def test_exporting_is_imported_by_nobody_who_does_not_export():
    code = "import sys, varclass.training.loop, varclass.cli.app; print([m for m in sys.modules if m.split('.')[0] in "
    code += "('onnx', 'onnxruntime', 'onnxscript', 'lightning')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
