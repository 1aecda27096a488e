"""VariationalModule: a Classifier under Lightning, with automatic optimization, so that DDP, AMP and accumulation just work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from varclass.classifier import Classifier
from varclass.core.consistency import HeldOut, look_at

try:
    from lightning import LightningModule
except ImportError as error:
    raise ImportError("varclass.integrations.lightning needs lightning: pip install 'varclass[lightning]'") from error

TERMS = ("posterior", "label", "prior", "ratio", "discriminator")


class VariationalModule(LightningModule):
    """A `Classifier` with the steps that a Lightning `Trainer` calls; batches are (x, y).

    One backward pass moves encoder, priors and adversary, each as the objective says, so one optimizer is enough and
    nothing is done by hand. Subclass it to log more or to schedule the learning rate.

    Args:
        model: the classifier; the Trainer does not tell its head how many samples there are, `samples=` does.
        lr: the encoder's learning rate; those of the head follow by its multipliers.
        weight_decay: the encoder's; theta and pi have none.
        optimizer: a torch optimizer class.
        lr_multipliers, weight_decays: by group, as in `Classifier.parameter_groups`.
        options: further arguments of the optimizer.
    """

    def __init__(
        self,
        model: Classifier,
        lr: float = 1e-3,
        weight_decay: float = 0.0,
        *,
        optimizer: type[torch.optim.Optimizer] = torch.optim.AdamW,
        lr_multipliers: Mapping[str, float] | None = None,
        weight_decays: Mapping[str, float] | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        if not isinstance(model, Classifier):
            raise TypeError(f"VariationalModule takes a Classifier; got {type(model).__name__}")
        self.model = model
        self._groups = {"lr": lr, "weight_decay": weight_decay}
        self._by_group = {"lr_multipliers": lr_multipliers, "weight_decays": weight_decays}
        self._optimizer, self._options = optimizer, options
        self._seen: list[HeldOut] = []  # of the validation batches so far

    def forward(self, x: Any) -> Tensor:
        """log p(z, y), (B, C)."""
        return self.model(x)

    def training_step(self, batch: tuple[Any, Tensor], batch_idx: int) -> Tensor:
        """The loss; every term of the objective is logged as train/<term>."""
        x, y = batch
        terms = self.model.head.terms(self.model.encoder(x), y)
        held = {f"train/{name}": getattr(terms, name) for name in TERMS}
        logged = {name: value.detach() for name, value in held.items() if value is not None}
        self.log_dict({"train/loss": terms.total.detach(), **logged}, batch_size=len(y))
        return terms.total

    def validation_step(self, batch: tuple[Any, Tensor], batch_idx: int) -> None:
        """NLL, accuracy and mean log p(z), over all processes; with separation="auto", what the head settles by."""
        self._score(batch, "val")
        if self.model.head.settles and not self.trainer.sanity_checking:
            self._seen.append(look_at(self.model.head, self.model.encoder(batch[0]), batch[1]))

    def on_validation_epoch_end(self) -> None:
        """Settle by all of the validation data, of all processes; what was logged is from before."""
        if self._seen:
            parts: list[Any] = [HeldOut.of(self._seen)]
            self._seen.clear()
            if self.trainer.world_size > 1:
                parts = parts * self.trainer.world_size
                torch.distributed.all_gather_object(parts, parts[0])  # not every process has as many samples
            held = HeldOut.of(parts)
            if bool(held.losses.isfinite().all()):  # otherwise what was logged says it, and whoever watches that decides
                self.model.head.settle_from(held)

    def test_step(self, batch: tuple[Any, Tensor], batch_idx: int) -> None:
        """As in validation."""
        self._score(batch, "test")

    def predict_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> dict[str, Tensor]:
        """log_joint (B, C), posterior (B, C) and log_evidence (B,) of x, or of the x in (x, y)."""
        x = batch[0] if isinstance(batch, (tuple, list)) else batch
        features = self.model.encoder(x)
        log_joint = self.model.head(features)
        return {
            "log_joint": log_joint,
            "posterior": torch.softmax(log_joint, -1),
            "log_evidence": torch.logsumexp(log_joint, -1),
        }

    def configure_optimizers(self) -> Any:
        """One optimizer over the groups phi, theta, pi and psi."""
        groups = self.model.parameter_groups(**self._groups, **self._by_group)  # type: ignore[arg-type]
        return self._optimizer(groups, **self._options)

    def _score(self, batch: tuple[Any, Tensor], stage: str) -> None:
        x, y = batch
        log_joint = self.model(x)
        found = {
            f"{stage}/nll": F.cross_entropy(log_joint, y),
            f"{stage}/accuracy": (log_joint.argmax(-1) == y).float().mean(),
            f"{stage}/log_evidence": torch.logsumexp(log_joint, -1).mean(),
        }
        self.log_dict(found, prog_bar=True, sync_dist=True, batch_size=len(y))
