"""Run folders written by hand, with numbers that a test can work out; and pages made from them."""

import csv
import io
import json
import re
from html import unescape
from html.parser import HTMLParser
from urllib.parse import unquote
from zlib import crc32

import pytest

from varclass.report.page import report

PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
VOID = {"br", "img", "input", "link", "meta"}
CLASSES = ("cat", "dog", "owl")


def row(suite, method, condition, n, scores, **curves):
    return {"suite": suite, "method": method, "condition": condition, "n": n, "scores": scores, "curves": curves}


def clean_rows(seed, accuracy, nll, ece):
    scores = {"num_classes": 3, "bins": 2, "accuracy": accuracy, "nll": nll, "ece": ece, "ece_15": ece, "adaptive_ece": ece}
    scores |= {"classwise_ece": ece, "brier": nll / 2, "aurc": 0.01}
    bins = {"lower": [0.0, 0.5, 1.0], "upper": [0.5, 1.0, 1.0], "count": [0, 100, 0], "confidence": [None, 0.9, None]}
    bins |= {"accuracy": [None, accuracy, None], "low": [None, accuracy - 0.05, None], "high": [None, accuracy + 0.05, None]}
    where = {"split": "test", "seed": seed}
    yield row("clean", "raw", where, 100, scores, reliability=bins)
    yield row("clean", "temperature", where, 100, scores | {"nll": nll - 0.01, "ece": ece / 2}, reliability=bins)
    sets = {"sets": "aps", "by_class": False, "alpha": 0.1, "calibrated_on": 50, "seed": seed}
    yield row(
        "clean", "conformal", sets, 100, {"n_labeled": 100, "coverage": 0.91, "size": 1.25, "empty": 0.0, "singleton": 0.8}
    )
    shifted = {f"{score}_{name}": 0.5 for score in ("accuracy", "nll") for name in ("trained", "true", "estimated")}
    yield row("clean", "label-prior", {"label_shift": 10.0, "seed": seed}, 40, shifted | {"estimate_distance": 0.1})


def shift_rows(seed, accuracy, nll, ece):
    for number, name in enumerate(("fog", "snow", "blur")):
        for severity in (1, 5):
            where = {"type": name, "severity": severity, "seed": seed, "published": False}
            less = 0.01 * severity * (number + 1)
            scores = {"bins": 2, "accuracy": accuracy - less, "nll": nll + less, "ece": ece + less, "brier": 0.1}
            yield row("shift", "raw", where, 60, scores)
            yield row("shift", "temperature", where, 60, scores | {"ece": ece + less / 2})


def adversarial_rows(seed, accuracy, nll, ece):
    for epsilon in (0.02, 0.05, 0.1):
        for attack, steps in (("fgsm", {}), ("pgd", {"steps": 20})):
            where = {"attack": attack, "epsilon": epsilon, "loss": "posterior", "seed": seed} | steps
            scores = {"bins": 2, "accuracy": accuracy - 3 * epsilon, "nll": nll + epsilon, "ece": ece + epsilon}
            yield row("adversarial", "raw", where, 60, scores)


def ood_rows(seed, accuracy, nll, ece):
    for score, auroc in (("max_probability", accuracy), ("log_evidence", accuracy - 0.2)):
        found = {"n_out": 50, "auroc": auroc, "aupr_in": auroc, "aupr_out": auroc, "fpr95": 1 - auroc}
        curves = {"histograms": {"edges": [-2.0, -1.0, 0.0], "inside": [10, 90], "outside": [40, 10]}}
        curves["roc"] = {"fpr": [0.0, 0.2, 1.0], "tpr": [0.0, 0.9, 1.0]}
        yield row("ood", "raw", {"set": "/data/noise.npz", "score": score, "seed": seed}, 150, found, **curves)


def latents_rows(seed, accuracy, nll, ece):
    names = ("mean_rms", "variance", "skewness_rms", "kurtosis", "rejected", "kl")
    for name in (*CLASSES, "all"):
        where = {"split": "test", "dim": 2, "level": 0.05, "seed": seed, "class": name}
        yield row("latents", "raw", where, 100, dict.fromkeys(names, 0.5))


ROWS = {
    "clean": clean_rows,
    "shift": shift_rows,
    "adversarial": adversarial_rows,
    "ood": ood_rows,
    "latents": latents_rows,
}


def view(classes, samples, priors=True):
    covariance = [[1.0, 0.0], [0.0, 0.25]]
    mistake = {"index": 7, "label": 1, "predicted": 0, "confidence": 0.875, "log_evidence": -3.5}
    return {
        "projection": "direct",
        "classes": list(classes),
        "points": [[0.0, 0.0], [4.0, 0.0], [2.0, 3.0], [0.5, 0.5]],
        "index": [3, 5, 6, 7],
        "label": [0, 1, 2, 1],
        "predicted": [0, 1, 2, 0],
        "confidence": [0.99, 0.75, 0.5, 0.875],
        "log_evidence": [-1.25, -2.5, None, -3.5],
        "priors": [{"mean": [2.0 * k, 0.0], "covariance": covariance} for k in range(3)] if priors else [],
        "mistakes": [mistake],
        "samples": dict(zip(("3", "5", "6", "7"), samples, strict=True)),
    }


