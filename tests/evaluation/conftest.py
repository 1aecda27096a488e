"""One trained run on digits, copied for each test that writes beside it."""

import shutil

import pytest

from varclass.training.loop import fit
from varclass.training.runs import Run
from varclass.training.spec import EncoderSpec, HeadSpec, RunSpec, TrainingSpec


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Run:
    spec = RunSpec(
        encoder=EncoderSpec("mlp", dropout=0.2, options={"hidden": [32], "features": 8}),
        head=HeadSpec("vc"),
        training=TrainingSpec(epochs=8, lr=0.01),
    )
    return fit(spec, tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="session")
def evaluated(trained, tmp_path_factory) -> Run:
    """A copy that every suite of the session has written beside."""
    return Run(shutil.copytree(trained.path, tmp_path_factory.mktemp("evaluated") / trained.path.name))


@pytest.fixture
def run(trained, tmp_path) -> Run:
    return Run(shutil.copytree(trained.path, tmp_path / trained.path.name))
