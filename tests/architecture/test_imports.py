"""What importing costs, what is public, and the rules of the house that a tool can hold."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import varclass

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "numpy", "matplotlib", "sklearn", "scipy", "transformers", "accelerate", "torchvision", "torchmetrics")


def modules_after(statement: str) -> set[str]:
    """Top-level modules loaded in a fresh interpreter by one statement."""
    code = f"import json, sys; {statement}; print(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_pulls_in_nothing_heavy():
    loaded = modules_after("import varclass; varclass.__version__; dir(varclass)")
    assert "varclass" in loaded
    assert loaded & set(HEAVY) == set()


def test_the_command_line_starts_without_torch():
    assert modules_after("import varclass.cli.app") & set(HEAVY) == set()


def test_data_is_read_without_torch():
    loaded = modules_after("from varclass.data import load; load('digits')")
    assert loaded & set(HEAVY) == {"numpy", "sklearn", "scipy"}


def test_training_pulls_in_nothing_it_does_not_use():
    loaded = modules_after("import varclass.training.loop")
    assert loaded & {"matplotlib", "transformers", "torchvision", "torchmetrics", "sklearn", "typer"} == set()


def test_importing_the_head_pulls_in_torch_and_no_other_heavy_package():
    loaded = modules_after("from varclass import VariationalHead, Classifier, from_model")
    assert "torch" in loaded
    assert loaded & set(HEAVY) <= {"torch", "numpy"}  # torch itself imports numpy where it is installed


@pytest.mark.parametrize("name", [name for name in dir(varclass) if name != "__version__"])
def test_every_public_name_resolves_and_says_what_it_is(name):
    value = getattr(varclass, name)
    assert value.__name__ == name
    assert value.__doc__
    assert len(inspect.cleandoc(value.__doc__)) > 20
    assert "Initialize self" not in value.__doc__


def test_public_names_are_listed_and_others_are_an_attribute_error():
    assert dir(varclass) == sorted([*varclass.__all__, "VariationalClassifier"])  # the extras, not for `import *`
    assert len(set(varclass.__all__)) == len(varclass.__all__)
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", varclass.__version__)
    with pytest.raises(AttributeError, match="'nothing'"):
        varclass.nothing  # noqa: B018


def test_public_methods_of_the_head_and_the_classifier_have_docstrings():
    for kind in (varclass.VariationalHead, varclass.Classifier):
        methods = {name: value for name, value in vars(kind).items() if not name.startswith("_") and callable(value)}
        own = set(methods) - {"extra_repr"}
        assert {"forward", "log_posterior", "log_evidence", "latent", "parameter_groups"} <= own
        assert [name for name in own if not inspect.getdoc(methods[name])] == []


def test_the_import_contracts_hold():
    tool = Path(sys.executable).with_name("lint-imports")
    assert tool.exists()
    done = subprocess.run([str(tool), "--no-cache"], capture_output=True, text=True, cwd=ROOT, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_no_file_is_named_after_nothing_in_particular():
    files = list((ROOT / "src").rglob("*.py"))
    assert len(files) > 10
    assert [str(file) for file in files if file.stem in {"utils", "util", "helpers", "common", "base", "misc"}] == []


def test_the_package_is_typed_and_every_module_says_what_it_holds():
    package = ROOT / "src" / "varclass"
    assert (package / "py.typed").exists()
    assert [str(file) for file in package.rglob("*.py") if not file.read_text().lstrip().startswith('"""')] == []
