"""Everything that reads a store, as the library and as the page does it."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import HarnessError
from harness.store import Store
from web import PageConfig, create_app
from web.services import KEY

PORT = 8000
ORIGIN = f"http://127.0.0.1:{PORT}"
TOKEN = "a-start-up-token-for-tests"
NOBODY = "http://127.0.0.1:9/v1"


@dataclass(slots=True)
class Reading:
    """What could be read. `problem` is whatever was no clear error."""

    refused: str = ""
    """Why the store could not be opened at all, in words."""
    runs: dict[str, str] = field(default_factory=dict)
    """For each run the digest of all that was read of it, or the name of the error."""
    statuses: dict[str, int] = field(default_factory=dict)
    """For each address of the page its status."""
    problem: str | None = None


def read_everything(path: Path, run_ids: tuple[str, ...]) -> Reading:
    """Read the store in every way there is. To be called in a child process."""
    reading = Reading()
    logging.disable(logging.CRITICAL)
    try:
        _read_as_library(path, run_ids, reading)
        _read_as_page(path, run_ids, reading)
    except HarnessError as error:
        reading.refused = f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 - exactly what must not come
        reading.problem = f"{type(error).__name__}: {error}"
    return reading


def _read_as_library(path: Path, run_ids: tuple[str, ...], reading: Reading) -> None:
    with Store.open(path) as store:
        for run_id in run_ids:
            try:
                state = store.load(run_id).model_dump_json()
                lines = "\n".join(store.event_lines(run_id))
                store.events(run_id)
                store.carrier(run_id)
            except HarnessError as error:
                reading.runs[run_id] = type(error).__name__
            else:
                whole = f"{state}\n{lines}".encode("utf-8", "surrogatepass")
                reading.runs[run_id] = hashlib.sha256(whole).hexdigest()
        try:
            store.runs()
        except HarnessError as error:
            reading.runs["(the list)"] = type(error).__name__


def _read_as_page(path: Path, run_ids: tuple[str, ...], reading: Reading) -> None:
    config = PageConfig(store=path, base_url=NOBODY, scripted_url=None, port=PORT, token=TOKEN)
    app = create_app(config)
    app.config["PROPAGATE_EXCEPTIONS"] = False
    try:
        client = app.test_client()
        client.get(f"/?token={TOKEN}", base_url=ORIGIN)
        for address in _addresses(run_ids):
            with client.get(address, base_url=ORIGIN) as answer:
                answer.get_data()
                reading.statuses[address] = answer.status_code
    finally:
        app.extensions[KEY].close()
    bad = {at: status for at, status in reading.statuses.items() if status == 500}
    if bad:
        reading.problem = f"the page says 500 for {', '.join(bad)}"


def _addresses(run_ids: tuple[str, ...]) -> Iterator[str]:
    yield from ("/", "/news", "/model", "/compare", "/?q=a&ending=completed")
    for run_id in run_ids:
        yield f"/runs/{run_id}"
        for part in ("transcript", "trace", "trace.jsonl", "events/2", "news"):
            yield f"/runs/{run_id}/{part}"
    yield "/compare?" + "&".join(f"run={run_id}" for run_id in run_ids)
