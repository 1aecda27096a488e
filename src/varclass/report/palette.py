"""Colors, dashes and markers: Okabe and Ito's palette, and a second cue beside every color.

Three of its colors are too pale on white; they are darkened until they stand out 3 to 1, as WCAG asks of graphics.
Classes have ten colors of their own, far apart to most eyes, and markers that differ wherever other eyes confuse two.
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
    "k0": ("#0a5fd0", "#3d82f5"),  # blue
    "k1": ("#e06a00", "#ff9a3d"),  # orange
    "k2": ("#0f8a3a", "#35c46a"),  # green
    "k3": ("#6a1fb0", "#c4a0ff"),  # purple
    "k4": ("#a08600", "#e8cf2e"),  # gold
    "k5": ("#0a97b5", "#45cbe8"),  # cyan
    "k6": ("#e0479e", "#ff7ac6"),  # pink
    "k7": ("#3f3f3f", "#d8d8d8"),  # black
    "k8": ("#b3122e", "#ff4a5e"),  # red
    "k9": ("#8a5320", "#a8744a"),  # brown
}
SERIES, CLASSES = 8, 10
DASHES = ("none", "7 3", "2 3", "9 3 2 3", "5 2 1 2 1 2", "12 4", "1 2", "4 4")
MARKERS = (  # paths relative to their center
    "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z",  # disk
    "m-2.8 -2.8h5.6v5.6h-5.6z",  # square
    "m0 -3.8l3.6 6.4h-7.2z",  # triangle
    "m0 -4l3.2 4l-3.2 4l-3.2 -4z",  # diamond
    "m-1.2 -3.6h2.4v2.4h2.4v2.4h-2.4v2.4h-2.4v-2.4h-2.4v-2.4h2.4z",  # plus
)
SHAPES = (0, 1, 2, 3, 4, 1, 0, 2)  # never the same for two colors that some eyes confuse
CLASS_SHAPES = (0, 1, 2, 1, 4, 2, 3, 4, 0, 3)


def color(position: int) -> str:
    """The CSS class that gives the color of a series."""
    return f"c{position % SERIES}"


def dash(position: int) -> str:
    """The stroke-dasharray of a series."""
    return DASHES[position % len(DASHES)]


def marker(position: int) -> str:
    """The marker of a series: together with the color it differs for the first forty."""
    return MARKERS[(SHAPES[position % SERIES] + position // SERIES) % len(MARKERS)]


def class_color(label: int) -> str:
    """The CSS class that gives the color of a class."""
    return f"k{label % CLASSES}"


def class_marker(label: int) -> str:
    """The marker of a class: together with the color it differs for the first fifty."""
    return MARKERS[(CLASS_SHAPES[label % CLASSES] + label // CLASSES) % len(MARKERS)]


def class_swatch(label: int) -> Markup:
    """A class as the filter shows it."""
    dot = tag("path", d=f"M7 7{class_marker(label)}", class_="mark")
    return tag("svg", dot, class_=f"swatch {class_color(label)}", width=14, height=14, aria_hidden="true")


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
    named = [f"c{i}" for i in range(SERIES)] + [f"k{i}" for i in range(CLASSES)]
    classes = "".join(f".{name}{{--c:var(--{name})}}" for name in named)
    return (
        f":root{{{light}}}\n"
        f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
        f":root[data-theme=light]{{{light}}}\n:root[data-theme=dark]{{{dark}}}\n"
        f"@media print{{:root,:root[data-theme]{{{light}}}}}\n{classes}\n"
    )
