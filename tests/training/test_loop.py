"""fit: what a run leaves behind, that it is the same every time, and which weights it keeps."""

import json
import math
import os
import shutil
import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional as F

import varclass
from varclass.core.consistency import far
from varclass.core.objectives import OBJECTIVES
from varclass.data.loading import load
from varclass.data.sampling import carve
from varclass.encoders.sprint import Whitening
from varclass.training import loop, trainer
from varclass.training.batches import Plan, Source, seed_everything
from varclass.training.interruption import Interrupted
from varclass.training.launch import Launch
from varclass.training.model import build_model
from varclass.training.provenance import commit
from varclass.training.reporting import Reporter
from varclass.training.runs import Run
from varclass.training.spec import DataSpec, EncoderSpec, HeadSpec, RunSpec, TrainingSpec, from_mapping, read_spec
from varclass.training.task import prepare

CPU = Launch(device="cpu")


def fit(spec, folder, **options):
    return loop.fit(spec, folder, launch=CPU, **options)


# ----------------------------------------------------------------------------------------------------- what a run leaves


def test_files_of_a_finished_run(trained):
    assert sorted(path.name for path in trained.path.iterdir()) == [
        "history.jsonl",
        "lock",
        "model.safetensors",
        "record.json",
        "spec.toml",
    ]
    assert trained.path.name == trained.spec.id


def test_record_says_where_the_numbers_come_from(trained):
    record = trained.record
    assert record["id"] == trained.spec.id
    assert record["seed"] == 5
    assert record["status"] == "finished"
    assert record["samples"] == {"train": 1077, "validation": 120}
    assert record["steps"] == 3 * (1077 // 128)
    assert record["epochs"] == 3
    assert record["processes"] == 1
    assert record["error"] is None
    assert 0 < record["seconds"] < 600
    provenance = record["provenance"]
    assert provenance["versions"]["torch"] == torch.__version__
    assert provenance["versions"]["varclass"] == varclass.__version__
    assert {"python", "numpy", "accelerate"} < set(provenance["versions"])
    assert provenance["device"]["type"] == "cpu"
    assert "commit" in provenance
    json.loads((trained.path / "record.json").read_text(), parse_constant=pytest.fail)  # no NaN, which is no JSON


def test_the_commit_is_that_of_the_checkout_the_package_runs_from(monkeypatch):
    monkeypatch.delenv("VARCLASS_COMMIT", raising=False)
    folder = Path(varclass.__file__).parent
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=False).stdout.strip()
    assert commit() in (head, f"{head}+") if head else commit() is None


def test_outside_a_checkout_there_is_no_commit(monkeypatch):
    monkeypatch.delenv("VARCLASS_COMMIT", raising=False)
    monkeypatch.setattr("varclass.__file__", "/nowhere/varclass/__init__.py")
    assert commit() is None


def test_the_environment_may_say_the_commit(monkeypatch):
    monkeypatch.setenv("VARCLASS_COMMIT", "abc")
    assert commit() == "abc"


TERMS = {
    "ce": {"total", "posterior", "label"},
    "gm": {"total", "posterior", "label", "prior"},
    "pull": {"total", "posterior", "label", "prior"},
    "bottleneck": {"total", "posterior", "label", "prior"},
    "vc": {"total", "posterior", "label", "prior", "ratio", "discriminator", "discriminator_accuracy"},
    "authors": {"total", "posterior", "prior", "ratio", "discriminator", "discriminator_accuracy"},
}


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_history_has_every_term_of_the_objective(objective, spec, tmp_path):
    run = fit(spec(head={"objective": objective}), tmp_path)
    steps = [row for row in run.history.rows() if "lr" in row]
    groups = {"ce": {"phi", "theta", "pi"}, "gm": {"phi", "theta", "pi"}, "vc": {"phi", "theta", "pi", "psi"}}
    groups |= {"pull": {"phi", "pi"}, "bottleneck": {"phi", "pi"}}
    settled = {"temperature", "separation"} if objective in ("pull", "bottleneck") else set()
    assert [row["step"] for row in steps] == [3, 6]
    for row in steps:
        assert set(row) == {"step", "epoch", "lr"} | TERMS[objective]
        assert set(row["lr"]) == groups.get(objective, {"phi", "theta", "psi"})
        assert all(math.isfinite(row[term]) for term in TERMS[objective])
    scores = [row["validation"] for row in run.history.rows() if "validation" in row]
    assert [set(score) for score in scores] == [{"n", "nll", "accuracy", "latent_mean", "latent_variance"} | settled] * 2
    assert run.record["validation"] == scores[-1]


