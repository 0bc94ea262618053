"""Every error that the harness raises on purpose.

HarnessError
├── SettingsError            the run cannot start as asked: says which setting and why
├── ProviderFailed           no usable reply came from the model's endpoint
├── RunError
│   ├── NoSuchRun
│   ├── RunExists            the run id is taken
│   ├── AlreadyCarried       somebody carries the run just now
│   ├── LeaseLost            the run has been taken over; this carrier must stop
│   └── NotResumable         it has ended in a way that cannot go on
├── DecisionError
│   ├── NothingToDecide      the run does not wait for this decision
│   ├── AlreadyDecided       somebody was first; says who
│   ├── DigestMismatch       what was shown is not what would run
│   └── DecisionIncomplete   a refusal without a reason, wrong edited arguments
└── StoreError
    ├── StoreTooNew          written by a newer version
    ├── StoreReadOnly
    ├── StoreDamaged
    ├── StoreFull            the disk is full
    ├── StoreBusy            another process held the file for too long
    └── StoreClosed

What a tool raises is not here: `harness.tool.ToolError` goes to the model.
"""

from __future__ import annotations


class HarnessError(Exception):
    """Base of all below."""


class SettingsError(HarnessError):
    """What was asked for cannot be; nothing has begun."""

    exit_code = 2
    """Of the program: wrong usage."""


class ProviderFailed(HarnessError):
    """No usable reply. `reply` holds what had come by then, for its tokens."""

    reply: object | None = None


class RunError(HarnessError):
    pass


class NoSuchRun(RunError):
    pass


class RunExists(RunError):
    pass


class AlreadyCarried(RunError):
    pass


class LeaseLost(RunError):
    pass


class NotResumable(RunError):
    pass


class DecisionError(HarnessError):
    pass


class NothingToDecide(DecisionError):
    pass


class AlreadyDecided(DecisionError):
    pass


class DigestMismatch(DecisionError):
    pass


class DecisionIncomplete(DecisionError):
    pass


class StoreError(HarnessError):
    """The store cannot do it. Nothing of the failed step has been written."""


class StoreTooNew(StoreError):
    pass


class StoreReadOnly(StoreError):
    pass


class StoreDamaged(StoreError):
    pass


class StoreFull(StoreError):
    pass


class StoreBusy(StoreError):
    pass


class StoreClosed(StoreError):
    pass
