"""From evaluated runs to one self-contained page: a summary in words, tables, figures. It reads files; it needs no torch."""

from varclass.report.page import report

__all__ = ["report"]
