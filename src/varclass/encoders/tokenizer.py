"""HashTokenizer: texts to token ids without a vocabulary, so there is nothing to fit, to store or to download."""

from __future__ import annotations

import re
import unicodedata
import zlib

import numpy as np
import torch
from torch import Tensor

from varclass.core.options import check_count

PADDING, SEPARATOR = 0, 1
VOCABULARY = 2**15
CACHED = 2**20  # words; a bound on the memory of a tokenizer that serves for years

# Han and kana are written without spaces: a token for each character. Marks, such as the vowel signs of Devanagari, are no
# word characters to `re`, and would cut words into pieces.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_LETTER = rf"[^\W\d_{_UNSPACED}]"
_MARK = "[" + "".join(c for c in map(chr, range(0x300, 0x10000)) if unicodedata.category(c) in ("Mn", "Mc")) + "]"
TOKEN = re.compile(
    rf"{_LETTER}+(?:{_MARK}+{_LETTER}*)*"  # a word
    rf"|\d+(?:[.,]\d+)*"  # 1,234.5
    rf"|(?<=\w)'{_LETTER}{{1,2}}(?![^\W_])"  # 's, 't, 're
    rf"|[{_UNSPACED}]|[^\w\s]|_"
    r"|\w"  # what is left, such as fractions and superscripts
)


class WordIds(dict[str, int]):
    """Words and their ids, computed when first asked for."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary

    def __missing__(self, word: str) -> int:
        if len(self) >= CACHED:
            self.clear()
        # Not hash(): Python salts it anew in every process.
        code = zlib.crc32(word.encode("utf-8", "surrogatepass"))
        self[word] = 2 + code % (self.vocabulary - 2)
        return self[word]

    def __reduce__(self) -> tuple[type[WordIds], tuple[int]]:
        return WordIds, (self.vocabulary,)  # worker processes start with an empty cache


class HashTokenizer:
    """Lowercased words, numbers and punctuation; the id of each is its CRC-32, modulo the vocabulary.

    0 is padding and 1 stands between the two texts of a pair, so words have 2 to vocabulary - 1. Words can share an id: of
    n words, a share of about 1 - exp(-n / vocabulary) does, for the default 14% of the 5,000 most frequent words of a
    language, 26% of 10,000 and 46% of 20,000.

    Args:
        vocabulary: number of ids.
        length: tokens kept of a text, from its start. In a pair each text may use what the other leaves of it, and
            at least half.

    >>> tokenize = HashTokenizer(length=6)
    >>> tokenize(np.array(["A cat, a hat."], dtype=object)).tolist()
    [[24881, 15660, 1768, 24881, 29825, 7576]]
    """

    def __init__(self, vocabulary: int = VOCABULARY, length: int = 64) -> None:
        self.vocabulary = check_count("vocabulary", vocabulary, 3)
        self.length = check_count("length", length, 3)  # one token of each text, and the separator
        self._ids = WordIds(vocabulary)

    def spec(self) -> dict[str, int]:
        """The constructor's arguments: all there is to store."""
        return {"vocabulary": self.vocabulary, "length": self.length}

    def __repr__(self) -> str:
        return f"HashTokenizer(vocabulary={self.vocabulary}, length={self.length})"

    def __call__(self, texts: np.ndarray) -> Tensor:
        """Strings, (N,) or pairs (N, 2) -> int64 (N, length), padded with 0 at the end."""
        texts = np.asarray(texts, dtype=object)
        if texts.ndim != 1 and texts.shape[1:] != (2,):
            raise ValueError(f"texts must be (N,), or (N, 2) for pairs; got shape {texts.shape}")
        out = np.zeros((len(texts), self.length), dtype=np.int64)
        for row, text in zip(out, texts, strict=True):
            ids = self.ids(text) if texts.ndim == 1 else self._pair(self.ids(text[0]), self.ids(text[1]))
            row[: len(ids)] = ids[: self.length]
        return torch.from_numpy(out)

    def ids(self, text: str) -> list[int]:
        """The ids of all tokens of one text."""
        return [self._ids[token] for token in split_words(text)]

    def _pair(self, first: list[int], second: list[int]) -> list[int]:
        room = self.length - 1
        kept = max(room - len(second), room - room // 2)
        first = first[:kept]
        return [*first, SEPARATOR, *second[: room - len(first)]]


def split_words(text: str) -> list[str]:
    """The tokens of a text, as strings.

    >>> split_words("It's 3.5 km to Škofja Loka!")
    ['it', "'s", '3.5', 'km', 'to', 'škofja', 'loka', '!']
    """
    if not isinstance(text, str):
        raise TypeError(f"a text must be a str; got {type(text).__name__} ({text!r:.40}): replace missing texts by ''")
    if not text.isascii():  # the same word in another encoding of its accents, width or quotation marks
        text = unicodedata.normalize("NFKC", text).replace("\u2019", "'")
    return TOKEN.findall(text.casefold())
