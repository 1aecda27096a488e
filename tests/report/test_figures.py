"""Every table and figure says what the scores say: its CSV is compared with the rows it came from."""

import json

import pytest

from varclass.metrics.intervals import over_seeds, paired_difference
from varclass.report.axes import linear, logarithmic, slots
from varclass.report.panel import LEFT, RIGHT, Panel

SEEDS = ("0", "1", "2")
ACCURACY = {"CE": [0.90, 0.91, 0.92], "VC": [0.93, 0.94, 0.945]}


def only(rows, **match):
    return [row for row in rows if all(row[name] == value for name, value in match.items())]


@pytest.mark.parametrize("model", ["CE", "VC"])
def test_the_table_has_mean_and_interval_over_seeds(whole, model):
    (row,) = only(whole.sheet("scores"), model=model, method="as trained", score="accuracy")
    found = over_seeds(ACCURACY[model])
    numbers = [float(row[name]) for name in ("mean", "low", "high", "sd")]
    assert numbers == pytest.approx([found.mean, found.low, found.high, found.sd], rel=1e-12)
    assert [row[name] for name in ("seeds", "n", "bins", "split")] == ["3", "100", "2", "test"]
    assert row["seed:value"] == " ".join(f"{seed}:{value!r}" for seed, value in zip(SEEDS, ACCURACY[model], strict=True))
    assert f"{100 * found.mean:.1f} ± {100 * (found.high - found.mean):.1f}" in whole.text


def test_repairs_stand_beside_what_was_trained(whole):
    assert {row["method"] for row in whole.sheet("scores")} == {"as trained", "temperature scaling"}
    (row,) = only(whole.sheet("scores"), model="CE", method="temperature scaling", score="ece")
    assert float(row["mean"]) == pytest.approx(0.01)


def test_paired_differences_are_those_over_seeds(whole):
    (row,) = only(whole.sheet("paired-differences"), model="VC", score="accuracy", where="clean")
    found = paired_difference(ACCURACY["VC"], ACCURACY["CE"])
    numbers = [float(row[name]) for name in ("difference", "low", "high", "sd")]
    assert numbers == pytest.approx([found.mean, found.low, found.high, found.sd], rel=1e-12)
    assert [row["seeds"], row["verdict"]] == ["0, 1, 2", "better"]


def test_the_comparisons_cover_every_suite(whole):
    places = {row["where"] for row in whole.sheet("paired-differences")}
    assert places == {
        "clean",
        "clean, against CE after temperature scaling",
        "mean over 3 corruptions at severities 1, 5",
        "FGSM at 0.05",
        "PGD at 0.05",
        "outliers noise.npz, each by its best score, max p(y|x)",
    }


def test_reliability_is_that_of_the_lowest_seed(whole):
    (row,) = only(whole.sheet("reliability"), model="VC", method="raw", lower="0.5")
    assert [row[name] for name in ("seed", "n", "count", "confidence", "accuracy")] == ["0", "100", "100", "0.9", "0.93"]


def test_severity_has_every_type(whole):
    rows = only(whole.sheet("severity"), model="CE", method="raw", score="accuracy")
    assert {(row["type"], row["severity"]) for row in rows} == {(t, s) for t in ("fog", "snow", "blur") for s in ("1", "5")}
    (row,) = only(rows, type="blur", severity="5")
    assert float(row["mean"]) == pytest.approx(0.91 - 0.15)
    assert len(row["seed:value"].split()) == 3


def test_attacks_outliers_and_low_data_are_the_scores(whole):
    (row,) = only(whole.sheet("accuracy-against-magnitude"), model="VC", panel="accuracy, PGD", magnitude="0.1")
    found = over_seeds([value - 0.3 for value in ACCURACY["VC"]])
    assert [float(row[name]) for name in ("mean", "low", "high")] == pytest.approx([found.mean, found.low, found.high])
    points = only(whole.sheet("roc-curves-noise-npz"), model="CE", score="log_evidence")
    assert [(row["fpr"], row["tpr"]) for row in points] == [("0.0", "0.0"), ("0.2", "0.9"), ("1.0", "1.0")]
    bins = only(whole.sheet("score-histograms-noise-npz"), model="CE", score="log_evidence")
    assert [(row["low"], row["high"], row["inside"], row["outside"]) for row in bins] == [
        ("-2.0", "-1.0", "10", "40"),
        ("-1.0", "0.0", "90", "10"),
    ]
    curve = only(whole.sheet("low-data-curves"), model="CE", panel="NLL")
    assert [(float(row["training samples"]), float(row["mean"])) for row in curve] == [
        (90, pytest.approx(1.1)),
        (1000, pytest.approx(0.31)),
    ]


def test_latents_mistakes_and_training_are_what_was_written(whole):
    points = only(whole.sheet("latents"), model="VC")
    assert [(row["index"], row["label"], row["predicted"], row["confidence"], row["log p(z)"]) for row in points] == [
        ("3", "cat", "cat", "0.99", "-1.25"),
        ("5", "dog", "dog", "0.75", "-2.5"),
        ("6", "owl", "owl", "0.5", ""),
        ("7", "dog", "cat", "0.875", "-3.5"),
    ]
    (mistake,) = only(whole.sheet("most-confident-mistakes"), model="VC")
    assert (mistake["label"], mistake["predicted"], mistake["confidence"]) == ("dog", "cat", "0.875")
    logged = only(whole.sheet("training-curves"), model="CE", quantity="posterior")
    assert [(row["seed"], row["value"]) for row in logged] == [("0", "1.0"), ("1", "2.0"), ("2", "3.0")]


def test_only_conditions_that_all_runs_share_are_averaged(make, page):
    full, part = make("ce", 0), make("vc", 0)
    held = json.loads((part / "scores.json").read_text())
    held["rows"] = [row for row in held["rows"] if row["condition"].get("severity") != 5]
    (part / "scores.json").write_text(json.dumps(held))
    rows = only(page([full, part]).sheet("paired-differences"), where="mean over 3 corruptions at severities 1", score="nll")
    assert [row["difference"] for row in rows] == ["0.0"]


def test_axes_end_at_round_numbers_and_keep_their_limits():
    assert [text for _, text in linear("", [0.013, 0.087]).ticks] == ["0.00", "0.02", "0.04", "0.06", "0.08", "0.10"]
    assert linear("", [0.95, 0.999], True, (0, 1)).high == 1
    assert linear("", [0.001, 0.02], within=(0, float("inf"))).low == 0
    assert linear("", [3.0, 3.0]).low < 3 < linear("", [3.0, 3.0]).high
    assert linear("", [float("nan")]).ticks
    assert [text for _, text in logarithmic("", [100, 1000, 1001]).ticks] == ["100", "1000", ""]
    assert slots("", []).high > slots("", []).low


def test_marks_lie_where_their_values_are():
    panel = Panel(linear("", [0, 1]), linear("", [0, 10]), width=200, height=100)
    assert panel.at(0, 0) == (LEFT, 60)
    assert panel.at(1, 10) == (200 - RIGHT, 8)
    assert panel.at(2, 20) == panel.at(1, 10)  # cut off at the edge
    panel.line([(0, float("nan"))], 0)
    panel.whisker(0, float("nan"), 1, 0)
    panel.box(0, 1, [float("nan")], 0)
    assert panel.marks == []
