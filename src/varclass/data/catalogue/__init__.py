"""The catalogue: every set that has a name. Adding one is adding one entry to one of its three lists.

Checksums are the publishers' own, or those that torchvision, torchtext and Hugging Face's datasets pin. Where there is none
it stays None, and the file is called unverified.
"""

from __future__ import annotations

from varclass.data.catalogue.images import IMAGES
from varclass.data.catalogue.medmnist import MEDMNIST
from varclass.data.catalogue.texts import TEXTS
from varclass.data.entry import Entry

CATALOGUE: dict[str, Entry] = {entry.name: entry for entry in (*IMAGES, *TEXTS, *MEDMNIST)}
