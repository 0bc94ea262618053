"""llama.cpp's library: loaded at first use, quiet, its last errors kept for messages."""

from __future__ import annotations

import ctypes
import importlib
import os
from collections import deque
from functools import cache
from typing import Any

from local import cpus

SPINS = "5000"
"""How often a waiting compute thread looks again before it sleeps.

OpenMP's own setting lets it spin for milliseconds, which is quickest on an idle machine and
ruinous as soon as another program wants one of the CPUs: each of the hundreds of barriers of a
step then waits for the scheduler. Measured on 2 CPUs that others were using too: 0.6 tokens/s
with the default, 33 with this; on an idle machine no difference. See docs/performance.md.
"""
_ERROR_LEVEL = 4
_ERRORS_KEPT = 20


class NativeError(Exception):
    """The library is missing or will not do what it is asked; the message says which."""


class Native:
    """The bindings (`lib`), and the library's last words about errors."""

    def __init__(self) -> None:
        """Load the library.

        Raises:
            NativeError: where it is not installed or does not start.
        """
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
        os.environ.setdefault("GGML_CPU_TILED_MM", "0")
        try:
            # Typed as Any: the bindings are ctypes functions, whose types say little.
            self.lib: Any = importlib.import_module("llama_cpp.llama_cpp")
        except (ImportError, OSError, RuntimeError) as error:
            raise NativeError(
                f"llama-cpp-python cannot be used: {error}. Run ./scripts/start, which builds it."
            ) from error
        self._errors: deque[str] = deque(maxlen=_ERRORS_KEPT)
        # Kept: the library goes on calling it.
        self._log = self.lib.llama_log_callback(self._on_log)
        self.lib.llama_log_set(self._log, None)
        self.lib.llama_backend_init()
        self.kernels = self._kernels()
        info = self.lib.llama_print_system_info().decode()
        self.build = f"{self._package_version()} {info} {self.kernels or ''}".strip()

    def last_errors(self) -> str:
        """What the library complained of last, as one line; empty when it did not."""
        return " ".join(self._errors)

    def forget_errors(self) -> None:
        """Begin anew, before something that may fail."""
        self._errors.clear()

    def _on_log(self, level: int, text: bytes, _user: Any) -> None:
        if level == _ERROR_LEVEL:
            self._errors.append(text.decode(errors="replace").strip())

    def _kernels(self) -> str | None:
        """Which kernels of ours (see server/kernels) the library has for this CPU, if any."""
        try:
            # Looked for in the libraries that libllama itself needs, too.
            function = self.lib._lib.uitweg_kernels
        except AttributeError:
            return None  # a wheel that was not built here
        function.restype = ctypes.c_char_p
        name: bytes | None = function()
        return name.decode() if name else None

    @staticmethod
    def _package_version() -> str:
        return str(importlib.import_module("llama_cpp").__version__)


@cache
def native() -> Native:
    """The one library of this process."""
    return Native()


def pin_threads() -> None:
    """Let every compute thread keep to one CPU, where they fill all there are.

    For a process that only serves, before the library is loaded: OpenMP also holds the thread
    that computes first to a CPU, and with it whatever that thread starts.

    A thread that may move is often woken on the CPU of the one that wakes it; then the two take
    turns. Measured on 2 CPUs, a token: beside another program 65 ms instead of 100, two servers
    at once 69 instead of 119, alone the same. Where there are more CPUs than threads, the same
    few would be taken by every such program, so nothing is pinned there.
    """
    if cpus.threads() == cpus.affinity():
        os.environ.setdefault("OMP_PROC_BIND", "true")
        os.environ.setdefault("OMP_PLACES", "threads")


class Flag:
    """One bit that the library reads while it computes, without asking Python.

    Its abort callback is called for every node of the graph, hundreds of times a step; a Python
    function there would have to take the interpreter's lock each time. So the callback is the C
    library's own `strlen` over two bytes of ours: it returns 0 while the first is zero and 1
    when it is set, which is just what the callback has to return.
    """

    def __init__(self) -> None:
        """A flag that is not set."""
        # Longer than it need be: strlen may read a whole vector register.
        self._bytes = ctypes.create_string_buffer(64)
        self.address = ctypes.addressof(self._bytes)
        self.function = ctypes.cast(ctypes.CDLL(None).strlen, ctypes.c_void_p).value

    def raise_(self) -> None:
        """Set it."""
        self._bytes[0] = b"\x01"

    def lower(self) -> None:
        """Clear it."""
        self._bytes[0] = b"\x00"
