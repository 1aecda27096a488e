"""Files that are whole or not there, and checkpoints that are read as they were written or not at all."""

import errno
import json
import os

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from varclass.training.checkpoint import (
    Checkpoint,
    load_checkpoint,
    optimizer_tensors,
    read_checkpoint,
    restore_optimizer,
    save_checkpoint,
)
from varclass.training.files import new_folder, save_tensors, write_text
from varclass.training.history import History


def make(step):
    generator = torch.Generator().manual_seed(step)
    model = {"b": torch.randn(3, 2, generator=generator).t(), "a": torch.arange(step, step + 3)}
    progress = {"best_nll": 0.1 + step, "best_epoch": None, "seconds": 1 / 3}
    return Checkpoint(step, model, {"b/step": torch.tensor(3.0)}, progress, None, {"b": torch.full((2,), torch.inf)})


def equal(one, other):
    for name in ("model", "optimizer", "average", "best"):
        first, second = getattr(one, name), getattr(other, name)
        if (first is None) != (second is None):
            return False
        if first is not None and (
            first.keys() != second.keys() or any(not torch.equal(first[key], second[key]) for key in first)
        ):
            return False
    return (one.step, one.progress) == (other.step, other.progress)


def test_a_checkpoint_is_read_as_it_was_written(tmp_path):
    assert equal(read_checkpoint(save_checkpoint(tmp_path, make(7))), make(7))


def test_the_latest_and_the_one_before_are_kept(tmp_path):
    for step in (1, 5, 10, 200):
        save_checkpoint(tmp_path, make(step))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000010", "step-00000200"]
    assert equal(load_checkpoint(tmp_path, pytest.fail), make(200))


def test_a_new_checkpoint_outlives_damaged_ones_with_higher_numbers(tmp_path):
    for step in (9, 10):
        save_checkpoint(tmp_path, make(step))
    save_checkpoint(tmp_path, make(1))
    assert equal(load_checkpoint(tmp_path, pytest.fail), make(1))


def test_there_may_be_none(tmp_path):
    assert load_checkpoint(tmp_path / "nowhere", pytest.fail) is None


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    for step in (1, 2):
        save_checkpoint(folder, make(step))
    return folder


@given(st.sampled_from(["model.safetensors", "optimizer.safetensors", "best.safetensors", "state.json"]), st.data())
def test_whatever_happens_to_a_byte_nothing_else_is_read_than_was_written(two, name, data):
    """Another byte in it, or cut there: the one before is read and it is said, unless nothing that counts has changed."""
    path = two / "step-00000002" / name
    raw = path.read_bytes()
    position = data.draw(st.integers(0, len(raw) - 1))
    other = bytes([raw[position] ^ data.draw(st.integers(1, 255))])
    cut = data.draw(st.booleans())
    said = []
    try:
        path.write_bytes(raw[:position] if cut else raw[:position] + other + raw[position + 1 :])
        found = load_checkpoint(two, said.append)
    finally:
        path.write_bytes(raw)
    if said:
        assert "step-00000002 is damaged" in said[0]
        assert equal(found, make(1))
    else:
        assert name == "state.json"  # a space between its numbers
        assert equal(found, make(2))


@pytest.mark.parametrize("state", ["", "null", "{}", "[]", '{"format": 2}', '{"format": 1}', '{"format": 1, "digest": 3}'])
def test_garbage_for_a_state_is_a_damaged_checkpoint(tmp_path, state):
    for step in (1, 2):
        save_checkpoint(tmp_path, make(step))
    (tmp_path / "step-00000002" / "state.json").write_text(state)
    said = []
    assert equal(load_checkpoint(tmp_path, said.append), make(1))
    assert len(said) == 1


class FullDisk:
    """fsync fails the n-th time it is called, as on a disk that is full."""

    def __init__(self, monkeypatch, count):
        self.left, self.plain = count, os.fsync
        monkeypatch.setattr(os, "fsync", self)

    def __call__(self, handle):
        self.left -= 1
        if self.left == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.plain(handle)


