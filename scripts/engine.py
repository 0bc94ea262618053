"""The wheel of llama-cpp-python: taken from the cache, built here, or from its project.

A build for this very CPU answers fastest, but takes minutes, so its wheel is kept under a key of
everything that went into it, our own kernels included (see server/kernels). Of llama.cpp only the
libraries are built that the Python package loads: no tools, examples, tests, server, image support,
and not its `common` library, which brings a large HTTP library along. On 2 cores that halves the
time against all of them.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path

from steps import SetupError, Step, alone, run, say, succeeds

KERNELS = Path(__file__).resolve().parents[1] / "server" / "kernels"
"""C++ of our own, which is compiled into llama.cpp's library for the CPU."""

NAME, VERSION = "llama-cpp-python", "0.3.36"
SOURCE_SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"

PREBUILT = "https://abetlen.github.io/llama-cpp-python/whl/cpu/llama-cpp-python/"
PREBUILT_SECONDS = 3.0
"""How long that page may take; most people are not to wait for it."""

X86 = platform.machine().lower() in ("x86_64", "amd64")
OFF = (
    "LLAVA_BUILD",
    "LLAMA_BUILD_TOOLS",
    "LLAMA_BUILD_EXAMPLES",
    "LLAMA_BUILD_TESTS",
    "LLAMA_BUILD_SERVER",
    # These compute several rows in another way than one, so that a reply would depend on what else
    # the server does; and the second is of use only where there are no kernels of our own.
    "GGML_BLAS",
    *(("GGML_LLAMAFILE",) if X86 else ()),
    *(("GGML_METAL",) if sys.platform == "darwin" else ()),  # the CPU is what does the work
)
ENVIRONMENT = (
    "CC",
    "CFLAGS",
    "CMAKE_ARGS",
    "CXX",
    "CXXFLAGS",
    "LDFLAGS",
    "SKBUILD_CMAKE_ARGS",
    "SKBUILD_CMAKE_DEFINE",
    "SOURCE_DATE_EPOCH",
)
"""Variables that a build follows."""

CMAKE = """\
# Included by CMake right after llama.cpp's project(). A plain variable hides the cache entry that
# llama-cpp-python forces on, so that llama.cpp's common library is neither built nor installed.
set(LLAMA_BUILD_COMMON OFF)
# Compiling the many model files of libllama in batches saves reading the same headers again.
cmake_language(DEFER CALL set_target_properties llama PROPERTIES
               UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
"""
CMAKE_WITH_KERNELS = """\
include(${CMAKE_CURRENT_LIST_DIR}/kernels/kernels.cmake)
"""
CMAKE_WITHOUT_AMX = """\
# With AMX, llama.cpp would take the weights before our kernels could, and compute several rows in
# another way than one. And gcc takes the operand of _tile_loadconfig for 8 bytes, not 64, and drops
# the stores that fill the rest: the processor then faults on the first matrix.
cmake_language(DEFER CALL target_compile_options ggml-cpu PRIVATE
               -mno-amx-tile -mno-amx-int8 -mno-amx-bf16)
"""

COMPILERS = ("c++", "g++", "clang++")
NO_COMPILER = """\
llama.cpp has to be compiled for this CPU, and there is no C++ compiler. To get one:
  Debian, Ubuntu   sudo apt-get install build-essential
  Fedora           sudo dnf install gcc-c++ make
  macOS            xcode-select --install"""


def wheel(python: Path, cache: Path) -> Path:
    """A wheel for this machine: built for its CPU where that can be done, else a ready-made one.

    Args:
        python: has a pip that takes settings for a build.
        cache: where wheels are kept, and the logs of their builds.

    Raises:
        SetupError: there is neither a compiler that can build it nor a ready-made one.
    """
    try:
        return built(python, cache)
    except SetupError as error:
        ready = prebuilt(cache / "wheels" / "prebuilt")
        if ready is None:
            raise
        say(f"{error}\nUntil then a ready-made llama.cpp is used, which is several times slower.")
        return ready


def built(python: Path, cache: Path) -> Path:
    """A wheel that is built here for this CPU, now or before."""
    folder, config = plan(cache)
    with alone(folder / "lock", "Another set-up is building llama.cpp. Waiting for it."):
        kept = sorted(folder.glob("*.whl"))
        return kept[0] if kept else build(python, folder, config, cache / "logs")


def plan(cache: Path) -> tuple[Path, str]:
    """Where a wheel that is built here is kept, and what CMake is told for it."""
    compiler = find_compiler()
    if compiler is None:
        raise SetupError(NO_COMPILER)
    macros = native_macros(compiler)
    config = CMAKE + (CMAKE_WITHOUT_AMX if has_amx(macros) else "") + CMAKE_WITH_KERNELS
    return cache / "wheels" / key(compiler, macros, config), config


def find_compiler() -> str | None:
    """The C++ compiler that CMake would take, if it works.

    On macOS /usr/bin/c++ is there without the tools behind it; then it fails, and offers them.
    """
    chosen = os.environ.get("CXX")
    for name in (chosen,) if chosen else COMPILERS:
        path = shutil.which(name)
        if path and succeeds([path, "--version"]):
            return path
    return None


