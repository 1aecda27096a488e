"""The documentation is whole: every page in the navigation, every link, every registered name with a page of its own.

What needs mkdocs itself, the strict build, is `make docs`.
"""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest
import yaml

import varclass
from varclass import VariationalHead, metrics
from varclass.core.objectives import OBJECTIVES
from varclass.core.posterior import POSTERIORS
from varclass.core.priors import PRIORS, ClassPrior
from varclass.core.ratio import RATIOS

ROOT = Path(__file__).parents[2]
DOCS, GUIDES = ROOT / "docs", ROOT / "examples" / "guides"
CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if "generated" not in path.parts)
ASKED = ("swap_softmax", "convert_model", "calibration", "outliers", "few_labels", "label_shift", "many_classes", "many_gpus")


def load(name: str):
    """A module of docs/, which is no package."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tables, hooks = load("tables"), load("hooks")


def in_nav(node) -> list[str]:
    """The files of a navigation, depth first."""
    if isinstance(node, str):
        return [node]
    return [file for child in (node.values() if isinstance(node, dict) else node) for file in in_nav(child)]


NAV = in_nav(CONFIG["nav"])


def without_page(folder: str, names) -> list[str]:
    """Registered names that lack a page in the navigation with the table of their defaults."""
    kind = {"objectives": "objective", "priors": "prior"}[folder]
    return [
        name
        for name in names
        if f"{folder}/{name}.md" not in NAV or f'--8<-- "{kind}-{name}.md"' not in (DOCS / folder / f"{name}.md").read_text()
    ]


def test_the_navigation_has_every_page_once():
    assert sorted(NAV) == PAGES


@pytest.mark.parametrize(("folder", "registry"), [("objectives", OBJECTIVES), ("priors", PRIORS)])
def test_every_registered_name_has_a_page(folder, registry):
    assert without_page(folder, registry) == []
    assert without_page(folder, ["unheard-of"]) == ["unheard-of"]


@pytest.mark.parametrize("name", ASKED)
def test_a_guide_shows_its_script_and_its_output(name):
    text = (DOCS / "guides" / f"{name}.md").read_text()
    assert f'--8<-- "{name}.py"' in text
    assert f'--8<-- "{name}.txt"' in text


def test_every_script_is_on_a_page_and_every_snippet_is_there():
    made = {f"{path.stem}.txt" for path in GUIDES.glob("*.py")} | set(tables.tables()) | {"cli.md"}
    scripts = {path.name for path in GUIDES.glob("*.py")}
    results = {path.name for path in (ROOT / "results").glob("*.md")}
    shown = {name for page in PAGES for name in re.findall(r'--8<-- "(.+)"', (DOCS / page).read_text())}
    assert shown <= made | scripts | results
    assert made <= shown


@pytest.mark.parametrize("page", PAGES)
def test_links_resolve(page):
    drawn = {name for path in GUIDES.glob("*.py") for name in re.findall(r'"(\w+\.(?:svg|png))"', path.read_text())}
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", (DOCS / page).read_text(), flags=re.S)):
        if re.match(r"https?://", target):
            continue
        file, _, _ = target.partition("#")
        path = ((DOCS / page).parent / file).resolve()
        assert path.name in drawn if path.parent.name == "generated" else path.is_file(), f"{page}: {target}"


def test_the_readme_names_files_that_exist():
    named = set(re.findall(r"`((?:docs|examples|results|benchmarks)/[\w./-]+\.(?:md|py))`", (ROOT / "README.md").read_text()))
    assert len(named) > 5
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


def test_the_comparisons_have_the_summary_of_minilm_that_was_measured():
    measured = (ROOT / "results" / "minilm.md").read_text().split("\n\n")[1].strip()
    assert measured.startswith("| | softmax |")
    assert measured in (DOCS / "comparisons.md").read_text()


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith(("objectives/", "priors/"))])
def test_the_examples_of_a_page_run(page, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.S)
    assert blocks or page == "priors/index.md"
    for block in blocks:
        exec(compile(block, page, "exec"), {})


def test_a_table_has_an_option_of_the_head_in_every_row():
    known = set(inspect.signature(VariationalHead).parameters)
    for name in OBJECTIVES:
        own = set(inspect.signature(OBJECTIVES[name]).parameters)
        arguments = re.findall(r"^\|.*?\| `(\w+)` \|", tables.objective_table(name), re.M)
        assert len(arguments) > 5
        assert set(arguments) <= known | own


def test_defaults_are_read_off_the_head():
    heads = tables.read(objective="gm", beta=0.25, separation=2.5)
    assert (tables.describe("beta", heads), tables.describe("separation", heads)) == ("`0.25`", "`2.5`")
    assert tables.describe("beta", tables.read(objective="gm")) == '`"1/D"`'
    assert tables.describe("beta", tables.read()).startswith('`"auto"`: min(1/2, 10 / D^2) min(1, (100 / n)^2)')
    sizes = {"z is the features": 0, "one for each class": 1}
    for said, which in sizes.items():
        assert said in tables.describe("latent_dim", [{"latent_dim": None, "D": size[which]} for size in tables.SIZES])
    assert tables.describe("latent_dim", [{"latent_dim": c - 1} for _, c in tables.SIZES]) == "C - 1"
    assert "`3` for 64 features and 10 classes" in tables.describe("x", [{"x": x} for x in (2, 3, 2, 3)])


@pytest.mark.parametrize(("preset", "column"), [("paper", tables.PAPER), ("authors", tables.RELEASED)])
def test_the_papers_values_are_those_of_its_preset(preset, column):
    head = tables.options((16, 4), preset=preset)
    for option, said in column.items():
        if option in head and said.startswith("`"):
            assert said == f"`{tables.show(head[option])}`", option


def test_the_reference_has_every_public_and_every_registered_name():
    text = "\n".join(path.read_text() for path in (DOCS / "reference").glob("*.md"))
    public = set(dir(varclass)) - {"__version__"}
    registered = {kind.__name__ for registry in (OBJECTIVES, PRIORS, RATIOS, POSTERIORS) for kind in registry.values()}
    described = set(re.findall(r"\b[A-Za-z_]+\b", " ".join(re.findall(r"^::: .*|members: .*", text, re.M))))
    assert public | registered <= described


def test_the_metrics_in_the_reference_are_public():
    members = re.findall(r"members: \[(.*)\]", (DOCS / "reference" / "metrics.md").read_text())
    assert {name for group in members for name in group.split(", ")} <= set(metrics.__all__)


def test_the_bound_on_scales_is_the_codes():
    limit = ClassPrior.scale_limit
    assert f"L = log {limit:g}" in (DOCS / "priors" / "index.md").read_text()
    assert f"factor of {limit:g} around" in (DOCS / "faq.md").read_text()
    assert f"factor of {limit**2:g} of it" in (DOCS / "priors" / "vmf.md").read_text()


def test_the_build_is_strict():
    assert re.search(r"-m mkdocs build --strict$", (ROOT / "Makefile").read_text(), re.M)  # --quiet would hide what it counts


def test_a_page_may_fetch_nothing():
    for tag in ('<script src="//cdn.example/a.js">', '<link rel="stylesheet" href="https://x.example/a.css">'):
        assert len(hooks.outside_requests(tag)) == 1
    assert hooks.outside_requests('<a href="https://example.org"><img src="../a.svg"><link href="assets/b.css">') == []
