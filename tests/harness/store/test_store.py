import asyncio
import contextlib
import multiprocessing
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.errors import (
    LeaseLost,
    NoSuchRun,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
)
from harness.journal import Journal
from harness.scripted_model import Call
from harness.state import Limits
from harness.store import Store
from harness.store.schema import MIGRATIONS

READ = Call("read_file", {"path": "errors.log"})


async def test_what_is_read_is_what_was_carried(runner, settings, store):
    state = await runner([READ, READ, Call("nothing")], "done").start("t", settings())
    assert store.load(state.run_id) == state
    with Store.open(store.path) as other:
        assert other.load(state.run_id) == state
        assert other.events(state.run_id) == store.events(state.run_id)
        assert other.event_lines(state.run_id, after=2, limit=1)[0].startswith('{"runId":')


async def test_the_list_is_filtered_and_paged_newest_first(runner, settings, store):
    carrier = runner("The file errors.log.")
    for number in range(5):
        await carrier.start(f"Task {number}", settings(model="even" if number % 2 == 0 else "odd"))
    await runner(READ).start("Endless", settings(limits=Limits(max_turns=1)))
    tasks = [run.task for run in store.runs()]
    assert tasks == ["Endless", "Task 4", "Task 3", "Task 2", "Task 1", "Task 0"]
    assert [run.task for run in store.runs(model="odd")] == ["Task 3", "Task 1"]
    assert [run.task for run in store.runs(status="max_turns_exceeded")] == ["Endless"]
    assert [run.task for run in store.runs(text="tASK 2")] == ["Task 2"]
    assert len(store.runs(text="ERRORS.LOG")) == 5
    assert [run.task for run in store.runs(text="ERRORS", model="odd", limit=1)] == ["Task 3"]
    first = store.runs(limit=2)
    assert [run.task for run in store.runs(limit=2, before=first[-1].number)] == tasks[2:4]
    assert store.runs(status="max_turns_exceeded")[0].interruption_kind == "max_turns"


async def test_a_run_is_found_by_the_beginning_of_its_id(runner, settings, store):
    carrier = runner("done")
    for run_id in ("ab1", "ab2", "a%c", "b"):
        await carrier.start("t", settings(), run_id=run_id)
    assert sorted(store.ids_beginning("ab")) == ["ab1", "ab2"]
    assert store.ids_beginning("a%") == ["a%c"]
    assert store.ids_beginning("c") == []


def test_what_is_not_there_is_said(store):
    with pytest.raises(NoSuchRun, match="no run nothing"):
        store.load("nothing")
    with pytest.raises(NoSuchRun):
        store.events("nothing")
    assert store.runs() == []


async def test_a_step_of_somebody_who_lost_the_run_fails_alone(runner, settings, store):
    state = await runner(READ).start("t", settings(limits=Limits(max_turns=1)))
    with store.claim(state.run_id):
        old, _ = store.acquire(state.run_id, ("max_turns_exceeded",)).result()
        journal = Journal(store, old, state)
        new, _ = store.acquire(state.run_id, ("max_turns_exceeded",)).result()
        assert new.epoch == old.epoch + 1
        journal.stage(reason="late", release=True)
        late = store.commit(journal.take())
        fresh = Journal(store, new, state)
        fresh.stage(reason="in time", release=True)
        good = store.commit(fresh.take())
        with pytest.raises(LeaseLost):
            late.result()
        good.result()
    assert store.load(state.run_id).reason == "in time"


async def test_a_step_after_one_that_failed_is_not_written_either(runner, settings, store):
    from harness.events import Guidance

    state = await runner(READ).start("t", settings(limits=Limits(max_turns=1)))
    with store.claim(state.run_id):
        lease, _ = store.acquire(state.run_id, ("max_turns_exceeded",)).result()
        journal = Journal(store, lease, state)
        journal.stage(Guidance(run_id=state.run_id, policy="p", detail="lost"))
        journal.take()
        journal.stage(Guidance(run_id=state.run_id, policy="p", detail="after a hole"))
        with pytest.raises(LeaseLost):
            store.commit(journal.take()).result()
    assert store.load(state.run_id) == state


def test_an_empty_store_and_the_oldest_one_come_to_the_same_tables(tmp_path: Path):
    def tables(path: Path) -> list[tuple[str, str]]:
        connection = sqlite3.connect(path)
        rows = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
        assert connection.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
        connection.close()
        return rows

    Store.open(tmp_path / "new.db").close()
    oldest = Path(__file__).parent / "fixtures" / "store_v1.db"
    shutil.copy(oldest, tmp_path / "old.db")
    with Store.open(tmp_path / "old.db") as store:
        states = [store.load(run.run_id) for run in store.runs()]
        assert {state.status for state in states} == {"completed", "interrupted"}
        assert all(store.events(state.run_id) for state in states)
    assert tables(tmp_path / "old.db") == tables(tmp_path / "new.db")


