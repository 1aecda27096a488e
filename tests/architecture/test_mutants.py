"""`make mutants` takes a quarter of an hour and is run by hand: here, that each of its mutants still finds what it breaks."""

import runpy
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_every_mutant_finds_the_text_that_it_changes():
    mutants = runpy.run_path(str(TESTS / "mutants.py"))["MUTANTS"]
    assert len({what for *_, what in mutants}) == len(mutants) > 100
    package = TESTS.parent / "src" / "varclass"
    assert [(file, old) for file, old, new, _ in mutants if old not in (package / file).read_text() or old == new] == []
