"""VariationalClassifier in scikit-learn's own machinery: its checks, pipelines, searches, clones, pickles."""

import io
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

from varclass import VC, VariationalClassifier

X, Y = load_iris(return_X_y=True)
QUICK = {"max_iter": 60, "learning_rate_init": 1e-2, "random_state": 0}  # 60 steps: as few as a softmax layer needs for iris
CHECKED = [
    VariationalClassifier(max_iter=20),
    VariationalClassifier(max_iter=20, objective="vc"),
    VariationalClassifier(max_iter=20, objective="pull", dropout=0.0, batch_size=1000, cross_fit=0),
    VariationalClassifier(max_iter=20, objective="ce", dropout=0.0, batch_size=1000),
    VariationalClassifier(max_iter=20, objective="gm", dropout=0.0, batch_size=1000),
]


def expected_failures(estimator: VariationalClassifier) -> dict[str, str]:
    """One batch without random numbers is the same for weights and repetitions; minibatches, dropout, VC's samples are not."""
    if estimator.dropout == 0:
        return {}
    name = "check_sample_weight_equivalence_on_dense_data"
    return {name: "every row has its own prior sample, dropout mask and place in a minibatch"}


@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_a_pipeline_scores_and_passes_latents_on():
    pipeline = make_pipeline(StandardScaler(), VariationalClassifier(**QUICK)).fit(X, Y)
    assert pipeline.score(X, Y) > 0.9
    inside = make_pipeline(VariationalClassifier(latent_dim=3, **QUICK), StandardScaler()).fit(X, Y)
    assert inside.transform(X).shape == (150, 3)
    assert inside.get_feature_names_out().tolist() == [f"variationalclassifier{i}" for i in range(3)]


def wide(features: int) -> nn.Module:
    return nn.Sequential(nn.Linear(features, 32), nn.Tanh(), nn.Linear(32, 4))


def test_a_grid_search_over_objectives_and_encoders():
    grid = {"objective": ["ce", VC(beta=0.5)], "encoder": [None, wide], "latent_dim": [None, np.int64(5)]}
    search = GridSearchCV(VariationalClassifier(max_iter=3, random_state=0), grid, cv=2, error_score="raise").fit(X, Y)
    assert len(search.cv_results_["params"]) == 8
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_cross_validation_reaches_what_iris_allows():
    assert cross_val_score(VariationalClassifier(**QUICK), X, Y, cv=3).mean() > 0.9


def test_calibration_by_scikit_learn():
    calibrated = CalibratedClassifierCV(VariationalClassifier(**QUICK), method="sigmoid", cv=2).fit(X, Y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(1), 1, rtol=1e-9)
    assert calibrated.score(X, Y) > 0.9


def test_a_clone_is_unfitted_and_trains_to_the_same_numbers():
    first = VariationalClassifier(nn.Linear(4, 6), **QUICK).fit(X, Y)
    second = clone(first)
    with pytest.raises(NotFittedError):
        second.predict(X)
    assert second.encoder is not first.encoder
    np.testing.assert_array_equal(second.fit(X, Y).predict_proba(X), first.predict_proba(X))


@pytest.mark.parametrize("through", [lambda value: pickle.loads(pickle.dumps(value)), "joblib"])
def test_pickled_it_predicts_the_same_and_goes_on_training_the_same(through):
    model = VariationalClassifier(**QUICK).partial_fit(X, Y, classes=[0, 1, 2])
    if through == "joblib":
        buffer = io.BytesIO()
        joblib.dump(model, buffer)
        back = joblib.load(io.BytesIO(buffer.getvalue()))
    else:
        back = through(model)
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    again = [each.partial_fit(X, Y).predict_proba(X) for each in (model, back)]
    np.testing.assert_array_equal(*again)


def test_a_search_in_processes_of_its_own():
    search = GridSearchCV(VariationalClassifier(max_iter=2, random_state=0), {"alpha": [0.0, 0.1]}, cv=2, n_jobs=2)
    assert len(search.fit(X, Y).predict(X)) == 150


@pytest.mark.parametrize(
    "names",
    [
        np.array(["setosa", "versicolor", "virginica"]),
        np.array(["b", "a", "c"], dtype=object),
        np.array([-1, 7, 3]),
        np.array([2.0, 1.0, 0.0]),
    ],
    ids=["str", "object", "int", "float"],
)
def test_labels_of_any_type_come_back(names):
    model = VariationalClassifier(**QUICK).fit(X, names[Y])
    assert model.classes_.tolist() == sorted(names.tolist())
    assert model.classes_.dtype == names.dtype
    assert (model.predict(X) == names[Y]).mean() > 0.9
    best = model.predict_proba(X).argmax(1)
    np.testing.assert_array_equal(model.classes_[best], model.predict(X))


def test_two_classes_that_are_booleans():
    model = VariationalClassifier(**QUICK).fit(X, Y == 1)
    assert model.classes_.tolist() == [False, True]
    assert model.predict(X).dtype == np.bool_


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_everything_is_in_the_precision_of_x_and_is_what_bayes_rule_says(dtype):
    model = VariationalClassifier(**QUICK).fit(X.astype(dtype), Y)
    probs, logs = model.predict_proba(X.astype(dtype)), model.predict_log_proba(X.astype(dtype))
    z, evidence = model.transform(X.astype(dtype)), model.score_samples(X.astype(dtype))
    assert {probs.dtype, logs.dtype, z.dtype, evidence.dtype} == {np.dtype(dtype)}
    rtol = 1e-9 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(probs.sum(1), 1, rtol=rtol)
    np.testing.assert_allclose(np.exp(logs), probs, rtol=rtol)
    with torch.no_grad():
        log_joint = model.model_.head.log_joint(torch.tensor(z)).numpy()
    np.testing.assert_allclose(evidence, np.logaddexp.reduce(log_joint, 1), rtol=100 * rtol)
    np.testing.assert_allclose(np.exp(log_joint - evidence[:, None]), probs, atol=100 * rtol)


def test_log_p_of_z_is_low_far_from_the_training_data():
    x, y = make_blobs(200, centers=3, random_state=0)
    model = VariationalClassifier(**QUICK).fit(x, y)
    assert np.median(model.score_samples(100 * x)) < np.quantile(model.score_samples(x), 0.01)


def test_the_extra_is_named_where_scikit_learn_is_missing():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import varclass; from varclass import *; assert 'VariationalClassifier' in dir(varclass)\n"
        "try: varclass.VariationalClassifier\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "VariationalClassifier needs scikit-learn: pip install 'varclass[sklearn]'"
