"""HashTokenizer: the same ids in every process, padding at the end, room for both texts of a pair."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from varclass.encoders.tokenizer import CACHED, PADDING, SEPARATOR, HashTokenizer, WordIds, split_words


def array(*texts) -> np.ndarray:
    out = np.empty(len(texts) if not texts or isinstance(texts[0], str) else (len(texts), 2), dtype=object)
    out[:] = list(texts)
    return out


# --------------------------------------------------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, World!", ["hello", ",", "world", "!"]),
        ("It's 1,234.50 dollars.", ["it", "'s", "1,234.50", "dollars", "."]),
        ("She said 'no', didn\u2019t she?", ["she", "said", "'", "no", "'", ",", "didn", "'t", "she", "?"]),
        ("foo_bar x2 B2B", ["foo", "_", "bar", "x", "2", "b", "2", "b"]),
        ("  \t\n ", []),
        ("STRASSE straße", ["strasse", "strasse"]),
        ("cafe\u0301 caf\u00e9 \uff43\uff41\uff46\u00e9", ["caf\u00e9"] * 3),
        ("\u6211\u7231\u4f60 ok", ["\u6211", "\u7231", "\u4f60", "ok"]),
        (
            "\u0928\u092e\u0938\u094d\u0924\u0947 \u043c\u0438\u0440",
            ["\u0928\u092e\u0938\u094d\u0924\u0947", "\u043c\u0438\u0440"],
        ),
        ("\U0001f600\U0001f600", ["\U0001f600", "\U0001f600"]),
    ],
)
def test_words(text, words):
    assert split_words(text) == words


@given(st.text())
def test_nothing_is_lost_but_space(text):
    words = split_words(text)
    assert all(word and not word.isspace() for word in words)
    letters = [character for character in text if character.isascii() and character.isalnum()]
    assert all(letter.lower() in "".join(words) for letter in letters)


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_case_does_not_matter(text):
    assert split_words(text.upper()) == split_words(text.lower())


# ----------------------------------------------------------------------------------------------------------------- ids


def test_ids_are_these_for_ever():
    """A stored run holds the constructor's arguments alone: another hash would be another encoder."""
    assert HashTokenizer(length=8)(array("A cat, a hat.", "caf\u00e9")).tolist() == [
        [24881, 15660, 1768, 24881, 29825, 7576, 0, 0],
        [9589, 0, 0, 0, 0, 0, 0, 0],
    ]


def test_ids_do_not_depend_on_the_process():
    program = (
        "import numpy as np; from varclass.encoders.tokenizer import HashTokenizer; "
        "print(HashTokenizer(length=5)(np.array(['one two three'], dtype=object)).tolist())"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert json.loads(out) == HashTokenizer(length=5)(array("one two three")).tolist()


@given(st.lists(st.text(max_size=40), max_size=5), st.integers(3, 50), st.integers(3, 12))
def test_ids_are_in_range_and_padding_is_at_the_end(texts, vocabulary, length):
    out = HashTokenizer(vocabulary, length)(array(*texts))
    assert out.dtype == torch.int64
    assert out.shape == (len(texts), length)
    for row, text in zip(out, texts, strict=True):
        used = min(len(split_words(text)), length)
        assert bool((row[:used] >= 2).all())
        assert bool((row[:used] < vocabulary).all())
        assert bool((row[used:] == PADDING).all())


@given(st.lists(st.text(max_size=40), min_size=1, max_size=5), st.integers(3, 12))
def test_a_text_has_the_same_ids_alone_in_a_batch_and_cut(texts, length):
    tokenize = HashTokenizer(length=length)
    whole = HashTokenizer(length=64)(array(*texts))
    for row, full, text in zip(tokenize(array(*texts)), whole, texts, strict=True):
        assert torch.equal(row, tokenize(array(text))[0])
        assert torch.equal(row, full[:length])


@given(st.text(max_size=60), st.text(max_size=60), st.integers(3, 20))
def test_pairs_share_the_room(first, second, length):
    tokenize = HashTokenizer(length=length)
    a, b = tokenize.ids(first), tokenize.ids(second)
    row = tokenize(array((first, second)))[0].tolist()
    assert row.count(SEPARATOR) == 1
    middle = row.index(SEPARATOR)
    kept_a, kept_b = row[:middle], [token for token in row[middle + 1 :] if token != PADDING]
    assert kept_a == a[: len(kept_a)]
    assert kept_b == b[: len(kept_b)]
    assert len(kept_a) + len(kept_b) == min(length - 1, len(a) + len(b))  # no room is left unused
    half = (length - 1) // 2
    assert len(kept_a) >= min(len(a), half)
    assert len(kept_b) >= min(len(b), half)


def test_empty_texts():
    assert HashTokenizer(length=4)(array("", " ")).tolist() == [[0, 0, 0, 0]] * 2
    assert HashTokenizer(length=4)(array(("", ""))).tolist() == [[1, 0, 0, 0]]
    assert HashTokenizer(length=4)(array()).shape == (0, 4)


def test_the_share_of_words_with_a_common_id_is_as_documented():
    words = [f"{stem}{end}" for stem in map(str, range(2500)) for end in ("", "s", "ing", "ed")]
    ids = np.array([WordIds(2**15)[word] for word in words])
    _, inverse, counts = np.unique(ids, return_inverse=True, return_counts=True)
    share, expected = (counts[inverse] > 1).mean(), 1 - np.exp(-10_000 / 2**15)
    assert abs(share - expected) < 5 * (2 * expected * (1 - expected) / 10_000) ** 0.5  # shared ids come in pairs


def test_the_cache_is_bounded_and_stays_behind_when_pickled(monkeypatch):
    monkeypatch.setattr("varclass.encoders.tokenizer.CACHED", 3)
    assert CACHED > 3
    ids = WordIds(100)
    first = [ids[word] for word in "abcdefg"]
    assert len(ids) <= 3
    assert [ids[word] for word in "abcdefg"] == first
    tokenize = HashTokenizer(100, 5)
    before = tokenize(array("a b"))
    other = pickle.loads(pickle.dumps(tokenize))
    assert len(other._ids) == 0
    assert torch.equal(other(array("a b")), before)


def test_the_specification_is_all_there_is():
    tokenize = HashTokenizer(vocabulary=500, length=9)
    again = HashTokenizer(**json.loads(json.dumps(tokenize.spec())))
    assert torch.equal(again(array("the same text")), tokenize(array("the same text")))
    assert repr(again) == "HashTokenizer(vocabulary=500, length=9)"


@pytest.mark.parametrize(
    ("kind", "make", "part"),
    [
        (ValueError, lambda: HashTokenizer(vocabulary=2), "at least 3"),
        (ValueError, lambda: HashTokenizer(length=2), "at least 3"),
        (ValueError, lambda: HashTokenizer()(np.empty((2, 3), dtype=object)), "(N, 2)"),
        (ValueError, lambda: HashTokenizer()(np.array("one text", dtype=object)), "(N,)"),
        (TypeError, lambda: HashTokenizer()(np.array(["a", None], dtype=object)), "NoneType"),
        (TypeError, lambda: HashTokenizer()(np.array(["a", float("nan")], dtype=object)), "replace missing texts"),
    ],
)
def test_errors(kind, make, part):
    with pytest.raises(kind) as caught:
        make()
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)
