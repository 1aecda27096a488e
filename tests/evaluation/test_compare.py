"""Objectives x seeds: fair plans, and a comparison that goes on where it was stopped."""

import pytest

from varclass.evaluation import compare as comparing
from varclass.evaluation.compare import compare, plan
from varclass.evaluation.scorebook import read_rows
from varclass.evaluation.subject import Options
from varclass.training.spec import EncoderSpec, RunSpec, TrainingSpec

SPEC = RunSpec(encoder=EncoderSpec("mlp", options={"hidden": [16]}), training=TrainingSpec(epochs=1))


def test_a_plan_varies_objective_seed_and_size_and_nothing_else():
    specs = plan(SPEC, ["ce", "vc"], range(2), [100, None])
    assert [(s.seed, s.data.limit, s.head.objective) for s in specs] == [
        (0, 100, "ce"), (0, 100, "vc"), (0, None, "ce"), (0, None, "vc"),
        (1, 100, "ce"), (1, 100, "vc"), (1, None, "ce"), (1, None, "vc"),
    ]  # fmt: skip
    assert all(s.encoder == SPEC.encoder and s.training == SPEC.training for s in specs)


@pytest.mark.parametrize(("objectives", "seeds"), [([], [0]), (["ce", "ce"], [0]), (["ce"], [])])
def test_an_empty_or_doubled_plan_is_refused(objectives, seeds):
    with pytest.raises(ValueError, match="different values"):
        plan(SPEC, objectives, seeds, [None])


def test_a_comparison_killed_half_way_goes_on_and_does_nothing_twice(tmp_path, monkeypatch):
    specs = plan(SPEC, ["ce", "vc"], range(2), [200])
    evaluated, real = [], comparing.evaluate

    def killed_at_the_third(run, *arguments, **options):
        if len(evaluated) == 2:
            raise KeyboardInterrupt
        evaluated.append(run.path.name)
        return real(run, *arguments, **options)

    monkeypatch.setattr(comparing, "evaluate", killed_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        compare(specs, ["clean"], Options(), tmp_path)
    monkeypatch.setattr(comparing, "evaluate", real)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/model.safetensors")}
    scores = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/scores.json")}
    assert (len(before), len(scores)) == (3, 2)
    runs = compare(specs, ["clean"], Options(), tmp_path)
    assert len({run.path for run in runs}) == 4
    assert all(read_rows(run) for run in runs)
    assert all(path.stat().st_mtime_ns == when for path, when in (before | scores).items())


def test_what_no_suite_can_do_is_said_before_anything_is_trained(tmp_path):
    with pytest.raises(ValueError, match="the ood suite needs data sets"):
        compare(plan(SPEC, ["ce"], range(2), [200]), ["clean", "ood"], Options(), tmp_path)
    assert list(tmp_path.iterdir()) == []
