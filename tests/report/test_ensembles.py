"""Deep ensembles on the page: from the predictions beside the runs of a group."""

from types import SimpleNamespace

import numpy as np

from varclass.metrics.ensemble import ensemble
from varclass.metrics.predictions import Predictions
from varclass.metrics.scores import nll
from varclass.report.ensembles import ensembles


def group(label, folder, predictions):
    runs = {}
    for seed, held in enumerate(predictions):
        (folder / f"{label}{seed}" / "predictions").mkdir(parents=True)
        held.save(folder / f"{label}{seed}" / "predictions" / "test.npz")
        runs[seed] = SimpleNamespace(path=folder / f"{label}{seed}")
    return SimpleNamespace(label=label, runs=runs)


def test_a_group_of_several_seeds_has_a_line_with_the_scores_of_the_average(tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=40)
    members = [Predictions.of(rng.normal(size=(40, 3)).astype(np.float32), labels) for _ in range(3)]
    markup = ensembles([group("VC", tmp_path, members), group("CE", tmp_path, members[:1])])
    assert "Deep ensembles" in markup
    assert f"{nll(ensemble(members)):.3f}"[1:] in markup or f"{nll(ensemble(members)):.3f}" in markup
    assert "0, 1, 2" in markup
    assert '<th scope="row">VC</th>' in markup
    assert '<th scope="row">CE</th>' not in markup


def test_no_group_of_several_seeds_has_no_table(tmp_path):
    assert ensembles([SimpleNamespace(label="VC", runs={0: SimpleNamespace(path=tmp_path)})]) is None
