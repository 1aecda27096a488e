"""What several tests of readers need: whether two splits are the same, and what a damaged file may lead to."""

import tempfile
from pathlib import Path

import numpy as np
import pytest

from varclass.data import DataError


def same(first, second):
    return (
        first.kind == second.kind
        and first.classes == second.classes
        and np.array_equal(first.labels, second.labels)
        and np.array_equal(np.asarray(first.inputs), np.asarray(second.inputs))
    )


@pytest.fixture(scope="session", autouse=True)
def no_proxy():
    """The servers of these tests are on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        yield


@pytest.fixture(scope="session")
def outcome():
    """Read files of these names and bytes: "same" as the undamaged ones, or "refused" by a DataError that names a file.

    Anything else, another exception or other data, is returned as it is or passes through.
    """

    def run(read, undamaged, damaged):
        with tempfile.TemporaryDirectory() as folder:
            for name, raw in undamaged.items():
                (Path(folder) / name).write_bytes(raw)
            expected = read(Path(folder))
            for name, raw in damaged.items():
                (Path(folder) / name).write_bytes(raw)
            try:
                came = read(Path(folder))
            except DataError as error:
                named = any(name in str(error) for name in undamaged)
                return "refused" if named and "\n" not in str(error) else f"refused, but unclear: {error}"
        return "same" if same(expected, came) else came

    return run


@pytest.fixture(scope="session")
def flipped():
    """The bytes with the one at a position replaced by another."""

    def flip(raw, position, change):
        position %= len(raw)
        return raw[:position] + bytes([raw[position] ^ change]) + raw[position + 1 :]

    return flip
