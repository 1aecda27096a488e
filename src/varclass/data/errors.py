"""DataError: the one exception of this room, always one line."""

from __future__ import annotations


class DataError(ValueError):
    """Data that is missing, damaged or not what it says it is: what was expected, what came, what to do.

    >>> raise DataError("train.bin: expected a multiple of 3073 bytes; got 5000: the file is cut short, download it again")
    Traceback (most recent call last):
    varclass.data.errors.DataError: train.bin: expected a multiple of 3073 bytes; got 5000: ...
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))  # parsers' own messages, quoted in ours, may span lines
