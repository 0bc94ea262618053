"""Makes .venv what this project needs; does nothing when it already is.

Run by the scripts beside it with any Python that uitweg runs on. Standard library only, since it
is what installs the rest.

    setup.py                    what `uitweg` needs to run
    setup.py --test-packages    … and the packages that tests and checks need
    setup.py --test             … and the models and the browser that tests use
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import engine
from steps import SetupError, Step, alone, run, say, succeeds

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "set-up.json"
LOCK = ROOT / "requirements.lock"
FOR_TESTS = "# --- for tests ---"
TEST_MODELS = ((), ("smollm2-135m-instruct",))
"""Arguments of `uitweg models fetch`: the default or what stands in for it, and a small one."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> int:
    """Set up as the arguments say; the exit code."""
    wanted = set(sys.argv[1:])
    if wanted - {"--test", "--test-packages"}:
        say(__doc__ or "")
        return 2
    try:
        with alone(lock_file(), "Another set-up is at work in this folder. Waiting for it."):
            packages(tests=bool(wanted))
            if "--test" in wanted:
                fetch_models()
                install_browser()
    except SetupError as error:
        say(f"\nSet-up failed: {error}")
        return 1
    except KeyboardInterrupt:
        say("\nSet-up was stopped. Starting it again goes on where it was.")
        return 130
    return 0


