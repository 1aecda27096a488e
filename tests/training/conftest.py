"""Commands as processes of their own, a trained run that several tests look at, and what two runs are compared by."""

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from varclass.training.launch import Launch
from varclass.training.loop import fit
from varclass.training.runs import Run
from varclass.training.spec import RunSpec, from_mapping


@dataclass(frozen=True)
class Process:
    """One command."""

    server: "Server"
    pid: int
    folder: Path

    def wait(self) -> int:
        """The exit code; minus the signal if one killed it."""
        return self.server.ask({"wait": self.pid})

    def send(self, signum: int) -> None:
        os.kill(self.pid, signum)

    def frozen(self) -> bool:
        """Whether it has stopped, as `freeze_at` makes it, and waits for SIGCONT."""
        state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        assert state != "Z", "it ended before it stopped"
        return state == "T"

    @property
    def stdout(self) -> str:
        return (self.folder / "stdout").read_text()

    @property
    def stderr(self) -> str:
        return (self.folder / "stderr").read_text()


class Server:
    """The process of forking.py. Digits with a small encoder are what `fit` trains unless told otherwise."""

    digits = ("digits", "--limit", 200, "--encoder", "mlp")
    small = ("--encoder-option", "hidden=[32]", "--encoder-option", "features=8", "--batch-size", 60)

    def __init__(self, folders):
        self.folders = folders
        environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("forking.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(self, order) -> int:
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def start(self, *arguments, **order) -> Process:
        folder = self.folders.mktemp("command")
        held = {"arguments": [str(each) for each in arguments], "folder": str(folder)}
        return Process(self, self.ask(held | order), folder)

    def fit(self, *options, runs_dir, **order) -> Process:
        """Train digits, small: every step a checkpoint, unless the options say otherwise."""
        every = ("--runs-dir", runs_dir, "--device", "cpu", "--checkpoint-seconds", 0)
        return self.start("fit", *self.digits, *self.small, *every, *options, **order)

    def resume(self, run: Path, *options, **order) -> Process:
        return self.start("fit", "--resume", run, "--device", "cpu", "--checkpoint-seconds", 0, *options, **order)

    def fit_by_two(self, *options, runs_dir, **order) -> list[Process]:
        """The same in two processes, with what `accelerate launch --cpu --num_processes 2` sets."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "ACCELERATE_USE_CPU": "true"}
        sizes = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
        ranks = [{"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(2)]
        return [self.fit(*options, runs_dir=runs_dir, environment=meeting | sizes | rank, **order) for rank in ranks]


@pytest.fixture(scope="session")
def commands(tmp_path_factory):
    server = Server(tmp_path_factory)
    yield server
    server.process.stdin.close()
    server.process.wait(timeout=30)
    server.process.stdout.close()


@pytest.fixture(scope="session")
def the_run():
    """The one run in a folder of runs."""

    def find(runs_dir) -> Path:
        (path,) = (path for path in Path(runs_dir).iterdir() if path.is_dir())
        return path

    return find


@pytest.fixture(scope="session")
def outcome():
    """All that a finished run says, but for the clock: weights and history to the byte, the results of its record."""

    def read(path):
        record = Run.open(path).record
        assert record["status"] == "finished", record
        assert not list(path.rglob("*.partial"))
        assert not (path / "checkpoints").exists()
        results = {name: record[name] for name in ("validation", "best_epoch", "steps", "epochs", "sha256", "head", "error")}
        return (path / "model.safetensors").read_bytes(), (path / "history.jsonl").read_bytes(), results

    return read


@pytest.fixture(scope="session")
def until():
    """Wait for something to become true."""

    def wait(happened, seconds=60):
        end = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < end, "it did not happen"
            time.sleep(0.001)

    return wait


@pytest.fixture(scope="session")
def spec():
    """A spec from its sections: spec(head={"objective": "vc"}); digits in one second, unless told otherwise."""

    def make(seed=0, **sections) -> RunSpec:
        held = {
            "data": {"limit": 200},
            "encoder": {"name": "mlp", "options": {"hidden": [32], "features": 8}},
            "head": {},
            "training": {"epochs": 2, "batch_size": 60},
        }
        return from_mapping({"seed": seed} | {name: held[name] | sections.get(name, {}) for name in held})

    return make


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Run:
    """A VC run on all of digits that others look at and do not change."""
    values = {"encoder": {"name": "mlp"}, "head": {"objective": "vc"}, "training": {"epochs": 3}, "seed": 5}
    return fit(from_mapping(values), tmp_path_factory.mktemp("trained"), launch=Launch(device="cpu"))
