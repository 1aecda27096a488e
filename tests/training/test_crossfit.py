"""Where nothing is held out, runs that each leave a fold out say how sure the one that is kept should be."""

import json
import signal

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from varclass.cli.app import run as command
from varclass.core.consistency import far, near
from varclass.data import load
from varclass.data.sampling import hold_out_fold
from varclass.exporting.run import _facts
from varclass.training import loop
from varclass.training.launch import Launch
from varclass.training.reporting import Reporter
from varclass.training.runs import Run
from varclass.training.spec import from_mapping
from varclass.training.task import prepare

ALL = ("--validation", 0, "--epochs", 3)
CPU = Launch("cpu")


class Told(Reporter):
    def __init__(self):
        self.messages, self.opened, self.began = [], [], []

    def open(self, run):
        self.opened.append(run.path)

    def begin(self, run, plan, start, data):
        self.began.append((run.path, len(data.train), 0 if data.validation is None else len(data.validation)))

    def message(self, text):
        self.messages.append(text)


@pytest.fixture(scope="module")
def crossed(spec, tmp_path_factory):
    told = Told()
    return loop.fit(
        spec(data={"validation": 0.0}, training={"epochs": 60}), tmp_path_factory.mktemp("crossed"), launch=CPU, reporter=told
    ), told


def test_every_sample_is_held_out_once_and_all_train_the_run_that_is_kept(crossed):
    run, told = crossed
    folds = [(run.path / "folds" / str(fold), 160, 40) for fold in range(5)]
    assert sorted(told.began[:5]) == [(path, pytest.approx(n, abs=1), pytest.approx(held, abs=1)) for path, n, held in folds]
    assert sum(held for _, _, held in told.began[:5]) == 200
    assert told.began[5:] == [(run.path, 200, 0)]
    assert told.opened == [run.path]
    assert len(told.messages) == 5
    assert not (run.path / "folds").exists()


def test_what_came_out_is_in_the_record_and_settles_the_head(crossed):
    run, _ = crossed
    record, prior = run.record, run.load_model().head.class_prior
    assert record["validation"] is None
    assert (record["cross_fit"]["folds"], record["cross_fit"]["n"]) == (5, 200)
    assert 0.2 < record["cross_fit"]["accuracy"] < 1
    assert record["cross_fit"]["nll"] > 0
    assert prior.settled != 1
    assert prior.distance == pytest.approx(far(10), rel=1e-6)
    if not prior.root.numel():
        assert prior.settled**2 == pytest.approx(record["cross_fit"]["temperature"], rel=1e-6)
    assert run.spec.data.cross_fit == 5