def cache() -> Path:
    """Where built wheels and logs are kept: as in local/folders.py, which is not installed yet."""
    chosen = os.environ.get("UITWEG_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "uitweg"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "uitweg"


def lock_file() -> Path:
    """Held while a set-up is at work in this folder."""
    name = hashlib.sha256(str(ROOT).encode()).hexdigest()[:16]
    return cache() / "locks" / f"setup-{name}"


def packages(*, tests: bool) -> None:
    """Make the environment and install everything, unless that has been done already."""
    content = fingerprint()
    done = stamped()
    if done.get("content") == content and (done.get("tests") or not tests):
        return
    STAMP.unlink(missing_ok=True)
    make_venv()
    tests = tests or bool(done.get("tests"))
    install_locked(tests=tests)
    install_engine()
    step = Step("Installing uitweg itself")
    run([*pip(), "--no-deps", "--editable", ROOT], cache() / "logs" / "install.log")
    step.done()
    stamp = json.dumps({"content": content, "tests": tests})
    STAMP.with_suffix(".part").write_text(stamp, encoding="utf-8")
    STAMP.with_suffix(".part").replace(STAMP)


def fingerprint() -> str:
    """Names all that the environment follows from: this machine's CPU and compilers included."""
    files = [LOCK, ROOT / "pyproject.toml", *sorted(Path(__file__).parent.glob("*.py"))]
    files += engine.kernel_files()
    digest = hashlib.sha256(str(ROOT).encode())
    for file in files:
        digest.update(file.read_bytes())
    digest.update(cpu().encode())
    # With a compiler that was not there before, a better engine can be had.
    digest.update(str([shutil.which(name) for name in engine.COMPILERS]).encode())
    return digest.hexdigest()


def cpu() -> str:
    """What tells one kind of CPU from another, cheaply: its flags on Linux."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.machine() + platform.processor()
    found = re.search(r"^(flags|Features)\s*:.*$", text, re.MULTILINE)
    return platform.machine() + (found[0] if found else "")


def stamped() -> dict[str, object]:
    """What the last set-up left, if its environment is still there and runs."""
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        stamp = None
    # The Python that it was made from may have been upgraded away: then the link leads nowhere.
    whole = PYTHON.exists() and (VENV / "bin" / "uitweg").exists()
    return stamp if whole and isinstance(stamp, dict) else {}


def make_venv() -> None:
    """Make .venv, or make it anew if its Python does not run or is too old."""
    check = "import sys, pip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))"
    if PYTHON.exists() and succeeds([PYTHON, "-c", check]):
        return
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    step = Step(f"Making .venv with Python {version}")
    try:
        import ensurepip  # noqa: F401  Debian has Python without it
        import venv  # noqa: F401
    except ImportError as error:
        raise SetupError(
            f"Python {version} ({sys.executable}) has no module {error.name}, which is needed to "
            f"make .venv. On Debian and Ubuntu: sudo apt-get install python{version}-venv"
        ) from error
    run([sys.executable, "-m", "venv", "--clear", VENV], cache() / "logs" / "venv.log")
    step.done()


def pip() -> list[str | Path]:
    """How packages are installed: with this person's own settings of pip."""
    return [PYTHON, "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]


def install_locked(*, tests: bool) -> None:
    """Install what the lock names, each checked against its digests."""
    text = LOCK.read_text(encoding="utf-8")
    part, _, _ = text.partition(FOR_TESTS)
    chosen = VENV / "requirements.txt"
    chosen.write_text(text if tests else part, encoding="utf-8")
    total = len(re.findall(r"^\S+==", chosen.read_text(encoding="utf-8"), re.MULTILINE))
    step = Step(f"Installing {total} packages")
    seen: set[str] = set()

    def show(line: str) -> None:
        if found := re.match(r"(?:Collecting|Requirement already satisfied:) ([\w.-]+)", line):
            seen.add(found[1])
            step.at(len(seen), total, "packages")

    command = [*pip(), "--require-hashes", "--only-binary", ":all:", "--progress-bar", "off"]
    run([*command, "-r", chosen], cache() / "logs" / "packages.log", show)
    step.done()


def install_engine() -> None:
    """Install llama-cpp-python; see `engine.wheel`."""
    wheel = engine.wheel(PYTHON, cache())
    if _engine_loads(wheel):
        return
    if wheel.parent.name == "prebuilt":
        raise SetupError(f"The ready-made llama.cpp does not load here.\n{engine.NO_COMPILER}")
    raise SetupError(
        f"llama-cpp-python was built but does not load. Remove {wheel.parent} and try again; "
        f"the build's log: {cache() / 'logs' / 'build-llama.log'}"
    )


def _engine_loads(wheel: Path) -> bool:
    """Install a wheel and load its library in a process of its own."""
    log = cache() / "logs" / "engine.log"
    run([*pip(), "--no-deps", "--no-index", "--force-reinstall", wheel], log)
    code = "import llama_cpp; llama_cpp.llama_backend_init(); llama_cpp.llama_print_system_info()"
    return succeeds([PYTHON, "-c", code])


def fetch_models() -> None:
    """Fetch the models that tests load; the command shows how far it is."""
    for name in TEST_MODELS:
        command = [VENV / "bin" / "uitweg", "models", "fetch", *name]
        if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode:  # noqa: S603
            raise SetupError("a model that the tests need could not be fetched; see above.")


def install_browser() -> None:
    """Install Chromium where Debian's packages are and we may; say so where not."""
    if any(shutil.which(name) for name in BROWSERS):
        return
    root = [] if os.getuid() == 0 else ["sudo", "-n"]
    apt = shutil.which("apt-get")
    if not apt or (root and not succeeds([*root, "true"])):
        say("There is no Chromium: the tests of the page in a browser cannot run. To get it:")
        say("  Debian: sudo apt-get install chromium      macOS: brew install --cask chromium")
        return
    step = Step("Installing Chromium, for tests of the page")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    log = cache() / "logs" / "chromium.log"
    seen: set[str] = set()
    total = 0

    def show(line: str) -> None:
        nonlocal total
        if found := re.match(r"\d+ upgraded, (\d+) newly installed", line):
            total = 2 * int(found[1])
        elif total and (found := re.match(r"(Unpacking|Setting up) (\S+)", line)):
            seen.add(found[0])
            step.at(len(seen), total, "steps")

    try:
        run([*root, apt, "update"], log, env=env)
        install = [apt, "install", "--yes", "--no-install-recommends", "chromium"]
        run([*root, *install], log, show, env)
    except SetupError as error:
        say(f"Chromium could not be installed, so browser tests cannot run. {error}")
    else:
        step.done()


if __name__ == "__main__":
    sys.exit(main())