def native_macros(compiler: str) -> str:
    """What the compiler knows of this CPU: the macros it defines for it, sorted."""
    for flag in ("-march=native", "-mcpu=native"):
        done = subprocess.run(  # noqa: S603  the compiler that was found
            [compiler, flag, "-dM", "-E", "-x", "c++", os.devnull],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            return "\n".join(sorted(done.stdout.splitlines()))
    return ""


def has_amx(macros: str) -> bool:
    """Whether the compiler would use AMX; see `CMAKE_WITHOUT_AMX`."""
    return "__AMX_TILE__" in macros


def kernel_files() -> list[Path]:
    """What is compiled in, and how."""
    return sorted(file for file in KERNELS.iterdir() if file.suffix in (".cmake", ".cpp", ".h"))


def key(compiler: str, macros: str, config: str) -> str:
    """Names all that goes into a wheel. The macros tell the CPU and the compiler's version."""
    said = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    system = f"{platform.system()} {platform.machine()} {platform.libc_ver()}"
    kernels = [file.read_text(encoding="utf-8") for file in kernel_files()]
    variables = [f"{name}={os.environ.get(name, '')}" for name in ENVIRONMENT]
    parts = [
        VERSION,
        SOURCE_SHA256,
        *OFF,
        *variables,
        config,
        *kernels,
        system,
        said.stdout,
        macros,
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def build(python: Path, folder: Path, config: str, logs: Path) -> Path:
    """Compile it, and keep the wheel in `folder`."""
    include = folder / "llama.cmake"
    include.write_text(config, encoding="utf-8")
    # Beside it, so that the build does not depend on where this project lies.
    shutil.rmtree(folder / "kernels", ignore_errors=True)
    (folder / "kernels").mkdir()
    for file in kernel_files():
        shutil.copy(file, folder / "kernels")
    settings = [f"cmake.define.{name}=OFF" for name in OFF]
    settings += [f"cmake.define.CMAKE_PROJECT_llama.cpp_INCLUDE={include}"]
    settings += ["cmake.define.GGML_NATIVE=ON"]  # it would be off where SOURCE_DATE_EPOCH is set
    settings += ["cmake.define.CMAKE_CXX_FLAGS=-w"]  # otherwise 37,000 lines of warnings
    # pip takes settings for a requirement with a digest from a file only, not from its arguments.
    words = [f"{NAME}=={VERSION}", f"--hash=sha256:{SOURCE_SHA256}"]
    words += [f'--config-settings="{setting}"' for setting in settings]
    requirement = folder / "source.txt"
    requirement.write_text(" ".join(words) + "\n", encoding="utf-8")
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    command: list[str | Path] = [
        python,
        "-m",
        "pip",
        "wheel",
        "--verbose",
        "--no-deps",
        "--no-cache-dir",
    ]
    command += ["--no-binary", NAME, "--require-hashes", "--wheel-dir", out]
    step = Step("Building llama.cpp for this CPU")
    run(
        [*command, "-r", requirement],
        logs / "build-llama.log",
        lambda line: _show(step, line),
        {**os.environ, "CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count() or 1)},
    )
    step.done()
    made = next(out.glob("*.whl"))
    kept = folder / made.name
    made.replace(kept)
    out.rmdir()
    return kept


def _show(step: Step, line: str) -> None:
    """Read how far the build is out of Ninja's `[12/83]` or Make's `[ 14%]`."""
    if found := re.match(r"\s*\[(\d+)/(\d+)\]", line):
        step.at(int(found[1]), int(found[2]), "files")
    elif found := re.match(r"\s*\[ *(\d+)%\]", line):
        step.at(int(found[1]), 100, "hundredths")


def prebuilt(folder: Path, page: str = PREBUILT) -> Path | None:
    """The project's own wheel for this system, if it can be reached at once; else None."""
    kept = sorted(folder.glob(f"*-{VERSION}-*.whl"))
    if kept:
        return kept[0]
    try:
        with urllib.request.urlopen(page, timeout=PREBUILT_SECONDS) as answer:  # noqa: S310
            links = re.findall(r'href="([^"]+\.whl[^"]*)"', answer.read(1 << 22).decode("utf-8"))
    except (OSError, ValueError):
        return None
    for link in links:
        address, _, digest = urllib.parse.urljoin(page, link).partition("#sha256=")
        name = urllib.parse.unquote(address.rpartition("/")[2])
        # One without a digest is not taken: it would run unchecked, and can be built instead.
        if digest and name.startswith(f"llama_cpp_python-{VERSION}-py3-none-") and fits(name):
            return _take(address, digest, folder / name)
    return None


def fits(name: str) -> bool:
    """Whether a wheel of that name runs on this system, by its platform tag."""
    tag = name.removesuffix(".whl").rpartition("-")[2]
    machine = platform.machine().lower()
    if platform.system() == "Linux":
        glibc = platform.libc_ver()[0] == "glibc"
        return glibc and "linux" in tag and "musl" not in tag and tag.endswith(machine)
    found = re.search(r"macosx_(\d+)_\d+_(\w+)$", tag)
    release = platform.mac_ver()[0].partition(".")[0]
    return bool(found and release and int(found[1]) <= int(release) and found[2] == machine)


def _take(address: str, digest: str, target: Path) -> Path | None:
    """Download a wheel; None if that fails, since there is another way."""
    step = Step(f"Fetching {target.name}")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(f".{os.getpid()}.part")
    found = hashlib.sha256()
    try:
        with (
            urllib.request.urlopen(address, timeout=PREBUILT_SECONDS) as answer,  # noqa: S310
            part.open("wb") as file,
        ):
            total = int(answer.headers.get("Content-Length") or 0)
            while chunk := answer.read(1 << 18):
                file.write(chunk)
                found.update(chunk)
                step.at(file.tell() // 10**6, total // 10**6, "MB")
            short = file.tell() < total
    except (OSError, ValueError) as error:
        say(f"{target.name} could not be fetched ({error}).")
        part.unlink(missing_ok=True)
        return None
    if short or digest != found.hexdigest():
        say(f"{target.name} did not arrive as it should.")
        part.unlink()
        return None
    part.replace(target)
    step.done()
    return target
