"""`uitweg models`: the files of the models, on this machine and at their sources."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from models import made
from models.progress import Lines, megabytes
from models.store import Resolved, Store
from uitweg.commands.optimise import optimise

app = typer.Typer(
    help="The model files: list, add, fetch, verify, path, optimise.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

app.command("optimise")(optimise)

Name = Annotated[str, typer.Argument(help="A name that `uitweg models list` shows.")]


@app.command("list")
def list_models() -> None:
    """Show every model that is known, and which of them are here."""
    store = Store()
    for model in (*store.catalogue.models, *store.catalogue.added):
        absent = "not fetched" if model.path is None else "gone"
        marks = ["here" if store.path(model).exists() else absent]
        if model.name == store.catalogue.default:
            marks.append("default")
        size = megabytes(model.bytes)
        typer.echo(f"{model.name:30} {size:>7}  {model.licence:11} {', '.join(marks)}")
        typer.echo(f"    {model.role}")
    for own in made.every(store.folder):
        typer.echo(f"{own.name:30} {megabytes(own.bytes):>7}  made here of {own.made_of}")
        typer.echo(f"    {own.how}")


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="What it is to be called here.")],
    path: Annotated[Path | None, typer.Option(help="A GGUF file, which stays where it is.")] = None,
    repo: Annotated[
        str | None, typer.Option(help="Or a repository of the hub.", metavar="OWNER/NAME")
    ] = None,
    file: Annotated[str | None, typer.Option(help="The GGUF file in it.")] = None,
    revision: Annotated[
        str | None, typer.Option(help="The commit of it, all 40 digits.", metavar="SHA")
    ] = None,
) -> None:
    """Add a GGUF model of your own. Its digest is noted now and checked at every use.

    Example: uitweg models add mine --path ~/models/mine.gguf
    """
    from models.added import add_file, add_from_hub

    if path is not None and not (repo or file or revision):
        model = add_file(name, path)
    elif path is None and repo and file and revision:
        model = add_from_hub(name, repo, file, revision, Lines())
    else:
        raise typer.BadParameter("Give either --path, or --repo, --file and --revision together.")
    typer.echo(f"{model.name} is added, SHA-256 {model.sha256}. To host it:")
    typer.echo(f"  uitweg serve --model {model.name}")


@app.command()
def fetch(
    name: Annotated[
        str | None, typer.Argument(help="Which one; else the default, or what stands in for it.")
    ] = None,
) -> None:
    """Download a model and check it. What broke off goes on where it stopped."""
    _tell(Store().ensure(name, Lines()))


@app.command()
def verify(name: Name) -> None:
    """Check that a model's file is what it should be, byte for byte."""
    _tell(Store().verify(name))


@app.command()
def path(name: Name) -> None:
    """Print where a model's file is, once it has been checked."""
    typer.echo(Store().verify(name).path)


def _tell(model: Resolved) -> None:
    stands_in = f", instead of {model.instead_of}" if model.instead_of else ""
    typer.echo(f"{model.name}{stands_in} is here and right: {model.path}")
