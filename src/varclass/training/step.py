"""TrainingStep: the loss and what is logged about it, computed inside one forward that DDP and compile can wrap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from varclass.classifier import Classifier
from varclass.core.head import VariationalHead
from varclass.core.objectives import Drawn

TERMS = ("total", "posterior", "label", "prior", "ratio", "discriminator")
ACCURACY = "discriminator_accuracy"


class TrainingStep(nn.Module):
    """(x, y, drawn) -> the loss, and the objective's terms as one tensor in the order of `logged`."""

    def __init__(self, model: Classifier, precision: str) -> None:
        super().__init__()
        self.model, self.low_precision = model, precision == "bf16"
        self.logged = _names(model.head)
        self.encode: Callable[[Tensor], Tensor] = self._encode
        self.judge: Callable[[Tensor, Tensor, Drawn | None], tuple[Tensor, Tensor]] = self._judge

    def compile_parts(self) -> None:
        """Compile encoder and head apart, so that the large one is compiled once for all objectives: torch keeps it on disk."""
        torch.compiler.reset()  # a process that trains many models would reach the limit on recompilations
        self.encode = torch.compile(self._encode, fullgraph=True, dynamic=False)
        self.judge = torch.compile(self._judge, fullgraph=True, dynamic=False)

    def forward(self, x: Tensor, y: Tensor, drawn: Drawn | None) -> tuple[Tensor, Tensor]:
        return self.judge(self.encode(x), y, drawn)

    def _encode(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.low_precision):
            return self.model.encoder(x)

    def _judge(self, features: Tensor, y: Tensor, drawn: Drawn | None) -> tuple[Tensor, Tensor]:
        terms = self.model.head.terms(features, y, drawn)
        found: list[Any] = [
            terms.discriminator_accuracy() if name == ACCURACY else getattr(terms, name) for name in self.logged
        ]
        return terms.total, torch.stack(found).detach()


@torch.no_grad()
def _names(head: VariationalHead) -> tuple[str, ...]:
    """The terms that this head's objective has, found by asking it once."""
    like = head.class_prior.log_scale
    with torch.random.fork_rng(devices=[like.device] if like.is_cuda else []):
        terms = head.terms(like.new_zeros(1, head.in_features), torch.zeros(1, dtype=torch.long, device=like.device))
    present = [name for name in TERMS if getattr(terms, name) is not None]
    return (*present, *([ACCURACY] if terms.judged is not None else []))
