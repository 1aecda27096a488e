"""What a batch says about y: hard labels or soft ones, with the weights that every expectation over the batch uses."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True)
class Target:
    """Labels of a flattened batch, and the weighted averages E_{x,y} of eq:LVC_2 they define.

    `labels` (B,) is None for soft labels; `weight` is (B,) for hard labels, (B, C) for soft ones (each row a
    distribution), or None where every sample counts the same.
    """

    labels: Tensor | None
    weight: Tensor | None

    def average(self, values: Tensor) -> Tensor:
        """E[values]: values are (B,) at the hard label, (B, C) at every label if labels are soft."""
        if self.weight is None:
            return values.mean()
        return (self.weight * values).sum() / self.weight.sum()

    def cross_entropy(self, log_joint: Tensor) -> Tensor:
        """-E log softmax(log_joint)_y, (B, C) -> scalar."""
        if self.labels is None:
            return -self.average(torch.log_softmax(log_joint, dim=1))
        if self.weight is None:
            return F.cross_entropy(log_joint, self.labels)
        return self.average(F.cross_entropy(log_joint, self.labels, reduction="none"))

    def draw(self) -> Tensor:
        """One label per sample, (B,): the hard one, or a draw from the soft ones."""
        if self.labels is not None:
            return self.labels
        assert self.weight is not None
        if len(self.weight) == 0:  # multinomial refuses an empty batch
            return self.weight.new_zeros(0, dtype=torch.long)
        counted = torch.where(self.weight.sum(-1, keepdim=True) > 0, self.weight, 1.0)
        return torch.multinomial(counted, 1).squeeze(1)

    def weight_per_sample(self) -> Tensor | None:
        """What a sample counts for, (B,), whichever label was drawn for it; None if all the same."""
        return self.weight if self.labels is not None or self.weight is None else self.weight.sum(-1)

    def weighted(self, sample_weight: Tensor) -> Target:
        """The same labels, each sample counting `sample_weight` (B,) times what it did."""
        if self.weight is None:
            return Target(self.labels, sample_weight)
        return Target(self.labels, self.weight * (sample_weight if self.labels is not None else sample_weight[:, None]))


def read_target(
    y: Tensor, features: Tensor, num_classes: int, class_weight: Tensor | None, ignore_index: int, dtype: torch.dtype
) -> Target:
    """Check a user's labels against the batch and make them a Target. Integers are hard labels, floats are soft.

    Class weights stand for a data distribution p'(x, y) in proportion to w_y p(x, y): they touch every term alike.
    """
    if not isinstance(y, Tensor):
        raise TypeError(f"y must be a tensor of labels or of label probabilities; got {type(y).__name__}")
    batch_shape = features.shape[:-1]
    if y.is_floating_point():
        return _soft(y, batch_shape, num_classes, class_weight, dtype)
    if y.dtype == torch.bool or y.is_complex():
        raise TypeError(f"y must hold integers (labels) or floats (probabilities); got {y.dtype}")
    if y.shape != batch_shape:
        raise ValueError(f"y must have the shape of the batch, {tuple(batch_shape)}; got {tuple(y.shape)}")
    y = y.reshape(-1).long()
    if _may_look(y) and _in_range(y, num_classes, ignore_index) and class_weight is None:
        return Target(y, None)
    kept = y != ignore_index
    labels = torch.where(kept, y, 0)
    return Target(labels, kept.to(dtype) if class_weight is None else kept * class_weight[labels].to(dtype))


def _soft(y: Tensor, batch_shape: torch.Size, num_classes: int, class_weight: Tensor | None, dtype: torch.dtype) -> Target:
    if y.shape != (*batch_shape, num_classes):
        hint = ": labels must be integers, y.long()" if y.shape == batch_shape else ""
        raise ValueError(f"soft labels must have shape {(*batch_shape, num_classes)}; got {tuple(y.shape)}, {y.dtype}{hint}")
    probs = y.reshape(-1, num_classes).to(dtype)
    if _may_look(y) and probs.numel():
        good = (probs >= 0).all(-1) & ((probs.sum(-1) - 1).abs() < 1e-2)
        if not bool(good.all()):
            low, total = probs[~good][0].min().item(), probs[~good][0].sum().item()
            raise ValueError(f"soft labels must be non-negative and sum to 1; got a row with minimum {low:g} and sum {total:g}")
    return Target(None, probs if class_weight is None else probs * class_weight.to(dtype))


def check_sample_weight(weight: Tensor, batch_shape: torch.Size, dtype: torch.dtype) -> Tensor:
    """One finite weight from zero on for each sample, as a flat tensor."""
    if not isinstance(weight, Tensor) or weight.shape != batch_shape:
        got = tuple(weight.shape) if isinstance(weight, Tensor) else type(weight).__name__
        raise ValueError(f"sample_weight must be a tensor of the shape of the batch, {tuple(batch_shape)}; got {got}")
    flat = weight.reshape(-1).to(dtype)
    if _may_look(flat):
        wrong = flat[~((flat >= 0) & flat.isfinite())]
        if len(wrong):
            raise ValueError(f"sample_weight must hold finite numbers >= 0; got {float(wrong[0]):g}")
    return flat


def check_labels(y: Tensor, num_classes: int) -> Tensor:
    """Hard labels of any shape, in range, as a flat int64 tensor."""
    if y.is_floating_point() or y.dtype == torch.bool:
        raise TypeError(f"y must hold integer labels; got {y.dtype}")
    labels = y.reshape(-1).long()
    if _may_look(y) and labels.numel():
        low, high = torch.stack(torch.aminmax(labels)).tolist()
        if low < 0 or high >= num_classes:
            raise ValueError(f"labels must lie in 0..{num_classes - 1}; got {low}..{high}")
    return labels


def _may_look(y: Tensor) -> bool:
    """Whether Python may look at values: not while compiling, nor while a CUDA graph is captured."""
    return not torch.compiler.is_compiling() and not (y.is_cuda and torch.cuda.is_current_stream_capturing())


def _in_range(y: Tensor, num_classes: int, ignore_index: int) -> bool:
    """True if every label counts, False if some are to be ignored, an error if any is neither. One device sync."""
    if y.numel() == 0:
        return True
    low, high = torch.stack(torch.aminmax(y)).tolist()
    if low >= 0 and high < num_classes and not low <= ignore_index <= high:
        return True
    counted = y[y != ignore_index]
    wrong = counted[(counted < 0) | (counted >= num_classes)]
    if len(wrong):
        raise ValueError(f"labels must lie in 0..{num_classes - 1} (or be ignore_index={ignore_index}); got {int(wrong[0])}")
    return False
