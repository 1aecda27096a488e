"""p_pi(y): learned, uniform or given; and its estimate from unlabelled predictions when it has shifted."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from varclass.core.options import check_probabilities

IMPOSSIBLE = -1e4  # log p(y) of a class given probability 0: its exponential is 0, and its gradients are not NaN


def possible_classes(log_label: Tensor) -> Tensor | slice:
    """The classes that p(y) does not rule out, as an index of (B, C) columns.

    >>> possible_classes(torch.tensor([-0.7, -0.7, IMPOSSIBLE])), possible_classes(torch.tensor([-0.7, -0.7]))
    (tensor([0, 1]), slice(None, None, None))
    """
    possible = log_label > IMPOSSIBLE / 2
    return slice(None) if bool(possible.all()) else possible.nonzero()[:, 0]


class LabelPrior(nn.Module):
    """p_pi(y), the distribution of the classes: "learned" (the paper's), "uniform", or probabilities that are given.

    A learned one starts uniform and is moved by the term log p_pi(y) alone, so it becomes the training labels'
    frequencies [eq:LVC_2, third term]. Gradient: pi.

    >>> LabelPrior(2, torch.tensor([0.25, 0.75])).probs()
    tensor([0.2500, 0.7500])
    """

    def __init__(self, num_classes: int, kind: str | Tensor = "learned", dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.learned = isinstance(kind, str) and kind == "learned"
        if isinstance(kind, str):
            if kind not in ("learned", "uniform"):
                raise ValueError(f"label_prior must be 'learned', 'uniform' or a tensor of probabilities; got {kind!r}")
            logits = torch.zeros(num_classes, dtype=dtype)
        else:
            logits = check_probabilities("label_prior", kind, num_classes).log().clamp(min=IMPOSSIBLE)
            logits = logits.to(torch.get_default_dtype() if dtype is None else dtype)
        if self.learned:
            self.logits = nn.Parameter(logits)
        else:
            self.register_buffer("logits", logits)

    def log_probs(self) -> Tensor:
        """log p(y), (C,)."""
        return torch.log_softmax(self.logits, dim=0)

    def probs(self) -> Tensor:
        """p(y), (C,)."""
        return torch.softmax(self.logits.detach(), dim=0)


@torch.no_grad()
def estimate_label_prior(log_posterior: Tensor, trained: Tensor, *, max_steps: int = 1000, tolerance: float = 1e-8) -> Tensor:
    """p(y) of unlabelled data from a classifier's predictions on it, by EM (Saerens, Latinne and Decaestecker 2002).

    p_new(y) = mean_i p(y|x_i) p_old(y) / p_train(y) / Z_i, repeated from p_train until it stands still: the maximum
    of the data's likelihood if p(x|y) is unchanged and the predictions are calibrated.

    Args:
        log_posterior: log p(y|x), (N, C); a log joint does as well, since what is common to all classes drops out.
        trained: p(y) the predictions were made with, (C,).
        max_steps: EM steps at most.
        tolerance: stop when no probability moves by more than this.

    >>> estimate_label_prior(torch.log_softmax(torch.tensor([[4.0, 0], [4.0, 0], [0, 4.0]]), 1), torch.tensor([0.5, 0.5]))
    tensor([0.6729, 0.3271])
    """
    if log_posterior.dim() != 2 or len(log_posterior) == 0:
        raise ValueError(f"log_posterior must have shape (N, C) with N > 0; got {tuple(log_posterior.shape)}")
    start = check_probabilities("trained", trained, log_posterior.shape[1]).to(log_posterior.device)
    log_likelihood = log_posterior.double() - start.log()  # up to a constant per row
    if not bool(torch.isfinite(log_likelihood).all()):
        raise ValueError("log_posterior must be finite; got NaN or infinity")
    probs = start
    for _ in range(max_steps):
        previous, probs = probs, torch.softmax(log_likelihood + probs.log(), dim=1).mean(0)
        if float((probs - previous).abs().max()) <= tolerance:
            break
    return probs.to(log_posterior.dtype)
