import csv
import io
import json
import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from varclass.data import DataError, load
from varclass.data.readers.published_text import read_ag_news, read_clinc150, read_inference

TOPICS = ("World", "Sports", "Business", "Sci/Tech")
NEWS = [("3", 'A "quoted" title', "One, two.\nThree\\"), ("1", "", "only text"), ("4", "Größe", "ünïcode")]
PAIRS = [
    {"gold_label": "neutral", "sentence1": "A man.", "sentence2": "A tall man.", "pairID": "1"},
    {"gold_label": "-", "sentence1": "No", "sentence2": "agreement"},
    {"gold_label": "contradiction", "sentence1": "x", "sentence2": ""},
    {"gold_label": "entailment", "sentence1": "Two\u2028lines", "sentence2": "One"},
]
CLINC = {
    "train": [["pay my bill", "pay_bill"], ["what time is it", "time"]],
    "val": [["the time", "time"]],
    "test": [["bill please", "pay_bill"]],
    "oos_train": [["?", "oos"]],
    "oos_val": [["!", "oos"]],
    "oos_test": [["how much has the dow changed", "oos"], ["sing", "oos"]],
}
WHOLE = {
    "train.csv": ['A "quoted" title One, two.\nThree\\', "only text", "Größe ünïcode"],
    "dev.jsonl": [["A man.", "A tall man."], ["x", ""], ["Two\u2028lines", "One"]],
}
SICK_NAMES = ("pair_ID", "sentence_A", "sentence_B", "entailment_label", "relatedness_score", "SemEval_set")
SICK = [
    ("1", "A kid", "A child", "ENTAILMENT", "4.5", "TEST"),
    ("2", "A", "B", "NEUTRAL", "1", "TRAIN"),
    ("3", "Yes", "No", "CONTRADICTION", "3.6", "TEST"),
]


def ag(rows):
    file = io.StringIO()
    csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return file.getvalue().encode()


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def tabs(rows):
    return "".join("\t".join(row) + "\n" for row in [SICK_NAMES, *rows]).encode()


def read_news(folder):
    return read_ag_news((folder / "train.csv",), "train", classes=TOPICS)


def read_pairs(folder):
    return read_inference((folder / "dev.jsonl",), "test")


def read_sick(folder):
    return read_inference((folder / "SICK.txt",), "sick")


def read_clinc(folder):
    return read_clinc150((folder / "data_full.json",), "test")


def test_ag_news_joins_title_and_description(tmp_path):
    (tmp_path / "train.csv").write_bytes(ag(NEWS))
    split = read_news(tmp_path)
    assert split.kind == "text"
    assert split.inputs.tolist() == WHOLE["train.csv"]
    assert split.labels.tolist() == [2, 0, 3]
    assert split.inputs.shape == (3,)


def test_pairs_without_agreement_are_left_out(tmp_path):
    (tmp_path / "dev.jsonl").write_bytes(lines(PAIRS))
    split = read_pairs(tmp_path)
    assert split.inputs.tolist() == WHOLE["dev.jsonl"]
    assert split.labels.tolist() == [1, 2, 0]
    assert split.classes == ("entailment", "neutral", "contradiction")


def test_of_sick_the_test_rows_are_taken(tmp_path):
    (tmp_path / "SICK.txt").write_bytes(tabs(SICK))
    split = read_sick(tmp_path)
    assert split.inputs.tolist() == [["A kid", "A child"], ["Yes", "No"]]
    assert split.labels.tolist() == [0, 2]


def test_clinc150_has_an_out_of_scope_split(tmp_path):
    (tmp_path / "clinc150").mkdir()
    (tmp_path / "clinc150" / "data_full.json").write_text(json.dumps(CLINC))
    splits = load("clinc150", tmp_path)
    assert list(splits) == ["train", "validation", "test", "oos"]
    assert splits["train"].classes == ("pay_bill", "time")
    assert splits["validation"].labels.tolist() == [1]
    assert splits["oos"].labels.tolist() == [-1, -1]
    assert splits["oos"].inputs.tolist() == ["how much has the dow changed", "sing"]


