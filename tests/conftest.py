"""One thread and repeatable hypothesis examples, so that a test says the same on every machine."""

import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("varclass", deadline=None, derandomize=True, max_examples=20, database=None)
settings.load_profile("varclass")
