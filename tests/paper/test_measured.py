"""In which order results stand: a table that is cut short keeps what was measured most."""

from dataclasses import replace

from varclass.paper.measured import Measured


def test_what_was_measured_most_comes_first_and_arms_in_their_own_order(measured):
    once, often = measured(experiments=("a/b",), seeds=1), measured(experiments=("c/d",), seeds=3)
    both = Measured("toy", (*once.runs, *reversed(often.runs)))
    assert both.experiments == ["c/d", "a/b"]
    assert both.arms == ["ce", "vc"]
    unknown = replace(once.runs[0], arm="of another version")
    assert Measured("toy", (unknown, *both.runs)).arms == ["ce", "vc", "of another version"]