@given(st.integers(0, 10_000))
def test_a_cut_table_is_refused_or_is_a_beginning_of_the_whole(outcome, length):
    for read, name, raw in [(read_news, "train.csv", ag(NEWS)), (read_pairs, "dev.jsonl", lines(PAIRS))]:
        came = outcome(read, {name: raw}, {name: raw[: length % len(raw)]})
        if isinstance(came, str):
            assert came in {"refused", "same"}
        else:
            assert 0 < len(came) < len(WHOLE[name])
            assert came.inputs.tolist() == WHOLE[name][: len(came)]


@given(st.integers(0, 10_000))
def test_a_cut_json_file_is_refused(outcome, length):
    raw = json.dumps(CLINC).encode()
    assert outcome(read_clinc, {"data_full.json": raw}, {"data_full.json": raw[: length % len(raw)]}) == "refused"


@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=3))
def test_bytes_thrown_in_never_raise_anything_but_a_data_error(outcome, position, extra):
    for read, name, raw in [
        (read_news, "train.csv", ag(NEWS)),
        (read_pairs, "dev.jsonl", lines(PAIRS)),
        (read_clinc, "data_full.json", json.dumps(CLINC).encode()),
        (read_sick, "SICK.txt", tabs(SICK)),
    ]:
        at = position % len(raw)
        came = outcome(read, {name: raw}, {name: raw[:at] + extra + raw[at:]})
        assert not isinstance(came, str) or came in {"refused", "same"}


