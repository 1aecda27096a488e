"""Tables for a terminal, and for a pipe."""

from __future__ import annotations

from collections.abc import Sequence


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[str] = ()) -> None:
    """A plain table on stdout; columns named in `numbers` are aligned to the right."""
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, pad_edge=False)
    for column in columns:
        last = column == columns[-1]
        table.add_column(column, justify="right" if column in numbers else "left", no_wrap=not last, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console.width = 1_000  # a pipe has no width to fit into: lines stay whole
    console.print(table)
