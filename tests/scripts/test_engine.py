"""Where the wheel of llama-cpp-python comes from. The real build is what ./scripts/start does."""

import hashlib
import platform
import shutil
import stat
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

WHEEL = b"PK not really a wheel" * 1000
NAME = f"llama_cpp_python-0.3.36-py3-none-linux_{platform.machine()}.whl"
linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the stand-in offers a wheel for Linux"
)


@pytest.fixture
def engine(script):
    return script("engine")


@pytest.fixture
def page():
    """A stand-in for the project's page of wheels: `page.files[path] = bytes`, `page.url`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = self.server.files.get(self.path)
            if self.server.silent:
                self.server.silent.wait(10)
                return
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write((body or b"")[: self.server.most])

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files, server.silent, server.most = {}, None, None
    server.url = f"http://127.0.0.1:{server.server_port}/whl/cpu/llama-cpp-python/"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def offer(page, name=NAME, digest=None):
    digest = digest or hashlib.sha256(WHEEL).hexdigest()
    page.files["/whl/cpu/llama-cpp-python/"] = (
        '<a href="/whl/llama_cpp_python-0.3.35-py3-none-any.whl">old</a>'
        f'<a href="../../{name}#sha256={digest}">{name}</a>'
    ).encode()
    page.files[f"/whl/{name}"] = WHEEL


@linux
def test_a_ready_made_wheel_is_taken(engine, page, tmp_path):
    offer(page)
    taken = engine.prebuilt(tmp_path / "kept", page.url)
    assert taken == tmp_path / "kept" / NAME
    assert taken.read_bytes() == WHEEL
    page.files.clear()
    assert engine.prebuilt(tmp_path / "kept", page.url) == taken


@linux
@pytest.mark.parametrize("wrong", ["version", "system", "digest", "unsaid", "short", "gone"])
def test_any_other_wheel_is_not(engine, page, tmp_path, wrong):
    offer(page)
    if wrong == "version":
        offer(page, NAME.replace("0.3.36", "0.3.37"))
    elif wrong == "system":
        offer(page, NAME.replace("linux_", "win_"))
    elif wrong == "digest":
        offer(page, digest="0" * 64)
    elif wrong == "unsaid":
        index = page.files["/whl/cpu/llama-cpp-python/"]
        page.files["/whl/cpu/llama-cpp-python/"] = index.replace(b"#sha256=", b"#")
    elif wrong == "gone":
        del page.files[f"/whl/{NAME}"]
    else:
        page.most = 5000
    assert engine.prebuilt(tmp_path / "kept", page.url) is None
    assert not list(tmp_path.glob("kept/*"))


def test_a_page_that_does_not_answer_holds_nobody_up(engine, page, tmp_path, monkeypatch):
    page.silent = threading.Event()
    monkeypatch.setattr(engine, "PREBUILT_SECONDS", 0.1)
    assert engine.prebuilt(tmp_path, page.url) is None
    page.silent.set()


@pytest.mark.parametrize(
    ("system", "machine", "name", "fits"),
    [
        ("Linux", "x86_64", "linux_x86_64", True),
        ("Linux", "x86_64", "manylinux_2_17_x86_64.manylinux2014_x86_64", True),
        ("Linux", "x86_64", "musllinux_1_2_x86_64", False),
        ("Linux", "x86_64", "linux_aarch64", False),
        ("Linux", "aarch64", "manylinux_2_17_aarch64", True),
        ("Linux", "x86_64", "macosx_11_0_arm64", False),
        ("Darwin", "arm64", "macosx_11_0_arm64", True),
        ("Darwin", "arm64", "macosx_15_0_arm64", False),
        ("Darwin", "x86_64", "macosx_11_0_arm64", False),
        ("Darwin", "arm64", "linux_x86_64", False),
    ],
)
def test_a_wheel_fits_by_its_platform_tag(engine, monkeypatch, system, machine, name, fits):
    monkeypatch.setattr(engine.platform, "system", lambda: system)
    monkeypatch.setattr(engine.platform, "machine", lambda: machine)
    monkeypatch.setattr(engine.platform, "libc_ver", lambda: ("glibc", "2.36"))
    monkeypatch.setattr(engine.platform, "mac_ver", lambda: ("14.5", ("", "", ""), machine))
    assert engine.fits(f"llama_cpp_python-0.3.36-py3-none-{name}.whl") is fits


def test_amx_is_left_out(engine):
    assert engine.has_amx("#define __AMX_TILE__ 1")
    assert not engine.has_amx("#define __AVX512F__ 1")


def fake(path, body):
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_no_compiler_says_which_package_brings_it(engine, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(Exception, match=r"build-essential(?s:.*)xcode-select --install"):
        engine.plan(tmp_path)
    fake(tmp_path / "c++", "exit 1")  # as on a Mac without its tools
    assert engine.find_compiler() is None


def test_another_compiler_or_cpu_is_another_wheel(engine, monkeypatch, tmp_path):
    def planned(body):
        monkeypatch.setenv("CXX", str(fake(tmp_path / "cxx", body)))
        return engine.plan(tmp_path)

    plain, config = planned("echo 12.2")
    assert planned("echo 12.2")[0] == plain
    assert planned("echo 13.1")[0] != plain
    assert "-mno-amx-tile" not in config
    with_amx, config = planned("echo '#define __AMX_TILE__ 1'")
    assert with_amx != plain
    assert "-mno-amx-tile" in config


def test_other_kernels_are_another_wheel(engine, monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", str(fake(tmp_path / "cxx", "echo 12.2")))
    before, config = engine.plan(tmp_path)
    assert "kernels.cmake" in config
    assert str(engine.KERNELS) not in config  # the same wheel serves every clone
    folder = tmp_path / "kernels"
    shutil.copytree(engine.KERNELS, folder)
    monkeypatch.setattr(engine, "KERNELS", folder)
    assert engine.plan(tmp_path)[0] == before
    (folder / "matmul.cpp").write_text("// another")
    assert engine.plan(tmp_path)[0] != before


BUILDER = """
case "$*" in *--require-hashes*) ;; *) exit 9 ;; esac
while [ $# -gt 0 ]; do [ "$1" = --wheel-dir ] && out=$2; shift; done
mkdir -p "$out"
[ -e "$out/../kernels/kernels.cmake" ] || exit 8
echo "  [1/83] cc"; echo "  [83/83] cc"
[ -e "$out/../../../fail" ] && { echo "error: no such header"; exit 1; }
echo wheel > "$out/llama_cpp_python-0.3.36-py3-none-any.whl"
"""


def test_a_build_is_kept_and_not_done_again(engine, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(engine, "PREBUILT", "http://127.0.0.1:9/")
    python = fake(tmp_path / "python", BUILDER)
    wheel = engine.built(python, tmp_path)
    assert wheel.read_text() == "wheel\n"
    assert "Building llama.cpp for this CPU: done in" in capsys.readouterr().err
    assert engine.wheel(python, tmp_path) == engine.built(python, tmp_path) == wheel
    assert capsys.readouterr().err == ""


def test_a_variable_that_a_build_follows_is_another_wheel(engine, monkeypatch, tmp_path):
    before, _ = engine.plan(tmp_path)
    monkeypatch.setenv("CMAKE_ARGS", "-DGGML_NATIVE=OFF")
    assert engine.plan(tmp_path)[0] != before


@linux
@pytest.mark.parametrize("why", ["no compiler", "no such header"])
def test_a_ready_made_wheel_is_taken_where_none_can_be_built(
    engine, script, page, monkeypatch, tmp_path, capsys, why
):
    python = fake(tmp_path / "python", BUILDER)
    if why == "no compiler":
        monkeypatch.setattr(engine, "find_compiler", lambda: None)
    else:
        (tmp_path / "fail").touch()
    monkeypatch.setattr(engine, "prebuilt", lambda folder: None)
    with pytest.raises(script("steps").SetupError, match=f"{why}|no C"):
        engine.wheel(python, tmp_path)
    monkeypatch.setattr(engine, "prebuilt", lambda folder: folder / NAME)
    assert engine.wheel(python, tmp_path).name == NAME
    said = capsys.readouterr().err
    assert "several times slower" in said
    assert why in said or "build-essential" in said


def test_a_build_that_fails_is_not_kept(engine, script, tmp_path):
    (tmp_path / "fail").touch()
    python = fake(tmp_path / "python", BUILDER)
    with pytest.raises(script("steps").SetupError, match="no such header") as error:
        engine.built(python, tmp_path)
    assert str(tmp_path / "logs" / "build-llama.log") in str(error.value)
    (tmp_path / "fail").unlink()
    assert engine.built(python, tmp_path).exists()


def test_the_progress_of_ninja_and_of_make_is_read(engine):
    seen = []

    class Step:
        def at(self, done, total, unit):
            seen.append((done, total))

    for line in ("  [12/83] /usr/bin/g++ -DX", "[ 14%] Building", "-- Found [3/4]", "[x/y]"):
        engine._show(Step(), line)
    assert seen == [(12, 83), (14, 100)]
