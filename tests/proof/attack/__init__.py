"""What the design promises, attacked and counted.

Each suite is a module with a `TITLE` and `attack(tally, folder, long)`: it tries things,
in few cases for the tests and in many for `./scripts/prove`, and tells the tally of each
whether what was promised held. `python -m attack` runs suites in processes of their own.
"""
