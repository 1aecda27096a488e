"""On a GPU: the same bytes as on the CPU, but for a level here and there."""

import pytest
import torch

from varclass.data.corruptions import CORRUPTIONS, SEVERITIES, corrupt

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("name", CORRUPTIONS)
def test_the_gpu_gives_what_the_cpu_gives(photographs, name, severity):
    """A value within 1e-12 of a level's edge may fall to either side: fewer than one byte in a million, by one level."""
    for channels, side in ((1, 28), (3, 32), (3, 64)):
        images = photographs(32, channels, side)
        result = corrupt(images.cuda(), name, severity, seed=0)
        assert result.is_cuda
        apart = (result.cpu().int() - corrupt(images, name, severity, seed=0).int()).abs()
        assert apart.max() <= 1
        assert (apart > 0).double().mean() < 1e-6 + 1 / apart.numel()