def test_total_of_vc_is_the_weighted_sum_of_its_terms(trained):
    for row in trained.history.rows():
        if "validation" not in row:
            total = row["posterior"] + row["label"] + (row["prior"] + row["ratio"]) / 64 + row["discriminator"]
            assert row["total"] == pytest.approx(total, rel=1e-5)
            assert 0 <= row["discriminator_accuracy"] <= 1


def test_learning_rates_of_the_history_are_those_of_the_schedule_and_the_groups(spec, tmp_path):
    training = {"epochs": 4, "lr": 0.02, "schedule": "cosine", "warmup": 0.0, "lr_multipliers": {"psi": 5.0}}
    run = fit(spec(head={"objective": "vc"}, training=training), tmp_path)
    rows = [row for row in run.history.rows() if "lr" in row]
    for row in rows:
        factor = 0.5 * (1 + math.cos(math.pi * (row["step"] - 1) / 12))
        assert row["lr"]["phi"] == pytest.approx(0.02 * factor, rel=1e-12)
        assert row["lr"]["psi"] == pytest.approx(0.1 * factor, rel=1e-12)


def test_a_prior_without_standardized_moments_leaves_them_out(spec, tmp_path):
    run = fit(spec(head={"prior": "vmf", "objective": "ce"}, training={"epochs": 1}), tmp_path)
    assert set(run.record["validation"]) == {"n", "nll", "accuracy"}
    for line in (run.path / "history.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)


# --------------------------------------------------------------------------------------------- the same spec, the same run


def test_the_same_spec_gives_the_same_bytes_and_another_seed_others(spec, tmp_path):
    chosen = spec(head={"objective": "vc"}, training={"ema": 0.9, "mixup": 0.2}, encoder={"dropout": 0.1})
    first, second = fit(chosen, tmp_path / "a"), fit(chosen, tmp_path / "b")
    for name in ("model.safetensors", "history.jsonl", "spec.toml"):
        assert (first.path / name).read_bytes() == (second.path / name).read_bytes()
    other = fit(replace(chosen, seed=1), tmp_path / "a")
    assert other.path.name != first.path.name
    assert other.weights.read_bytes() != first.weights.read_bytes()


def test_an_encoder_sees_training_inputs_as_it_will_get_them_and_keeps_what_it_saw(tmp_path):
    x, y = np.random.default_rng(0).integers(256, size=(60, 16, 16, 1), dtype=np.uint8), np.arange(60) % 2
    np.savez(tmp_path / "arrays.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    sections = {"data": {"name": str(tmp_path / "arrays.npz"), "limit": 40}, "training": {"epochs": 1}}
    made = from_mapping(sections | {"encoder": {"name": "sprint-4"}})
    scaling, encoder = fit(made, tmp_path / "runs").load_model().encoder
    seen = prepare(made.data, None, 0).train
    expected = Whitening(1)
    expected.fit(scaling(torch.from_numpy(np.asarray(seen.inputs)).permute(0, 3, 1, 2) / 255))
    torch.testing.assert_close(encoder.whitening.filters, expected.filters)


def test_a_finished_run_is_returned_as_it_is(trained, monkeypatch):
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in trained.path.iterdir()}
    monkeypatch.setattr(loop.Trainer, "train", lambda self: pytest.fail("trained twice"))
    again = fit(trained.spec, trained.path.parent)
    assert again.path == trained.path
    assert loop.resume(trained.path, launch=CPU).path == trained.path
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in trained.path.iterdir()} == before


def test_the_complete_spec_is_written_and_is_the_same_run(trained):
    written = read_spec(trained.path / "spec.toml")
    assert written.id == trained.path.name
    values = tomllib.loads((trained.path / "spec.toml").read_text())
    assert values["training"]["optimizer"] == "adamw"
    assert values["training"]["lr"] == 0.001
    assert values["head"]["objective"] == "vc"
    assert values["head"]["covariance"]
    assert values["encoder"]["name"] == "mlp"


