"""Which runs belong together, what they are called, and what they are compared with."""

import pytest

from varclass.report.groups import baseline_of, group_runs
from varclass.report.reading import read_runs


def grouped(paths):
    return group_runs(read_runs(paths))


def labels(paths):
    return [group.label for group in grouped(paths)]


def test_seeds_are_pooled_and_the_baseline_comes_first(make):
    groups = grouped([make("vc", 1), make("vc", 0), make("gm", 0), make("ce", 0), make("ce", 2)])
    assert [group.label for group in groups] == ["CE", "VC", "GM"]
    assert [sorted(group.runs) for group in groups] == [[0, 2], [0, 1], [0]]
    assert groups[1].first.seed == 0


def test_what_differs_is_in_the_label_and_what_does_not_is_not(make):
    one = make("vc", 0, settings={"training.lr": 0.1, "training.epochs": 8})
    two = make("vc", 0, settings={"training.lr": 0.01, "training.epochs": 8})
    assert labels([one, two]) == ["VC, lr 0.1", "VC, lr 0.01"]


def test_a_beta_names_a_run_only_among_runs_of_its_objective(make):
    plain = [make("ce", 0), make("vc", 0, settings={"head.beta": "1/D"})]
    assert labels(plain) == ["CE", "VC"]
    assert labels([*plain, make("vc", 0, settings={"head.beta": 1.0})]) == ["CE", "VC, beta 1/D", "VC, beta 1.0"]


def test_a_data_path_is_called_by_its_last_part(make):
    paths = [make("ce", 0, settings={"data.name": name}) for name in ("/some/where/cells.npz", "digits")]
    assert labels(paths) == ["CE, cells", "CE, digits"]


def test_training_sets_of_several_sizes_are_one_group_at_the_largest(make):
    small, large = make("ce", 0, limit=100, train=90), make("ce", 0)
    (group,) = grouped([large, small])
    assert [run.path for run in group.runs.values()] == [large]
    assert [[run.samples for run in runs.values()] for runs in group.sizes] == [[90], [1000]]


def test_folds_that_the_default_asks_where_little_is_held_out_are_no_other_data(make):
    folds = {"data.cross_fit": 5}
    few, many = {"limit": 50, "train": 50, "settings": folds}, {"limit": 500, "train": 450}
    ce = [make("ce", 0, limit=50, train=50), make("ce", 0, limit=500, train=450)]
    groups = grouped([*ce, make("pull", 0, **few), make("pull", 0, **many)])
    assert [group.label for group in groups] == ["CE", "default (pull)"]
    assert [len(group.sizes) for group in groups] == [2, 2]
    assert baseline_of(groups[1], groups) is groups[0]
    groups = grouped([ce[0], make("pull", 1, **few), make("pull", 1, limit=50, train=50)])
    assert [group.label for group in groups] == ["CE", "default (pull), cross fit 5", "default (pull)"]
    assert [baseline_of(group, groups) for group in groups[1:]] == [groups[0], groups[0]]


def test_a_group_without_the_largest_training_set_stands_aside(make):
    groups = grouped([make("ce", 0), make("ce", 0, limit=100, train=90), make("vc", 0, limit=100, train=90)])
    assert [len(group.runs) for group in groups] == [1, 0]
    assert baseline_of(groups[1], groups) is None


def test_the_baseline_is_ce_with_the_same_data_and_encoder(make):
    paths = [make(objective, 0, settings={"encoder.name": name}) for name in ("mlp", "lenet") for objective in ("vc", "ce")]
    groups = grouped(paths)
    found = {group.label: baseline_of(group, groups) for group in groups}
    assert found["VC, mlp"].label == "CE, mlp"
    assert found["VC, lenet"].label == "CE, lenet"
    assert found["CE, mlp"] is None


def test_of_several_baselines_the_one_most_like_the_group_is_taken(make):
    paths = [make(objective, 0, settings={"training.lr": lr}) for lr in (0.1, 0.01) for objective in ("ce", "vc")]
    groups = grouped(paths)
    found = {group.label: baseline_of(group, groups) for group in groups}
    assert found["VC, lr 0.01"].label == "CE, lr 0.01"


def test_without_ce_the_first_group_is_the_baseline(make):
    groups = grouped([make("gm", 0), make("vc", 0)])
    assert [baseline_of(group, groups) for group in groups] == [None, groups[0]]


def test_the_same_run_twice_is_one_and_a_copy_is_refused(make, tmp_path):
    path = make("ce", 0)
    assert len(read_runs([path, str(path), path / ".." / path.name])) == 1
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in path.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    with pytest.raises(ValueError, match="are the same run: settings and seed 0 agree"):
        grouped([path, copy])
