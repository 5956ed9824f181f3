"""`gristmill slurm`: the batch script that runs a recipe on a Slurm cluster, printed or submitted."""

from typing import TYPE_CHECKING, Annotated

import typer

from gristmill.cli.options import AllowModules, Debug, ExecutorName, Inputs, Output, RecipeArgument, Settings
from gristmill.errors import ConfigError

if TYPE_CHECKING:
    from gristmill.core.slurm_script import SlurmJob

ON_SEVERAL_NODES = "ray"  # the executor unless another is named


def slurm(
    recipe: RecipeArgument,
    inputs: Inputs = None,
    output: Output = None,
    settings: Settings = None,
    executor: ExecutorName = None,
    allow_module: AllowModules = None,
    nodes: Annotated[int, typer.Option(metavar="N", min=1, help="Nodes of one Ray cluster; 1 needs no Ray.")] = 1,
    array: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Split the input into N independent jobs instead.")
    ] = None,
    time: Annotated[str | None, typer.Option(metavar="LIMIT", help="Such as 4:00:00.")] = None,
    partition: Annotated[str | None, typer.Option(metavar="NAME", help="Partition of the cluster.")] = None,
    account: Annotated[str | None, typer.Option(metavar="NAME", help="Account to charge.")] = None,
    cpus: Annotated[int | None, typer.Option(metavar="N", min=1, help="Cores of each node.")] = None,
    gpus: Annotated[int | None, typer.Option(metavar="N", min=0, help="GPUs of each node.")] = None,
    memory: Annotated[str | None, typer.Option(metavar="SIZE", help="Memory of each node, such as 64G.")] = None,
    setup: Annotated[
        list[str] | None, typer.Option(metavar="LINE", help="Run before, such as `. venv/bin/activate`.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("--sbatch", metavar="OPTION", help="Any other option, as --sbatch=--qos=high.")
    ] = None,
    log_dir: Annotated[str, typer.Option(metavar="DIR", help="Where the logs go.")] = ".",
    submit: Annotated[bool, typer.Option("--submit", help="Hand it to sbatch instead of printing it.")] = False,
    debug: Debug = False,
) -> None:
    """Print or submit the Slurm job that runs a recipe."""
    from gristmill.cli.recipe_values import recipe_values
    from gristmill.config.shipped import find_recipe
    from gristmill.core.slurm_script import SlurmJob

    values = recipe_values(inputs or [], output, settings or [])
    find_recipe(recipe).build(values, allow_modules=allow_module or [])  # mistakes are found here, not in the job
    chosen = executor or (ON_SEVERAL_NODES if nodes > 1 else None)
    job = SlurmJob(
        name="gristmill",
        command=_run_command(recipe, inputs or [], output, settings or [], allow_module or [], chosen),
        nodes=nodes,
        time=time,
        partition=partition,
        account=account,
        cpus=cpus,
        gpus=gpus,
        memory=memory,
        array=array,
        setup=tuple(setup or ()),
        options=tuple(option or ()),
        log_dir=log_dir,
    )
    if array is not None and output is None:
        raise ConfigError("--array: expected an --output too; each shard writes to a directory of its own below it")
    if submit:
        _submit(job, output)
    else:
        typer.echo(job.script(), nl=False)


def _run_command(
    recipe: str,
    inputs: list[str],
    output: str | None,
    settings: list[str],
    allow_modules: list[str],
    executor: str | None,
) -> tuple[str, ...]:
    words = ["gristmill", "run", recipe]
    for name, values in (("input", inputs), ("set", settings), ("allow-module", allow_modules)):
        words += [f"--{name}={value}" for value in values]
    words += [f"--output={output}"] if output else []
    words += [f"--executor={executor}"] if executor else []
    return (*words, "--quiet")


def _submit(job: "SlurmJob", output: str | None) -> None:
    from dataclasses import replace

    from gristmill.core.slurm_submit import submit

    number = submit(job.script())
    typer.echo(f"submitted job {number}")
    if job.array is not None and output is not None:
        # It begins when all tasks have ended, well or not, and fails if one of them is missing.
        command = ("gristmill", "shards", output)
        account = replace(job, name=f"{job.name}-account", command=command, nodes=1, array=None, gpus=None, memory=None)
        typer.echo(f"submitted job {submit(account.script(), after=number)}, which accounts for all {job.array} shards")
