"""The settings that hold, on the terminal."""

from __future__ import annotations

import json
import os
from typing import Any

import typer
from pydantic import BaseModel

from local import folders
from uitweg.config import Held, project_file, read_config, values_in
from uitweg.tables import aligned
from uitweg.text import safe
from uitweg.trust import NotTrusted, check_trusted, reaching_in, trust


def show_config() -> int:
    """Print the files, and every setting. The exit code is 1 where the project needs trust."""
    held = read_config(trust=True)
    typer.echo("Files, the upper one first:")
    for path, there in held.files:
        typer.echo(f"  {path} ({'read' if there else 'not there'})")
    lines = (*held.lines(), *_of_the_environment(held))
    rows = [(key, safe(_shown(value)), safe(source)) for key, value, source in lines]
    typer.echo()
    for line in aligned([("setting", "value", "from"), *rows]):
        typer.echo(line)
    try:
        check_trusted(project_file(), values_in(project_file()))
    except NotTrusted as error:
        typer.echo(f"\nNot used yet: {error}")
        return 1
    return 0


def trust_project() -> int:
    """Trust the file of the current folder, and say what that allows."""
    read_config(trust=True)  # what is wrong in it is said first
    values = values_in(project_file())
    trust(project_file(), values)
    allowed = ", ".join(reaching_in(values)) or "nothing that needs trust"
    typer.echo(f"{project_file()} is trusted until these change: {allowed}.")
    return 0


def _of_the_environment(held: Held) -> list[tuple[str, Any, str]]:
    """What only the environment sets. The key itself is shown to nobody."""
    key = "set" if held.endpoint.api_key else None
    names = ("LLM_API_KEY", "OPENAI_API_KEY")
    source = next((name for name in names if key and os.environ.get(name)), "default")
    return [
        ("(API key)", key, source),
        ("(data folder)", folders.data(), _variable("UITWEG_DATA")),
        ("(cache folder)", folders.cache(), _variable("UITWEG_CACHE")),
    ]


def _variable(name: str) -> str:
    return name if os.environ.get(name) else "default"


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", exclude_defaults=True)
    if isinstance(value, (tuple, list, dict)):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
