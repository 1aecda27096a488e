"""The ood suite: samples of other data sets against the test split, by every score that there is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
import torch

from varclass.core.linear import has_linear_log_odds, outputs_of
from varclass.core.priors import GaussianPrior
from varclass.data.split import Split
from varclass.evaluation.scorebook import Row
from varclass.evaluation.subject import Subject, some_of
from varclass.metrics.curves import histograms, roc_curve
from varclass.metrics.detection import detection_scores, mahalanobis, separation

SELF = "oos"  # a data set's own out-of-scope split


def ood(subject: Subject) -> Iterator[Row]:
    """AUROC, AUPR and FPR95 of max p(y|x), entropy, log p(z), Mahalanobis distance and energy, for each set of outliers."""
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
        if has_linear_log_odds(subject.model.head):
            with torch.no_grad():
                outputs = outputs_of(subject.model.head, torch.from_numpy(latents).to(prior.mean.device))
            found["energy"] = torch.logsumexp(outputs, dim=1).cpu().numpy()
    return found
