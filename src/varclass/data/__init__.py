"""Real data: readers of the publishers' own formats, splits, and downloads with checksums."""

from varclass.data.errors import DataError
from varclass.data.images import ImageFiles
from varclass.data.loading import load
from varclass.data.root import data_root
from varclass.data.sampling import carve, subset
from varclass.data.split import Inputs, Split, Splits

__all__ = ["DataError", "ImageFiles", "Inputs", "Split", "Splits", "carve", "data_root", "load", "subset"]
