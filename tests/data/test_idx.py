import gzip
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from varclass.data import DataError
from varclass.data.readers.idx import read_idx, read_images

CLASSES = tuple("0123456789")
IMAGES = np.random.default_rng(0).integers(0, 256, (6, 5, 4), dtype=np.uint8)
LABELS = np.array([0, 9, 3, 3, 1, 0], np.uint8)


def idx(array):
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


PLAIN = {"images": idx(IMAGES), "labels": idx(LABELS)}
PACKED = {"images.gz": gzip.compress(idx(IMAGES), mtime=0), "labels.gz": gzip.compress(idx(LABELS), mtime=0)}


def read_from(suffix):
    return lambda folder: read_images((folder / f"images{suffix}", folder / f"labels{suffix}"), "train", classes=CLASSES)


@pytest.mark.parametrize(("suffix", "files"), [("", PLAIN), (".gz", PACKED)])
def test_every_pixel_and_label_comes_back(tmp_path, suffix, files):
    for name, raw in files.items():
        (tmp_path / name).write_bytes(raw)
    split = read_from(suffix)(tmp_path)
    assert split.kind == "image"
    assert split.classes == CLASSES
    assert split.labels.dtype == np.int64
    np.testing.assert_array_equal(split.inputs, IMAGES[..., None])
    np.testing.assert_array_equal(split.labels, LABELS)


@given(st.sampled_from(sorted(PLAIN | PACKED)), st.integers(0, 10_000))
def test_a_file_cut_anywhere_is_refused(outcome, name, length):
    files, suffix = (PACKED, ".gz") if name.endswith(".gz") else (PLAIN, "")
    assert outcome(read_from(suffix), files, {name: files[name][: length % len(files[name])]}) == "refused"


@given(st.sampled_from(sorted(PLAIN)), st.integers(0, 15), st.integers(1, 255))
def test_a_changed_byte_of_the_header_is_refused(outcome, flipped, name, position, change):
    header = 16 if name == "images" else 8
    damaged = flipped(PLAIN[name], position % header, change)
    assert outcome(read_from(""), PLAIN, {name: damaged}) == "refused"


@given(st.sampled_from(sorted(PACKED)), st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_of_a_gzip_file_never_changes_the_data(outcome, flipped, name, position, change):
    assert outcome(read_from(".gz"), PACKED, {name: flipped(PACKED[name], position, change)}) in {"same", "refused"}


def test_bytes_after_the_data_a_label_too_large_and_unequal_counts_are_refused(tmp_path):
    for name, raw, match in [
        ("images", idx(IMAGES) + b"\0", "expected 120 bytes of data .6x5x4.; got 121"),
        ("labels", idx(LABELS + 1), "labels: expected labels from 0 to 9; got 10"),
        ("labels", idx(LABELS[:5]), "as many labels as inputs; got 5 labels and 6 inputs"),
        ("labels", b"", "got nothing"),
        ("images", idx(LABELS), "begins with 00000803; got 00000801"),
    ]:
        for file, held in (PLAIN | {name: raw}).items():
            (tmp_path / file).write_bytes(held)
        with pytest.raises(DataError, match=match):
            read_from("")(tmp_path)


def test_an_empty_set_is_refused(tmp_path):
    (tmp_path / "images").write_bytes(idx(IMAGES[:0]))
    (tmp_path / "labels").write_bytes(idx(LABELS[:0]))
    assert read_idx(tmp_path / "labels", 1).shape == (0,)
    with pytest.raises(DataError, match="at least one sample"):
        read_from("")(tmp_path)