def test_nothing_is_left_of_a_spec_that_cannot_be_built(spec, tmp_path):
    for wrong in (spec(encoder={"name": "wrn-5-x"}), spec(encoder={"options": {"depth": 3}}), spec(encoder={"dropout": 2.0})):
        with pytest.raises(ValueError, match=r"encoder|dropout"):
            fit(wrong, tmp_path)
    with pytest.raises(ValueError, match=r"batch_size must be a multiple of training.accumulate=7"):
        fit(spec(training={"accumulate": 7}), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("wrong", [{"augment": ["crop"]}, {"augment": ["flip"]}])
def test_augmentation_of_what_are_no_images_is_refused(wrong, spec, tmp_path):
    chance = np.random.default_rng(0)
    x, y = chance.normal(size=(30, 4)).astype(np.float32), np.arange(30) % 3
    np.savez(tmp_path / "vectors.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    with pytest.raises(ValueError, match=r"augment is for images; got .*vector"):
        fit(spec(data={"name": str(tmp_path / "vectors.npz"), "limit": 30}, training=wrong), tmp_path / "runs")


def test_mixup_of_texts_is_refused(spec, tmp_path):
    (tmp_path / "texts.csv").write_text("text,label\n" + "\n".join(f"a word {i},{'xy'[i % 2]}" for i in range(40)))
    with pytest.raises(ValueError, match=r"mixup .*text"):
        fit(spec(data={"name": str(tmp_path / "texts.csv"), "limit": 30}, encoder={"name": "text", "options": {}},
                 training={"mixup": 0.2, "batch_size": 10}), tmp_path / "runs")  # fmt: skip


# ------------------------------------------------------------------------------------------------------ the training step


def test_two_epochs_are_what_a_plain_loop_of_torch_does(spec, tmp_path):
    """SGD on cross-entropy with everything around it, written down once more without this library's loop.

    Only the model as it starts, the order of the samples and the seeds are taken from it.
    """
    training = {"optimizer": "sgd", "lr": 0.05, "weight_decay": 0.01, "momentum": 0.8, "warmup": 0.4, "augment": ["flip"]}
    training |= {"label_smoothing": 0.1, "mixup": 0.4, "clip": 0.5, "ema": 0.6, "lr_multipliers": {"theta": 3.0}}
    run = fit(spec(head={"objective": "ce"}, training=training), tmp_path)
    data = prepare(run.spec.data, None, 0)
    seed_everything(0)
    model = build_model(run.spec, data.task, data.train).train()
    theta, pi = list(model.head.class_prior.parameters()), list(model.head.label_prior.parameters())
    phi = [p for p in model.parameters() if all(p is not other for other in (*theta, *pi))]
    decays = {group["name"]: group["weight_decay"] for group in model.parameter_groups(0.05, 0.01)}
    groups = [{"params": params, "weight_decay": decays[name]} for name, params in (("phi", phi), ("theta", theta), ("pi", pi))]
    optimizer = torch.optim.SGD(groups, lr=0.05, momentum=0.8, nesterov=True)
    average = [p.detach().clone() for p in model.parameters()]
    plan = Plan(180, 60, 2, 0)
    for step in range(6):
        index = plan.order(step // 3)[step % 3 * 60 :][:60]
        seed_everything(0, step)
        share, flips = np.random.beta(0.4, 0.4), torch.rand(60, 5)[:, 2] < 0.5  # noqa: NPY002
        x = torch.from_numpy(data.train.inputs[index]).permute(0, 3, 1, 2) / 255
        x = torch.stack([image.flip(2) if flip else image for image, flip in zip(x, flips, strict=True)])
        y = torch.eye(10)[data.train.labels[index]] * 0.9 + 0.01
        x, y = share * x + (1 - share) * x.flip(0), share * y + (1 - share) * y.flip(0)
        optimizer.zero_grad()
        log_p_y = model.head.label_prior.log_probs()
        (-(y * model(x).log_softmax(1)).sum(1).mean() - (y * log_p_y).sum(1).mean()).backward()
        rate = 0.05 * 0.5 * (1 + math.cos(math.pi * step / 6)) * min(1, (step + 1) / 3)
        for group, multiplier in zip(optimizer.param_groups, (1, 3, 1), strict=True):
            group["lr"] = rate * multiplier
            norm = torch.cat([p.grad.flatten() for p in group["params"]]).norm()
            for p in group["params"]:
                p.grad *= min(1.0, 0.5 / (norm + 1e-6))
        optimizer.step()
        decay = min(0.6, (1 + step) / (10 + step))
        average = [decay * mean + (1 - decay) * p.detach() for mean, p in zip(average, model.parameters(), strict=True)]
    held = load_file(run.weights)
    for (name, latest), expected in zip(model.named_parameters(), average, strict=True):
        torch.testing.assert_close(held[name], expected, rtol=1e-5, atol=1e-6)
        assert not torch.allclose(latest, expected, rtol=1e-4, atol=1e-5), name  # the average is not the last step


def test_parts_of_a_batch_add_up_to_the_batch(spec, tmp_path):
    """In float32, so equal to rounding; the terms of the history are those of the whole batch too."""
    training = {"optimizer": "sgd", "lr": 0.01}
    runs = [fit(spec(head={"objective": "vc"}, training=training | {"accumulate": parts}), tmp_path) for parts in (1, 3)]
    one, three = (load_file(run.weights) for run in runs)
    for name in one:
        torch.testing.assert_close(three[name], one[name], rtol=1e-5, atol=1e-6)
    for row, expected in zip(*(run.history.rows() for run in reversed(runs)), strict=True):
        terms = TERMS["vc"] & set(row)
        assert len(terms) == len(TERMS["vc"]) or "validation" in row
        assert [row[term] for term in terms] == pytest.approx([expected[term] for term in terms], rel=1e-5)


# --------------------------------------------------------------------------------------------------- validation, stopping


class Watch(Reporter):
    """Keeps what is reported, and the weights at the end of every epoch."""

    def __init__(self, monkeypatch):
        self.scores, self.weights = [], []
        plain = loop.Trainer._end_epoch

        def end_epoch(trainer, epoch):
            self.weights.append({name: value.clone() for name, value in trainer.model.state_dict().items()})
            plain(trainer, epoch)

        monkeypatch.setattr(loop.Trainer, "_end_epoch", end_epoch)

    def epoch(self, epoch, score):
        self.scores.append(score)


def test_early_stopping_keeps_the_weights_and_the_score_of_the_best_epoch(spec, tmp_path, monkeypatch):
    watch = Watch(monkeypatch)
    training = {"epochs": 60, "patience": 3, "lr": 0.05, "schedule": "constant"}  # too fast, so that it gets worse again
    run = fit(spec(head={"objective": "ce"}, training=training), tmp_path, reporter=watch)
    nll = [score.nll for score in watch.scores]
    best = int(np.argmin(nll))
    assert len(nll) == best + 1 + 3 < 60
    assert run.record["best_epoch"] == best
    assert run.record["epochs"] == len(nll)
    assert run.record["validation"]["nll"] == nll[best] != nll[-1]
    held = load_file(run.weights)
    assert all(torch.equal(held[name], value) for name, value in watch.weights[best].items())
    assert any(not torch.equal(held[name], value) for name, value in watch.weights[-1].items())


def test_without_patience_the_last_epoch_is_kept(spec, tmp_path, monkeypatch):
    watch = Watch(monkeypatch)
    training = {"epochs": 12, "lr": 0.05, "schedule": "constant"}
    run = fit(spec(head={"objective": "ce"}, training=training), tmp_path, reporter=watch)
    assert run.record["validation"]["nll"] == watch.scores[-1].nll > min(score.nll for score in watch.scores)
    held = load_file(run.weights)
    assert all(torch.equal(held[name], value) for name, value in watch.weights[-1].items())


def test_patience_without_validation_data_is_refused(spec, tmp_path):
    with pytest.raises(ValueError, match=r"training.patience needs validation data"):
        fit(spec(data={"validation": 0.0}, training={"patience": 2}), tmp_path)


def test_without_validation_data_there_is_no_score(spec, tmp_path):
    run = fit(spec(data={"validation": 0.0}), tmp_path)
    assert run.record["validation"] is None
    assert run.record["samples"] == {"train": 200, "validation": 0}
    assert all("validation" not in row for row in run.history.rows())


@pytest.mark.parametrize("options", [{"limit": 300}, {"per_class": 20}, {}])
def test_validation_is_disjoint_from_training_and_from_the_test_split(options):
    spec = from_mapping({"data": {"name": "digits", **options}})
    data, splits = prepare(spec.data, None, 3), load("digits")
    train, held_out = ({image.tobytes() for image in split.inputs} for split in (data.train, data.validation))
    everything, test = ({image.tobytes() for image in splits[name].inputs} for name in ("train", "test"))
    assert train | held_out <= everything
    assert len(train) == len(data.train)
    assert len(held_out) == len(data.validation)
    assert not train & held_out
    assert not (train | held_out) & (test - everything)
    assert len(train) + len(held_out) == {"limit": 300, "per_class": 200}.get(next(iter(options), ""), 1197)


def test_the_carved_part_is_that_of_the_seed():
    spec = RunSpec()
    first, again, other = (prepare(spec.data, None, seed).validation for seed in (0, 0, 1))
    assert np.array_equal(first.inputs, again.inputs)
    assert not np.array_equal(first.inputs, other.inputs)
    assert np.array_equal(first.inputs, carve(load("digits")["train"], 0.1, 0)[1].inputs)


def test_validation_images_are_never_augmented(spec, tmp_path, monkeypatch):
    seen = []
    chosen = spec(training={"augment": ["crop", "flip", "cutout"], "epochs": 1})
    held_out = prepare(chosen.data, None, 0).validation
    plain = trainer.validate

    def look(model, source, *rest, **more):
        hook = model.encoder.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].clone()))
        try:
            return plain(model, source, *rest, **more)
        finally:
            hook.remove()

    monkeypatch.setattr(trainer, "validate", look)
    fit(chosen, tmp_path)
    assert torch.equal(torch.cat(seen), torch.from_numpy(held_out.inputs).permute(0, 3, 1, 2) / 255)


