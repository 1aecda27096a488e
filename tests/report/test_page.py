"""The page as a whole: well-formed, alone in the world, described in words, and safe whatever the data says."""

import json
import math
import re

import numpy as np
import pytest

from varclass.report.page import report
from varclass.report.palette import CLASSES, COLORS, SERIES, class_color, class_marker, dash, marker

SECTIONS = ["Summary", "Clean test split", "Corrupted images", "Attacked images", "Outliers", "Few training samples"]
SECTIONS += ["Latent space", "Training", "Mistakes", "Origin"]
EVIL = "<script>alert(1)</script>"


def test_every_section_is_there_and_linked(whole):
    assert whole.headings() == SECTIONS
    targets = {each["href"] for each in whole.all("a") if each["href"].startswith("#")}
    assert targets == {f"#{title.lower().replace(' ', '-')}" for title in SECTIONS}
    ids = [given["id"] for _, given in whole.elements if "id" in given]
    assert len(ids) == len(set(ids))


def test_the_page_asks_for_nothing(whole):
    assert not re.search(r"""(?:src|href|action|srcset)\s*=\s*["']?\s*(?:https?:|//|file:)""", whole.source)
    assert not re.search(r"@import|url\(|https?://(?!www\.w3\.org)", whole.source)
    addresses = [given[name] for _, given in whole.elements for name in ("src", "href") if name in given]
    assert all(address.startswith(("#", "data:")) for address in addresses)
    (policy,) = whole.all("meta", **{"http-equiv": "Content-Security-Policy"})
    assert policy["content"].startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "unsafe" not in policy["content"]
    assert not any(name.startswith("on") or name == "style" for _, given in whole.elements for name in given)


def test_every_figure_has_words_and_numbers(whole):
    drawings = [given for given in whole.all("svg") if given.get("aria-hidden") != "true"]
    assert len(drawings) > 20
    assert all(given["role"] == "img" and len(given["aria-label"]) > 30 for given in drawings)
    assert all(given.get("alt") for given in whole.all("img"))
    assert whole.source.count("<figure") == len(whole.all("a", class_="csv")) > 15
    assert all(whole.sheet(link["download"].removesuffix(".csv")) for link in whole.all("a", class_="csv"))


def test_it_says_what_it_must(whole):
    assert "FGSM alone is not robustness" in whole.text
    assert "VC against CE, 3 seeds: better in accuracy (clean)" in whole.text.replace("  ", " ")
    assert "worse in NLL (clean)" in whole.text
    assert "With 3 seeds an interval rests on normality" in whole.text
    assert "1000 training samples, n = 100 test samples, 3 seeds each" in whole.text
    assert "varclass fit pets --seed 0" in whole.text
    assert "torch 2.13.0" in whole.text
    assert "varclass report" in whole.text


def test_the_same_runs_make_the_same_page(standard, whole, tmp_path):
    again = report(standard, whole.path).read_text(encoding="utf-8")
    assert again == whole.source
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_cannot_be_made_leaves_the_old_one(make, tmp_path):
    output = tmp_path / "report.html"
    output.write_text("old")
    with pytest.raises(ValueError, match="is not a run"):
        report([make("ce", 0), tmp_path], output)
    assert output.read_text() == "old"


def test_a_class_called_script_does_no_harm(make, page):
    classes, samples = (EVIL, '"onload="x', "</script>"), [EVIL, "a & b", "</script><b>", EVIL]
    settings = {"data.name": f"/data/{EVIL}.csv", "encoder.name": EVIL}
    found = page([make("vc", 0, classes=classes, samples=samples, kind="text", settings=settings)])
    scripts = found.all("script")
    assert [given.get("type") for given in scripts] == ["application/json", None]
    assert not re.search(r"<script>alert|<b>", found.source)
    assert found.data["classes"] == list(classes)
    assert set(found.data["samples"]) == set(samples)
    assert EVIL in found.text


