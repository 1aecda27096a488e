"""NOTES: where a type differs from the way the published sets were made, one line each, for tables and reports."""

from __future__ import annotations

from collections.abc import Mapping

NOTES: Mapping[str, str] = {
    "glass_blur": "the published loop over pixels, which copies neighbors where it means to swap, solved for all pixels",
    "motion_blur": "ImageMagick's rule without ImageMagick: one-sided Gaussian weights on whole-pixel steps",
    "snow": "ImageMagick's motion blur by its rule, without ImageMagick",
    "frost": "generated ice, not the photographs of the published sets; their mixing weights, mean color and spread are kept",
    "elastic_transform": "interpolated at exact positions; the published affine map is rounded to 1/32 pixel",
    "spatter": "outlines and highlights without OpenCV; distances to outlines are exact, the published ones chamfered",
    "saturate": "a gray image has no saturation: severities 1 to 3 leave it unchanged, 4 and 5 darken it a little",
}
