"""The options of commands, declared once so that they read and behave the same everywhere."""

from typing import Annotated

import typer

RecipeArgument = Annotated[
    str, typer.Argument(metavar="RECIPE", help="A recipe file, or the name of a shipped recipe.")
]
Inputs = Annotated[
    list[str] | None,
    typer.Option("--input", "-i", metavar="PATH", help="File, directory or glob; may be repeated.", show_default=False),
]
Output = Annotated[str | None, typer.Option("--output", "-o", metavar="DIR", help="Directory to write to.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Set a variable of the recipe.", show_default=False),
]
Workers = Annotated[
    int | None, typer.Option("--workers", metavar="N", min=0, help="Worker processes; 0 uses this one.")
]
MemoryLimit = Annotated[
    str | None, typer.Option("--memory-limit", metavar="SIZE", help="For the whole run, such as 1GB.")
]
ExecutorName = Annotated[
    str | None,
    typer.Option(
        "--executor", metavar="NAME", help="Where to run: local, ray, ray-data, xenna, or the dotted path of your own."
    ),
]
AllowModules = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-module",
        metavar="NAME",
        help="Let the recipe use the stages, filters and functions of this module; may be repeated.",
        show_default=False,
    ),
]
Sample = Annotated[int | None, typer.Option(metavar="N", min=1, help="Run on the first N documents only.")]
ShardOf = Annotated[
    str | None, typer.Option(metavar="K/N", help="Run part K of N of the input, from 0, in a directory of its own.")
]
Rejects = Annotated[str | None, typer.Option(metavar="DIR", help="Keep dropped documents here.")]
RunDir = Annotated[
    str | None, typer.Option(metavar="DIR", help="Where ledger, state and quarantine go. Default: OUTPUT/.gristmill")
]
MaxQuarantined = Annotated[
    str | None, typer.Option(metavar="X", help="Documents (100) or share (0.01, 1%) that may fail.")
]
Dashboard = Annotated[
    int | None,
    # Without a value it takes a free port: `main` writes that down as 0, since an option here always has a value.
    typer.Option("--dashboard", metavar="[=PORT]", min=0, max=65535, help="Show the run in a browser while it lasts."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")]
Shared = Annotated[
    bool, typer.Option("--shared", help="Let others read the run directory, which holds quarantined documents.")
]
Observe = Annotated[
    str,
    typer.Option(
        metavar="HOW",
        help="What to record about documents: full, counts (no text of any document), off (nothing but the books).",
    ),
]
SlicedBy = Annotated[
    list[str] | None,
    typer.Option("--slice", metavar="COLUMN", help="Count documents by the values of this column. May be repeated."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, the only line of stdout.")]
IndexIds = Annotated[bool, typer.Option("--index-ids", help="Index the ids at the end, so that explain is quick.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Start over instead of continuing.")]
RetryQuarantined = Annotated[
    bool, typer.Option("--retry-quarantined", help="Try quarantined documents again, once the cause is fixed.")
]
# Read in `main`, where exceptions arrive; declared here so that it may stand after the command too.
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]