# --------------------------------------------------------------------------------------------------------------- loading


@pytest.mark.parametrize("options", [{}, {"ema": 0.9, "patience": 1, "lr": 0.05, "schedule": "constant", "epochs": 12}])
def test_a_loaded_model_reproduces_the_recorded_score_without_its_training_data(options, spec, tmp_path):
    """Vectors from a file that is gone by then; scored by hand."""
    digits = load("digits")
    values = {name: split.inputs.reshape(len(split), -1).astype(np.float32) for name, split in digits.items()}
    labels = {name: split.labels for name, split in digits.items()}
    path = tmp_path / "mine.npz"
    np.savez(path, x_train=values["train"], y_train=labels["train"], x_test=values["test"], y_test=labels["test"])
    run = fit(spec(data={"name": str(path), "limit": 400}, training=options), tmp_path / "runs")
    held_out = prepare(run.spec.data, None, run.spec.seed).validation
    os.remove(path)
    model = Run.open(run.path).load_model()
    assert not model.training
    with torch.no_grad():
        log_joint = model(torch.from_numpy(held_out.inputs)).double()
    y = torch.from_numpy(held_out.labels)
    score = run.record["validation"]
    assert score["n"] == len(y) == 40
    assert score["nll"] == pytest.approx(F.cross_entropy(log_joint, y).item(), rel=1e-5)
    assert score["accuracy"] == (log_joint.argmax(1) == y).double().mean().item()


