"""VariationalClassifier beside scikit-learn's own classifiers, on scikit-learn's own small sets.

    python benchmarks/sklearn_sets.py [--sets iris,wine] [--seeds 3] [--save results/sklearn]

Five-fold stratified cross-validation, repeated with another shuffle and another start for each seed. Every classifier has
its defaults (QDA a little regularization, without which it refuses collinear features) and stands after a StandardScaler
fitted on the training folds; none was tuned on these sets. A seed's score is of its five test folds together, so that every
sample is predicted once; the table has the mean over seeds and the 95% t-interval. ECE is in 20 bins of equal width.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from varclass import VariationalClassifier
from varclass.metrics import Interval, Predictions, over_seeds, score
from varclass.training.files import write_json, write_text
from varclass.training.provenance import provenance

SETS = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer, "digits": load_digits}
MODELS: dict[str, Callable[[int], Any]] = {
    "VariationalClassifier": lambda seed: VariationalClassifier(random_state=seed),
    "VariationalClassifier, early_stopping": lambda seed: VariationalClassifier(early_stopping=True, random_state=seed),
    "VariationalClassifier vc": lambda seed: VariationalClassifier(objective="vc", random_state=seed),
    "VariationalClassifier gm": lambda seed: VariationalClassifier(objective="gm", random_state=seed),
    "VariationalClassifier ce": lambda seed: VariationalClassifier(objective="ce", random_state=seed),
    "LogisticRegression": lambda seed: LogisticRegression(),
    "MLPClassifier": lambda seed: MLPClassifier(random_state=seed),
    "GaussianNB": lambda seed: GaussianNB(),
    "LDA": lambda seed: LinearDiscriminantAnalysis(),
    "QDA, reg_param 0.001": lambda seed: QuadraticDiscriminantAnalysis(reg_param=0.001),  # 0 refuses collinear features
}
OURS, FOLDS, BINS = "VariationalClassifier", 5, 20
METRICS = {"accuracy": (100, 1, "accuracy %"), "nll": (1, 3, "NLL"), "ece": (100, 1, f"ECE % ({BINS} bins)")}


def main() -> None:
    """Score every classifier on every set, print the tables, save them with their provenance if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2, help="processes; the numbers do not depend on it")
    parser.add_argument("--save", default=None, help="path of a .json and a .md, without the ending")
    given = parser.parse_args()
    record = provenance(torch.device("cpu"))
    record["versions"]["scikit-learn"] = metadata.version("scikit-learn")
    results: dict[str, Any] = {}
    for name in given.sets.split(","):
        x, y = SETS[name](return_X_y=True)
        results[name] = {"n": len(y), "features": x.shape[1], "classes": int(y.max()) + 1}
        results[name]["models"] = {model: measure(make, x, y, given.seeds, given.jobs) for model, make in MODELS.items()}
        print(table(name, results[name]), flush=True)
    found = {"seeds": given.seeds, "folds": FOLDS, "bins": BINS, "sets": results, "provenance": record}
    if given.save:
        write_json(Path(f"{given.save}.json"), found)
        write_text(Path(f"{given.save}.md"), page(found))


def measure(make: Callable[[int], Any], x: np.ndarray, y: np.ndarray, seeds: int, jobs: int) -> dict[str, list[float]]:
    """Scores by seed, from log p(y|x) of every sample by the model that did not see it."""
    splits = [(seed, *split) for seed in range(seeds) for split in folds(x, y, seed)]
    found = Parallel(n_jobs=jobs)(delayed(fit_predict)(make(seed), x, y, train, test) for seed, train, test in splits)
    log_posterior = np.empty((seeds, len(y), y.max() + 1))
    for (seed, _, test), rows in zip(splits, found, strict=True):
        log_posterior[seed, test] = rows
    # A probability that was rounded to 0 would make the NLL infinite; scikit-learn's log_loss clips at float64's resolution.
    log_posterior = np.maximum(log_posterior, np.log(np.finfo(np.float64).eps))
    scores = [score(Predictions.of(each, y), BINS) for each in log_posterior]
    return {metric: [each[metric] for each in scores] for metric in METRICS}


