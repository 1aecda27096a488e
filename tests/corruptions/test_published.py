"""The readers of the published sets, on sets of their form."""

import numpy as np
import pytest
from PIL import Image

from varclass.data import DataError
from varclass.data.corruptions import read_cifar_c, read_tiny_imagenet_c

TEN = tuple("abcdefghij")


def write_array(path, shape, fill=None):
    """A .npy file of zeros that takes no room on the disk."""
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=shape)
    if fill is not None:
        fill(array)
    array.flush()


@pytest.fixture
def cifar_c(tmp_path):
    def fill(array):
        for severity in range(5):
            array[severity * 10_000, 0, 0] = [severity + 1, 50, 60]
            array[(severity + 1) * 10_000 - 1, -1, -1] = 100 + severity

    write_array(tmp_path / "fog.npy", (50_000, 32, 32, 3), fill)
    np.save(tmp_path / "labels.npy", np.tile(np.arange(10_000) % 10, 5).astype(np.uint8))
    return tmp_path


@pytest.mark.parametrize("severity", [1, 3, 5])
def test_cifar_c_gives_the_rows_of_a_severity(cifar_c, severity):
    split = read_cifar_c(cifar_c, "fog", severity, TEN)
    assert (split.kind, split.inputs.shape, split.classes) == ("image", (10_000, 32, 32, 3), TEN)
    assert split.inputs[0, 0, 0].tolist() == [severity, 50, 60]
    assert split.inputs[-1, -1, -1].tolist() == [99 + severity] * 3
    assert not isinstance(split.inputs, np.memmap)
    np.testing.assert_array_equal(split.labels, np.arange(10_000) % 10)


def test_what_is_wrong_with_cifar_c_is_said_with_the_file(cifar_c):
    def refuse(message, name="fog", severity=1, classes=TEN, error=DataError):
        with pytest.raises(error, match=message) as caught:
            read_cifar_c(cifar_c, name, severity, classes)
        assert "\n" not in str(caught.value)

    refuse("name must be one of .*; got 'rain'", name="rain", error=ValueError)
    refuse("severity must be a whole number from 1 to 5; got 6", severity=6, error=ValueError)
    refuse("snow.npy: expected the published set there; got nothing", name="snow")
    refuse("labels.npy: expected labels from 0 to 4; got 9", classes=TEN[:5])
    write_array(cifar_c / "frost.npy", (10_000, 32, 32, 3))
    refuse(r"frost.npy: expected uint8 \(50000, 32, 32, 3\); got uint8 \(10000, 32, 32, 3\)", name="frost")
    (cifar_c / "frost.npy").write_bytes((cifar_c / "frost.npy").read_bytes()[:5000])
    refuse("frost.npy: expected a .npy file of plain numbers; got", name="frost")
    np.save(cifar_c / "frost.npy", np.array([{}]), allow_pickle=True)
    refuse("frost.npy: expected a .npy file of plain numbers; got", name="frost")
    np.save(cifar_c / "labels.npy", np.zeros(10_000, np.uint8))
    refuse(r"labels.npy: expected 50000 labels; got shape \(10000,\)")
    np.save(cifar_c / "labels.npy", np.array(3))
    refuse(r"labels.npy: expected 50000 labels; got shape \(\)")
    np.save(cifar_c / "labels.npy", np.zeros(50_000))
    refuse("labels.npy: expected whole-number labels")


@pytest.fixture
def tiny(tmp_path):
    for number, key in enumerate(("n3", "n1")):
        folder = tmp_path / "frost" / "2" / key
        folder.mkdir(parents=True)
        for file in ("val_7.JPEG", "val_10.JPEG"):
            Image.new("RGB", (64, 64), (100 * number, 200, 10)).save(folder / file)
    (tmp_path / "wnids.txt").write_text("n3\nn1\n")
    return tmp_path


def test_tiny_imagenet_c_numbers_classes_by_wnids(tiny):
    split = read_tiny_imagenet_c(tiny, "frost", 2, tiny / "wnids.txt", ("spoon", "fork"))
    assert split.labels.tolist() == [0, 0, 1, 1]
    assert split.classes == ("spoon", "fork")
    images = np.asarray(split.inputs)
    assert images.shape == (4, 64, 64, 3)
    assert np.abs(images[:, 0, 0, 0].astype(int) - [0, 0, 100, 100]).max() <= 3  # JPEG rounds
    assert read_tiny_imagenet_c(tiny, "frost", 2, tiny / "wnids.txt").classes == ("n3", "n1")


def test_what_is_wrong_with_tiny_imagenet_c_is_said_with_the_file(tiny):
    def refuse(message, name="frost", severity=2, classes=None):
        with pytest.raises(DataError, match=message) as caught:
            np.asarray(read_tiny_imagenet_c(tiny, name, severity, tiny / "wnids.txt", classes).inputs)
        assert "\n" not in str(caught.value)

    refuse("frost/3: expected the published set there; got nothing", severity=3)
    refuse("fog/2: expected the published set there", name="fog")
    refuse("wnids.txt: expected one id for each of 3 classes; got 2", classes=("a", "b", "c"))
    (tiny / "wnids.txt").write_text("n3\nn1\nn9\n")
    refuse("frost/2: expected a folder for each of 3 ids; 'n9' has none")
    (tiny / "wnids.txt").write_text("n3\n")
    refuse("frost/2: .*'n1' is none of them")
    (tiny / "wnids.txt").write_text("n3\nn1\n")
    (tiny / "frost" / "2" / "n1" / "val_7.JPEG").write_bytes(b"no image")
    refuse("val_7.JPEG: expected an image that pillow can decode")
    (tiny / "wnids.txt").unlink()
    refuse("wnids.txt: expected the published set there")
