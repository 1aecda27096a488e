"""Deep ensembles: the predictions of several models on the same samples, averaged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from varclass.metrics.predictions import Predictions


def ensemble(members: Sequence[Predictions]) -> Predictions:
    """log mean p(y|x) + log mean p(z) over the members, so that softmax and logsumexp keep their meaning; (N, C).

    >>> one, two = Predictions.of(np.log([[0.9, 0.1]])), Predictions.of(np.log([[0.5, 0.5]]))
    >>> ensemble([one, two]).probabilities.round(3).tolist()
    [[0.7, 0.3]]
    """
    if len(members) < 2:
        raise ValueError(f"an ensemble needs at least two members; got {len(members)}")
    first = members[0]
    for other in members[1:]:
        same = other.log_joint.shape == first.log_joint.shape
        if not same or not (np.array_equal(other.labels, first.labels) and np.array_equal(other.index, first.index)):
            raise ValueError("the members of an ensemble must have predicted the same samples; got others")
    log_count = np.log(len(members))
    posterior = np.logaddexp.reduce([member.log_posterior for member in members]) - log_count
    evidence = np.logaddexp.reduce([member.log_evidence for member in members]) - log_count
    return Predictions(posterior + evidence[:, None], first.labels, first.index)
