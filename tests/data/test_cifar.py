import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from varclass.data import DataError
from varclass.data.readers.cifar import read_cifar10, read_cifar100

CLASSES = tuple("abcdefghij")
IMAGES = np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)
FINE, COARSE = np.array([99, 0, 7, 7, 50], np.uint8), np.array([19, 0, 3, 3, 4], np.uint8)
NAMES = "".join(f"kind {number}\n" for number in range(100)).encode()


def records(images, *labels):
    planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    return np.concatenate([np.stack(labels, 1), planes], axis=1).tobytes()


HUNDRED = {"train.bin": records(IMAGES, COARSE, FINE), "names.txt": NAMES}


def read_hundred(folder):
    return read_cifar100((folder / "train.bin", folder / "names.txt"), "train")


def test_cifar10_batches_follow_each_other(tmp_path):
    labels = FINE % 10
    (tmp_path / "1.bin").write_bytes(records(IMAGES[:2], labels[:2]))
    (tmp_path / "2.bin").write_bytes(records(IMAGES[2:], labels[2:]))
    split = read_cifar10((tmp_path / "1.bin", tmp_path / "2.bin"), "train", classes=CLASSES)
    np.testing.assert_array_equal(split.inputs, IMAGES)
    np.testing.assert_array_equal(split.labels, labels)
    assert split.inputs.flags.c_contiguous
    (tmp_path / "2.bin").write_bytes(records(IMAGES[2:], labels[2:] + 10))
    with pytest.raises(DataError, match=r"2\.bin: expected labels from 0 to 9"):
        read_cifar10((tmp_path / "1.bin", tmp_path / "2.bin"), "train", classes=CLASSES)


def test_cifar100_has_the_fine_labels_and_their_names(tmp_path):
    for name, raw in HUNDRED.items():
        (tmp_path / name).write_bytes(raw)
    split = read_hundred(tmp_path)
    np.testing.assert_array_equal(split.inputs, IMAGES)
    np.testing.assert_array_equal(split.labels, FINE)
    assert split.classes[7] == "kind 7"


@given(st.integers(0, 5 * 3074 - 1))
def test_a_file_cut_inside_a_record_is_refused_and_one_cut_between_records_is_a_beginning(outcome, length):
    raw = HUNDRED["train.bin"][:length]
    came = outcome(read_hundred, HUNDRED, {"train.bin": raw})
    if length % 3074 or length == 0:
        assert came == "refused"
    else:
        np.testing.assert_array_equal(came.inputs, IMAGES[: length // 3074])


@pytest.mark.parametrize("length", [3074, 2 * 3074])
def test_a_whole_number_of_records_is_a_consistent_part(outcome, length):
    came = outcome(read_hundred, HUNDRED, {"train.bin": HUNDRED["train.bin"][:length]})
    np.testing.assert_array_equal(came.labels, FINE[: length // 3074])


def test_cifar10_is_not_taken_for_cifar100_nor_labels_out_of_range(outcome):
    assert outcome(read_hundred, HUNDRED, {"train.bin": records(IMAGES, FINE % 10)}) == "refused"
    assert outcome(read_hundred, HUNDRED, {"train.bin": records(IMAGES, COARSE, FINE + 1)}) == "refused"
    assert outcome(read_hundred, HUNDRED, {"train.bin": records(IMAGES, COARSE + 1, FINE)}) == "refused"
    assert outcome(read_hundred, HUNDRED, {"names.txt": NAMES[:-20]}) == "refused"
    assert outcome(read_hundred, HUNDRED, {"names.txt": b"\xff" + NAMES}) == "refused"
