"""Tables of the documentation, read off the code: what each objective and class prior takes, by default and in the paper."""

from __future__ import annotations

from typing import Any

from varclass import VariationalHead
from varclass.core.objectives import OBJECTIVES
from varclass.core.presets import AUTO, ENOUGH, PRESETS, SHARED_TWICE
from varclass.core.priors import PRIORS
from varclass.core.recall import options_of

SIZES = ((512, 10), (64, 10), (512, 100), (64, 100))  # features and classes of the heads whose defaults are read
SYMBOLS = {
    "objective": ("J", "the objective"),
    "beta": ("β", "weight of what pulls latents to their class priors"),
    "l1": ("l₁", "weight of log p(z|y)"),
    "l2": ("l₂", "weight of T"),
    "latent_dim": ("D", "dimensions of z"),
    "prior": ("p_θ(z|y)", "family of the class priors"),
    "covariance": ("Σ_y", "what the classes' covariances share; 1/κ_y on the sphere"),
    "means": ("μ_y", "class means: trained, or fixed and equidistant"),
    "separation": ("|μ_y| / σ", "distance of the means from their center, at the start if they are learned"),  # noqa: RUF001
    "label_prior": ("p_π(y)", "label prior"),
    "ratio": ("T_ψ(z, y)", "estimator of log q(z|y) / p(z|y)"),
    "posterior": ("q_φ(z|x)", "what an input becomes: a point, or a Gaussian"),
}
OPEN = "not given"
PAPER = {  # Dhuliawala, Sachan and Allen 2023; the tests hold what stands between backticks against preset="paper"
    "beta": "`1`",
    "latent_dim": "`None`",
    "prior": '`"gaussian"`',
    "covariance": '`"diagonal"`',
    "means": '`"learned"`',
    "separation": OPEN,
    "label_prior": '`"learned"`',
    "ratio": '`"linear"`',
    "posterior": '`"delta"`',
}
# The authors' code, held against preset="authors".
RELEASED = PAPER | {"l1": "`0.01`", "l2": "`0.01`", "separation": "`None`", "label_prior": '`"uniform"`'}
SOFTMAX = PAPER | {"covariance": "one for all classes"}  # the paper's CE is a softmax layer
SPHERE = PAPER | {"prior": '`"vmf"`', "covariance": OPEN}


def options(size: tuple[int, int], **given: Any) -> dict[str, Any]:
    """Every option that a head of this size has, with the weights of its objective, and D."""
    head = VariationalHead(*size, **given)
    found = {**vars(head.objective), **options_of(head)}
    unused = () if head.objective.uses_ratio else ("ratio",)
    named = {name: found[name] for name in SYMBOLS if name in found and name not in unused}
    if not hasattr(head.objective, "beta"):
        named.pop("beta", None)
    extra = {name: value for name, value in vars(head.objective).items() if name not in SYMBOLS}
    return {**named, **extra, "D": head.latent_dim}


def show(value: object) -> str:
    """A value as one writes it."""
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def explain(option: str, heads: list[dict[str, Any]]) -> str:
    """What a None, or an "auto", means."""
    if option == "separation" and heads[0][option] is None:
        return ": drawn from N(0, 1)"
    if option == "beta" and heads[0][option] == AUTO:
        return f": min(1/2, {SHARED_TWICE} / D^2) min(1, ({ENOUGH} / n)^2) with n training samples a class"
    if option == "latent_dim" and heads[0][option] is None:
        features, classes = zip(*SIZES, strict=True)
        rules = {features: ": z is the features", classes: ": one for each class"}
        return rules.get(tuple(head["D"] for head in heads), "")
    return ""


def describe(option: str, heads: list[dict[str, Any]]) -> str:
    """One option over the heads of SIZES: a value, a rule if it is a known one, or each value with its size."""
    values = [head[option] for head in heads]
    if len(set(map(str, values))) == 1:
        return f"`{show(values[0])}`{explain(option, heads)}"
    if all(value == classes - 1 for value, (_, classes) in zip(values, SIZES, strict=True)):
        return "C - 1"
    return "; ".join(
        f"`{show(value)}` for {features} features and {classes} classes"
        for value, (features, classes) in zip(values, SIZES, strict=True)
    )


def read(**given: Any) -> list[dict[str, Any]]:
    """The options of a head at each of SIZES."""
    return [options(size, **given) for size in SIZES]


def table(rows: list[list[str]]) -> str:
    """Markdown; the first row is the head."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]) + "\n"


def symbols_table(heads: list[dict[str, Any]], paper: dict[str, str], title: str, skip: tuple[str, ...]) -> str:
    """symbol, meaning, argument, default, and the paper's value if it has the objective."""
    rows = [["symbol", "", "argument", "default", title]]
    for option in heads[0]:
        if option not in ("D", *skip):
            symbol, meaning = SYMBOLS.get(option, ("", ""))
            rows.append([symbol, meaning, f"`{option}`", describe(option, heads), paper.get(option, OPEN)])
    return table(rows if paper else [row[:-1] for row in rows])


def objective_table(name: str) -> str:
    """What one objective takes."""
    sources = {"ce": SOFTMAX, "gm": PAPER, "vc": PAPER, "authors": RELEASED}
    title = "the released code" if name == "authors" else "the paper"
    return symbols_table(read(objective=name), sources.get(name, {}), title, ("objective",))


def prior_table(name: str) -> str:
    """What one family of class priors takes; the objective's options are on the objectives' pages."""
    skip = ("objective", "beta", "l1", "l2", "label_prior", "ratio", "posterior")
    return symbols_table(read(prior=name), SPHERE if name == "vmf" else PAPER, "the paper", skip)


def overview() -> str:
    """Every option: of the default head, under each objective, and of each preset."""
    columns = {"nothing": read()}
    columns |= {f'`"{name}"`': read(objective=name) for name in OBJECTIVES}
    columns |= {f'`preset="{name}"`': read(preset=name) for name in PRESETS}
    names = dict.fromkeys(name for heads in columns.values() for name in heads[0] if name != "D")
    rows = [["named", *columns]]
    rows += [
        [f"`{name}`", *(describe(name, heads) if name in heads[0] else "" for heads in columns.values())] for name in names
    ]
    return table(rows)


def tables() -> dict[str, str]:
    """Every table by the name of the file that a page includes."""
    found = {f"objective-{name}.md": objective_table(name) for name in OBJECTIVES}
    found |= {f"prior-{name}.md": prior_table(name) for name in PRIORS}
    return found | {"defaults.md": overview()}
