"""Every error that has to do with model files. Each message says what happened and what to do.

ModelError
├── UnknownModel      no such name in the catalogue
├── NotAdded          it cannot be added like this
├── NotFetched        it is known, but not on this machine
├── Damaged           what lies on disk is not what it should be
│   └── NotGguf       … not even a GGUF file that can be loaded safely
├── NoRoom            the disk is full, or would be
└── SourceError       a source did not give the file; another may
    ├── Unreachable   nobody answers there
    ├── Refused       an answer, but not the file: not found, not allowed, out of order
    └── WrongContent  a file, but not the right one: too short, too long, another digest
"""

from __future__ import annotations


class ModelError(Exception):
    """Base of all below."""


class UnknownModel(ModelError):
    pass


class NotAdded(ModelError):
    pass


class NotFetched(ModelError):
    pass


class Damaged(ModelError):
    pass


class NotGguf(Damaged):
    pass


class NoRoom(ModelError):
    pass


class SourceError(ModelError):
    pass


class Unreachable(SourceError):
    pass


class Refused(SourceError):
    pass


class WrongContent(SourceError):
    pass