@pytest.mark.parametrize(
    ("read", "name", "raw", "match"),
    [
        (read_news, "train.csv", ag([*NEWS, ("5", "a", "b")]), "line 5: expected a class from 1 to 4; got '5'"),
        (read_news, "train.csv", ag([NEWS[0], ("1", "a")]), "line 3: expected 3 columns .class, title, description.; got 2"),
        (read_news, "train.csv", b"", "expected the last line to end with a quote"),
        (read_pairs, "dev.jsonl", lines([PAIRS[0], {"gold_label": "neutral"}]), "line 2: expected sentence1"),
        (
            read_pairs,
            "dev.jsonl",
            lines([PAIRS[0] | {"gold_label": "maybe"}]),
            "line 1: expected one of the 3 classes; got 'maybe'",
        ),
        (read_pairs, "dev.jsonl", b"[1]\n", "line 1: expected a JSON object"),
        (read_sick, "SICK.txt", tabs([("1", "a")]), "line 2: expected 6 columns; got 2"),
        (read_sick, "SICK.txt", tabs([(*SICK[0][:5], "TSET")]), "SemEval_set"),
        (read_sick, "SICK.txt", b"a\tb\n", "expected the columns"),
        (read_clinc, "data_full.json", json.dumps(CLINC | {"test": [["a", "unheard"]]}).encode(), "got 'unheard'"),
        (read_clinc, "data_full.json", json.dumps(CLINC | {"test": [["a"]]}).encode(), "test, query 0"),
        (read_clinc, "data_full.json", b"[]", "expected a list 'train'"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, read, name, raw, match):
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(DataError, match=match) as error:
        read(tmp_path)
    assert name in str(error.value)


def test_own_csv_files(tmp_path):
    (tmp_path / "train.csv").write_text('id,text,label\n1,"good, really",pos\n2,bad,neg\n')
    (tmp_path / "val.csv").write_text("label,text\nneg,poor\n")
    (tmp_path / "test.csv").write_text("\ufefftext,label\nfine,pos\n")
    splits = load(tmp_path)
    assert list(splits) == ["train", "validation", "test"]
    assert splits["train"].classes == ("neg", "pos")
    assert splits["train"].inputs.tolist() == ["good, really", "bad"]
    assert splits["validation"].labels.tolist() == [0]
    assert splits["test"].inputs.tolist() == ["fine"]


def test_own_json_lines_with_numbers_as_labels_and_pairs(tmp_path):
    rows = [{"sentence1": "a", "sentence2": "b", "label": number} for number in (10, 9, 2)]
    (tmp_path / "train.jsonl").write_bytes(lines(rows))
    (tmp_path / "test.jsonl").write_bytes(lines(rows[:1]))
    splits = load(tmp_path)
    assert splits["train"].classes == ("2", "9", "10")
    assert splits["train"].labels.tolist() == [2, 1, 0]
    assert splits["test"].inputs.shape == (1, 2)


def test_a_single_own_file_gives_up_a_stratified_fifth_and_says_so(tmp_path, caplog):
    rows = [{"text": f"text {number}", "label": "ab"[number % 2]} for number in range(20)]
    (tmp_path / "all.jsonl").write_bytes(lines(rows))
    with caplog.at_level(logging.WARNING):
        splits = load(tmp_path / "all.jsonl")
    assert "no test part" in caplog.text
    assert np.bincount(splits["test"].labels).tolist() == [2, 2]
    assert sorted([*splits["train"].inputs, *splits["test"].inputs]) == sorted(row["text"] for row in rows)


@pytest.mark.parametrize(
    ("files", "match"),
    [
        ({"train.csv": "text,label\na,b\n"}, "expected test.csv or test.jsonl beside train.csv"),
        ({"train.csv": "text,label\na,b\n", "test.csv": "text,label\na,c\n"}, "test.csv: line 2: .* got 'c'"),
        ({"train.csv": "text,label\na,b,c\n", "test.csv": "text,label\na,b\n"}, "line 2: expected 2 columns; got 3"),
        ({"train.csv": "text,label\na,\n", "test.csv": "text,label\na,b\n"}, "expected label to be text; got ''"),
        (
            {"train.csv": "id,review,sentiment\n1,a,b\n", "test.csv": "text,label\na,b\n"},
            r"train.csv: line 1: expected the columns text or sentence1\+sentence2 or premise\+hypothesis, and label or "
            "gold_label; got id, review, sentiment: rename them",
        ),
        ({"train.csv": 'text,label\n"a,b\n', "test.csv": "text,label\na,b\n"}, "train.csv: line 2: unexpected end of data"),
        ({"train.csv": "text,label\na,b\n", "train.jsonl": "", "test.csv": ""}, "got train.csv and train.jsonl"),
        ({"train.csv": "", "test.csv": "text,label\na,b\n"}, "train.csv: line 1: expected the columns .* got none"),
        (
            {"train.jsonl": '{"text": "a", "label": "b"}\n{"words": "a"}\n', "test.jsonl": ""},
            "line 2: expected the columns .* got words",
        ),
        ({"train.csv": "text,label\n", "test.csv": "text,label\na,b\n"}, "train.csv: expected at least one text"),
        ({"train.jsonl": '{"text": "a", "label": 0.5}', "test.jsonl": ""}, "expected label to be text; got 0.5"),
        ({"train.jsonl": '{"text": "a", "label": true}', "test.jsonl": ""}, "got True"),
        (
            {"train.csv": "text,label\na,b\n", "test.jsonl": '{"premise": "a", "hypothesis": "b", "label": "b"}'},
            "one text, or pairs",
        ),
    ],
)
def test_what_is_wrong_with_own_tables_is_said(tmp_path, files, match):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=match):
        load(tmp_path)


def test_text_in_another_encoding_is_said_with_its_line_and_what_to_do(tmp_path):
    (tmp_path / "own.csv").write_bytes("text,label\nfine,a\nGröße,b\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"own\.csv: expected UTF-8 text; line 3 is not: save it as UTF-8"):
        load(tmp_path / "own.csv")
