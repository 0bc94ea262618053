"""`uitweg models optimise`: a quicker file of a model, made here, and what that gained and lost."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from server.engine.optimise import Measures

SUFFIX = "-q4_0"
HOW = "every matrix as Q4_0, with llama_model_quantize"


def optimise(
    name: Annotated[str, typer.Argument(help="A model that is here; `uitweg models list` shows.")],
) -> None:
    """Make a quicker file of a model, and say what it gained and what it lost.

    It is used only when it is named: uitweg serve --model NAME-q4_0.
    """
    from local import cpus
    from models import disk, made
    from models.store import Store
    from server.engine import optimise as engine

    store = Store()
    source = store.verify(name)
    target = made.find(store.folder, name + SUFFIX)
    threads = cpus.threads()
    if target is None:
        part = store.folder / f"{name}{SUFFIX}.gguf.part"
        disk.check_room(store.folder, source.bytes)
        typer.echo(f"Making {name}{SUFFIX}: {HOW}. This takes about a minute.", err=True)
        engine.quantise(source.path, part, threads)
        target = made.Made(
            name=name + SUFFIX,
            made_of=name,
            made_of_sha256=source.sha256,
            profile=source.profile,
            how=HOW,
            bytes=disk.size(part),
            sha256=disk.digest(part),
        )
        made.put(store.folder, part, target)
    typer.echo(f"{target.name} is here: {target.path(store.folder)}")
    text = (resources.files("uitweg.bench") / "text.txt").read_text(encoding="utf-8")
    typer.echo("Measuring both files; nothing else should be busy now.", err=True)
    files = [source.path, target.path(store.folder)]
    before, after = engine.measure(files, text, threads)
    for line in compared(before, after):
        typer.echo(line)
    typer.echo(tasks_compared(*[_turns(path) for path in files]))
    typer.echo(f"Use it with: uitweg serve --model {target.name}")


def compared(before: Measures, after: Measures) -> list[str]:
    """A line for each figure: both files, and the change."""
    rows = [
        ("file", before.bytes / 1e6, after.bytes / 1e6, "MB"),
        ("prefill", before.prefill_rate, after.prefill_rate, "tokens/s"),
        ("decode", before.decode_rate, after.decode_rate, "tokens/s"),
        ("perplexity", before.perplexity, after.perplexity, "(lower is better)"),
    ]
    return [
        f"{what:12}{old:9.1f} -> {new:9.1f} {unit:18} {100 * (new / old - 1):+.0f}%"
        for what, old, new, unit in rows
    ]


def tasks_compared(before: list[Any], after: list[Any]) -> str:
    """How many turns of the six tasks end in the same call or the same words."""
    same = sum(old == new for old, new in zip(before, after, strict=True))
    calls = [sum(isinstance(turn, list) for turn in turns) for turns in (before, after)]
    return (
        f"the six tasks, {len(before)} turns: {calls[0]} -> {calls[1]} end in a tool call; "
        f"{same} are the same with both files"
    )


def _turns(path: Path) -> list[Any]:
    """What a file makes of the six tasks' turns: a list of calls, or a text."""
    import asyncio
    import tempfile

    from server.backend import CallPiece, TextPiece
    from server.engine.backend import LlamaBackend
    from server.parse import parse_request
    from uitweg.bench.work import turns

    async def reply(backend: LlamaBackend, body: dict[str, Any]) -> Any:
        calls: dict[int, list[str]] = {}
        text = ""
        async for piece in backend.chat(parse_request(json.dumps(body).encode())):
            if isinstance(piece, CallPiece):
                call = calls.setdefault(piece.index, ["", ""])
                call[0] += piece.name or ""
                call[1] += piece.arguments
            elif isinstance(piece, TextPiece):
                text += piece.text
        return list(calls.values()) or text

    async def all_replies(backend: LlamaBackend) -> list[Any]:
        return [await reply(backend, body) for body in turns()]

    with tempfile.TemporaryDirectory() as folder:
        backend = LlamaBackend(path, name=path.stem, digest="", kept_folder=Path(folder))
        try:
            backend.engine.wait_ready()
            return asyncio.run(all_replies(backend))
        finally:
            backend.close()
