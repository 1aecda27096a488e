"""The page of a recipe: claim, verdict, the paper's numbers beside ours, and how ours were made."""

import math
import re
from dataclasses import replace

import pytest

from varclass.paper.catalogue import RECIPES
from varclass.paper.findings import LOWER, Cell, Check, Finding
from varclass.paper.measured import Measured
from varclass.paper.page import page, write_page
from varclass.report.markup import tag

EVIL = '<script>alert(1)</script>"'


def rows(found):
    return found.sheet("the-paper-and-ours")


def test_it_has_the_claim_the_verdict_the_numbers_and_how_they_were_made(toy, measured, taken_apart):
    found = taken_apart(toy, measured())
    assert found.headings()[:3] == ["Claim", "Verdict, quick form", "Numbers"]
    assert found.headings()[-1] == "How it was made"
    assert "VC's ECE is below CE's (H1)" in re.sub(r"\s+", " ", found.text)
    assert "holds : holds in 1 of 1" in found.text
    assert "MNIST, lenet, quick: ECE of VC lower than CE's: holds, -1.01 points (-1.03 to -0.99, n = 3 seeds)" in found.text
    assert (
        "6 models, trained in 9 seconds on a CPU; varclass 0.1.0, torch 2.13.0; commit 0123456789ab with changes." in found.text
    )
    assert "varclass reproduce toy --full (not run yet)" in found.text


def test_the_papers_number_stands_beside_ours_with_interval_seeds_and_n(toy, measured, taken_apart):
    found = taken_apart(toy, measured())
    first = re.search(r"<tr><th scope=.row.>MNIST, lenet, quick</th>(.*?)</tr>", found.source)[1]
    assert re.findall(r">([^<]+)</td>", first) == ["CE", "accuracy %", "69.94 ± 0.2", "91.0 ± 2.5", "3", "100"]
    assert "The paper's ±: standard deviation." in found.text
    row = rows(found)[0]
    assert float(row["paper"]) == 0.6994
    assert row["kind of spread"] == "sd"
    assert float(row["ours"]) == pytest.approx(0.91)
    assert float(row["high"]) - float(row["ours"]) == pytest.approx(4.302653 * 0.01 / math.sqrt(3), rel=1e-6)
    assert [float(each.partition(":")[2]) for each in row["seed:value"].split()] == [0.9, 0.91, 0.92]
    assert rows(found)[2]["paper"] == ""  # the paper has no NLL


def test_a_number_of_the_paper_without_spread_has_its_own_digits(toy, measured, taken_apart):
    cells = re.findall(r">([^<]+)</td>", taken_apart(toy, measured()).source)
    assert "92" in cells
    assert "92.0" not in cells


def test_every_finding_can_be_downloaded(toy, measured, taken_apart):
    found = taken_apart(toy, measured())
    (row,) = found.sheet("verdict-quick-form-1")
    assert (row["verdict"], row["score"], row["says"], row["seeds"]) == ("holds", "ece", LOWER, "3")
    assert float(row["difference"]) == pytest.approx(-0.0101)
    assert float(row["low"]) < float(row["difference"]) < float(row["high"]) < 0
    assert found.source.count("<figure") + 2 == len(found.all("a", class_="csv"))


def test_quick_is_said_to_be_quick_and_full_is_not(toy, measured, taken_apart):
    assert "it is no measurement of the paper's models" in taken_apart(toy, measured()).text
    text = taken_apart(toy, measured(full=True)).text
    assert "no measurement" not in text
    assert "(not run yet)" in text  # the quick form


def test_forms_are_never_pooled(toy, measured, taken_apart):
    both = measured(better=-0.01).merged(measured(full=True).runs)
    found = taken_apart(toy, both)
    assert [title for title in found.headings() if title.startswith("Verdict")] == ["Verdict", "Verdict, quick form"]
    (full,), (quick,) = found.sheet("verdict-1"), found.sheet("verdict-quick-form-1")
    assert (full["verdict"], quick["verdict"]) == ("holds", "does not hold")
    assert {(row["where"], row["seeds"]) for row in rows(found)} == {("MNIST, lenet", "3"), ("MNIST, lenet, quick", "3")}


def test_two_experiments_share_no_id_and_no_download(toy, measured, taken_apart):
    found = taken_apart(toy, measured(experiments=("mnist/lenet", "svhn/lenet")))
    ids = [given["id"] for _, given in found.elements if "id" in given]
    assert len(ids) == len(set(ids))
    names = [given["download"] for given in found.all("a", class_="csv")]
    assert len(names) == len(set(names))
    assert "svhn-lenet-quick-scores.csv" in names
    targets = [given["href"][1:] for given in found.all("a") if given["href"].startswith("#")]
    assert set(targets) <= set(ids)
    assert len(targets) == len(set(targets)) == 6


def test_parts_of_one_heading_and_parts_without_are_still_told_apart(toy, measured, taken_apart):
    def drawn(_):
        same = [tag("div", tag("h2", "Same"), tag("p", text, id="x")) for text in ("1", "2")]
        return [same[0], None, same[1], tag("p", "bare")]

    found = taken_apart(replace(toy, figures=drawn), measured())
    assert found.headings()[3:6] == ["Same", "Same", "Figure"]
    ids = [given["id"] for _, given in found.elements if "id" in given]
    assert {"see-same", "same-x", "see-same-2", "same-2-x", "see-figure"} <= set(ids)