def test_the_recorded_latent_moments_are_those_of_standardized_latents(trained):
    held_out = prepare(trained.spec.data, None, trained.spec.seed).validation
    model = trained.load_model()
    x, y = torch.from_numpy(held_out.inputs).permute(0, 3, 1, 2) / 255, torch.from_numpy(held_out.labels)
    with torch.no_grad():
        z = model.latent(x)
        mean, scale = model.head.class_prior.mean, model.head.class_prior.log_scale.exp()
        by_hand = ((z - mean[y]) / scale.expand_as(mean)[y]).double().numpy()
    classes = [by_hand[held_out.labels == c] for c in range(10)]
    score = trained.record["validation"]
    assert score["latent_mean"] == pytest.approx(np.sqrt(np.mean([c.mean(0) ** 2 for c in classes])), rel=1e-5)
    assert score["latent_variance"] == pytest.approx(np.mean([c.var(0, ddof=1) for c in classes]), rel=1e-5)


def test_weights_cut_short_are_one_line(trained, tmp_path):
    copy = Run(shutil.copytree(trained.path, tmp_path / "copy"))
    copy.weights.write_bytes(copy.weights.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"copy/model\.safetensors: expected the weights of this run; got "):
        copy.load_model()


def test_a_device_that_is_not_there_is_refused_of_a_finished_run_too(trained):
    with pytest.raises(ValueError, match="device must be cpu, cuda or cuda:<number>; got 'foo'"):
        loop.fit(trained.spec, trained.path.parent, launch=Launch("foo"))