def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(tmp_path: Path):
    path = tmp_path / "runs.db"
    Store.open(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreTooNew, match="newer"):
        Store.open(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"not a database at all" * 100, b"\0" * 8192], ids=["text", "zeros"]
)
def test_a_file_that_is_no_store_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes):
    path = tmp_path / "runs.db"
    path.write_bytes(content)
    with pytest.raises(StoreDamaged):
        Store.open(path)
    assert path.read_bytes() == content


def test_the_database_of_another_program_is_refused(tmp_path: Path):
    path = tmp_path / "runs.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    with pytest.raises(StoreDamaged, match="another program"):
        Store.open(path)


def test_a_folder_that_cannot_be_made_or_written_is_said(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreReadOnly, match="UITWEG_DATA"):
        Store.open(tmp_path / "file" / "runs.db")


async def test_a_damaged_run_is_said_and_others_are_readable(runner, settings, store):
    carrier = runner(READ, "done")
    bad = await carrier.start("bad", settings())
    good = await carrier.start("good", settings())
    connection = sqlite3.connect(store.path)
    connection.execute("UPDATE messages SET body = substr(body, 1, 9) WHERE at < (2 << 32)")
    connection.commit()
    connection.close()
    with pytest.raises(StoreDamaged, match=bad.run_id):
        store.load(bad.run_id)
    assert store.load(good.run_id) == good
    assert len(store.runs()) == 2


async def test_readers_in_other_processes_never_hold_a_run_up(runner, settings, store):
    """A second process reads as fast as it can while a run is carried here."""
    code = (
        "import sys\nfrom harness.store import Store\n"
        "print('ready', flush=True)\n"
        "with Store.open(sys.argv[1]) as store:\n"
        "    count = 0\n"
        "    while True:\n"
        "        for run in store.runs():\n"
        "            store.load(run.run_id)\n"
        "            events = store.events(run.run_id)\n"
        "            assert [e.seq for e in events] == list(range(1, len(events) + 1))\n"
        "            if events and events[-1].type == 'run_stopped': sys.exit()\n"
    )
    reader = subprocess.Popen(
        [sys.executable, "-c", code, str(store.path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert reader.stdout.readline() == "ready\n"
        state = await runner(*[READ] * 20, "done").start(
            "t", settings(dedupe="none", limits=Limits(max_turns=30))
        )
        assert state.status == "completed"
        assert reader.wait(timeout=60) == 0
    finally:
        reader.kill()
        reader.wait()
        reader.stdout.close()


def test_a_closed_store_says_so(store):
    store.close()
    with pytest.raises(StoreClosed):
        store.runs()
    with pytest.raises(StoreClosed):
        store.request_cancel("x", "y")


def _in_a_fork(store: Store, pipe) -> None:
    answers = []
    for attempt in (store.runs, lambda: store.request_cancel("x", "y")):
        try:
            attempt()
            answers.append("it worked")
        except StoreClosed as error:
            answers.append(str(error))
    pipe.send(answers)


def test_a_store_does_not_survive_a_fork(store):
    store.runs()
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_in_a_fork, args=(store, there))
    process.start()
    assert all("opened before a fork" in answer for answer in here.recv())
    process.join()
    here.close()
    there.close()
    assert store.runs() == []


async def test_many_threads_may_read_at_once(runner, settings, store):
    state = await runner(READ, "done").start("t", settings())
    problems: list[Exception] = []

    def read() -> None:
        try:
            for _ in range(20):
                assert store.load(state.run_id) == state
        except Exception as error:  # noqa: BLE001 - looked at below
            problems.append(error)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert problems == []


@pytest.fixture
def small_disk(tmp_path: Path):
    """A file system of 1 MB, where this process may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("no right to mount a small file system here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)


async def test_a_full_disk_is_said_and_what_is_there_stays_readable(
    runner, settings, small_disk: Path
):
    with Store.open(small_disk / "runs.db") as store:
        carrier = runner(READ, "done", store=store)
        first = await carrier.start("t", settings())
        fill(small_disk / "filler")
        with pytest.raises(StoreFull, match="full"):
            await carrier.start("t" * 100_000, settings())
        assert store.load(first.run_id) == first
        (small_disk / "filler").unlink()
        again = await carrier.start("t", settings())
        assert [run.run_id for run in store.runs()] == [again.run_id, first.run_id]


async def test_a_store_that_cannot_be_written_can_still_be_read(runner, settings, small_disk: Path):
    path = small_disk / "runs.db"
    with Store.open(path) as store:
        async with runner(READ, "done", store=store) as carrier:
            state = await carrier.start("t", settings())
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with Store.open(path) as store:
        assert store.load(state.run_id) == state
        with pytest.raises(StoreReadOnly, match="cannot be written"):
            await runner("done", store=store).start("t", settings())
        with pytest.raises(StoreReadOnly):
            store.request_cancel(state.run_id, "x").result()


def test_every_error_of_sqlite_has_a_typed_one(tmp_path: Path):
    from harness.store.files import typed

    for name in dir(sqlite3):
        if name.startswith("SQLITE_") and isinstance(getattr(sqlite3, name), int):
            error = sqlite3.OperationalError("words")
            error.sqlite_errorcode = getattr(sqlite3, name)
            assert isinstance(typed(error, tmp_path), StoreError)