@pytest.mark.parametrize("count", range(1, 6))
def test_a_disk_that_fills_up_anywhere_in_a_checkpoint_leaves_the_one_before(tmp_path, monkeypatch, count):
    save_checkpoint(tmp_path, make(1))
    disk = FullDisk(monkeypatch, count)
    with pytest.raises(OSError, match="No space left on device"):
        save_checkpoint(tmp_path, make(2))
    assert disk.left == 0
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]
    assert equal(load_checkpoint(tmp_path, pytest.fail), make(1))


def test_the_disk_above_was_asked_that_often(tmp_path, monkeypatch):
    disk = FullDisk(monkeypatch, 100)
    save_checkpoint(tmp_path, make(1))
    assert 100 - disk.left == 6  # three files of tensors, the state, the folder, and the folder it is renamed in


def test_a_file_is_replaced_whole_or_left_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "record.json"
    write_text(path, "old")
    FullDisk(monkeypatch, 1)
    with pytest.raises(OSError, match=r"No space left on device: '.*record\.json'"):
        write_text(path, "new")
    assert [file.name for file in tmp_path.iterdir()] == ["record.json"]
    assert path.read_text() == "old"
    write_text(path, "new")
    assert path.read_text() == "new"


def test_a_folder_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "folder"
    (tmp_path / "folder.partial").mkdir()
    (tmp_path / "folder.partial" / "left over").write_text("")
    with new_folder(path) as partial:
        write_text(partial / "file", "text")
        assert not path.exists()
    assert [file.name for file in path.iterdir()] == ["file"]
    with pytest.raises(RuntimeError), new_folder(path) as partial:
        raise RuntimeError
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]


def test_tensors_that_cannot_be_written_are_an_os_error_that_names_the_file(tmp_path):
    with pytest.raises(OSError, match=r"no such folder/model\.safetensors: "):
        save_tensors(tmp_path / "no such folder" / "model.safetensors", {"a": torch.zeros(2)})


@pytest.mark.parametrize("kind", [lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), torch.optim.AdamW])
def test_an_optimizer_goes_on_from_its_named_tensors(kind):
    def gradients(parameters, seed):
        for number, parameter in enumerate(parameters):
            parameter.grad = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(10 * seed + number))

    one, other = ([torch.nn.Parameter(torch.ones(n)) for n in (2, 3, 1)] for _ in range(2))
    first, second = kind(one), kind(other)
    names = [{id(p): name for p, name in zip(held, "abc", strict=True)} for held in (one, other)]
    for seed in range(3):
        gradients(one[:2], seed)  # the third has none, and so no state
        first.step()
    held = optimizer_tensors(first, names[0])
    assert {key.partition("/")[0] for key in held} == {"a", "b"}
    restore_optimizer(second, {key: held[key].clone() for key in sorted(held, reverse=True)}, names[1])
    for mine, theirs in zip(one, other, strict=True):
        theirs.data.copy_(mine.data)
    gradients(one, 9)
    gradients(other, 9)
    first.step()
    second.step()
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(one, other, strict=True))
    with pytest.raises(ValueError, match="the optimizer has no parameter 'd'"):
        restore_optimizer(second, {"d/step": torch.zeros(())}, names[1])


def test_a_history_forgets_what_came_after_a_step_and_a_line_cut_short(tmp_path):
    history = History(tmp_path / "history.jsonl")
    for step in (1, 2, 3):
        history.append(step=step, loss=0.1 * step, bad=float("nan"), deep={"lr": 1.0, "bad": float("inf")})
    before = history.path.read_text()
    assert [json.loads(line) for line in before.splitlines()][1] == {"step": 2, "loss": 0.2, "deep": {"lr": 1.0}}
    with history.path.open("a") as file:
        file.write('{"step": 4, "lo')
    assert [row["step"] for row in history.rows()] == [1, 2, 3]
    history.rewind(3)
    assert history.path.read_text() == before
    history.rewind(1)
    assert [row["step"] for row in history.rows()] == [1]
    history.append(step=2)
    assert history.rows()[-1] == {"step": 2}
    History(tmp_path / "none.jsonl").rewind(0)
    assert not (tmp_path / "none.jsonl").exists()
