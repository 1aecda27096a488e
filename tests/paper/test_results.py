"""What is committed in words is what is committed in numbers: docs/results.md and the README's block."""

import json
import math
import os
import re
import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from varclass.metrics.intervals import Interval
from varclass.paper.catalogue import RECIPES
from varclass.paper.conclusions import conclude
from varclass.paper.default import COLUMNS, TEXTS, comparison, targets
from varclass.paper.findings import FAILS, HOLDS, HYPOTHESES, NO_DATA, ONE_SEED
from varclass.paper.measured import Measured
from varclass.paper.picture import PICTURE, Mark, rows
from varclass.paper.readme import END, NONE, START, default_numbers, readme_block, with_block
from varclass.paper.tables import LONGEST, recipe_section, results_page, side_by_side

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "results" / "render.py"
PRINTED = "import runpy, sys; from pathlib import Path; print(runpy.run_path(sys.argv[1])['rendered'](Path(sys.argv[2])))"


@pytest.fixture(scope="module")
def rendered():
    return runpy.run_path(str(SCRIPT))["rendered"]


@pytest.fixture
def checkout(tmp_path):
    """A README with marks, and nothing else."""
    (tmp_path / "README.md").write_text(f"before\n{START}\nold\n{END}\nafter\n")
    return tmp_path


def columns(line):
    return len(re.findall(r"(?<!\\)\|", line))


def test_what_is_committed_is_what_the_results_give(rendered):
    for path, text in rendered().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} differs from the results: run `make results`"


def test_every_committed_result_has_a_recipe():
    assert {path.stem for path in (ROOT / "results" / "paper").glob("*.json")} <= set(RECIPES)


def test_it_writes_those_files_alone_and_between_the_marks(rendered, checkout):
    found = rendered(checkout)
    assert list(found) == [checkout / "docs" / "results.md", checkout / "docs" / PICTURE, checkout / "README.md"]
    assert found[checkout / "README.md"] == f"before\n{START}\n{NONE}\n{END}\nafter\n"


def test_the_comparisons_have_the_first_table_of_what_was_measured_and_keep_their_words(rendered, checkout):
    page = checkout / "docs" / "comparisons.md"
    (checkout / "docs").mkdir()
    (checkout / "results").mkdir()
    page.write_text(f"words\n{START}\n{END}\n")
    (checkout / "results" / "minilm.md").write_text("said\n\n| a |\n|---|\n\n| b |\n")
    assert rendered(checkout)[page] == f"words\n{START}\n| a |\n|---|\n{END}\n"


def test_without_results_it_names_the_commands(rendered, checkout):
    text = rendered(checkout)[checkout / "docs" / "results.md"]
    for name in RECIPES:
        assert f"| `varclass reproduce {name}` | `varclass reproduce {name} --full` |" in text
    assert text.count(f"**{NO_DATA}**") == len(HYPOTHESES)


def test_other_results_give_another_text(rendered, checkout, run):
    before = rendered(checkout)
    name = "adversarial"
    found = Measured(name, (run("mnist/lenet", "ce"),))
    found.save(checkout / "results" / "paper" / f"{name}.json")
    once = rendered(checkout)
    assert all(once[path] != text for path, text in before.items() if path.name != PICTURE)
    assert "MNIST, lenet, quick: CE; 1 seed," in once[checkout / "docs" / "results.md"]


