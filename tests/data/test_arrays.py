import io
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from varclass.data import DataError, load
from varclass.data.readers.arrays import read_medmnist

RNG = np.random.default_rng(0)
MED = {
    f"{part}_{what}": RNG.integers(0, 256, (n, 7, 7), dtype=np.uint8)
    if what == "images"
    else np.arange(n, dtype=np.uint8)[:, None] % 2
    for part, n in {"train": 6, "val": 3, "test": 4}.items()
    for what in ("images", "labels")
}
VECTORS = {
    "x_train": RNG.normal(size=(6, 3)),
    "y_train": np.arange(6) % 3,
    "x_test": RNG.normal(size=(2, 3)),
    "y_test": np.array([2, 0]),
}


def npz(arrays, packed=True):
    file = io.BytesIO()
    (np.savez_compressed if packed else np.savez)(file, **arrays)
    return file.getvalue()


def read(folder):
    return read_medmnist((folder / "set.npz",), "validation", classes=("no", "yes"))


FILES = {True: {"set.npz": npz(MED)}, False: {"set.npz": npz(MED, packed=False)}}


def test_medmnist_comes_back(tmp_path):
    (tmp_path / "set.npz").write_bytes(npz(MED))
    for split, part in {"train": "train", "validation": "val", "test": "test"}.items():
        held = read_medmnist((tmp_path / "set.npz",), split, classes=("no", "yes"))
        np.testing.assert_array_equal(held.inputs, MED[f"{part}_images"][..., None])
        np.testing.assert_array_equal(held.labels, MED[f"{part}_labels"][:, 0])


@given(st.booleans(), st.integers(0, 1_000_000))
def test_a_file_cut_anywhere_is_refused(outcome, packed, length):
    raw = FILES[packed]["set.npz"]
    assert outcome(read, FILES[packed], {"set.npz": raw[: length % len(raw)]}) == "refused"


@given(st.booleans(), st.integers(0, 1_000_000), st.integers(1, 255))
def test_a_changed_byte_anywhere_is_never_misread(outcome, flipped, packed, position, change):
    damaged = flipped(FILES[packed]["set.npz"], position, change)
    assert outcome(read, FILES[packed], {"set.npz": damaged}) in {"refused", "same"}


def test_several_labels_per_image_and_missing_arrays_are_refused(tmp_path):
    for arrays, match in [
        (MED | {"val_labels": np.zeros((3, 14), np.uint8)}, r"labels of shape \(N,\); got uint8 \(3, 14\)"),
        (MED | {"val_labels": np.full(3, 2)}, "expected labels from 0 to 1; got 2"),
        (MED | {"val_labels": np.array([0, -1, 1])}, "expected labels from 0 to 1; got -1"),
        (MED | {"val_images": np.zeros((3, 7, 7))}, "expected uint8 images"),
        (MED | {"val_images": np.zeros((3, 7, 7, 2), np.uint8)}, r"1 or 3 channels; got 2 channels in \(3, 7, 7, 2\)$"),
        ({"train_images": MED["train_images"]}, "expected arrays val_images and val_labels; got train_images"),
    ]:
        (tmp_path / "set.npz").write_bytes(npz(arrays))
        with pytest.raises(DataError, match=match):
            read(tmp_path)


def test_own_vectors_become_float32(tmp_path):
    (tmp_path / "own.npz").write_bytes(npz(VECTORS))
    splits = load(tmp_path / "own.npz")
    assert list(splits) == ["train", "test"]
    assert splits["train"].kind == "vector"
    assert splits["train"].inputs.dtype == np.float32
    assert splits["train"].classes == ("0", "1", "2")
    np.testing.assert_array_equal(splits["test"].inputs, VECTORS["x_test"].astype(np.float32))
    np.testing.assert_array_equal(splits["test"].labels, [2, 0])


