# What the scripts here share. Sourced, never run; the work itself is in setup.py.

# Prints a Python that uitweg runs on, or says how to get one.
find_python() {
  local name
  for name in python3 python3.13 python3.12 python3.11 python; do
    if "$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
      command -v "$name"
      return
    fi
  done
  {
    echo "uitweg needs Python 3.11, 3.12 or 3.13, and none of them was found. To get one:"
    echo "  Debian, Ubuntu   sudo apt-get install python3 python3-venv"
    echo "  Fedora           sudo dnf install python3.13"
    echo "  macOS            brew install python@3.13"
  } >&2
  return 1
}

# Brings .venv up to date; with --test, what the tests need too. Quick when there is nothing to do.
set_up() {
  local python
  python=$(find_python) || exit 1
  "$python" scripts/setup.py "$@" || exit 1
}
