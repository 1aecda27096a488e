"""The verb: what it prints."""

import json

from varclass.cli.report import EXAMPLES, report


def test_the_path_is_printed_and_json_has_the_comparisons(make, tmp_path, capsys):
    runs = [make("ce", 0), make("vc", 0, accuracy=0.95)]
    report(runs, tmp_path / "page.html")
    assert capsys.readouterr().out == f"{tmp_path / 'page.html'}\n"
    report(runs, tmp_path / "page.html", as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["output"] == str(tmp_path / "page.html")
    first = told["comparisons"][0]
    assert (first["model"], first["against"], first["score"], first["verdict"]) == ("VC", "CE", "accuracy", "one seed")
    assert first["low"] is None
    assert "varclass report runs/" in EXAMPLES
