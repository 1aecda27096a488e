"""Every guide runs, says what its page says, and uses what a user may use."""

import ast
import contextlib
import io
import os
import re
import runpy
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import varclass
from varclass import metrics

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "guides"
GUIDES = sorted(path.stem for path in FOLDER.glob("*.py"))
PUBLIC = {"varclass": set(dir(varclass)), "varclass.metrics": set(metrics.__all__)}


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    return tmp_path_factory.mktemp("figures")


@pytest.fixture(scope="module")
def output(figures):
    """A function: what a guide prints. Each runs once, in this process, where torch is imported already."""

    @cache
    def run(name: str) -> str:
        script, given, printed = str(FOLDER / f"{name}.py"), sys.argv, io.StringIO()
        sys.argv = [script, str(figures)]
        try:
            with contextlib.redirect_stdout(printed):
                runpy.run_path(script, run_name="__main__")
        finally:
            sys.argv = given
        return printed.getvalue()

    return run


def numbers(text: str, pattern: str) -> list[float]:
    """The groups of every match, as numbers, in order."""
    found = [float(group) for match in re.finditer(pattern, text) for group in match.groups()]
    assert found, f"{pattern} is not in: {text}"
    return found


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_prints_numbers_and_draws_what_it_names(name, output, figures):
    printed = output(name)
    assert re.search(r"\d", printed)
    assert not re.search(r"\b(nan|inf)\b", printed)
    for drawn in re.findall(r'"(\w+\.(?:svg|png))"', (FOLDER / f"{name}.py").read_text()):
        assert (figures / drawn).stat().st_size > 5000


@pytest.mark.parametrize("name", ["quickstart", "swap_softmax"])
def test_the_digits_are_learned(name, output):
    assert min(numbers(output(name), r"accuracy (\S+\d)")) > 0.93


def test_converting_changes_no_prediction_and_calibration_helps(output):
    printed = output("convert_model")
    assert max(numbers(printed, r"largest change .*: (\S+)")) < 1e-4
    converted, tuned, calibrated = numbers(printed, r"test NLL (\S+),")
    assert calibrated < min(tuned, converted)


def test_held_out_data_repair_calibration(output):
    trained, calibrated, auto = numbers(output("calibration"), r"ECE (\S+)")
    assert trained > 0.1
    assert max(calibrated, auto) < trained / 2
    before, after, _ = numbers(output("calibration"), r"NLL (\S+)")
    assert after < before


def test_held_out_data_settle_where_test_data_are_about_best_told(output):
    """Accuracy and ECE of 1,197 samples; five standard errors of a share are 0.035."""
    printed = output("separation")
    (settled, trained), (ece,) = numbers(printed, r"separation (\S+); trained at (\S+)"), numbers(printed, r"ECE (\S+)")
    assert settled < trained
    assert ece < 0.035


def test_ordinary_inputs_are_seldom_flagged(output):
    (share,) = numbers(output("outliers"), r"test images with p < 0.05: (\d+)%")
    assert share <= 5 + 5 * 100 * (0.05 * 0.95 * (1 / 400 + 1 / 200)) ** 0.5  # five standard errors of test and reference


def test_more_labels_are_better(output):
    rows = numbers(output("few_labels"), r" (0\.\d+) / \d+\.\d+")
    for accuracies in (rows[::3], rows[1::3], rows[2::3]):
        assert accuracies[0] + 0.1 < accuracies[-1]


def test_the_estimated_label_prior_is_better_than_the_trained_one(output):
    accuracy, nll = numbers(output("label_shift"), r"accuracy (\S+),"), numbers(output("label_shift"), r"NLL (\S+)")
    assert accuracy[1] > accuracy[0]
    assert nll[2] < nll[0]
    assert nll[1] < nll[0]


def test_chunks_change_nothing_and_more_classes_need_more_distance(output):
    printed = output("many_classes")
    assert max(numbers(printed, r"differs by (\S+), its gradient by (\S+)")) < 1e-4
    rows = [[float(value) for value in line.split()[1:]] for line in printed.splitlines() if re.match(r" +10+ ", line)]
    assert len(rows) == 3
    for few, more in pairwise(rows):
        assert all(a >= b for a, b in zip(few, more, strict=True))
        assert few[1] > more[1] + 0.1


def test_gm_draws_latents_nearer_to_the_modes_than_vc(output):
    ce, gm, vc = numbers(output("latents"), r"sigma (\S+)")
    assert gm < vc < ce


def test_two_processes_train_the_model_of_one(output):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    script = str(FOLDER / "many_gpus.py")
    done = subprocess.run([*command, script], capture_output=True, text=True, check=True, timeout=120, env=environment)
    pattern = r"processes: (\d).* = (\S+), .* = (\S+), n"
    one, two = numbers(output("many_gpus"), pattern), numbers(done.stdout, pattern)
    assert (one[0], two[0]) == (1, 2)
    assert two[1:] == pytest.approx(one[1:], rel=1e-3)  # float32 rounding, grown over 70 steps


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_is_short_and_uses_public_names_only(name):
    code = (FOLDER / f"{name}.py").read_text()
    assert len(code.splitlines()) < 70
    tree = ast.parse(code)
    assert ast.get_docstring(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("varclass"):
            assert {alias.name for alias in node.names} <= PUBLIC.get(node.module, set())
        if isinstance(node, ast.Attribute) and not node.attr.startswith("__"):
            assert not node.attr.startswith("_") or ast.unparse(node) == "os._exit"
