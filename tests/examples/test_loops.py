"""The loops in examples/ run, learn, are short, and are what the documentation shows."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOOPS = ("plain_loop", "accelerate_loop", "lightning_digits")


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_learns_digits(name):
    if name == "lightning_digits" and find_spec("lightning") is None:
        pytest.skip("pip install 'varclass[lightning]'")
    command = [sys.executable, f"examples/{name}.py"]
    environment = {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True, timeout=120, env=environment)
    accuracy, nll = re.fullmatch(r"accuracy (\S+), NLL (\S+), n = 600", done.stdout.strip().splitlines()[-1]).groups()
    assert float(accuracy) > 0.93
    assert float(nll) < 0.25


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_is_under_40_lines_and_the_page_shows_it(name):
    code = (ROOT / "examples" / f"{name}.py").read_text()
    assert len(code.splitlines()) < 40
    shown = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "loops.md").read_text(), re.S)
    assert code in shown
