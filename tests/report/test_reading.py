"""Folders that are no runs, or not evaluated, are refused in one line that says what to do."""

import json
import math
import subprocess
import sys

import pytest

from varclass.report.page import report
from varclass.report.reading import read_run


def refused(paths, tmp_path):
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        report(paths, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
    return str(caught.value)


def test_no_runs(tmp_path):
    assert refused([], tmp_path) == "expected at least one evaluated run; got none: varclass runs lists them"


def test_not_a_run(tmp_path):
    assert refused([tmp_path], tmp_path) == f"{tmp_path} is not a run: it has no spec.toml (varclass runs lists them)"


def test_not_evaluated_says_the_command(make, tmp_path):
    path = make("ce", 0)
    (path / "scores.json").unlink()
    assert refused([path], tmp_path) == f"{path} is not evaluated: varclass evaluate {path} --suite clean"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("scores.json", "{", "expected JSON"),
        ("scores.json", "[]", "expected a JSON object; got list"),
        ("scores.json", '{"format": 9, "rows": [1]}', "expected format 1; got 9"),
        ("scores.json", '{"format": 1, "rows": [{"suite": "clean"}]}', "expected the scores of a run"),
        ("spec.toml", "= 1", "expected TOML"),
        ("record.json", "{}", "expected task.classes; got none"),
    ],
)
def test_broken_files_are_named(make, tmp_path, name, text, message):
    path = make("ce", 0)
    (path / name).write_text(text)
    told = refused([path], tmp_path)
    assert str(path / name) in told
    assert message in told


def test_an_output_that_is_a_folder_is_refused(make, tmp_path):
    with pytest.raises(ValueError, match="output must be a file; got the folder"):
        report([make("ce", 0)], tmp_path)


def test_null_is_nan_and_a_history_cut_short_is_read_up_to_there(make):
    path = make("ce", 0)
    held = json.loads((path / "scores.json").read_text())
    held["rows"][0]["scores"]["ece"] = None
    (path / "scores.json").write_text(json.dumps(held))
    run = read_run(path)
    assert math.isnan(run.rows[0].scores["ece"])
    assert len(run.history) == 2


def test_the_package_needs_no_torch(make, tmp_path):
    code = (
        "import sys; from varclass.report import report; report(sys.argv[1:2], sys.argv[2]); "
        "assert not {'torch', 'matplotlib', 'sklearn', 'varclass.training.runs'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(make("vc", 0)), str(tmp_path / "page.html")], check=True, timeout=60)