def test_own_images_with_names_as_labels_and_a_validation_split(tmp_path):
    images = RNG.integers(0, 256, (4, 2, 3, 3), dtype=np.uint8)
    names = np.array(["dog", "cat", "dog", "cat"])
    arrays = {f"{axis}_{part}": held for part in ("train", "val", "test") for axis, held in {"x": images, "y": names}.items()}
    (tmp_path / "own.npz").write_bytes(npz(arrays))
    splits = load(tmp_path / "own.npz")
    assert list(splits) == ["train", "validation", "test"]
    assert splits["validation"].classes == ("cat", "dog")
    assert splits["validation"].labels.tolist() == [1, 0, 1, 0]
    np.testing.assert_array_equal(splits["test"].inputs, images)
    (tmp_path / "own.npz").write_bytes(npz(arrays | {"y_test": np.array(["dog", "cat", "emu", "cat"])}))
    with pytest.raises(DataError, match="'emu' is none of them"):
        load(tmp_path / "own.npz")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"x_test": np.zeros((2, 4))}, "inputs of one shape"),
        (
            {"x_test": np.array([[0, 1, 2], [3, np.nan, 5]])},
            r"x_test: .*finite floats; got nan in row 1 \(1 of 2 rows hold NaN",
        ),
        ({"x_train": np.full((6, 3), -np.inf)}, r"x_train: .*finite floats; got -inf in row 0 \(6 of 6 rows"),
        ({"x_test": np.zeros((2, 3), complex)}, "float vectors .* or uint8 images"),
        ({"x_train": np.zeros((6, 3), int)}, r"x_train: .*float vectors .*got int64 \(6, 3\): .*astype\('float32'\)"),
        ({"x_train": np.zeros((6, 3), np.uint8)}, r"float vectors .*got uint8 \(6, 3\)"),
        ({"x_train": np.zeros((6, 3, 8, 8))}, r"uint8 images .*got float64 \(6, 3, 8, 8\)$"),
        (
            {"x_train": np.zeros((6, 3, 8, 16), np.uint8)},
            r"\(N, height, width, channels\) .*got 16 channels in \(6, 3, 8, 16\): put the channels last",
        ),
        ({"y_test": np.array([2, 3])}, "labels from 0 to 2; got 3"),
        ({"y_test": np.array([0.0, 1.0])}, "whole-number labels"),
        ({"y_test": np.array([0])}, "in y_test as inputs in x_test; got 1 labels and 2 inputs: make them"),
        ({"y_test": np.array(["0"])}, "got 1 labels and 2 inputs: make them"),
        ({"y_train": np.array([0, 1, 2, 0, 1, 1000])}, "number 4 classes from 0; got labels up to 1000"),
        ({"y_train": np.array([1, 2, 3, 1, 2, 3])}, "number 3 classes from 0; got labels up to 3"),
        ({"x_test": np.full((2, 3), 1e300)}, r"finite floats; got 1e\+300 in row 0"),
        ({"y_train": np.array([0, 1, -1, 0, 1, 0])}, "whole numbers from 0, or names; got -1: number the classes from 0"),
        ({"y_train": np.zeros(6)}, r"y_train to be whole numbers .*got float64 \(6,\): convert it"),
        ({"x_val": np.zeros((2, 3))}, "x_val and y_val, or neither"),
        (
            {"y_train": np.array(["a", "b"] * 3, dtype=object)},
            r"y_train: expected a plain array; .*save names with \.astype\(str\)",
        ),
    ],
)
def test_own_arrays_that_do_not_fit_are_refused(tmp_path, change, match):
    (tmp_path / "own.npz").write_bytes(npz(VECTORS | change))
    with pytest.raises(DataError, match=match) as error:
        load(tmp_path / "own.npz")
    assert "own.npz" in str(error.value)
    assert "get it again" not in str(error.value)


@pytest.mark.parametrize("names", [("x_train", "y_train"), ("x", "y")])
def test_own_arrays_without_a_test_part_give_up_a_stratified_fifth_and_say_so(tmp_path, caplog, names):
    x, y = np.arange(30.0).reshape(15, 2), np.repeat(["a", "b"], [10, 5])
    (tmp_path / "own.npz").write_bytes(npz(dict(zip(names, (x, y), strict=True)) | {"x_val": x[:3], "y_val": y[:3]}))
    splits = load(tmp_path / "own.npz")
    assert "own.npz has no test part: a stratified fifth is the test split, n = 3" in caplog.text
    assert list(splits) == ["train", "validation", "test"]
    assert np.bincount(splits["train"].labels).tolist() == [8, 4]
    assert np.bincount(splits["test"].labels).tolist() == [2, 1]
    assert sorted(np.concatenate([splits["train"].inputs, splits["test"].inputs])[:, 0]) == x[:, 0].tolist()


def test_own_arrays_by_other_names_are_refused(tmp_path):
    (tmp_path / "own.npz").write_bytes(npz({"images": np.zeros(3), "y_train": np.zeros(3)}))
    with pytest.raises(DataError, match=r"expected arrays x_train and y_train \(or x and y\).*; got images, y_train"):
        load(tmp_path / "own.npz")


def test_bytes_after_an_array_are_refused(tmp_path):
    array = io.BytesIO()
    np.save(array, np.zeros(3, np.uint8))
    with zipfile.ZipFile(tmp_path / "own.npz", "w") as archive:
        archive.writestr("x_train.npy", array.getvalue() + b"more")
    with pytest.raises(DataError, match=r"own\.npz: x_train\.npy has bytes after its array"):
        load(tmp_path / "own.npz")
