"""Corrupted images in the manner of CIFAR-10-C and Tiny-ImageNet-C: 15 standard types and 4 extra ones, severities 1 to 5.

`corrupt` makes them, on CPU or GPU, at the published severities: other random numbers than the published sets, otherwise the
same procedures, except where `NOTES` says so. `read_cifar_c` and `read_tiny_imagenet_c` read the published sets where a user
has them.
"""

from varclass.data.corruptions.apply import CORRUPTIONS, EXTRA, STANDARD, corrupt
from varclass.data.corruptions.constants import PUBLISHED, SEVERITIES, constants_for
from varclass.data.corruptions.notes import NOTES
from varclass.data.corruptions.published import read_cifar_c, read_tiny_imagenet_c

__all__ = [
    "CORRUPTIONS",
    "EXTRA",
    "NOTES",
    "PUBLISHED",
    "SEVERITIES",
    "STANDARD",
    "constants_for",
    "corrupt",
    "read_cifar_c",
    "read_tiny_imagenet_c",
]