def test_an_unfinished_run_has_no_model_yet(spec, tmp_path, monkeypatch):
    def fail(trainer):
        raise OSError("no more")

    monkeypatch.setattr(loop.Trainer, "_finish", fail)
    with pytest.raises(OSError, match="no more"):
        fit(spec(), tmp_path)
    (path,) = tmp_path.iterdir()
    with pytest.raises(ValueError, match=rf"has no trained model yet \(failed\): varclass fit --resume {path}"):
        Run.open(path).load_model()


def test_a_source_keeps_its_inputs_as_they_are(spec):
    data = prepare(spec().data, None, 0)
    source = Source(data.train, data.task, torch.device("cpu"))
    index = np.array([5, 0, 5])
    (batch,) = source.read(iter([index]))
    assert batch.dtype == torch.uint8
    assert np.array_equal(batch.permute(0, 2, 3, 1).numpy(), data.train.inputs[index])


def test_a_separation_that_settles_is_in_the_history_and_survives_a_stop(tmp_path):
    head = HeadSpec("gm", means="simplex", covariance="unit", latent_dim=9, separation="auto")
    spec = RunSpec(
        encoder=EncoderSpec("mlp", options={"hidden": [32]}), head=head, training=TrainingSpec(epochs=6, batch_size=64, lr=0.01)
    )
    whole = loop.fit(spec, tmp_path / "whole")
    rows = [
        json.loads(line)["validation"]
        for line in (whole.path / "history.jsonl").read_text().splitlines()
        if '"validation"' in line
    ]
    sigma = np.cumprod([row["temperature"] ** 0.5 for row in rows])
    assert [row["separation"] for row in rows] == pytest.approx(list(far(10) / sigma), rel=1e-5)  # means stay, sigma settles
    assert len({row["separation"] for row in rows}) == 6
    assert "separation=auto, now" in whole.record["head"]

    class Stops(Reporter):
        def epoch(self, epoch, score):
            if epoch == 2:
                raise Interrupted(2)

    launch = Launch(checkpoint_seconds=0)
    with pytest.raises(Interrupted):
        loop.fit(spec, tmp_path / "stopped", launch=launch, reporter=Stops())
    stopped = loop.fit(spec, tmp_path / "stopped", launch=launch)
    assert stopped.load_model().head.separation == whole.load_model().head.separation


def test_without_validation_data_a_separation_that_should_settle_says_so(tmp_path):
    said = []
    reporter = Reporter()
    reporter.message = said.append
    spec = RunSpec(
        data=DataSpec(limit=200, validation=0.0, cross_fit=0),
        encoder=EncoderSpec("mlp", options={"hidden": [8]}),
        head=HeadSpec("gm", means="simplex", separation="auto"),
        training=TrainingSpec(epochs=1),
    )
    loop.fit(spec, tmp_path, reporter=reporter)
    assert len(said) == 1
    assert said[0] == (
        "separation auto needs 20 samples that --validation or --cross-fit 5 holds out: it stays at 2.83, "
        "where 90% accuracy is anticipated"
    )


@pytest.mark.parametrize("ema", [0.0, 0.99])
def test_the_validation_nll_is_that_of_the_settled_model(ema, tmp_path):
    """Of the averaged weights too, whose p(y), by which all means move when they settle, is not the latest."""
    training = TrainingSpec(epochs=3, batch_size=64, lr=0.01, ema=ema, lr_multipliers={"pi": 10.0})
    spec = RunSpec(encoder=EncoderSpec("mlp", options={"hidden": [32]}), training=training)
    run = loop.fit(spec, tmp_path)
    data, model = prepare(spec.data, None, 0), run.load_model()
    x, y = torch.from_numpy(data.validation.inputs).permute(0, 3, 1, 2).float() / 255, torch.from_numpy(data.validation.labels)
    with torch.no_grad():
        nll = float(torch.nn.functional.nll_loss(model.log_posterior(x), y))
    assert run.record["validation"]["nll"] == pytest.approx(nll, rel=1e-5)
    assert run.record["validation"]["separation"] == pytest.approx(model.head.separation, rel=1e-6)
