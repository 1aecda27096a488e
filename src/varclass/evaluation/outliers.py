"""The ood suite: samples of other data sets against the test split, by every score that there is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np

from varclass.core.axes import AxesPrior
from varclass.core.priors import GaussianPrior
from varclass.data.split import Split
from varclass.evaluation.scorebook import Row
from varclass.evaluation.subject import Subject, some_of
from varclass.metrics.curves import histograms, roc_curve
from varclass.metrics.detection import detection_scores, mahalanobis, separation

SELF = "oos"  # a data set's own out-of-scope split


def ood(subject: Subject) -> Iterator[Row]:
    """AUROC, AUPR and FPR95 of max p(y|x), entropy, log p(z), Mahalanobis distance and energy, for each set of outliers."""
    if not subject.options.outliers:
        raise ValueError("the ood suite needs data sets that belong to none of the classes; got none: --ood svhn,cifar100")
    inside = scores_of(subject, subject.some)
    for name in subject.options.outliers:
        split = subject.own(SELF) if name == SELF else subject.outliers(name)
        outside = scores_of(subject, some_of(split, subject.options.samples), f"ood-{name.replace('/', '_')}")
        for score, values in inside.items():
            found = separation(values, outside[score])
            curves = {
                "histograms": asdict(histograms(values, outside[score], trim=0.01)),
                "roc": asdict(roc_curve(values, outside[score])),
            }
            n = int(found.pop("n_in")) + int(found["n_out"])
            yield Row("ood", "raw", {"set": name, "score": score, "seed": subject.seed}, n, found, curves)


def scores_of(subject: Subject, split: Split, name: str = "") -> dict[str, np.ndarray]:
    """Each score of each sample, higher for more in-distribution; predictions are kept under a name."""
    predictions = subject.test_predictions if split is subject.test else subject.predictor.predict(split)
    if name:
        subject.keep(name, predictions)
    found = detection_scores(predictions)
    prior = subject.model.head.class_prior
    if isinstance(prior, GaussianPrior):
        variances = (2 * prior.log_sigma().detach()).exp().expand(prior.num_classes, prior.latent_dim)
        mean, latents = prior.mean.detach().cpu().numpy(), subject.predictor.latents(split)
        found["mahalanobis"] = mahalanobis(latents, mean, variances.cpu().numpy())
        if isinstance(prior, AxesPrior):  # latents are a softmax layer's outputs
            outputs = float(prior.length) * latents + subject.model.head.log_label().cpu().numpy()
            found["energy"] = np.logaddexp.reduce(outputs, axis=1)
    return found
