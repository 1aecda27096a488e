import json
import subprocess
import sys

import numpy as np
import pytest

from varclass.data import DataError, data_root, load
from varclass.data.loading import pick

PAIR = {"gold_label": "neutral", "sentence1": "a", "sentence2": "b"}


@pytest.fixture
def nli(tmp_path):
    for file in ("snli_1.0/snli_1.0_dev.jsonl", "snli_1.0/snli_1.0_test.jsonl", "multinli_1.0/multinli_1.0_dev_matched.jsonl"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(json.dumps(PAIR | {"sentence1": file}) + "\n")
    (tmp_path / "sick").mkdir()
    (tmp_path / "sick" / "sick_test.jsonl").write_text(json.dumps(PAIR | {"gold_label": "ENTAILMENT"}) + "\n")
    return tmp_path


def test_digits_are_always_there_and_always_the_same():
    digits = load("digits")
    train, test = digits["train"], digits["test"]
    assert (len(train), len(test)) == (1197, 600)
    assert train.inputs.dtype == np.uint8
    assert train.inputs.shape[1:] == (8, 8, 1)
    assert int(np.asarray(train.inputs).max()) == 255
    assert set(np.unique(np.asarray(train.inputs))) <= {int(np.rint(level * 255 / 16)) for level in range(17)}
    assert np.bincount(train.labels).tolist() == [119, 121, 118, 122, 120, 121, 121, 119, 116, 120]
    assert test.labels[:12].tolist() == [1, 2, 3, 1, 3, 5, 8, 0, 1, 5, 5, 4]  # once and for all


def test_a_missing_training_file_is_named_with_the_way_to_get_it(nli):
    with pytest.raises(DataError) as error:
        load("nli", nli)
    message = str(error.value)
    assert message.startswith(f"nli: no train data: expected snli_1.0/snli_1.0_train.jsonl under {nli}")
    assert "varclass data get nli" in message
    assert "https://nlp.stanford.edu/projects/snli/snli_1.0.zip" in message
    assert message.endswith("(or ask for the splits that are there: validation, test, mnli, sick)")


def test_the_splits_asked_for_need_no_other_files(nli):
    splits = load("nli", nli, splits=["sick", "mnli"])
    assert list(splits) == ["mnli", "sick"]
    assert splits["sick"].labels.tolist() == [0]
    assert splits["mnli"].inputs[0, 0] == "multinli_1.0/multinli_1.0_dev_matched.jsonl"
    (nli / "snli_1.0" / "snli_1.0_train.jsonl").write_text(json.dumps(PAIR) + "\n")
    assert list(load("nli", nli)) == ["train", "validation", "test", "mnli", "sick"]


def test_a_part_of_a_set_is_read_and_said_to_be_one(nli, caplog):
    load("nli", nli, splits=["mnli"])
    assert "nli mnli: 1 samples; 9815 are published" in caplog.text


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: load("mnits"), "got 'mnits': did you mean 'mnist'. The sets are digits, mnist,"),
        (lambda: load("Fashion-MNIST"), "did you mean 'fashion_mnist'"),
        (lambda: load("zzz"), "got 'zzz': The sets are"),
        (lambda: load("digits", splits=["valid"]), "digits: expected splits among train, test; got 'valid'"),
        (lambda: load("digits", splits="test"), r"several names; got the text 'test': write \['test'\]"),
        (lambda: load("digits", size=16), "digits has its own size"),
        (lambda: load(__file__, size=16), "size is for a folder of images"),
        (lambda: pick("cifar"), "did you mean 'cifar10'"),
        (lambda: load(__file__), "expected a folder, or a file .npz, .csv or .jsonl; got '.py'"),
    ],
)
def test_what_cannot_be_loaded_is_said(call, match):
    with pytest.raises(DataError, match=match):
        call()


def test_the_data_root_is_the_flag_the_variable_or_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("VARCLASS_DATA", str(tmp_path / "variable"))
    assert data_root(tmp_path) == tmp_path
    assert data_root() == tmp_path / "variable"
    monkeypatch.delenv("VARCLASS_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_root().name == "varclass"
    with pytest.raises(DataError, match=r"mnist: no train, test data: expected MNIST/raw/train-images-idx3-ubyte\.gz"):
        load("mnist", tmp_path)


def test_importing_the_data_room_costs_numpy_and_nothing_heavy():
    code = "import sys, varclass.data; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    heavy = {"torch", "PIL", "scipy", "sklearn", "pooch", "requests", "rich", "typer", "torchvision", "timm", "pandas"}
    assert not heavy & set(done.stdout.split())
