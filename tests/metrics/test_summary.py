"""`score`, and what holds for every metric alike: no rows, one row, rows in another order, rows without a label."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import varclass.metrics
from varclass.metrics import Predictions, accuracy, aurc, ece, nll, reliability, risk_coverage, score

ABOUT = {"n", "num_classes", "bins"}


def test_the_summary_is_made_of_the_single_functions(simulate):
    held = simulate(200, 7)
    found = score(held)
    assert (found["n"], found["num_classes"], found["bins"]) == (200, 7, 20)
    assert (found["accuracy"], found["nll"], found["aurc"]) == (accuracy(held), nll(held), aurc(held))
    assert (found["ece"], found["ece_15"]) == (ece(held, 20), ece(held, 15))
    assert score(held, bins=15)["ece"] == found["ece_15"]
    assert found["mean_entropy"] == held.entropy.mean()
    assert json.loads(json.dumps(found)) == found
    assert {type(value) for value in found.values()} == {int, float}


def test_no_rows_are_nan_throughout_without_a_warning(simulate):
    for held in (simulate(0), Predictions.of(np.zeros((3, 4)))):  # none at all, and none with a label
        found = score(held)
        assert found["n"] == 0
        assert all(math.isnan(value) for name, value in found.items() if name not in ABOUT)
        assert np.isnan(reliability(held).accuracy).all()
        assert len(risk_coverage(held).risk) == 0


@pytest.mark.parametrize("row", [[0.0, 0.0], [0.0, -np.inf], [-1e9, -2e9], [3.0, 4.0]])
@pytest.mark.parametrize("label", [0, 1])
def test_one_row_of_two_classes(row, label):
    found = score(Predictions.of([row], [label]))
    assert found["n"] == 1
    right = float(np.argmax(row) == label)
    assert found["accuracy"] == right
    assert found["aurc"] == 1 - right
    assert (
        found["ece"] == found["mce"] == found["adaptive_ece"] == pytest.approx(abs(found["mean_confidence"] - right), rel=1e-9)
    )
    assert not any(math.isnan(value) for value in found.values())


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(2, 4), st.booleans())
def test_neither_the_order_of_rows_nor_rows_without_a_label_matter(seed, n, classes, tied):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 2, (n, classes)).astype(float) if tied else 3 * rng.standard_normal((n, classes))
    labels = rng.integers(0, classes, n)
    expected = score(Predictions.of(rows, labels))
    turned = rng.permutation(n)
    assert score(Predictions.of(rows[turned], labels[turned])) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    padded = Predictions.of(np.vstack([rows, 9 * rng.standard_normal((5, classes))]), np.append(labels, [-1] * 5))
    assert score(padded) == expected
    for name in ("accuracy", "top5_accuracy", "ece", "mce", "adaptive_ece", "classwise_ece", "aurc", "mean_confidence"):
        assert 0 <= expected[name] <= 1 + 1e-12
    assert 0 <= expected["brier"] <= 2
    assert expected["e_aurc"] >= -1e-12
    assert 0 <= expected["mean_entropy"] <= math.log(classes) + 1e-12


def test_a_constant_on_a_row_moves_the_evidence_alone(simulate):
    held = simulate(100)
    moved = Predictions.of(held.log_joint + 16.0 * np.arange(100)[:, None], held.labels)
    before, after = score(held), score(moved)
    assert after.pop("mean_log_evidence") == pytest.approx(before.pop("mean_log_evidence") + 16 * 49.5, rel=1e-9)
    assert after == pytest.approx(before, rel=1e-9)


def test_public_names_are_there_and_say_what_they_are():
    names = varclass.metrics.__all__
    assert names == sorted(names)
    assert all(getattr(varclass.metrics, name).__doc__ for name in names)


def test_importing_the_room_costs_numpy_alone():
    heavy = "{'torch', 'scipy', 'sklearn', 'torchmetrics'}"
    work = "from varclass.metrics import Predictions, score; score(Predictions.of([[0.0, 1.0]], [1]))"  # nor does `score`
    code = f"import sys, varclass.metrics; {work}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"
