"""`python -m uitweg.hosted serve …`: a command that ends when its parent does.

The parent holds the other end of standard input. However the parent ends, even
killed, that end is closed, and the command is told to stop as by Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from uitweg.main import main

_LAST_SECONDS = 15.0


def _watch_parent() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_LAST_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_watch_parent, name="parent", daemon=True).start()
    sys.argv[0] = "uitweg"
    main()
