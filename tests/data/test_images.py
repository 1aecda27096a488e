import numpy as np
import pytest
from PIL import Image

from varclass.data import DataError, ImageFiles, Split, carve, images
from varclass.data.images import settled, survey

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 6, 4, 3), dtype=np.uint8)


@pytest.fixture
def paths(tmp_path):
    files = [tmp_path / f"{number}.png" for number in range(len(PIXELS))]
    for file, pixels in zip(files, PIXELS, strict=True):
        Image.fromarray(pixels).save(file)
    return files


def test_files_look_like_an_array_and_decode_to_the_same_pixels(paths):
    files = ImageFiles(paths, (6, 4), 3)
    assert files.shape == (5, 6, 4, 3)
    assert files.dtype == np.uint8
    assert files.nbytes == PIXELS.nbytes
    assert len(files) == 5
    np.testing.assert_array_equal(np.asarray(files), PIXELS)
    np.testing.assert_array_equal(files[3], PIXELS[3])
    np.testing.assert_array_equal(np.stack(list(files)), PIXELS)
    assert np.asarray(files, dtype=np.float32).dtype == np.float32


@pytest.mark.parametrize(
    "index", [np.array([4, 0, 0]), slice(1, 3), np.array([True, False, True, False, False]), np.array([], int)]
)
def test_selecting_reads_nothing(paths, index):
    files = ImageFiles(paths, (6, 4), 3)
    for path in paths:
        path.rename(path.with_suffix(".away"))
    chosen = files[index]
    assert isinstance(chosen, ImageFiles)
    assert chosen.shape == PIXELS[index].shape
    for path in paths:
        path.with_suffix(".away").rename(path)
    np.testing.assert_array_equal(np.asarray(chosen), PIXELS[index])


def test_a_split_of_files_is_carved_without_reading_and_read_by_batches(paths, tmp_path):
    split = Split("image", ImageFiles([*paths, tmp_path / "absent.png"], (6, 4), 3), np.array([0, 1, 0, 1, 0, 1]), ("a", "b"))
    rest, carved = carve(split, 2, seed=0)
    assert len(rest) == 4
    assert len(carved) == 2
    np.testing.assert_array_equal(split.read(np.array([2, 1])), PIXELS[[2, 1]])
    with pytest.raises(DataError, match=r"absent\.png"):
        split.read(np.array([5]))


def test_an_array_cannot_share_memory_with_files(paths):
    with pytest.raises(ValueError, match="got False"):
        np.asarray(ImageFiles(paths, (6, 4), 3), copy=False)


def test_another_size_is_refused_unless_it_may_be_scaled(paths):
    with pytest.raises(DataError, match=r"0\.png: expected 8x8 pixels; got 6x4"):
        np.asarray(ImageFiles(paths, (8, 8), 3))
    scaled = np.asarray(ImageFiles(paths, (8, 8), 3, resize=True))
    expected = Image.fromarray(PIXELS[1]).resize((8, 8), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(scaled[1], np.asarray(expected))


def test_gray_palette_and_transparent_images_become_the_channels_asked_for(tmp_path):
    gray = PIXELS[0, :, :, 0]
    Image.fromarray(gray).save(tmp_path / "gray.png")
    Image.fromarray(np.dstack([PIXELS[0], np.full((6, 4), 9, np.uint8)])).save(tmp_path / "alpha.png")
    Image.fromarray(gray).convert("P").save(tmp_path / "palette.png")
    np.testing.assert_array_equal(np.asarray(ImageFiles([tmp_path / "gray.png"], (6, 4), 1))[0, :, :, 0], gray)
    np.testing.assert_array_equal(np.asarray(ImageFiles([tmp_path / "gray.png"], (6, 4), 3))[0], np.dstack([gray] * 3))
    np.testing.assert_array_equal(np.asarray(ImageFiles([tmp_path / "alpha.png"], (6, 4), 3))[0], PIXELS[0])
    np.testing.assert_array_equal(np.asarray(ImageFiles([tmp_path / "palette.png"], (6, 4), 3))[0], np.dstack([gray] * 3))
    assert survey([tmp_path / "gray.png"]) == ({(6, 4)}, 1)
    assert survey([tmp_path / "gray.png", tmp_path / "palette.png"]) == ({(6, 4)}, 3)


def test_deep_broken_and_absent_images_are_refused_with_their_path(tmp_path):
    Image.fromarray(np.full((6, 4), 40_000, np.uint16)).save(tmp_path / "deep.png")
    Image.fromarray(PIXELS[0]).save(tmp_path / "cut.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "cut.png").read_bytes()[:-40])
    (tmp_path / "text.png").write_text("not an image")
    for name in ("deep.png", "cut.png", "text.png", "absent.png"):
        with pytest.raises(DataError, match=name):
            np.asarray(ImageFiles([tmp_path / name], (6, 4), 3))
    for name in ("deep.png", "text.png", "absent.png"):
        with pytest.raises(DataError, match=name):
            survey([tmp_path / name])


def test_a_set_too_large_for_memory_stays_in_its_files(paths, monkeypatch):
    files = ImageFiles(paths, (6, 4), 3)
    assert isinstance(settled(files, "images"), np.ndarray)
    monkeypatch.setattr(images, "IN_MEMORY", files.nbytes - 1)
    assert settled(files, "images") is files
