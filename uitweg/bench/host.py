"""Serve one file for a benchmark: `python -m uitweg.bench.host FILE DIGEST CONTEXT KEPT`."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Print the address, then serve until ended."""
    from server.engine.backend import LlamaBackend
    from server.engine.native import pin_threads
    from server.run import bind, run

    pin_threads()
    path, digest, context, kept = sys.argv[1:]
    backend = LlamaBackend(
        Path(path), name="bench", digest=digest, context=int(context), kept_folder=Path(kept)
    )
    with bind("127.0.0.1", 0) as bound:
        sys.stdout.write(f"http://127.0.0.1:{bound.getsockname()[1]}\n")
        sys.stdout.flush()
        run(backend, bound, host="127.0.0.1", token=None, say=lambda _line: None)


if __name__ == "__main__":
    main()
