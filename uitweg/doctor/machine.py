"""What this machine needs for a run, looked at piece by piece."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator

from harness import telemetry
from harness.errors import HarnessError
from harness.store import Store
from local import folders
from models.errors import ModelError, NotFetched
from models.store import Store as Models
from uitweg.config import Held
from uitweg.doctor.check import Check
from uitweg.doctor.ports import check_ports

ROOM = 2_000_000_000
"""Bytes for a model, and for what is built around it."""
MODEL_MEMORY = 1_000_000_000
"""Bytes for the default model: its weights of 0.5 GB, its context and its buffers."""
RUN_ROOM = 200_000_000
"""Bytes for runs."""


def check_machine(held: Held) -> Iterator[Check]:
    """Everything but the endpoint."""
    yield _python()
    yield _venv()
    yield from _engine()
    yield _memory()
    yield from _disk()
    yield from _model()
    yield _store()
    yield from check_ports(held.config.ports)
    yield from _own(held)
    yield from _traces()


def _traces() -> Iterator[Check]:
    address = os.environ.get(telemetry.ENDPOINT)
    if address and telemetry.available():
        yield Check("traces", "ok", f"go to {address}")
    elif address:
        advice = f"{sys.executable} -m pip install opentelemetry-sdk "
        advice += "opentelemetry-exporter-otlp-proto-http"
        found = f"{telemetry.ENDPOINT} is set, but its packages are missing"
        yield Check("traces", "note", found, advice)


def _python() -> Check:
    version = platform.python_version()
    if (3, 11) <= sys.version_info[:2] <= (3, 13):
        return Check("python", "ok", version)
    return Check("python", "wrong", version, "Use Python 3.11, 3.12 or 3.13.")


def _venv() -> Check:
    if sys.prefix != sys.base_prefix:
        return Check("environment", "ok", sys.prefix)
    return Check(
        "environment", "note", f"the system's own at {sys.prefix}", "Better: ./scripts/start"
    )


def _engine() -> Iterator[Check]:
    """The engine, and the compiler where it has still to be built."""
    # In a process of its own: one that is built for another CPU ends it instead of raising.
    code = (
        "import llama_cpp; from server.engine.native import native; "
        "print(llama_cpp.__version__); print(native().kernels or '')"
    )
    command = [sys.executable, "-W", "ignore", "-c", code]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    if tried.returncode:
        reason = (tried.stderr.strip().splitlines() or [f"exit code {tried.returncode}"])[-1]
        compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
        yield Check("engine", "wrong", f"llama-cpp-python: {reason}", "Build it: ./scripts/start")
        if compiler:
            yield Check("compiler", "ok", f"{shutil.which(compiler)}")
        else:
            where = "xcode-select --install" if sys.platform == "darwin" else "apt install g++"
            yield Check("compiler", "wrong", "no C++ compiler", f"Install one: {where}")
        return
    version, kernels, *_ = [*tried.stdout.splitlines(), ""]
    if kernels:
        wide = kernels.partition(" ")[0]
        yield Check("engine", "ok", f"llama-cpp-python {version}, our kernels, {wide} lanes")
    else:
        advice = "Ours need x86-64 with AVX2, and a C++ compiler when ./scripts/start builds them."
        yield Check("engine", "note", f"llama-cpp-python {version}, its own kernels", advice)


def _memory() -> Check:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    needed = MODEL_MEMORY
    found = f"{total / 1e9:.1f} GB"
    if total >= needed:
        return Check("memory", "ok", found)
    advice = f"The default model wants {needed / 1e9:.1f} GB. Take a smaller one with --model."
    return Check("memory", "wrong", found, advice)


def _disk() -> Iterator[Check]:
    for name, folder, needed in (
        ("disk for models", folders.cache(), ROOM),
        ("disk for runs", folders.data(), RUN_ROOM),
    ):
        there = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(there).free
        found = f"{free / 1e9:.1f} GB free at {folder}"
        if not os.access(there, os.W_OK):
            variable = "UITWEG_CACHE" if name.endswith("models") else "UITWEG_DATA"
            advice = f"Make it writable, or name another folder in {variable}."
            yield Check(name, "wrong", f"{there} cannot be written", advice)
        elif free < needed:
            yield Check(name, "wrong", found, f"Free {needed / 1e9:.1f} GB there.")
        else:
            yield Check(name, "ok", found)


def _model() -> Iterator[Check]:
    """The default model or what stands in for it; and every other file that is here."""
    try:
        models = Models()
    except ModelError as error:  # the list of added models is damaged
        yield Check("model", "wrong", *_split(str(error)))
        return
    good: list[str] = []
    for model in (*models.catalogue.models, *models.catalogue.added):
        try:
            models.verify(model.name)
            good.append(model.name)
        except NotFetched:
            continue
        except ModelError as error:
            yield Check("model", "wrong", *_split(str(error)))
    if good:
        yield Check("model", "ok", ", ".join(good))
    else:
        yield Check("model", "note", "none is here yet", "Get it: uitweg models fetch")


def _split(message: str) -> tuple[str, str]:
    found, _, advice = message.partition(". ")
    return found, advice


def _store() -> Check:
    path = folders.data() / "runs.db"
    if not path.exists():
        return Check("runs", "ok", "none yet")
    try:
        with Store.open(path) as store:
            runs = store.runs(limit=1000)
    except HarnessError as error:
        return Check("runs", "wrong", f"{path}: {error}", "Move that file away to begin anew.")
    return Check("runs", "ok", f"{path}, {len(runs):,} runs")


def _own(held: Held) -> Iterator[Check]:
    """The person's own tools and servers, where there are any."""
    from uitweg.own import own_tools

    if not (held.config.tools or held.config.mcp):
        return
    try:
        with own_tools(held.config) as own:
            yield Check("own tools", "ok", ", ".join(own))
    except HarnessError as error:
        yield Check("own tools", "wrong", str(error), "See docs/tools.md.")