def test_the_text_does_not_depend_on_the_order_of_hashes(checkout, measured, run):
    name = "adversarial"
    measured(name, ("mnist/lenet", "cifar10/wrn-28-10"), full=True).save(checkout / "results" / "paper" / f"{name}.json")
    command = [sys.executable, "-c", PRINTED, str(SCRIPT), str(checkout)]
    texts = {
        subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


def test_a_section_has_the_claim_its_verdict_the_numbers_and_what_it_ran_on(toy, measured):
    text = recipe_section(toy, measured(full=True))
    assert text.startswith("## A toy\n\ntab:toy: VC's ECE is below CE's.\n")
    assert "- VC's ECE is below CE's (H1): **holds** (holds in 1 of 1)\n  - MNIST, lenet: ECE of VC lower" in text
    assert "| MNIST, lenet | CE | accuracy % | 69.94 ± 0.2 | 91.0 ± 2.5 | 3 | 100 |" in text
    assert "| MNIST, lenet | VC | accuracy % | 92 | 91.0 ± 2.5 | 3 | 100 |" in text
    assert (
        "- MNIST, lenet in the place of a larger one: CE / VC; 3 of 5 seeds, 900 training samples and 50 held out, 3 epochs"
        in text
    )
    assert "fp32; beta: VC 0.25" in text
    assert "a CPU; varclass 0.1.0, torch 2.13.0; commit 0123456789ab with changes." in text
    assert "Planned and not run: MNIST, lenet with GM; SVHN, lenet." in text
    assert "Quick form" not in text
    assert "Quick form" in recipe_section(toy, measured())
    assert "secret" not in text


def test_pipes_in_a_text_do_not_break_a_table(toy, measured):
    def cells(found):
        return [replace(cell, where="p(y|x) <b>", arm="a|b") for cell in toy.cells(found)]

    lines = [line for line in recipe_section(replace(toy, cells=cells), measured()).splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 6
    assert {columns(line) for line in lines} == {8}
    assert r"p(y\|x) \<b\>" in lines[2]


def test_a_long_table_has_models_side_by_side_and_says_where_the_rest_is(toy, measured):
    places = tuple(f"set{i}/lenet" for i in range(25))
    found = measured(experiments=places, full=True)
    assert len(toy.cells(found)) == 150 > LONGEST
    text = recipe_section(toy, found)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert lines[0] == "| where | score | CE | VC | seeds | n |"
    assert lines[2] == "| set0, lenet | accuracy % | 91.0 ± 2.5 (paper 69.94 ± 0.2) | 91.0 ± 2.5 (paper 92) | 3 | 100 |"
    assert len(lines) == 2 + LONGEST
    assert f"The first {LONGEST} of 75 rows" in text
    assert "`varclass reproduce toy --merge results/paper/toy.json`" in text
    assert "ECE of VC lower" not in text  # 25 checks are counted, not listed
    assert "**holds** (holds in 25 of 25)" in text


def test_of_many_models_the_scores_stand_side_by_side(toy, measured):
    cells = [replace(cell, arm=f"{cell.arm} {i}") for i in range(4) for cell in toy.cells(measured())]
    names, rows = side_by_side(cells)
    assert names == ("where", "model", "accuracy %", "ECE %", "NLL", "seeds", "n")
    assert len(rows) == 8
    assert rows[0][:2] == ["MNIST, lenet, quick", "CE 0"]
    assert rows[0][4:] == [".300 ± .000", "3", "100"]


def test_hypotheses_are_decided_by_full_runs_where_there_are_any(toy, other, measured):
    quick, full = measured(better=-0.01), measured(full=True)
    found = {
        each.hypothesis: each for each in conclude([(toy, quick.merged(full.runs)), (other, measured("other", better=-0.01))])
    }
    assert (found["H1"].verdict, found["H1"].quick, found["H1"].recipes) == (HOLDS, False, ("toy",))
    assert (found["H2"].verdict, found["H2"].quick, found["H2"].recipes) == (FAILS, True, ("other",))
    assert found["H3"].verdict == NO_DATA
    assert list(found) == list(HYPOTHESES)


def test_one_failure_in_one_recipe_decides_a_hypothesis(toy, measured):
    again = replace(toy, name="again")
    (first, *_) = conclude([(toy, measured(full=True)), (again, measured("again", full=True, better=-0.01))])
    assert (first.verdict, first.counts, first.recipes) == (FAILS, "holds in 1 of 2, does not hold in 1", ("toy", "again"))
    (first, *_) = conclude([(toy, measured(seeds=1))])
    assert (first.verdict, first.quick) == (ONE_SEED, True)


def test_what_claims_nothing_comes_last(toy, measured):
    silent = replace(toy, name="silent", title="Silent", findings=lambda measured: [])
    text = results_page({"silent": silent, "toy": toy}, {"silent": measured("silent"), "toy": measured()})
    assert re.findall(r"^## (.*)$", text, re.M) == ["A toy", "Silent", "The paper's hypotheses"]


def test_the_readme_has_a_line_for_each_hypothesis(toy, measured):
    lines = readme_block({"toy": toy}, {"toy": measured(full=True)}).splitlines()
    assert "- H1, VC improves uncertainty estimation: the model is better calibrated: **holds** (holds in 1 of 1)" in lines
    assert sum(line.startswith("- H") for line in lines) == len(HYPOTHESES)
    assert START not in lines


def test_the_readme_has_the_default_in_one_row_a_place_with_the_best_in_bold(run):
    def runs(arm, **scores):
        return [run("cifar100/resnet-18", arm, seed, full=True, **scores) for seed in range(2)]

    held = [*runs("ce", accuracy=0.75, nll=1.0, ece=0.08), *runs("pull", accuracy=0.74, nll=0.9, ece=0.02)]
    _, picture, shown, goals = default_numbers({"calibration": Measured("calibration", tuple(held))})
    assert picture.endswith(f"(docs/{PICTURE})")
    (line,) = (line for line in shown.splitlines() if line.startswith("| CIFAR"))
    cells = [cell.strip() for cell in line.split("|")[1:-1]]
    assert cells == [
        "CIFAR-100, resnet-18",
        "**75.0±0.0** / 1.000±0.000 / 8.0±0.0",
        "-",
        "-",
        "74.0±0.0 / **.900±.000** / **2.0±0.0**",
        "2",
    ]
    assert goals.startswith("Of 5 targets against CE the default reached 4;")  # ECE 2% is an aim; the accuracy is behind


def test_the_readme_leaves_a_single_seed_to_the_page_of_results(run):
    held = Measured("calibration", tuple(run("cifar100/resnet-18", arm, 0, full=True) for arm in ("ce", "pull")))
    _, _, shown, _ = default_numbers({"calibration": held})
    assert sum(line.startswith("|") for line in shown.splitlines()) == 2
    assert list(rows({"calibration": held})) == []


def test_the_picture_has_each_score_against_softmax_seed_by_seed(run):
    held = [
        run("cifar100/resnet-18", arm, seed, full=True, accuracy=0.7 + 0.1 * seed + gain, nll=(1 + seed) * times, ece=0.1)
        for arm, gain, times in (("ce", 0.0, 1.0), ("pull", 0.02, 0.5))
        for seed in range(3)
    ]
    ((group, where, seeds, marks),) = rows({"calibration": Measured("calibration", tuple(held))})
    assert (group, where, seeds) == ("From whole sets", "CIFAR-100, resnet-18", 3)
    found = {score: (round(pair[0].found.mean, 6), pair[0].color) for score, pair in marks.items()}
    assert found == {"accuracy": (2.0, "good"), "nll": (round(math.log(0.5), 6), "good"), "ece": (0.0, "quiet")}


@pytest.mark.parametrize(
    ("low", "high", "color"), [(0.1, 0.3, "bad"), (-0.3, -0.1, "good"), (-0.1, 0.1, "quiet"), (0, 0, "quiet")]
)
def test_a_mark_has_the_color_of_the_side_its_interval_lies_on(low, high, color):
    assert Mark(Interval((low + high) / 2, low, high, 0.1, 3, 0.95), better=-1).color == color


def test_the_committed_picture_has_a_row_for_each_row_of_the_readme():
    drawn = ElementTree.parse(ROOT / "docs" / PICTURE).getroot()
    texts = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    _, _, folded = (ROOT / "README.md").read_text().partition("<details>")
    named = re.findall(r"^\| ([^|]+?) \|.*\| \d \|$", folded.partition("</details>")[0], re.M)
    assert len(named) > 20
    assert {name.replace("\\", "") for name in named} <= set(texts)


def test_rows_of_minilm_are_judged_as_those_of_the_recipes(checkout):
    def row(form, seed, **scores):
        return {"setting": "ag_news:12", "mode": "frozen", "seed": seed, "form": form, "n_train": 48, "n": 100, **scores}

    rows = [
        made
        for seed in range(2)
        for made in (
            row("softmax", seed, accuracy=0.7, nll=0.9, ece=0.1),
            row("temperature", seed, accuracy=0.7, nll=0.8, ece=0.05),
            row("default", seed, accuracy=0.8, nll=0.7 + 0.3 * seed, ece=0.2),
        )
    ]
    path = checkout / "minilm.json"
    path.write_text(json.dumps({"rows": rows}))
    found = {TEXTS: runpy.run_path(str(SCRIPT))["read_texts"](path)}
    accuracy, nll, _ = comparison(found)
    assert accuracy[:2] == ["AG News, MiniLM frozen, 48 samples", "accuracy %"]
    assert dict(zip(COLUMNS, nll[2:], strict=False))["CE after temperature scaling"] == "**.800 ± .000**"
    assert [each.verdict for each in targets(found)] == ["reached", "reached", "**missed by 10.00 points**"]


@pytest.mark.parametrize("text", ["", START, END, f"{END}{START}", f"{START}{START}{END}", f"{START}{END}{END}"])
def test_a_readme_without_its_marks_is_refused(text):
    with pytest.raises(ValueError, match="expected one"):
        with_block(text, "new")
