import gzip
import hashlib
import json
import struct

import numpy as np
import pytest
from typer.testing import CliRunner

from varclass.cli.data import app
from varclass.data import DataError, catalogue
from varclass.data.catalogue import CATALOGUE
from varclass.data.entry import Entry, Source


@pytest.fixture
def call(monkeypatch, tmp_path):
    monkeypatch.setenv("VARCLASS_DATA", str(tmp_path))

    def run(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def write_mnist(root, train=60_000):
    """MNIST's form with made-up pixels; the labels go round."""
    (root / "MNIST" / "raw").mkdir(parents=True, exist_ok=True)
    for part, count in {"train": train, "t10k": 10_000}.items():
        images, labels = np.zeros((count, 28, 28), np.uint8), (np.arange(count) % 10).astype(np.uint8)
        for name, array in {f"{part}-images-idx3-ubyte": images, f"{part}-labels-idx1-ubyte": labels}.items():
            header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
            (root / "MNIST" / "raw" / name).write_bytes(header + array.tobytes())


def test_list_shows_every_set_and_what_is_here(call, tmp_path):
    write_mnist(tmp_path, train=10)
    lines = call("list").stdout.splitlines()
    rows = {line.split()[0]: line for line in lines[1:]}
    assert set(rows) == set(CATALOGUE)
    assert lines[0].split() == ["name", "kind", "classes", "train", "test", "size", "here", "license"]
    assert " yes " in rows["mnist"]
    assert " no " in rows["cifar10"]
    assert "60,000" in rows["mnist"]
    assert "170.1 MB" in rows["cifar10"]
    held = {row["name"]: row for row in json.loads(call("list", "--json").stdout)}
    assert held["mnist"]["present"] is True
    assert held["nli"]["samples"]["sick"] == 4906
    assert held["pathmnist"]["bytes"] is None


def test_where_names_the_root_and_the_files(call, tmp_path):
    assert call("where").stdout.strip() == str(tmp_path)
    assert json.loads(call("where", "--json").stdout) == {"root": str(tmp_path)}
    assert call("where", "--data-root", "/elsewhere").stdout.strip() == "/elsewhere"
    (tmp_path / "SVHN").mkdir()
    (tmp_path / "SVHN" / "test_32x32.mat").write_text("")
    out = call("where", "svhn").stdout
    assert f"missing  {tmp_path}/SVHN/train_32x32.mat" in out
    assert f"here     {tmp_path}/SVHN/test_32x32.mat" in out
    assert "varclass data get svhn" in out
    files = json.loads(call("where", "svhn", "--json").stdout)["files"]
    assert [file["present"] for file in files] == [False, True]


def test_unknown_names_are_an_error_of_one_line(call):
    for verb in ("where", "get", "verify"):
        with pytest.raises(DataError, match="did you mean 'mnist'"):
            call(verb, "mnits")


def test_get_of_what_comes_along_does_nothing(call):
    assert "comes with scikit-learn" in call("get", "digits").stdout
    assert json.loads(call("get", "digits", "--json").stdout)["files"] == {}


def test_get_says_of_every_file_what_was_done(call, tmp_path, monkeypatch):
    (tmp_path / "one").write_text("1")
    digest = "md5:" + hashlib.md5(b"1").hexdigest()
    source = Source("one", ("http://127.0.0.1:9/one",), checksum=digest)
    entry = Entry("small", "", "text", 2, {}, "", "", lambda paths, split: None, {}, (source,))
    monkeypatch.setitem(catalogue.CATALOGUE, "small", entry)
    assert "present     one" in call("get", "small").stdout
    (tmp_path / "one").write_text("2")
    with pytest.raises(DataError, match=r"one: could not be downloaded: http://127\.0\.0\.1:9/one: .*refused"):
        call("get", "small")


def test_a_data_root_that_cannot_be_is_one_line(call, tmp_path):
    (tmp_path / "file").write_text("")
    root = tmp_path / "file" / "root"
    with pytest.raises(DataError, match=rf"^{root}.*: expected a place to write data to; got Not a directory: .*--data-root"):
        call("get", "mnist", "--data-root", root)


def test_verify_of_digits_is_complete(call):
    result = call("verify", "digits")
    assert result.exit_code == 0
    assert "1197 samples, 10 classes" in result.stdout
    assert json.loads(call("verify", "digits", "--json").stdout)["ok"] is True


def test_verify_tells_changed_missing_partial_and_damaged_files_apart(call, tmp_path):
    write_mnist(tmp_path)
    result = call("verify", "mnist", "--json")
    assert result.exit_code == 1
    states = {finding["what"]: finding for finding in json.loads(result.stdout)["findings"]}
    assert states["MNIST/raw/train-images-idx3-ubyte"]["state"] == "wrong"  # right form, other pixels than published
    assert "not the published file" in states["MNIST/raw/train-images-idx3-ubyte"]["detail"]
    assert states["train"] == {"what": "train", "state": "ok", "detail": "60000 samples, 10 classes"}

    write_mnist(tmp_path, train=100)
    assert "expected 60000 samples, 10 classes; got 100 samples" in call("verify", "mnist").stdout

    (tmp_path / "MNIST" / "raw" / "t10k-labels-idx1-ubyte").unlink()
    out = call("verify", "mnist").stdout
    assert "missing; published at https://ossci-datasets" in out
    assert "cannot be read: files are missing" in out

    packed = tmp_path / "MNIST" / "raw" / "t10k-labels-idx1-ubyte.gz"
    packed.write_bytes(gzip.compress(b"\0\0\x08\x01")[:-3])
    assert "expected a gzip file" in call("verify", "mnist").stdout


def test_help_has_examples(call):
    assert {"list", "where", "get", "verify"} <= set(call("--help").stdout.split())
    for verb in ("list", "where", "get", "verify"):
        assert f"Example: varclass data {verb}" in call(verb, "--help").stdout