def folds(x: np.ndarray, y: np.ndarray, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows to train on and to test on, by class."""
    return StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(x, y)


def fit_predict(model: Any, x: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """log p(y|x) of the test rows."""
    torch.set_num_threads(1)  # matrices this small gain nothing from a second one
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLPClassifier's defaults stop before convergence; a probability of 0 has no log
        return make_pipeline(StandardScaler(), model).fit(x[train], y[train]).predict_log_proba(x[test])


def table(name: str, found: dict[str, Any]) -> str:
    """One set as a table; the best mean of each column is bold."""
    intervals = {model: {metric: over_seeds(row[metric]) for metric in METRICS} for model, row in found["models"].items()}
    best = {}
    for metric in METRICS:
        means = {model: each[metric].mean for model, each in intervals.items()}
        best[metric] = (max if metric == "accuracy" else min)(means.values())
    lines = [
        f"### {name}: n = {found['n']}, {found['features']} features, {found['classes']} classes",
        "",
        f"| | {' | '.join(label for _, _, label in METRICS.values())} |",
        f"|---|{'---|' * len(METRICS)}",
    ]
    for model in found["models"]:
        cells = [cell(intervals[model][metric], metric, best[metric]) for metric in METRICS]
        lines.append(f"| {model} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def cell(found: Interval, metric: str, best: float) -> str:
    """Mean +- half the interval."""
    factor, digits, _ = METRICS[metric]
    mean = f"{factor * found.mean:.{digits}f}"
    shown = f"**{mean}**" if found.mean == best else mean
    return f"{shown} +- {factor * (found.high - found.mean):.{digits}f}"


def verdict(found: dict[str, Any]) -> str:
    """How often the default estimator's mean is the better one, against each classifier of scikit-learn."""
    ours, *_ = MODELS
    lines = [f"Sets, of {len(found['sets'])}, on which {ours} has the better mean:", ""]
    lines += [f"| against | {' | '.join(label for _, _, label in METRICS.values())} |", f"|---|{'---|' * len(METRICS)}"]
    for other in MODELS:
        if other.startswith(OURS):
            continue
        wins = []
        for metric in METRICS:
            sign = 1 if metric == "accuracy" else -1
            pairs = [(each["models"][ours][metric], each["models"][other][metric]) for each in found["sets"].values()]
            better = sum(sign * float(np.mean(one)) > sign * float(np.mean(two)) for one, two in pairs)
            wins.append(str(better))
        lines.append(f"| {other} | {' | '.join(wins)} |")
    return "\n".join(lines) + "\n"


def page(found: dict[str, Any]) -> str:
    """All tables, what they say and where they come from."""
    record, versions = found["provenance"], found["provenance"]["versions"]
    head = (
        "# scikit-learn's small sets\n\n"
        f"{found['folds']}-fold stratified cross-validation, {found['seeds']} seeds (shuffle and start): mean over seeds +- "
        f"half the 95% t-interval, n samples predicted once by each seed. The interval says how the mean varies with shuffle "
        f"and start, not with the sample of n. Defaults but for QDA, each after a StandardScaler. Nothing was tuned on these "
        f"sets; VariationalClassifier's dropout of 0.5 and peak rate of 0.01 were chosen on eight sets of make_classification. "
        f"Probabilities below {np.finfo(np.float64).eps:.1e} count as that. Bold: the best mean of a column.\n\n"
    )
    tables = "\n".join(table(name, each) for name, each in found["sets"].items())
    shown = ", ".join(f"{name} {versions[name]}" for name in ("varclass", "python", "torch", "numpy", "scikit-learn"))
    command = "python benchmarks/sklearn_sets.py --save results/sklearn"
    foot = f"\n`{command}`: {shown}; commit {record['commit']}; {record['device']['name']}.\n"
    return f"{head}{tables}\n### Against each\n\n{verdict(found)}{foot}"


if __name__ == "__main__":
    main()
