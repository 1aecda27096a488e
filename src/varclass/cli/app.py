"""The app that the verbs are mounted on, and how errors reach a user."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from varclass.cli import compare, data, evaluate, export, fit, predict, report, reproduce, runs

app = typer.Typer(
    name="varclass",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Neural classifiers that state how their latents are distributed, and are honest about what they know.",
    epilog="Start here: varclass fit digits --objective vc",
)
app.command("fit", epilog=fit.EXAMPLES, no_args_is_help=True)(fit.fit)
app.command("evaluate", epilog=evaluate.EXAMPLES, no_args_is_help=True)(evaluate.evaluate)
app.command("predict", epilog=predict.EXAMPLES, no_args_is_help=True)(predict.predict)
app.command("export", epilog=export.EXAMPLES, no_args_is_help=True)(export.export)
app.command("compare", epilog=compare.EXAMPLES, no_args_is_help=True)(compare.compare)
app.command("report", epilog=report.EXAMPLES, no_args_is_help=True)(report.report)
app.command("reproduce", epilog=reproduce.EXAMPLES, no_args_is_help=True)(reproduce.reproduce)
app.command("runs", epilog=runs.EXAMPLES)(runs.runs)
app.add_typer(data.app, name="data")


@app.callback(invoke_without_command=True)
def _top(version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False) -> None:
    if version:
        import varclass  # noqa: PLC0415

        typer.echo(varclass.__version__)
        raise typer.Exit


def run(arguments: list[str] | None = None) -> int:
    """The command line with its exit code: 0 done, 1 found wrong, 2 not as expected, 128 + signal if stopped by one.

    A mistake is one line on stderr; set VARCLASS_TRACEBACK=1 to see where it came from.
    """
    try:
        code = app(arguments, standalone_mode=False)
    except (ValueError, TypeError, OSError, ImportError) as error:
        return _fail(error, str(error))
    except KeyboardInterrupt:
        print("stopped: what was finished is kept", file=sys.stderr)
        return 130
    except Exception as error:
        if not hasattr(error, "format_message"):  # what typer, or click below older ones, raises for wrong usage
            raise
        return _fail(error, error.format_message())
    return code if isinstance(code, int) else 0


def _fail(error: Exception, message: str) -> int:
    if os.environ.get("VARCLASS_TRACEBACK"):
        raise error
    if type(error).__name__ != "NoArgsIsHelpError":  # its help page is printed already
        print(f"error: {' '.join(message.split()) or type(error).__name__}", file=sys.stderr)
    return 2