def test_the_page_asks_for_nothing(toy, measured, taken_apart):
    found = taken_apart(toy, measured())
    addresses = [given[name] for _, given in found.elements for name in ("src", "href") if name in given]
    assert all(address.startswith(("#", "data:")) for address in addresses)
    (policy,) = found.all("meta", **{"http-equiv": "Content-Security-Policy"})
    assert policy["content"].startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert not any(name.startswith("on") or name == "style" for _, given in found.elements for name in given)


def test_texts_are_escaped(toy, run, taken_apart):
    made = {"versions": {EVIL: EVIL}, "commit": EVIL, "device": {"name": EVIL}}
    checks = [Check(EVIL, "ece", EVIL, EVIL, LOWER, {0: 0.1}, {0: 0.2})]
    evil = replace(
        toy, title=EVIL, label=EVIL, claim=EVIL,
        cells=lambda measured: [Cell(EVIL, EVIL, "ece", {0: 0.1})],
        findings=lambda measured: [Finding(EVIL, checks, EVIL)],
    )  # fmt: skip
    found = taken_apart(evil, Measured("toy", (run(provenance=made),)))
    assert [given.get("type") for given in found.all("script")] == [None]
    assert "<script>alert" not in found.source
    assert found.text.count(EVIL) > 8


def test_no_number_and_an_infinite_one_are_said(toy, run, taken_apart):
    runs = [run(arm="ce", seed=seed, accuracy=math.nan, nll=math.inf) for seed in range(2)]
    found = taken_apart(toy, Measured("toy", tuple(runs)))
    cells = re.findall(r">([^<]+)</td>", found.source)
    assert "no data" in cells
    assert "infinite" in cells
    assert "nan" not in found.text.lower().split()
    assert "not measured" in found.text  # nothing to compare CE with


def test_one_seed_has_no_interval(toy, measured, taken_apart):
    found = taken_apart(toy, measured(seeds=1))
    assert "ECE of VC lower than CE's: -1.00 points; one seed has no interval" in found.text
    assert "one seed : one seed in 1 of 1" in found.text
    assert {(row["low"], row["note"]) for row in rows(found)} == {("nan", "n = 1: one seed has no interval")}
    shown = [cells[4] for cells in re.findall(r"<td.*?>(.*?)</td>" * 6, found.source) if cells[1] == "accuracy %"]
    assert all("±" not in each for each in shown)


def test_fewer_seeds_other_encoders_and_missing_models_are_said(toy, measured, run, taken_apart):
    held = measured(full=True).merged([run(arm="vc", seed=3, full=True)])
    found = taken_apart(toy, held)
    (row,) = found.sheet("schedules")
    assert row["seeds"] == "4 of 5 (CE 3)"
    assert row["the paper's encoder"] == "a larger one"
    assert (row["epochs"], row["batch"], row["lr"], row["training n"], row["held out n"]) == ("3", "64", "0.001", "900", "50")
    assert "Planned and not run: MNIST, lenet with GM; SVHN, lenet." in found.text


def test_settings_of_each_model_are_those_in_which_they_differ(toy, measured, taken_apart):
    found = taken_apart(toy, measured())
    assert "head.objective ce" in found.text
    assert "head.objective vc, head.beta 0.25" in found.text
    every = {(row["model"], row["setting"]): row["value"] for row in found.sheet("settings-of-each-model")}
    assert every["CE", "training.lr"] == "0.001"


def test_nothing_of_the_machine_is_told_but_its_name(toy, measured, taken_apart):
    assert "secret" not in taken_apart(toy, measured()).source


def test_many_checks_are_behind_a_heading(toy, measured, taken_apart):
    def many(count):
        checks = [Check(f"place {i}", "ece", "VC", "CE", LOWER, {0: 0.1, 1: 0.1}, {0: 0.2, 1: 0.2}) for i in range(count)]
        return taken_apart(replace(toy, findings=lambda measured: [Finding("It is so", checks)]), measured()).text

    assert "All 13 checks" in many(13)
    assert "All 12 checks" not in many(12)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_without_runs_says_so(name, taken_apart):
    recipe = RECIPES[name]
    found = taken_apart(recipe, Measured(name))
    assert found.headings() == ["Claim", "How it was made"]
    assert "Nothing has been run yet" in found.text
    assert f"varclass reproduce {name} --full (not run yet)" in found.text


def test_the_same_results_make_the_same_page(toy, measured):
    assert page(toy, measured()) == page(toy, measured())


def test_a_page_that_cannot_be_made_leaves_the_old_one(toy, measured, tmp_path):
    path = tmp_path / "toy.html"
    path.write_text("old")

    def fails(measured):
        raise KeyError("no such thing")

    with pytest.raises(KeyError):
        write_page(replace(toy, cells=fails), measured(), path)
    assert path.read_text() == "old"
    with pytest.raises(ValueError, match="must be a file"):
        write_page(toy, measured(), tmp_path)
