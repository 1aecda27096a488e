"""Colors, dashes and markers: Okabe and Ito's palette, and a second cue beside every color.

Three of its colors are too pale on white; they are darkened until they stand out 3 to 1, as WCAG asks of graphics.
"""

from __future__ import annotations

from varclass.report.markup import Markup, tag

COLORS = {  # name: (light, dark)
    "paper": ("#ffffff", "#14171a"),
    "card": ("#f4f5f6", "#1e2327"),
    "ink": ("#1c1f22", "#e7e9ea"),
    "quiet": ("#5a6066", "#a3abb2"),
    "rule": ("#d5d9dc", "#3a4147"),
    "link": ("#00619a", "#7cc4f2"),
    "good": ("#00704f", "#3fc79b"),
    "bad": ("#b04a00", "#f28b45"),
    "c0": ("#0072b2", "#3a9bdc"),  # blue
    "c1": ("#d55e00", "#e5701b"),  # vermilion
    "c2": ("#009e73", "#00b685"),  # bluish green
    "c3": ("#c46a9d", "#cc79a7"),  # reddish purple
    "c4": ("#b87f00", "#e69f00"),  # orange
    "c5": ("#3f97cc", "#8fd0f7"),  # sky blue
    "c6": ("#968c00", "#f0e442"),  # yellow
    "c7": ("#4d4d4d", "#c8c8c8"),  # black
}
SERIES = 8
DASHES = ("none", "7 3", "2 3", "9 3 2 3", "5 2 1 2 1 2", "12 4", "1 2", "4 4")
MARKERS = (  # paths relative to their center
    "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z",  # disk
    "m-2.8 -2.8h5.6v5.6h-5.6z",  # square
    "m0 -3.8l3.6 6.4h-7.2z",  # triangle
    "m0 -4l3.2 4l-3.2 4l-3.2 -4z",  # diamond
    "m-1.2 -3.6h2.4v2.4h2.4v2.4h-2.4v2.4h-2.4v-2.4h-2.4v-2.4h2.4z",  # plus
)
SHAPES = (0, 1, 2, 3, 4, 1, 0, 2)  # never the same for two colors that some eyes confuse


def color(position: int) -> str:
    """The CSS class that gives the color of a series."""
    return f"c{position % SERIES}"


def dash(position: int) -> str:
    """The stroke-dasharray of a series."""
    return DASHES[position % len(DASHES)]


def marker(position: int) -> str:
    """The marker of a series: together with the color it differs for the first forty."""
    return MARKERS[(SHAPES[position % SERIES] + position // SERIES) % len(MARKERS)]


def swatch(position: int, line: bool = True) -> Markup:
    """A series as a legend shows it."""
    stroke = tag("path", d="M2 7H30", class_="line", stroke_dasharray=dash(position)) if line else None
    dot = tag("path", d=f"M{16 if line else 7} 7{marker(position)}", class_="mark")
    width = 32 if line else 14
    return tag("svg", stroke, dot, class_=f"swatch {color(position)}", width=width, height=14, aria_hidden="true")


def variables() -> str:
    """The colors as CSS variables: light, dark by preference, either by choice, and light in print."""
    light, dark = (
        "".join(f"--{name}:{pair[theme]};" for name, pair in COLORS.items()) + f"color-scheme:{scheme}"
        for theme, scheme in enumerate(("light", "dark"))
    )
    classes = "".join(f".c{i}{{--c:var(--c{i})}}" for i in range(SERIES))
    return (
        f":root{{{light}}}\n"
        f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
        f":root[data-theme=light]{{{light}}}\n:root[data-theme=dark]{{{dark}}}\n"
        f"@media print{{:root,:root[data-theme]{{{light}}}}}\n{classes}\n"
    )
