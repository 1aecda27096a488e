"""Standardize: the numbers of numpy over the whole array, read a few rows at a time."""

import numpy as np
import pytest
import torch

from varclass.encoders.standardize import Standardize


class Files:
    """Rows that are read when asked for, as image files are; remembers the most rows read at once."""

    def __init__(self, array):
        self.array, self.shape, self.most = array, array.shape, 0

    def __len__(self):
        return len(self.array)

    def __getitem__(self, index):
        self.most = max(self.most, len(index))
        return self.array[index]


def images(n=37, channels=3):
    return np.random.default_rng(0).integers(0, 256, (n, 5, 6, channels), dtype=np.uint8)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("chunk", [1, 10, 37, 1000])
def test_images(channels, chunk):
    data = images(channels=channels)
    module = Standardize.fit(data, "image", chunk=chunk)
    x = torch.from_numpy(data).permute(0, 3, 1, 2).double() / 255
    torch.testing.assert_close(module.mean.double(), x.mean((0, 2, 3)), rtol=1e-6, atol=0)
    torch.testing.assert_close(module.std.double(), x.std((0, 2, 3), unbiased=False), rtol=1e-6, atol=0)
    out = module(x.float())
    torch.testing.assert_close(out.mean((0, 2, 3)), torch.zeros(channels), rtol=0, atol=1e-5)
    torch.testing.assert_close(out.std((0, 2, 3), unbiased=False), torch.ones(channels), rtol=1e-5, atol=0)


@pytest.mark.parametrize("chunk", [7, 1024])
def test_vectors_far_from_zero(chunk):
    data = (np.random.default_rng(0).normal(size=(50, 4)) * [1, 0.1, 10, 3] + [0, 100, -5, 1000]).astype(np.float32)
    module = Standardize.fit(data, "vector", chunk=chunk)
    np.testing.assert_allclose(module.mean, data.mean(0, dtype=np.float64), rtol=1e-6)
    np.testing.assert_allclose(module.std, data.std(0, dtype=np.float64), rtol=1e-6)


def test_what_never_varies_is_only_centered():
    vectors = np.full((1000, 3), 0.1, dtype=np.float32)  # the sum of a thousand of them is not a thousand times 0.1
    vectors[:, 1] = 0
    vectors[:, 2] = np.arange(1000)
    module = Standardize.fit(vectors, "vector")
    assert module.std[:2].tolist() == [1.0, 1.0]
    assert module.std[2] > 200
    assert Standardize.fit(np.full((4, 2, 2, 1), 9, dtype=np.uint8), "image").std.tolist() == [1.0]


def test_a_small_but_real_spread_is_kept():
    vectors = np.array([[1e-20], [3e-20]], dtype=np.float32)
    np.testing.assert_allclose(Standardize.fit(vectors, "vector").std, [1e-20], rtol=1e-6)


def test_no_more_rows_than_a_chunk_are_read_at_once():
    data = Files(images())
    Standardize.fit(data, "image", chunk=8)
    assert data.most == 8


def test_the_numbers_live_in_the_state_and_memory_format_is_kept():
    module = Standardize.fit(images(), "image")
    empty = Standardize(torch.zeros(3), torch.ones(3))
    empty.load_state_dict(module.state_dict())
    assert torch.equal(empty.std, module.std)
    assert {value.dtype for value in module.state_dict().values()} == {torch.float32}
    assert not list(module.parameters())
    x = torch.rand(2, 3, 5, 6).contiguous(memory_format=torch.channels_last)
    assert module(x).is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: Standardize([0.0], [0.0]), "above 0"),
        (lambda: Standardize([float("nan")], [1.0]), "finite"),
        (lambda: Standardize([0.0, 1.0], [1.0]), "(2,) and (1,)"),
        (lambda: Standardize.fit(images(), "text"), "'image', 'vector'"),
        (lambda: Standardize.fit(images()[:0], "image"), "at least 1"),
        (lambda: Standardize.fit(images() / 255, "image"), "uint8"),
        (lambda: Standardize.fit(np.array([[1.0, np.nan]]), "vector"), "NaN"),
        (lambda: Standardize.fit(np.array([[1, 2]]), "vector"), "int64"),
        (lambda: Standardize([0.0], [1.0])(torch.zeros(2, 3)), "(B, 1)"),
        (lambda: Standardize([0.0, 0.0], [1.0, 1.0])(torch.zeros(5, 6, 2)), "(B, 2, H, W)"),
    ],
)
def test_errors(make, part):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the text is checked below)
        make()
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)
