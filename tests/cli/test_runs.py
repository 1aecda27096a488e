"""varclass runs: the list, filtered and sorted, and one run."""

import json
import shutil

import pytest

from varclass.training.runs import Run


@pytest.fixture
def rows(call, runs_dir):
    def read(*options):
        result = call("runs", "--runs-dir", runs_dir, "--json", *options)
        assert result.code == 0, result.stderr
        return json.loads(result.stdout, parse_constant=pytest.fail)

    return read


def test_every_run_is_listed_with_what_it_is(rows, runs_dir):
    listed = {row["id"]: row for row in rows()}
    assert set(listed) == {path.name for path in runs_dir.iterdir()}
    for name, row in listed.items():
        run = Run.open(runs_dir / name)
        assert row["path"] == str(run.path)
        assert row["status"] == run.record["status"]
        assert (row["data"], row["encoder"]) == ("digits", "mlp")
        assert row["objective"] == run.spec.head.objective
        assert row["nll"] == (run.record["validation"]["nll"] if run.finished else None)


def test_the_table_has_the_same_numbers(call, rows, runs_dir):
    lines = call("runs", "--runs-dir", runs_dir).stdout.splitlines()
    assert lines[0].split() == ["id", "status", "data", "encoder", "objective", "seed", "epochs", "nll", "accuracy", "seconds"]
    cells = {line.split()[0]: line.split() for line in lines[1:]}
    for row in rows():
        shown = "-" if row["nll"] is None else f"{row['nll']:.4g}"
        assert cells[row["id"]][1:8] == [
            row["status"],
            "digits",
            "mlp",
            row["objective"],
            str(row["seed"]),
            str(row["epochs"]),
            shown,
        ]


def test_where_keeps_what_matches_every_condition(rows):
    assert [row["objective"] for row in rows("--where", "objective=gm")] == ["gm"]
    found = rows("--where", "objective=vc", "--where", "seed=1")
    assert [(row["objective"], row["seed"]) for row in found] == [("vc", 1)]
    assert [row["status"] for row in rows("--where", "status=failed")] == ["failed"]
    assert rows("--where", "seed=9") == []


def test_sort_is_by_number_either_way_and_what_has_none_comes_last(rows):
    for sort, reverse in (("nll", False), ("-nll", True)):
        found = [row["nll"] for row in rows("--sort", sort)]
        assert found[-1] is None
        assert found[:-1] == sorted(found[:-1], reverse=reverse)
        assert len(set(found)) == 5


def test_one_run_by_its_id_the_beginning_of_it_or_its_folder(call, runs_dir):
    run = Run.open(next(runs_dir.glob("*-gm-*")))
    by_id = call("runs", run.path.name, "--runs-dir", runs_dir, "--json")
    assert json.loads(by_id.stdout) == {"path": str(run.path), **run.record, "history": run.history.rows()}
    assert call("runs", "digits-mlp-gm", "--runs-dir", runs_dir, "--json").stdout == by_id.stdout
    assert call("runs", run.path, "--json").stdout == by_id.stdout
    shown = call("runs", run.path).stdout
    assert str(run.path) in shown
    assert (run.path / "spec.toml").read_text() in shown
    assert f"\nhead: VariationalHead({run.record['head'].splitlines()[1].strip()})\n" in shown
    scores = [row["validation"]["nll"] for row in run.history.rows() if "validation" in row]
    table = [line.split() for line in shown.splitlines()[-2:]]
    assert [(row[0], row[1]) for row in table] == [("1", f"{scores[0]:.4g}"), ("2", f"{scores[1]:.4g}")]


def test_mistakes_are_one_line(call, runs_dir, tmp_path):
    ambiguous = call("runs", "digits-mlp-vc-s", "--runs-dir", runs_dir).error
    assert ambiguous.startswith(f"expected one run in {runs_dir} whose id begins with 'digits-mlp-vc-s'; got digits-mlp-vc-s0-")
    assert "digits-mlp-vc-s1-" in ambiguous
    assert call("runs", "mnist", "--runs-dir", runs_dir).error.endswith("whose id begins with 'mnist'; got none")
    assert "--where must name one of id, status" in call("runs", "--where", "speed=1", "--runs-dir", runs_dir).error
    assert "--where must be column=value; got 'seed'" in call("runs", "--where", "seed", "--runs-dir", runs_dir).error
    assert "--sort must name one of id, status" in call("runs", "--sort", "speed", "--runs-dir", runs_dir).error
    broken = shutil.copytree(next(runs_dir.glob("*-gm-*")), tmp_path / "broken")
    (broken / "record.json").write_text("{")
    assert f"{broken / 'record.json'}: expected JSON" in call("runs", "broken", "--runs-dir", tmp_path).error


def test_no_runs_is_no_error(call, tmp_path):
    assert call("runs", "--runs-dir", tmp_path / "none").stdout.startswith(f"no runs in {tmp_path / 'none'}: ")
    assert json.loads(call("runs", "--runs-dir", tmp_path, "--json").stdout) == []


def test_a_killed_run_is_not_running_and_one_that_trains_is(call, runs_dir, tmp_path):
    source = next(path for path in runs_dir.iterdir() if Run(path).finished)
    run = Run(shutil.copytree(source, tmp_path / source.name))
    run.update(status="running")
    with run.locked():
        assert run.status == "running"
    listed = json.loads(call("runs", "--runs-dir", tmp_path, "--json").stdout)
    assert [row["status"] for row in listed] == ["stopped"]


def test_a_damaged_record_does_not_hide_the_other_runs(call, runs_dir, tmp_path):
    source = next(path for path in runs_dir.iterdir() if Run(path).finished)
    shutil.copytree(source, tmp_path / "good")
    (shutil.copytree(source, tmp_path / "bad") / "record.json").write_text("{")
    listed = json.loads(call("runs", "--runs-dir", tmp_path, "--json").stdout)
    assert [(row["id"], row["status"]) for row in listed] == [("bad", "damaged"), ("good", "finished")]
