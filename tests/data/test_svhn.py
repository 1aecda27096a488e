import io
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import loadmat, savemat

from varclass.data import DataError
from varclass.data.readers.matlab import read_matlab
from varclass.data.readers.svhn import read_svhn

CLASSES = tuple("0123456789")
IMAGES = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
LABELS = np.array([[10], [1], [9], [10]], np.uint8)


def mat(images, labels, compress=False, **more):
    file = io.BytesIO()
    savemat(file, {"X": images.transpose(1, 2, 3, 0), "y": labels} | more, do_compression=compress)
    return file.getvalue()


PLAIN, PACKED = {"test.mat": mat(IMAGES, LABELS)}, {"test.mat": mat(IMAGES, LABELS, compress=True)}


def read(folder):
    return read_svhn((folder / "test.mat",), "test", classes=CLASSES)


@pytest.mark.parametrize("files", [PLAIN, PACKED])
def test_pixels_come_back_and_ten_is_zero(tmp_path, files):
    (tmp_path / "test.mat").write_bytes(files["test.mat"])
    split = read(tmp_path)
    np.testing.assert_array_equal(split.inputs, IMAGES)
    assert split.labels.tolist() == [0, 1, 9, 0]


def test_the_reader_agrees_with_scipy(tmp_path):
    held = {
        "X": IMAGES,
        "y": LABELS.astype(float),
        "long": np.arange(-3, 300, dtype=np.int64).reshape(3, 101),
        "single": np.linspace(0, 1, 5, dtype=np.float32)[None],
    }
    for packed in (True, False):
        savemat(tmp_path / "any.mat", held, do_compression=packed)
        ours, theirs = read_matlab(tmp_path / "any.mat"), loadmat(tmp_path / "any.mat")
        for name in held:
            np.testing.assert_array_equal(ours[name], theirs[name])
            assert ours[name].dtype == theirs[name].dtype


@given(st.booleans(), st.integers(0, 1_000_000))
def test_a_file_cut_anywhere_is_refused(outcome, packed, length):
    files = PACKED if packed else PLAIN
    assert outcome(read, files, {"test.mat": files["test.mat"][: length % len(files["test.mat"])]}) == "refused"


@given(st.integers(0, 128 + 63), st.integers(1, 255))  # from byte 192 on there are pixels
def test_a_changed_byte_of_the_headers_is_never_misread(outcome, flipped, position, change):
    assert outcome(read, PLAIN, {"test.mat": flipped(PLAIN["test.mat"], position, change)}) in {"refused", "same"}


@given(st.integers(0, 1_000_000), st.integers(1, 255))
def test_a_changed_byte_of_a_packed_file_is_never_misread(outcome, flipped, position, change):
    assert outcome(read, PACKED, {"test.mat": flipped(PACKED["test.mat"], position, change)}) in {"refused", "same"}


def test_wrong_shapes_labels_and_variables_are_refused(tmp_path):
    for raw, match in [
        (mat(IMAGES[:, :31], LABELS), r"expected X to be uint8 \(32, 32, 3, N\)"),
        (mat(IMAGES.astype(float), LABELS), "got float64"),
        (mat(IMAGES, LABELS[:3]), r"expected y to be \(4, 1\)"),
        (mat(IMAGES, LABELS + 1), "expected labels from 1 to 10; got 2 to 11"),
        (mat(IMAGES, LABELS % 10), "got 0 to 9"),
        (mat(IMAGES, LABELS - 0.5), "expected labels from 1 to 10"),
        (mat(IMAGES, LABELS * 1j), "not plain numbers"),
        (mat(IMAGES, LABELS, more={"a": 1}), "not plain numbers"),
        (mat(IMAGES[:0], LABELS[:0]), "at least one sample"),
        (mat(IMAGES, LABELS) + mat(IMAGES, LABELS)[128:], "'X' is there twice"),
        (b"PK\x03\x04 not a MATLAB file" * 20, "expected a MATLAB file of level 5"),
    ]:
        (tmp_path / "test.mat").write_bytes(raw)
        with pytest.raises(DataError, match=match):
            read(tmp_path)
    savemat(tmp_path / "test.mat", {"X": IMAGES})
    with pytest.raises(DataError, match="expected the variables X and y; got X"):
        read(tmp_path)


def test_a_compressed_part_without_its_end_is_refused(tmp_path):
    raw = PACKED["test.mat"]
    kind, length = struct.unpack_from("<II", raw, 128)
    assert kind == 15
    shortened = raw[:128] + struct.pack("<II", kind, length - 4) + raw[136 : 136 + length - 4] + raw[136 + length :]
    (tmp_path / "test.mat").write_bytes(shortened)
    with pytest.raises(DataError, match="does not end where it should"):
        read(tmp_path)
