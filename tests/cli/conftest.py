"""The command line in this process, and a folder of trained runs."""

from dataclasses import dataclass

import pytest

from varclass.cli.app import run

SMALL = ["--encoder", "mlp", "--encoder-option", "hidden=[32]", "--encoder-option", "features=8", "--limit", "200"]


@dataclass(frozen=True)
class Result:
    code: int
    stdout: str
    stderr: str

    @property
    def error(self) -> str:
        """The one line that an error is."""
        assert self.code == 2, self
        assert self.stdout == ""
        (line,) = self.stderr.splitlines()
        assert line.startswith("error: ")
        return line.removeprefix("error: ")


@pytest.fixture
def call(capsys):
    """varclass with these arguments."""

    def invoke(*arguments) -> Result:
        capsys.readouterr()
        code = run([str(each) for each in arguments])
        return Result(code, *capsys.readouterr())

    return invoke


@pytest.fixture
def fit(call):
    """varclass fit of digits with a small encoder on the CPU, in a second."""

    def invoke(*options, data="digits") -> Result:
        return call("fit", data, *SMALL, "--epochs", 2, "--batch-size", 60, "--device", "cpu", *options)

    return invoke


@pytest.fixture(scope="session")
def runs_dir(tmp_path_factory):
    """Runs of three objectives and two seeds, two of them unfinished; not to be changed."""
    folder = tmp_path_factory.mktemp("runs")
    options = [*SMALL, "--batch-size", "60", "--device", "cpu", "--runs-dir", str(folder)]
    for objective, seed in (("ce", "0"), ("gm", "0"), ("vc", "0"), ("vc", "1")):
        assert run(["fit", "digits", *options, "--epochs", "2", "--objective", objective, "--seed", seed]) == 0
    assert run(["fit", "digits", *options, "--epochs", "3", "--optimizer", "sgd", "--lr", "1e30"]) == 2
    return folder
