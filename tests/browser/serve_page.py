"""Serves the page in a process of its own, for tests that kill it.

python serve_page.py DATA_FOLDER PORT SCRIPTED_URL REAL_URL TOKEN
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

from web import PageConfig, serve


def main() -> None:
    data, port, scripted, real, token = sys.argv[1:]
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    served = serve(
        PageConfig(
            store=Path(data) / "runs.db",
            base_url=real,
            scripted_url=scripted,
            port=int(port),
            token=token,
        )
    )
    sys.stdout.write(f"{served.url}\n")
    sys.stdout.flush()
    stopping.wait()
    served.stop()


if __name__ == "__main__":
    main()
