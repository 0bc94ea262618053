"""`python -m uitweg.hosted [--used-by FILE] serve …`: a command that ends when its parent does.

The parent holds the other end of standard input. However the parent ends, even
killed, that end is closed, and the command is told to stop as by Ctrl-C: at once,
or when the last of those who hold FILE locked has ended as well.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading
import time

from uitweg.main import main

_LAST_SECONDS = 15.0


def _watch_parent(users: str | None) -> None:
    while os.read(0, 4096):
        pass
    if users is not None:
        # Kept to the end, so that whoever comes now waits and then starts one of their own.
        fcntl.flock(os.open(users, os.O_RDWR | os.O_CREAT, 0o600), fcntl.LOCK_EX)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_LAST_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    used_by = None
    if sys.argv[1:2] == ["--used-by"]:
        used_by = sys.argv[2]
        del sys.argv[1:3]
    threading.Thread(target=_watch_parent, args=(used_by,), name="parent", daemon=True).start()
    sys.argv[0] = "uitweg"
    main()
