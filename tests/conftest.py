"""One thread, one seed and repeatable hypothesis examples, so that a test says the same on every machine and in any order."""

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("varclass", deadline=None, derandomize=True, max_examples=20, database=None)
settings.load_profile("varclass")


@pytest.fixture(autouse=True)
def seeded():
    """Every test draws what it would draw alone."""
    torch.manual_seed(0)
