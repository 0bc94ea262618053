"""The demo workspace: three small files to try an agent on.

errors.log is the largest and the only one that mentions a timeout; notes.txt is the one about
rotating logs. Published token counts rest on the text of errors.log.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

DEMO_FILES = ("access.log", "errors.log", "notes.txt")


def copy_demo(target: Path) -> Path:
    """Write the demo's files to the folder `target`, made where missing, and return it.

    A file that is there already is left as it is.
    """
    target.mkdir(parents=True, exist_ok=True)
    for name in DEMO_FILES:
        data = resources.files("harness.demo").joinpath(name).read_bytes()
        try:
            with (target / name).open("xb") as file:
                file.write(data)
        except FileExistsError:
            continue
    return target
