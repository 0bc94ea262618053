"""The demo workspace: three small files to try an agent on, and an archive to scan.

errors.log is the largest and the only one that mentions a timeout; notes.txt is the one about
rotating logs. Published token counts rest on the text of errors.log. The archive's name begins
with a dot, so that it is not listed among the files.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from harness.tools.archive import DEMO_SECONDS, write_demo_archive

DEMO_FILES = ("access.log", "errors.log", "notes.txt")
DEMO_ARCHIVE = ".archive.zip"


def copy_demo(target: Path, archive_seconds: float | None = DEMO_SECONDS) -> Path:
    """Write the demo's files to the folder `target`, made where missing, and return it.

    A file that is there already is left as it is.

    Args:
        target: The folder.
        archive_seconds: How long a scan of the archive takes; `None` for no archive.
    """
    target.mkdir(parents=True, exist_ok=True)
    for name in DEMO_FILES:
        data = resources.files("harness.demo").joinpath(name).read_bytes()
        try:
            with (target / name).open("xb") as file:
                file.write(data)
        except FileExistsError:
            continue
    if archive_seconds is not None and not (target / DEMO_ARCHIVE).exists():
        write_demo_archive(target / DEMO_ARCHIVE, archive_seconds)
    return target
