"""What the set-up shows while it works, and how it runs other programs. Standard library only."""

from __future__ import annotations

import fcntl
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

LOG_SECONDS = 10.0
"""Between two lines of figures where no terminal can overwrite the last one."""


class SetupError(Exception):
    """The set-up cannot go on; the message says what to do."""


def say(text: str) -> None:
    """One line for the person, on stderr: stdout belongs to what is started afterwards."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


class Step:
    """One long step: a name, figures while it goes on, the time it took at its end."""

    def __init__(self, name: str) -> None:
        """Args: name: what is being done, such as `Building llama.cpp`."""
        self.name = name
        self._began = time.monotonic()
        self._told = self._began
        self._first: tuple[float, int] | None = None
        self._terminal = sys.stderr.isatty()
        self._width = 0
        say(f"{name} …") if not self._terminal else self._overwrite(f"{name} …")

    def at(self, done: int, total: int, unit: str) -> None:
        """Tell how far it is, and judge by the units since the first one how long the rest takes.

        Args:
            done: units so far.
            total: units in all.
            unit: their name, in the plural.
        """
        now = time.monotonic()
        began, before = self._first = self._first or (now, done)
        if not self._terminal and now - self._told < LOG_SECONDS:
            return
        self._told = now
        text = f"{self.name}: {done} of {total} {unit}, {100 * done // max(total, 1)} %"
        if before < done < total:
            text += f", {duration((now - began) * (total - done) / (done - before))} left"
        if self._terminal:
            self._overwrite(text)
        else:
            say(text)

    def done(self, note: str = "") -> None:
        """Tell that it is finished."""
        text = f"{self.name}: done in {duration(time.monotonic() - self._began)}{note}."
        if self._terminal:
            self._overwrite(text)
            sys.stderr.write("\n")
        else:
            say(text)

    def _overwrite(self, text: str) -> None:
        sys.stderr.write(f"\r{text:<{self._width}}")
        sys.stderr.flush()
        self._width = len(text)


def duration(seconds: float) -> str:
    """A time for people: `9 s`, `2 min 16 s`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextmanager
def alone(path: Path, why_waiting: str) -> Iterator[None]:
    """Hold the lock of a file; say so when that means waiting for another process."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(why_waiting)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run(
    command: Sequence[str | Path],
    log: Path,
    on_line: Callable[[str], None] | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run a program; all that it prints goes into a file, and line by line to `on_line`
    too, if that is given.

    Raises:
        SetupError: it failed; the message has its last lines and the name of the file.
    """
    words = [str(word) for word in command]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as file:
        file.write(f"$ {shlex.join(words)}\n")
        with subprocess.Popen(  # noqa: S603  programs of this set-up's own choice
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=env,
        ) as process:
            assert process.stdout is not None  # noqa: S101  it is a pipe
            try:
                for line in process.stdout:
                    file.write(line)
                    if on_line is not None:
                        on_line(line)
            except BaseException:
                process.terminate()
                raise
    code = process.returncode
    if code:
        tail = log.read_text(encoding="utf-8").splitlines()[-12:]
        ending = "\n".join(f"    {line[:200]}" for line in tail)
        raise SetupError(
            f"{Path(words[0]).name} failed with code {code}. Its last lines:\n{ending}\n"
            f"Everything it said: {log}"
        )


def succeeds(command: Sequence[str | Path]) -> bool:
    """Whether a program that is run for its exit code alone ends well."""
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)  # noqa: S603
    return done.returncode == 0