def test_the_list_of_runs_and_the_model_card_have_its_scores(crossed, capsys):
    run, _ = crossed
    assert command(["runs", "--runs-dir", str(run.path.parent), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["nll"] == run.record["cross_fit"]["nll"]
    assert "cross-fitted, by models without a fold each" in dict(_facts(run.spec, run.record))


def test_folds_train_as_the_run_that_is_kept_however_small_they_are(spec, tmp_path, monkeypatch):
    """Of 60 samples a fold has 12, too few to settle anything by themselves."""
    distances, plain = [], loop.look_over

    def look(model, *rest):
        distances.append(model.head.class_prior.distance)
        return plain(model, *rest)

    monkeypatch.setattr(loop, "look_over", look)
    told = Told()
    run = loop.fit(spec(data={"limit": 60, "validation": 0.0}), tmp_path, launch=CPU, reporter=told)
    assert run.record["cross_fit"]["n"] == 60
    assert [*distances, run.load_model().head.class_prior.distance] == pytest.approx([far(10)] * 6, rel=1e-6)
    assert len(told.messages) == 5


def test_folds_are_pulled_as_the_run_that_is_kept_though_they_have_fewer_samples(spec, tmp_path, monkeypatch):
    """150 samples a class in the one that is kept, 100 in a fold of three: by their own numbers they would differ."""
    betas, build, look = [], loop.build_model, loop.look_over

    def noting(model, *rest):
        betas.append(model.head.objective.beta)
        return model if not rest else look(model, *rest)

    monkeypatch.setattr(loop, "build_model", lambda *given: noting(build(*given)))
    monkeypatch.setattr(loop, "look_over", noting)
    data = tmp_path / "arrays.npz"
    x = np.random.default_rng(0).normal(size=(310, 5)).astype("float32")
    np.savez(data, x_train=x[:300], y_train=np.arange(300) % 2, x_test=x[300:], y_test=np.arange(10) % 2)
    made = spec(data={"name": str(data), "limit": 300, "validation": 0.0, "cross_fit": 3}, training={"epochs": 1})
    run = loop.fit(made, tmp_path, launch=CPU)
    assert run.spec.head.beta == "auto"
    assert [*betas, run.load_model().head.objective.beta] == [pytest.approx((100 / 150) ** 2 / 2, rel=1e-12)] * 8
    assert "Pull(beta=0.2222) (auto: 150 samples a class)" in run.record["head"]


def test_a_run_with_validation_data_is_pulled_by_what_it_trains_on(spec, tmp_path):
    run = loop.fit(spec(data={"limit": 1197, "validation": 0.1}, training={"epochs": 1}), tmp_path, launch=CPU)
    assert run.record["samples"] == {"train": 1077, "validation": 120}
    head = run.load_model().head
    assert head.objective.beta == pytest.approx((100 / 107.7) ** 2 / 10, rel=1e-12)
    for shown in (repr(head), run.record["head"]):
        assert "(auto: 107.7 samples a class)" in shown


def test_it_is_more_honest_than_a_run_that_settles_nothing(spec, tmp_path):
    test = load("digits")["test"]
    x, y = torch.from_numpy(np.asarray(test.inputs)).permute(0, 3, 1, 2), torch.from_numpy(test.labels)
    nll = {}
    for folds in (0, 5):
        made = spec(data={"validation": 0.0, "cross_fit": folds}, training={"epochs": 40})
        model = loop.fit(made, tmp_path, launch=CPU).load_model()
        with torch.no_grad():
            nll[folds] = float(-model.log_posterior(x.float() / 255).gather(1, y[:, None]).mean())
    assert nll[5] < nll[0]


def test_without_folds_it_stays_near_and_says_so(spec, tmp_path):
    told = Told()
    run = loop.fit(spec(data={"validation": 0.0, "cross_fit": 0}), tmp_path, launch=CPU, reporter=told)
    assert "cross_fit" not in run.record
    assert run.load_model().head.class_prior.distance == pytest.approx(near(10), rel=1e-6)
    (message,) = told.messages
    assert "--cross-fit 5" in message


@pytest.mark.parametrize(
    ("sections", "why"),
    [
        ({"head": {"objective": "ce"}}, "nothing to settle"),
        ({"data": {"validation": 0.1}}, "a tenth is held out"),
        ({"data": {"limit": 19}}, "too few samples"),
    ],
)
def test_there_are_no_folds_where_they_would_be_of_no_use(sections, why, spec, tmp_path):
    sections = {"data": {"validation": 0.0}} | sections
    sections["data"] = {"validation": 0.0} | sections["data"]
    run = loop.fit(spec(**sections), tmp_path, launch=CPU)
    assert "cross_fit" not in run.record, why


@pytest.mark.parametrize("rare", [1, 2, 3])
def test_every_folds_model_saw_a_sample_of_a_rare_class(rare, spec, tmp_path, monkeypatch):
    seen, build = [], loop.build_model
    monkeypatch.setattr(loop, "build_model", lambda *given: (seen.append(np.bincount(given[2].labels)), build(*given))[1])
    data, y = tmp_path / "arrays.npz", np.repeat([0, 1], [40, rare])
    x = np.random.default_rng(0).normal(size=(40 + rare, 5)).astype("float32")
    np.savez(data, x_train=x, y_train=y, x_test=x, y_test=y)
    run = loop.fit(spec(data={"name": str(data), "validation": 0.0}, training={"epochs": 1}), tmp_path, launch=CPU)
    assert run.record["cross_fit"]["n"] == (40 if rare == 1 else 40 + rare)
    assert len(seen) == 6
    assert min(int(counts[1]) for counts in seen) == max(1, rare - 1)


def test_where_too_little_is_held_out_folds_of_the_rest_say_how_sure_to_be(spec, tmp_path):
    told = Told()
    run = loop.fit(spec(data={"limit": 150, "validation": 0.1}, training={"epochs": 2}), tmp_path, launch=CPU, reporter=told)
    assert run.spec.data.cross_fit == 5
    assert run.record["samples"] == {"train": 135, "validation": 15}
    assert [sum(counts) for _, *counts in told.began] == [135] * 5 + [150]
    assert run.record["cross_fit"]["n"] == 135
    (settled,) = [row["settled"] for row in run.history.rows() if "settled" in row]
    model, data = run.load_model(), prepare(run.spec.data, None, 0)
    assert settled["separation"] == run.record["validation"]["separation"] == pytest.approx(model.head.separation, rel=1e-6)
    assert settled["sigma"] == pytest.approx(model.head.class_prior.settled, rel=1e-6)
    x = torch.from_numpy(data.validation.inputs).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
        loss = torch.nn.functional.nll_loss(model.log_posterior(x), torch.from_numpy(data.validation.labels))
    assert run.record["validation"]["nll"] == pytest.approx(float(loss), rel=1e-5)  # of the model as it is kept


@pytest.mark.parametrize(
    "asked",
    [{"data": {"cross_fit": 0}}, {"training": {"patience": 1}}, {"data": {"limit": 400}}, {"head": {"objective": "ce"}}],
)
def test_what_is_held_out_is_enough_or_nobody_asks(asked, spec, tmp_path):
    given = {"data": {"limit": 150, "validation": 0.1}, "training": {"epochs": 1}}
    merged = {part: given.get(part, {}) | asked.get(part, {}) for part in given | asked}
    run = loop.fit(spec(**merged), tmp_path, launch=CPU)
    assert "cross_fit" not in run.record


def test_folds_of_what_is_left_beside_validation_data(spec, tmp_path):
    run = loop.fit(spec(data={"limit": 400, "cross_fit": 2}, training={"epochs": 1}), tmp_path, launch=CPU)
    assert run.record["samples"]["train"] == run.record["cross_fit"]["n"] == 400 - run.record["samples"]["validation"]


def test_stopping_early_by_validation_data_leaves_nothing_to_folds(spec, tmp_path):
    with pytest.raises(ValueError, match=r"leave out data\.cross_fit"):
        loop.fit(spec(data={"cross_fit": 2}, training={"patience": 2}), tmp_path, launch=CPU)


def test_a_classes_only_sample_is_in_every_rest():
    split = load("digits")["train"]
    lone = split.take(np.append(np.flatnonzero(split.labels < 2), np.flatnonzero(split.labels == 7)[0]))
    held = [hold_out_fold(lone, 4, fold, seed=3) for fold in range(4)]
    assert sum(len(part) for _, part in held) == len(lone) - 1
    assert all((rest.labels == 7).sum() == 1 for rest, _ in held)


def test_folds_are_parts_of_equal_size_with_every_class_in_each():
    split = load("digits")["train"]
    held = [hold_out_fold(split, 4, fold, seed=3) for fold in range(4)]
    sizes = [len(part) for _, part in held]
    assert sum(sizes) == len(split)
    assert max(sizes) - min(sizes) <= 1
    for rest, part in held:
        assert len(rest) + len(part) == len(split)
        counts, all_counts = np.bincount(part.labels), np.bincount(split.labels)
        assert (abs(counts - all_counts / 4) < 1.01).all()
    seen = np.concatenate([np.asarray(part.inputs).reshape(len(part), -1) for _, part in held])
    assert np.array_equal(np.sort(seen.sum(1)), np.sort(np.asarray(split.inputs).reshape(len(split), -1).sum(1)))
    other, _ = hold_out_fold(split, 4, 0, seed=4)
    assert not np.array_equal(other.labels, held[0][0].labels)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"cross_fit": 1, "validation": 0.0}, "data.cross_fit must be a number of folds from 2 on, or 0 for none; got 1"),
        ({"cross_fit": 3, "fold": 3, "validation": 0.0}, "data.fold must be one of data.cross_fit=3 folds, from 0; got 3"),
        ({"fold": 0, "validation": 0.0}, "data.fold must be one of data.cross_fit=None folds, from 0; got 0"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(data, message, spec, tmp_path):
    with pytest.raises(ValueError, match=message):
        loop.fit(spec(data=data), tmp_path, launch=CPU)
    assert not list(tmp_path.iterdir())


def test_folds_with_nothing_to_settle_are_refused_when_asked_for(spec, tmp_path):
    with pytest.raises(ValueError, match=r"data\.cross_fit settles head\.separation='auto'.* with objective 'ce'"):
        loop.fit(spec(data={"cross_fit": 3, "validation": 0.0}, head={"objective": "ce"}), tmp_path, launch=CPU)
    assert not list(tmp_path.iterdir())


def test_a_run_without_folds_keeps_the_id_it_had():
    """Settings that came later are no part of it where they say nothing."""
    plain = from_mapping({"seed": 1})
    assert plain.id == "digits-encoder-head-s1-ed05a764"
    assert from_mapping({"seed": 1, "data": {"cross_fit": 0}}).id != plain.id


def test_a_fold_is_prepared_by_its_own_spec():
    data = from_mapping({"data": {"limit": 90, "validation": 0.0, "cross_fit": 3, "fold": 1}}).data
    found = prepare(data, None, seed=0)
    assert (len(found.train), len(found.validation), found.samples) == (60, 30, 90)
    whole = prepare(from_mapping({"data": {"limit": 90, "validation": 0.0}}).data, None, seed=0)
    assert (len(whole.train), whole.samples) == (90, None)
    carved = prepare(from_mapping({"data": {"limit": 90, "validation": 0.1}}).data, None, seed=0)
    assert (len(carved.train), carved.samples) == (81, None)


# ------------------------------------------------------------------------------------------------------------- processes


@pytest.fixture(scope="module")
def whole(commands, tmp_path_factory, the_run):
    folder = tmp_path_factory.mktemp("whole")
    process = commands.fit(*ALL, runs_dir=folder)
    assert process.wait() == 0, process.stderr
    assert "cross-fitted (n=200, 5 folds): accuracy " in process.stderr
    return the_run(folder)


@pytest.mark.parametrize(
    "place", ["folds/0/checkpoints/step-00000002", "folds/1/model", "folds/4/spec", "checkpoints/step-00000004"]
)
def test_killed_in_a_fold_or_after_it_goes_on_to_the_same_bits(place, commands, tmp_path, whole, outcome):
    run = tmp_path / whole.name
    assert commands.fit(*ALL, runs_dir=tmp_path, die_at=[1, f"{run}/{place}"]).wait() == -signal.SIGKILL
    process = commands.resume(run)
    assert process.wait() == 0, process.stderr
    weights, history, results = outcome(run)
    expected_weights, expected_history, expected_results = outcome(whole)
    assert (weights, history, results) == (expected_weights, expected_history, expected_results)
    crossed, expected = (Run.open(path).record["cross_fit"] for path in (run, whole))
    assert crossed | {"seconds": 0} == expected | {"seconds": 0}
    assert not (run / "folds").exists()


def test_stopped_in_a_fold_the_run_itself_is_what_goes_on(commands, tmp_path, whole, until, outcome):
    process = commands.fit(*ALL, "--checkpoint-seconds", 1000, runs_dir=tmp_path, freeze_at="history.jsonl")
    until(process.frozen)
    process.send(signal.SIGINT)
    process.send(signal.SIGCONT)
    assert process.wait() == 130, process.stderr
    run = tmp_path / whole.name
    assert process.stderr.splitlines()[-1] == f"note: stopped and saved: go on with varclass fit --resume {run}"
    assert Run.open(run).record["status"] == "stopped"
    process = commands.resume(run)
    assert process.wait() == 0, process.stderr
    assert outcome(run) == outcome(whole)


def test_a_fold_that_diverges_fails_the_run_and_says_so(commands, tmp_path, the_run):
    process = commands.fit(*ALL, "--lr", 1e30, "--optimizer", "sgd", runs_dir=tmp_path)
    assert process.wait() == 2
    line = process.stderr.splitlines()[-1]
    record = Run.open(the_run(tmp_path)).record
    assert (record["status"], f"error: {record['error']}") == ("failed", line)


def test_two_processes_cross_fit_as_one_does(commands, tmp_path, the_run):
    options = (*ALL, "--optimizer", "sgd", "--lr", 0.01)
    process = commands.fit(*options, runs_dir=tmp_path / "one")
    assert process.wait() == 0, process.stderr
    both = commands.fit_by_two(*options, runs_dir=tmp_path / "two")
    assert [process.wait() for process in both] == [0, 0], both[0].stderr + both[1].stderr
    one, two = the_run(tmp_path / "one"), the_run(tmp_path / "two")
    expected = load_file(one / "model.safetensors")
    for name, value in load_file(two / "model.safetensors").items():
        torch.testing.assert_close(value, expected[name], rtol=1e-3, atol=1e-4)
    assert Run.open(two).record["cross_fit"]["nll"] == pytest.approx(Run.open(one).record["cross_fit"]["nll"], rel=1e-3)
