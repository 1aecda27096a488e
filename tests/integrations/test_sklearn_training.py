"""How VariationalClassifier trains: weights, class prior, early stopping, partial_fit, encoders, seeds, errors."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris, make_blobs
from torch import nn

from varclass import VariationalClassifier
from varclass.core.consistency import far
from varclass.integrations.sklearn import estimator
from varclass.integrations.sklearn.arguments import split_folds

X, Y = load_iris(return_X_y=True)
QUICK = {"max_iter": 20, "random_state": 0}


# ---------------------------------------------------------------------------------------------------------- sample weights


@pytest.mark.parametrize("objective", ["ce", "gm", "vc", "authors"])
def test_a_weight_of_zero_is_as_if_the_sample_were_absent(objective):
    kept = np.arange(150) % 3 > 0
    weighted = VariationalClassifier(objective=objective, **QUICK).fit(X, Y, sample_weight=kept)
    absent = VariationalClassifier(objective=objective, **QUICK).fit(X[kept], Y[kept])
    np.testing.assert_array_equal(weighted.predict_proba(X), absent.predict_proba(X))


@pytest.mark.parametrize("objective", ["ce", "gm"])
def test_in_one_batch_whole_weights_are_repetitions(objective):
    """Nothing random is left but the start, which is the same: what differs is the order of float64 sums, over 20 steps."""
    times = np.random.default_rng(0).integers(0, 4, 150)
    options = {"objective": objective, "batch_size": 1000, "dropout": 0.0, **QUICK}
    weighted = VariationalClassifier(**options).fit(X, Y, sample_weight=times)
    repeated = VariationalClassifier(**options).fit(X.repeat(times, 0), Y.repeat(times))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(weighted.class_prior_, repeated.class_prior_, rtol=1e-9)


def test_minibatches_weigh_what_their_samples_weigh_of_all_the_data():
    """One sample in a batch: averages within the batch would cancel every weight."""
    x, y = np.zeros((40, 1)), np.arange(40) % 2
    weight = np.where(y == 1, 9.0, 1.0)
    options = {"objective": "ce", "batch_size": 1, "dropout": 0.0, "standardize": False, "learning_rate_init": 1e-2, **QUICK}
    uniform = {"head_options": {"label_prior": "uniform"}}  # so that the classes' frequencies are learned by log p(y|z) alone
    model = VariationalClassifier(**options, **uniform).fit(x, y, sample_weight=weight)
    assert abs(model.predict_proba(x[:1])[0, 1] - 0.9) < 0.05
    unweighted = VariationalClassifier(**options, **uniform).fit(x, y)
    assert abs(unweighted.predict_proba(x[:1])[0, 1] - 0.5) < 0.05


@pytest.mark.parametrize("weight", [7.0, np.full(150, 0.3)])
def test_equal_weights_are_no_weights(weight):
    plain = VariationalClassifier(**QUICK).fit(X, Y).predict_proba(X)
    weighted = VariationalClassifier(**QUICK).fit(X, Y, sample_weight=weight).predict_proba(X)
    np.testing.assert_allclose(weighted, plain, rtol=1e-9)


# ------------------------------------------------------------------------------------------------------------ class prior


def test_the_class_prior_is_that_of_the_training_labels_with_their_weights():
    model = VariationalClassifier(**QUICK).fit(X, Y, sample_weight=np.array([1.0, 2.0, 5.0])[Y])
    np.testing.assert_allclose(model.class_prior_, [1 / 8, 2 / 8, 5 / 8], rtol=1e-9)
    assert VariationalClassifier(preset="authors", **QUICK).fit(X[:60], Y[:60]).class_prior_.tolist() == [0.5, 0.5]


def test_a_given_class_prior_shifts_predictions_as_bayes_rule_says():
    given = np.array([0.7, 0.2, 0.1])
    plain = VariationalClassifier(**QUICK).fit(X[20:], Y[20:])
    shifted = VariationalClassifier(class_prior=given.tolist(), **QUICK).fit(X[20:], Y[20:])
    expected = plain.predict_proba(X) * given / (np.bincount(Y[20:]) / 130)
    np.testing.assert_allclose(shifted.predict_proba(X), expected / expected.sum(1, keepdims=True), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(shifted.class_prior_, given, rtol=1e-9)
    np.testing.assert_array_equal(shifted.transform(X), plain.transform(X))


# ---------------------------------------------------------------------------------------------------------- early stopping


def test_early_stopping_ends_when_it_said_and_returns_to_the_best_epoch(capsys):
    x, y = make_blobs(300, centers=3, cluster_std=4.0, random_state=0)
    options = {"early_stopping": True, "validation_fraction": 0.3, "n_iter_no_change": 5, "learning_rate": "constant"}
    model = VariationalClassifier(max_iter=200, random_state=0, verbose=2, tol=0.0, **options).fit(x, y)
    nll = [row["validation_nll"] for row in model.history_]
    best = int(np.argmin(nll)) + 1
    assert model.n_iter_ == len(nll) == best + 5 < 200
    shorter = VariationalClassifier(max_iter=best, random_state=0, tol=0.0, **options).fit(x, y)
    np.testing.assert_array_equal(model.predict_proba(x), shorter.predict_proba(x))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(nll)
    assert lines[0].startswith("epoch 1 of 200: loss ")
    assert "validation nll" in lines[0]


def test_progress_is_about_ten_lines_or_none(capsys):
    VariationalClassifier(**QUICK).fit(X, Y)
    assert capsys.readouterr().out == ""
    VariationalClassifier(verbose=True, **QUICK).fit(X, Y)
    assert len(capsys.readouterr().out.splitlines()) == 10


# ------------------------------------------------------------------------------------------------------------- partial_fit


def test_partial_fit_learns_from_pieces_and_counts_their_labels():
    order = np.random.default_rng(0).permutation(150)
    model = VariationalClassifier(learning_rate_init=1e-2, random_state=0)
    model.partial_fit(X[order[:30]], Y[order[:30]], classes=[0, 1, 2])
    first = model.score(X, Y)
    for _ in range(5):
        for rows in np.array_split(order, 5):
            model.partial_fit(X[rows], Y[rows])
    assert model.score(X, Y) > max(first, 0.9)
    assert model.n_iter_ == len(model.history_) == 26
    np.testing.assert_allclose(model.class_prior_, (np.bincount(Y[order[:30]]) + 5 * 50) / 780, rtol=1e-9)


def test_partial_fit_after_fit_goes_on_and_fit_begins_anew():
    model = VariationalClassifier(**QUICK).fit(X, Y)
    fitted = model.predict_proba(X)
    assert model.partial_fit(X, Y).n_iter_ == 21
    assert np.abs(model.predict_proba(X) - fitted).max() > 1e-6
    np.testing.assert_array_equal(model.fit(X, Y).predict_proba(X), fitted)


def test_partial_fit_keeps_a_given_class_prior_out_of_training():
    given = VariationalClassifier(class_prior=[0.1, 0.1, 0.8], **QUICK).partial_fit(X, Y, classes=[0, 1, 2]).partial_fit(X, Y)
    plain = VariationalClassifier(**QUICK).partial_fit(X, Y, classes=[0, 1, 2]).partial_fit(X, Y)
    np.testing.assert_array_equal(given.transform(X), plain.transform(X))
    np.testing.assert_allclose(given.class_prior_, [0.1, 0.1, 0.8], rtol=1e-9)


def test_a_class_that_has_not_come_yet_has_no_probability():
    model = VariationalClassifier(**QUICK).partial_fit(X[:100], Y[:100], classes=[0, 1, 2])
    assert (model.predict_proba(X)[:, 2] == 0).all()
    assert (model.partial_fit(X, Y).predict_proba(X)[:, 2] > 0).all()


# ------------------------------------------------------------------------------------------------------- seeds, encoders


@pytest.mark.parametrize("options", [{}, {"head_options": {"posterior": "gaussian"}}, {"dropout": 0.0}])
def test_the_same_seed_gives_the_same_numbers_and_global_generators_are_left_alone(options):
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first, again = (VariationalClassifier(**options, **QUICK).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(first.predict_proba(X), again.predict_proba(X))
    np.testing.assert_array_equal(first.predict_proba(X), first.predict_proba(X))
    other = VariationalClassifier(**options, **QUICK | {"random_state": 1}).fit(X, Y)
    assert np.abs(other.predict_proba(X) - first.predict_proba(X)).max() > 1e-6
    assert torch.equal(torch.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002


def test_an_encoder_is_copied_and_its_width_found():
    encoder = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 5))
    weights = [value.clone() for value in encoder.state_dict().values()]
    model = VariationalClassifier(encoder, objective="vc", batch_size=149, **QUICK).fit(X, Y)
    assert model.transform(X).shape == (150, 5)
    recommended = VariationalClassifier(encoder, batch_size=149, **QUICK).fit(X, Y)
    assert recommended.transform(X).shape == (150, 3)  # a layer's outputs
    assert recommended.model_.head.in_features == 5
    assert all(torch.equal(a, b) for a, b in zip(encoder.state_dict().values(), weights, strict=True))
    assert encoder[0].weight.dtype == torch.float32
    assert VariationalClassifier(encoder, latent_dim=2, **QUICK).fit(X, Y).transform(X).shape == (150, 2)


def test_standardization_is_of_the_training_data_and_survives_a_large_offset():
    model = VariationalClassifier(**QUICK).fit(X, Y)
    scaled = model.model_.encoder[0](torch.tensor(X)).numpy()
    np.testing.assert_allclose(scaled.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(0), 1, rtol=1e-9)
    far = VariationalClassifier(**QUICK).fit(X + 1e8, Y)  # beyond float32, in which neighbours of 1e8 are 8 apart
    np.testing.assert_allclose(far.predict_proba(X + 1e8), model.predict_proba(X), atol=1e-4)
    raw = VariationalClassifier(standardize=False, **QUICK).fit(X, Y)
    assert isinstance(raw.model_.encoder[0], nn.Identity)


def test_no_hidden_layer_and_many_classes():
    x, y = make_blobs(300, 5, centers=20, random_state=0)
    model = VariationalClassifier(hidden_layer_sizes=(), objective="vc", max_iter=2, random_state=0).fit(x, y)
    assert model.transform(x).shape == (300, 19)
    assert sum(isinstance(part, nn.Linear) for part in model.model_.encoder.modules()) == 1
    assert VariationalClassifier(hidden_layer_sizes=(), max_iter=2, random_state=0).fit(x, y).transform(x).shape == (300, 20)


@pytest.mark.parametrize("objective", [None, "pull", "bottleneck", "ce", "gm", "vc", "authors"])
@pytest.mark.parametrize("hidden", [(), (8,)])
def test_latent_dim_is_the_dimension_of_the_latents_whatever_the_objective(objective, hidden):
    model = VariationalClassifier(hidden_layer_sizes=hidden, objective=objective, latent_dim=7, max_iter=2, random_state=0)
    assert model.fit(X, Y).transform(X).shape == (150, 7)
    assert model.model_.head.latent_dim == 7


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu():
    before = torch.cuda.get_rng_state()
    model = VariationalClassifier(device="cuda", max_iter=60, random_state=0).fit(X, Y, sample_weight=1.0 + Y)
    assert model.score(X, Y) > 0.9
    assert model.predict_proba(X).dtype == np.float64
    assert torch.equal(torch.cuda.get_rng_state(), before)


# ----------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1; got 0"),
        ({"batch_size": 2.5}, "batch_size must be a whole number of at least 1; got 2.5"),
        ({"learning_rate_init": 0}, "learning_rate_init must be a finite number > 0; got 0"),
        ({"alpha": -1}, "alpha must be a finite number >= 0; got -1"),
        ({"learning_rate": "adaptive"}, "learning_rate must be one of 'cosine'"),
        ({"early_stopping": True, "validation_fraction": 1.0}, "validation_fraction must be a number above 0 and below 1"),
        ({"hidden_layer_sizes": "wide"}, "hidden_layer_sizes must be layer widths such as"),
        ({"hidden_layer_sizes": (8, 0)}, "each of hidden_layer_sizes must be a whole number of at least 1; got 0"),
        ({"class_prior": [0.5, 0.5]}, "class_prior must hold 3 probabilities"),
        ({"objective": "softmax"}, "objective must be one of"),
        ({"learning_rate_init": 1e30}, "the loss became .* try a smaller learning_rate_init"),
        ({"encoder": lambda features: nn.Linear(features + 1, 3)}, "encoder 'Linear' failed on inputs of shape"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(options, says):
    with pytest.raises(ValueError, match=says):
        VariationalClassifier(**QUICK | options).fit(X, Y)


@pytest.mark.parametrize(("encoder", "says"), [("mlp", "got 'mlp'"), (lambda features: "mlp", "it returned str")])
def test_what_is_no_encoder(encoder, says):
    with pytest.raises(TypeError, match=f"encoder must be None, an nn.Module, or a function .*{says}"):
        VariationalClassifier(encoder, **QUICK).fit(X, Y)


@pytest.mark.parametrize(
    ("weight", "says"),
    [(np.ones(149), r"150 weights.*\(149,\)"), (-np.ones(150), ">= 0; got -1"), (np.zeros(150), "zeros only")],
)
def test_what_are_no_sample_weights(weight, says):
    with pytest.raises(ValueError, match=f"sample_weight must .*{says}"):
        VariationalClassifier(**QUICK).fit(X, Y, sample_weight=weight)


def test_partial_fit_says_what_it_needs():
    model = VariationalClassifier(**QUICK)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X, Y)
    model.partial_fit(X, Y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="classes must be those of the first call"):
        model.partial_fit(X, Y, classes=[0, 1])
    with pytest.raises(ValueError, match=r"y must hold labels of classes_.*got 9"):
        model.partial_fit(X[:2], [0, 9])
    with pytest.raises(ValueError, match="no early stopping"):
        VariationalClassifier(early_stopping=True).partial_fit(X, Y, classes=[0, 1, 2])


def test_a_separation_that_settles_needs_held_out_data_and_says_so():
    options = {"objective": "gm", "head_options": {"means": "simplex", "separation": "auto"}, **QUICK}
    settled = VariationalClassifier(early_stopping=True, validation_fraction=0.3, **options).fit(X, Y).model_.head
    with pytest.warns(UserWarning, match=r"separation='auto' stays at 1\.\d\d: it needs the held-out data"):
        fixed = VariationalClassifier(cross_fit=0, **options).fit(X, Y).model_.head
    assert settled.separation != pytest.approx(fixed.separation, rel=0.01)


def test_the_recommended_head_settles_where_there_are_held_out_data_and_says_nothing_where_there_are_none():
    """Warnings are errors here."""
    start = VariationalClassifier(cross_fit=0, **QUICK).fit(X, Y).model_.head
    assert start.settles
    assert start.separation == pytest.approx(start.class_prior.separation, rel=1e-6)
    few = VariationalClassifier(**QUICK).fit(X[::10], Y[::10]).model_.head  # 15 samples
    assert few.separation == pytest.approx(start.separation, rel=1e-6)
    for options in ({"early_stopping": True, "validation_fraction": 0.3}, {"cross_fit": 3}):
        settled = VariationalClassifier(**options, **QUICK).fit(X, Y).model_.head
        assert settled.class_prior.settled != 1
        assert settled.class_prior.distance == pytest.approx(far(3), rel=1e-6)


@pytest.mark.parametrize(
    ("options", "rows"),
    [({}, 600), ({"cross_fit": 3}, 600), ({"cross_fit": 0}, 600), ({"early_stopping": True, "validation_fraction": 0.2}, 480)],
    ids=str,
)
def test_every_fold_is_pulled_as_the_model_that_is_kept_by_the_rows_that_it_trains_on(options, rows, monkeypatch):
    """200 rows a class, more than a hundred in every fold: by their own numbers they would differ."""
    built, build = [], estimator.build_model

    def noting(*given, **named):
        built.append(build(*given, **named))
        return built[-1]

    monkeypatch.setattr(estimator, "build_model", noting)
    x, y = np.tile(X, (4, 1)), np.tile(Y, 4)
    model = VariationalClassifier(**options, **QUICK | {"max_iter": 1}).fit(x, y)
    folds = 0 if "early_stopping" in options else options.get("cross_fit", 5)
    assert len(built) == folds + 1
    beta = 0.5 * min(1, (100 / (rows / 3)) ** 2)
    assert [each.head.objective.beta for each in built] == [pytest.approx(beta, rel=1e-12)] * (folds + 1)
    assert model.model_.head.samples == rows


def test_rows_still_to_come_are_unknown_unless_somebody_says_how_many():
    first = VariationalClassifier(**QUICK).partial_fit(X, Y, classes=[0, 1, 2]).model_.head
    assert (first.samples, first.objective.beta) == (None, pytest.approx(0.01 * 0.5, rel=1e-12))
    told = VariationalClassifier(head_options={"samples": 1500}, **QUICK)
    for head in (told.partial_fit(X, Y, classes=[0, 1, 2]).model_.head, told.fit(X, Y).model_.head):
        assert (head.samples, head.objective.beta) == (1500, pytest.approx(0.04 * 0.5, rel=1e-12))


@pytest.mark.parametrize("rare", [1, 2, 4, 9])
def test_folds_hold_out_every_sample_once_but_a_classes_only_one(rare):
    codes = np.repeat([0, 1, 2], [40, rare, 3])
    folds = VariationalClassifier()._folds(codes)
    assert folds == 5
    rows, held_out = zip(*split_folds(codes, folds), strict=True)
    assert np.bincount(codes[np.concatenate(held_out)]).tolist() == [40, rare if rare > 1 else 0, 3]
    assert all(set(codes[some]) == {0, 1, 2} for some in rows)
    assert all(sorted([*some, *rest]) == list(range(len(codes))) for some, rest in zip(rows, held_out, strict=True))


def test_there_are_no_more_folds_than_the_largest_class_has_samples():
    assert VariationalClassifier()._folds(np.repeat(np.arange(8), 3)) == 3
    assert VariationalClassifier()._folds(np.arange(30)) == 0


def test_a_class_with_a_single_sample_keeps_nobody_from_settling():
    x, y = np.vstack([X, [[9.0, 9.0, 9.0, 9.0]]]), np.append(Y, 3)
    head = VariationalClassifier(**QUICK).fit(x, y).model_.head
    assert head.class_prior.settled != 1


def test_a_class_that_counts_for_nothing_makes_nobody_unsure():
    """Its p(y) is 0; averages over classes leave it out."""
    weight = (Y < 2).astype(float)
    two, three = VariationalClassifier(**QUICK).fit(X[Y < 2], Y[Y < 2]), VariationalClassifier(**QUICK).fit(X, Y, weight)
    assert three.class_prior_[2] == 0
    told = [model.predict_proba(X[Y < 2]).max(1).mean() for model in (two, three)]
    assert told[1] > 0.95 * told[0]


def test_early_stopping_that_holds_out_too_few_says_so():
    with pytest.warns(UserWarning, match=r"separation='auto' stays at 1\.\d\d: early stopping holds out 15 samples and 20 are"):
        head = VariationalClassifier(early_stopping=True, **QUICK).fit(X, Y).model_.head
    assert head.class_prior.settled == 1


def test_cross_fitting_settles_by_every_sample_as_one_not_trained_on_and_keeps_all_of_them_for_training():
    """Labels of noise: held out, nothing is known of them; trained on, they would be learned by heart."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(90, 20)), rng.integers(3, size=90)
    options = {"dropout": 0.0, "max_iter": 100, "learning_rate_init": 1e-2, "random_state": 0}
    honest, sure = VariationalClassifier(**options).fit(x, y), VariationalClassifier(cross_fit=0, **options).fit(x, y)
    assert honest.score(x, y) > 0.9  # all were trained on
    fresh = rng.normal(size=(500, 20))
    told = [model.predict_proba(fresh).max(1).mean() for model in (honest, sure)]
    assert told[0] + 0.1 < told[1]
    assert honest.model_.head.class_prior.settled > 3  # as wide as the steps of a temperature reach
    again = VariationalClassifier(**options).fit(x, y)
    assert np.array_equal(again.predict_proba(fresh), honest.predict_proba(fresh))
    with pytest.raises(ValueError, match="cross_fit"):
        VariationalClassifier(cross_fit=-1).fit(x, y)
    with pytest.raises(ValueError, match="from 2 on, or 0 for none; got 1"):
        VariationalClassifier(cross_fit=1).fit(x, y)