def test_texts_are_shown_as_texts(make, page):
    found = page([make("vc", 0, kind="text", samples=["one", "two", "three", "a wrong one"], suites=("clean", "latents"))])
    assert "a wrong one" in found.text
    assert found.all("img") == []
    assert "Corrupted images" not in found.headings()
    assert "--suite shift" not in found.text  # corruptions are for images


def test_suites_that_were_not_run_are_named_with_the_command(make, page):
    first, second = make("ce", 0, suites=("clean",)), make("vc", 0, suites=("clean", "shift"))
    found = page([first, second])
    assert found.headings() == ["Summary", "Clean test split", "Corrupted images", "Training", "Origin"]
    assert f"Suite shift: not run for 1 of 2 runs. varclass evaluate {first} --suite shift" in found.text
    assert f"Suite ood: not run. varclass evaluate {first} {second} --suite ood --ood svhn,cifar100" in found.text


def test_a_prior_without_contours_is_drawn_without_them(make, page):
    found = page([make("vc", 0, priors=False, settings={"head.prior": "vmf"})])
    assert found.all("ellipse") == []
    assert len([given for given in found.all("path") if given.get("class", "").startswith("point")]) == 4
    assert "no contours" in found.text


def test_a_run_without_a_view_has_no_latent_plane(make, page):
    found = page([make("vc", 0, view=False, suites=("clean",), settings={"head.prior": "vmf"})])
    assert "Latent space" not in found.headings()
    assert "--suite latents" not in found.text


def test_contours_are_ellipses_at_one_and_two_sigma(whole):
    rings = whole.all("ellipse")
    assert len(rings) == 2 * 3 * 2  # models, classes, contours
    one, two = ((float(ring["rx"]), float(ring["ry"])) for ring in rings[:2])
    assert two == pytest.approx((2 * one[0], 2 * one[1]), abs=0.02)
    assert one[0] / one[1] == pytest.approx(2, abs=0.01)  # covariance diag(1, 1/4)


def seen(path, **changes):
    """The run with other entries in its view."""
    file = path / "view.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    return path


def names(found):
    """The texts in the planes with the classes they stand for."""
    return re.findall(r'<text [^>]*class="name" data-class="([^"]*)">([^<]*)<', found.source)


def test_means_that_coincide_have_one_name(make, page, whole):
    assert names(whole) == [("0", "cat"), ("1", "dog"), ("2", "owl")] * 2
    prior = {"mean": [0.0, 0.0], "covariance": [[1.0, 0.0], [0.0, 1.0]]}
    aside = prior | {"mean": [5.0, 0.0]}
    found = page([seen(make("ce", 0), priors=[prior, aside, prior | {"mean": [0.01, 0.0]}])])
    assert names(found) == [("0 2", "2 classes"), ("1", "dog")]


def test_many_classes_have_no_ellipses_and_the_caption_knows(make, page):
    classes = [f"class {i}" for i in range(21)]
    priors = [{"mean": [float(i), 0.0], "covariance": [[1.0, 0.0], [0.0, 1.0]]} for i in range(21)]
    found = page([seen(make("ce", 0, classes=classes), classes=classes, priors=priors)])
    assert found.all("ellipse") == names(found) == []
    assert "Ellipses: p(z|y)" not in found.text
    assert "without the ellipses of p(z|y)" in found.text


def test_rejected_dimensions_stand_beside_how_many_there_are(whole):
    assert ".500 ± .000 of 2" in whole.text


def test_an_infinite_nll_is_explained(make, page):
    path = make("ce", 0)
    assert "An infinite NLL" not in page([path]).text
    scores = (path / "scores.json").read_text()
    (path / "scores.json").write_text(scores.replace('"nll_estimated": 0.5', '"nll_estimated": Infinity'))
    found = page([path])
    assert "An infinite NLL: the estimate has probability 0 for a class that occurs." in found.text
    assert '<td class="number">infinite</td>' in found.source


