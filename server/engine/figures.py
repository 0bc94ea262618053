"""What the engine counts, and its Prometheus text."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

_HELP = {
    "requests": "Requests that were taken into the queue.",
    "refused": "Requests that were refused because the queue was full.",
    "cancelled": "Requests whose client went away.",
    "failed": "Requests that ended by an error.",
    "prompt_tokens": "Prompt tokens of all requests.",
    "cached_tokens": "Prompt tokens that did not have to be computed.",
    "cache_hits": "Requests of which at least one prompt token was there already.",
    "shelf_loads": "Ended conversations that were put back into the KV cache.",
    "kept_loads": "Prefixes that were read from disk.",
    "kept_saves": "Prefixes that were written to disk.",
    "prefill_tokens": "Prompt tokens that were computed.",
    "prefill_seconds": "Time of the steps that computed prompt tokens.",
    "decode_tokens": "Reply tokens that were made.",
    "decode_seconds": "Time of the steps that made reply tokens only.",
    "steps": "Steps of the engine.",
    "drafted_tokens": "Tokens that were guessed from the conversation.",
    "accepted_tokens": "Guessed tokens that were right.",
    "grammar_refusals": "Tokens that a grammar refused.",
}


@dataclass(slots=True)
class Figures:
    """Counters since the start. One thread writes; a reader may see them between two writes."""

    requests: int = 0
    refused: int = 0
    cancelled: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    cache_hits: int = 0
    shelf_loads: int = 0
    kept_loads: int = 0
    kept_saves: int = 0
    prefill_tokens: int = 0
    prefill_seconds: float = 0.0
    decode_tokens: int = 0
    decode_seconds: float = 0.0
    steps: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    grammar_refusals: int = 0


def prometheus(figures: Figures, gauges: Mapping[str, tuple[str, float]]) -> str:
    """Prometheus text; `gauges`: a description and a value for each name."""
    lines: list[str] = []
    for field in fields(figures):
        lines += _metric(
            field.name + "_total", "counter", _HELP[field.name], getattr(figures, field.name)
        )
    for name, (help_text, value) in gauges.items():
        lines += _metric(name, "gauge", help_text, value)
    return "\n".join(lines) + "\n"


def _metric(name: str, kind: str, help_text: str, value: float) -> Iterable[str]:
    full = f"uitweg_engine_{name}"
    return f"# HELP {full} {help_text}", f"# TYPE {full} {kind}", f"{full} {value}"


def resident_bytes() -> int:
    """Memory of this process that is in RAM now; where that is not to be had, its peak."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return pages * resource.getpagesize()
