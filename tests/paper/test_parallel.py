"""Several models at once give the numbers of one after the other, and stop as one."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from varclass.paper import parallel
from varclass.paper.measured import read_measured
from varclass.paper.measuring import Place
from varclass.paper.recipe import Experiment, Recipe
from varclass.paper.running import Request, reproduce
from varclass.training.interruption import Interrupted

SMALL = {"data.limit": 200, "training.epochs": 1, "encoder.options": {"hidden": [16], "features": 8}}


def nothing(measured):
    return []


CLEAN = Recipe("toy", "tab:x", "A table", "A claim", (), (), nothing, nothing)
CLEAN = replace(CLEAN, quick=(Experiment("digits", "mlp", ("ce", "gm"), 2, ("clean",), changes=SMALL),))


def scores(measured):
    return {(run.arm, run.seed, row.method): row.scores for run in measured for row in run.rows}


def test_the_numbers_are_those_of_one_after_the_other(tmp_path):
    alone = reproduce([CLEAN], Request(), Place(tmp_path / "a", tmp_path / "a-runs"))["toy"]
    ended = []
    place = Place(tmp_path / "b", tmp_path / "b-runs", processes=2, keep_runs=False)
    both = reproduce([CLEAN], Request(), place, began=lambda *each: ended.append(each[:2]))["toy"]
    assert scores(both) == scores(alone)
    assert ended == [(0, 4), (1, 4), (2, 4), (3, 4)]
    assert not any((tmp_path / "b-runs").iterdir())
    assert len(read_measured(tmp_path / "b" / "toy.json", "toy").runs) == 4


def test_what_is_wrong_in_a_process_is_said_by_the_first(tmp_path):
    wrong = replace(CLEAN, quick=(replace(CLEAN.quick[0], suites=("nonsense",)),))
    with pytest.raises(ValueError, match="nonsense"):
        reproduce([wrong], Request(seeds=1), Place(tmp_path / "a", tmp_path / "runs", processes=2))


def test_a_process_that_dies_is_said_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "_run", die)
    with pytest.raises(ValueError, match="one of 2 processes died, maybe for want of memory: take fewer"):
        reproduce([CLEAN], Request(seeds=1), Place(tmp_path / "a", tmp_path / "runs", processes=2))


def test_one_process_that_is_told_to_stop_stops_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "_run", leave)
    with pytest.raises(Interrupted, match="SIGTERM"):
        reproduce([CLEAN], Request(seeds=1), Place(tmp_path / "a", tmp_path / "runs", processes=2))


def leave(task):
    return parallel.Done()


def die(task):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_told_to_stop_leaves_its_work_and_takes_no_other(monkeypatch):
    monkeypatch.setattr(parallel._Here, "stopped", False)
    monkeypatch.setattr(parallel._Here, "busy", False)

    def interrupted(task, reporter, warn):
        parallel._stop(signal.SIGTERM, None)
        yield

    monkeypatch.setattr(parallel, "train_and_measure", interrupted)
    assert parallel._run(None) == parallel.Done()
    assert parallel._Here.stopped
    monkeypatch.setattr(parallel, "train_and_measure", None)  # not called again
    assert parallel._run(None) == parallel.Done()
    parallel._stop(signal.SIGTERM, None)  # idle: no harm
    monkeypatch.setattr(parallel._Here, "busy", True)
    with pytest.raises(Interrupted):
        parallel._stop(signal.SIGTERM, None)


LONG = """
import sys
from dataclasses import replace
sys.path.insert(0, {folder!r})
from pathlib import Path
from test_parallel import CLEAN
from varclass.paper.measuring import Place
from varclass.paper.running import Request, reproduce
from varclass.training.interruption import Interrupted

if __name__ == "__main__":
    changes = dict(CLEAN.quick[0].changes) | {{"training.epochs": 100000}}
    long = replace(CLEAN, quick=(replace(CLEAN.quick[0], changes=changes),))
    try:
        reproduce([long], Request(), Place(Path("results"), Path("runs"), processes=2))
    except Interrupted as interrupted:
        sys.exit(interrupted.exit_code)
"""


def test_a_signal_stops_them_all_and_each_has_saved(tmp_path):
    script = tmp_path / "long.py"
    script.write_text(LONG.format(folder=os.path.dirname(__file__)))
    process = subprocess.Popen([sys.executable, str(script)], cwd=tmp_path, start_new_session=True)
    try:
        limit = time.monotonic() + 90
        while len(list(tmp_path.glob("runs/*/history.jsonl"))) < 2 and time.monotonic() < limit:
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 128 + signal.SIGINT
    finally:
        process.kill()
    runs = [path.parent for path in tmp_path.glob("runs/*/history.jsonl")]
    assert len(runs) == 2  # those in line were not begun
    assert all(any(run.glob("*.safetensors")) or any(run.glob("checkpoint*")) for run in runs)