def test_intervals_hold_no_impossible_values(make, page):
    found = page([make("vc", 0, accuracy=0.2, nll=0.1, ece=0.01), make("vc", 1, accuracy=0.5, nll=0.9, ece=0.4)])
    assert "accuracy 35.0% (95% interval 0.0 to 100.0)" in found.text
    assert "NLL .500 (95% interval .000 to 5.582)" in found.text
    assert "35.0 (0.0 to 100.0)" in found.text
    assert "In parentheses: its ends, where impossible values are cut off." in found.text
    (row,) = [row for row in found.sheet("scores") if row["score"] == "accuracy" and row["method"] == "as trained"]
    assert float(row["low"]) < 0.0
    assert float(row["high"]) > 1.0  # the numbers to download are the interval's own


def test_axes_of_outlier_scores_say_what_is_shown(whole):
    labels = re.findall(r'class="label">([^<]*)<', whole.source)
    assert labels.count("log max p(y|x)") == labels.count("log p(z)") == 2
    assert whole.text.count("Every score is turned so that higher is more like the test split: log max p(y|x); log p(z).") == 1


def test_one_group_is_described_alone(make, page):
    text = page([make("vc", 0), make("vc", 1)]).text
    assert "accuracy 90.0% (95% interval 90.0 to 90.0), NLL .300" in text
    assert "There is nothing to compare it with." in text
    assert "one seed: no interval" in page([make("gm", 0)]).text


def test_no_data_says_so(make, page):
    path = make("ce", 0, suites=("clean",))
    held = json.loads((path / "scores.json").read_text())
    for row in held["rows"]:
        row["n"], row["scores"] = 0, dict.fromkeys(row["scores"])
        row["curves"] = {}
    (path / "scores.json").write_text(json.dumps(held))
    found = page([path, make("vc", 0)])
    assert "ECE no data against" not in found.text  # CE is the baseline
    assert "against no data (clean): no data to compare." in found.text
    assert any(math.isnan(float(row["mean"])) and row["n"] == "0" for row in found.sheet("scores"))


def test_models_of_different_classes_have_filters_of_their_own(make, page):
    found = page([make("vc", 0), make("vc", 0, classes=("a", "b", "c"), settings={"data.name": "letters"})])
    assert found.source.count('class="explorer"') == 2
    assert [given["value"] for given in found.all("input", class_="class-filter")] == ["0", "1", "2"] * 2


def luminance(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colors_stand_out_in_both_themes(theme):
    for name, pair in COLORS.items():
        for ground in ("paper", "card"):
            dark, light = sorted((luminance(pair[theme]), luminance(COLORS[ground][theme])))
            needed = {"paper": 1, "card": 1, "rule": 1}.get(name, 3 if re.fullmatch(r"[ck]\d", name) else 4.5)
            if ground == "card" and re.fullmatch(r"[ck]\d", name):
                needed = 2.7  # points of the plane also differ in shape
            assert (light + 0.05) / (dark + 0.05) >= needed, (name, ground)


def test_color_is_never_the_only_cue():
    assert len({dash(i) for i in range(SERIES)}) == SERIES
    assert len({(i % SERIES, marker(i)) for i in range(40)}) == 40
    assert len({(class_color(i), class_marker(i)) for i in range(50)}) == 50


def oklab(color):
    """Lightness and two color axes in which equal distances look equal (Ottosson 2020)."""
    parts = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    cones = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566]]
    cones.append([0.0883024619, 0.2817188376, 0.6299787005])
    axes = [[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099]]
    axes.append([0.0259040371, 0.7827717662, -0.8086757660])
    return np.array(axes) @ np.cbrt(np.array(cones) @ linear)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_ten_classes_have_ten_colors_that_nobody_takes_for_each_other(theme):
    assert CLASSES >= 10
    places = [oklab(COLORS[class_color(i)][theme]) for i in range(CLASSES)]
    apart = {(i, j): np.linalg.norm(places[i] - places[j]) for i in range(CLASSES) for j in range(i)}
    assert min(apart.values()) > 0.1, min(apart, key=apart.get)