def write_run(folder, objective, seed, *, accuracy=0.9, nll=0.3, ece=0.02, suites=tuple(ROWS), limit=None, train=1000, **more):
    """One run; `more` may hold classes, kind, samples, priors (False for none), view (False for none), and dotted settings."""
    classes, kind = more.pop("classes", CLASSES), more.pop("kind", "image")
    samples, priors, seen = more.pop("samples", [PIXEL] * 4), more.pop("priors", True), more.pop("view", True)
    settings = {"data": {"name": "pets", "validation": 0.1}, "encoder": {"name": "mlp"}, "head": {"objective": objective}}
    settings["data"] |= {} if limit is None else {"limit": limit}
    for name, value in more.pop("settings", {}).items():
        section, _, key = name.partition(".")
        settings.setdefault(section, {})[key] = value
    assert not more, more
    path = folder / f"pets-{objective}-s{seed}-{crc32(str(settings).encode()):08x}"
    path.mkdir(parents=True)
    toml = [f"seed = {seed}"]
    for section, values in settings.items():
        toml += [f"[{section}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    (path / "spec.toml").write_text("\n".join(toml))
    made = {"versions": {"varclass": "0.1.0", "torch": "2.13.0"}, "commit": "abc", "device": {"name": "a CPU"}}
    made["command"] = ["varclass", "fit", "pets", "--seed", str(seed)]
    record = {"status": "finished", "task": {"kind": kind, "classes": list(classes)}, "samples": {"train": train}}
    (path / "record.json").write_text(json.dumps(record | {"seconds": 1.5, "provenance": made}))
    rows = [each for suite in suites for each in ROWS[suite](seed, accuracy, nll, ece)]
    held = {"format": 1, "provenance": {"command": ["varclass", "evaluate", "pets"]}, "rows": rows}
    (path / "scores.json").write_text(json.dumps(held))
    if seen and "latents" in suites:
        (path / "view.json").write_text(json.dumps(view(classes, samples, priors)))
    logged = [{"step": 10, "epoch": 0, "total": 2.0, "posterior": 1.0 + seed}]
    logged.append({"step": 10, "epoch": 0, "validation": {"n": 50, "nll": 0.5, "accuracy": 0.8}})
    (path / "history.jsonl").write_text("".join(json.dumps(each) + "\n" for each in logged) + '{"step": 1')
    return path


@pytest.fixture
def make(tmp_path):
    """make(objective, seed, ...) writes a run and returns its folder."""
    return lambda objective, seed, **more: write_run(tmp_path / "runs", objective, seed, **more)


@pytest.fixture(scope="session")
def standard(tmp_path_factory):
    """CE and VC, three seeds, every suite, and CE and VC with fewer samples; not to be changed."""
    folder = tmp_path_factory.mktemp("standard")
    paths = []
    for seed, (ce, vc) in enumerate(((0.90, 0.93), (0.91, 0.94), (0.92, 0.945))):
        paths.append(write_run(folder, "ce", seed, accuracy=ce, nll=0.30 + 0.01 * seed, ece=0.02))
        paths.append(write_run(folder, "vc", seed, accuracy=vc, nll=0.34 + 0.011 * seed, ece=0.02 + 0.01 * (seed - 1)))
        for objective in ("ce", "vc"):
            low = {"limit": 100, "train": 90, "accuracy": 0.6, "nll": 1.0 + seed / 10, "suites": ("clean",)}
            paths.append(write_run(folder, objective, seed, **low))
    return paths


class Page(HTMLParser):
    """A page taken apart: elements with their attributes, text, downloads; tags that do not match are an error."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.path, self.source = path, path.read_text(encoding="utf-8")
        self.elements, self.texts, self.open = [], [], []
        self.feed(self.source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.texts.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.texts))

    def all(self, tag, **attributes):
        """The attributes of each such element."""
        found = [given for name, given in self.elements if name == tag]
        return [given for given in found if all(given.get(key.rstrip("_")) == value for key, value in attributes.items())]

    def sheet(self, name):
        """A download as rows of texts by column."""
        (link,) = self.all("a", download=f"{name}.csv")
        text = unquote(link["href"].removeprefix("data:text/csv;charset=utf-8,"))
        return list(csv.DictReader(io.StringIO(text)))

    @property
    def data(self):
        """What the script reads."""
        return json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', self.source, re.S)[1])

    def headings(self):
        return [unescape(each) for each in re.findall(r"<h2>(.*?)</h2>", self.source)]


@pytest.fixture
def page(tmp_path):
    """page(paths) makes a page of runs and takes it apart."""
    return lambda paths: Page(report(paths, tmp_path / "report.html"))


@pytest.fixture(scope="session")
def whole(standard, tmp_path_factory):
    """The page of the standard runs."""
    return Page(report(standard, tmp_path_factory.mktemp("page") / "report.html"))
