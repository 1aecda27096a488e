"""Outputs: what an exported model returns, log p(z, y), p(y|x) and log p(z), as one graph without chance in it."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn

from varclass.classifier import Classifier
from varclass.core.posterior import DeltaPosterior, GaussianPosterior

INPUT = "input"
OUTPUTS = {  # by name, in order
    "log_joint": "log p(z, y), (B, C): softmax of it is posterior, logsumexp is log_evidence",
    "posterior": "p(y|x), (B, C): probabilities of the classes, by Bayes' rule",
    "log_evidence": "log p(z), (B,): a log density in latent space, low for inputs unlike the training data",
}
SEED = 0


class Outputs(nn.Module):
    """x -> {log_joint (B, C), posterior (B, C), log_evidence (B,)}, in float32, the same for the same x every time.

    With a Gaussian posterior the head averages over fresh draws of z. Here their noise is drawn once and kept: an average
    over as many draws, in antithetic pairs, whose Monte-Carlo error all inputs share.

    >>> from varclass import VariationalHead
    >>> found = Outputs(Classifier(nn.Linear(3, 8), VariationalHead(8, 2)))(torch.zeros(4, 3))
    >>> {name: tuple(value.shape) for name, value in found.items()}
    {'log_joint': (4, 2), 'posterior': (4, 2), 'log_evidence': (4,)}
    """

    noise: Tensor | None

    def __init__(self, model: Classifier) -> None:
        super().__init__()
        self.model = copy.deepcopy(model).cpu().float().eval().requires_grad_(False)
        self.model.head._modules.pop("ratio", None)  # the adversary has no part in a prediction
        self.register_buffer("noise", _frozen_noise(self.model))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """The outputs by their names."""
        head = self.model.head
        features = self.model.encoder(x).float()
        z = head.class_prior.support(self._latents(features))
        relative, common = head.class_prior.log_prob_apart(z, head.log_label())
        if self.noise is None:
            log_joint, posterior = relative + common[:, None], torch.softmax(relative, -1)
            return _named(log_joint, posterior, torch.logsumexp(relative, -1) + common)
        log_posterior = self._log_mean(torch.log_softmax(relative, -1))
        log_evidence = self._log_mean(torch.logsumexp(relative, -1) + common)
        return _named(log_posterior + log_evidence[:, None], log_posterior.exp(), log_evidence)

    @torch.no_grad()
    def expected(self, x: Tensor) -> dict[str, Tensor]:
        """What the classifier itself says of x: a file is checked against this."""
        if self.noise is not None:
            return self(x)  # the classifier's own draws are others each time
        return _named(self.model(x), self.model.log_posterior(x).exp(), self.model.log_evidence(x))

    def _latents(self, features: Tensor) -> Tensor:
        """z, (B, D); or every draw of every z, (draws * B, D), so that all of them are one product."""
        mean, posterior = self.model.head.projection(features), self.model.head.posterior
        if self.noise is None:
            return mean
        assert isinstance(posterior, GaussianPosterior)
        return (mean + posterior.scale(features) * self.noise[:, None]).flatten(0, 1)

    def _log_mean(self, logs: Tensor) -> Tensor:
        """(draws * B, ...) -> (B, ...)."""
        return torch.logsumexp(logs.unflatten(0, (self.model.head.draws, -1)), dim=0) - math.log(self.model.head.draws)


def _frozen_noise(model: Classifier) -> Tensor | None:
    head = model.head
    if isinstance(head.posterior, DeltaPosterior):
        return None
    if not isinstance(head.posterior, GaussianPosterior):
        raise ValueError(f"only a delta or Gaussian posterior can be exported; got {type(head.posterior).__name__}")
    half = torch.randn(-(-head.draws // 2), head.latent_dim, generator=torch.Generator().manual_seed(SEED))
    return torch.stack([half, -half], dim=1).flatten(0, 1)[: head.draws]


def _named(log_joint: Tensor, posterior: Tensor, log_evidence: Tensor) -> dict[str, Tensor]:
    return dict(zip(OUTPUTS, (log_joint, posterior, log_evidence), strict=True))
