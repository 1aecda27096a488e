"""One thread; and torchvision importable beside a CPU build of torch, where PyPI's own needs CUDA's operators."""

import torch

torch.set_num_threads(1)

# PyPI's torchvision is a CUDA build. Beside a CPU torch its compiled operators do not load, and its Python code then fails on
# registering what runs them without a device: the two names are enough, since no classifier calls them.
_library = torch.library.Library("torchvision", "DEF")
for _operator in ("nms", "qnms"):
    _library.define(f"{_operator}(Tensor boxes, Tensor scores, float threshold) -> Tensor")
