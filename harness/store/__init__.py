"""Where runs are kept: one SQLite file, readable by anybody at any time."""

from harness.store.lease import Lease
from harness.store.lists import RunSummary
from harness.store.steps import Step
from harness.store.store import Store

__all__ = ["Lease", "RunSummary", "Step", "Store"]
