"""Is this a GGUF file that llama.cpp can be given? A strict reading of its header.

llama.cpp maps the file and trusts its offsets, so a damaged or hostile header ends the process
instead of raising an error. Everything that is read here is bounded by the file's size first.
The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. What llama.cpp itself demands
beyond it (offsets without gaps, keys once each) is demanded here too.
"""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

from models.errors import NotGguf

MOST_TENSORS = 65_536
MOST_KEYS = 65_536
MOST_DIMENSIONS = 4
MOST_NAME_BYTES = 63
"""GGML_MAX_NAME is 64, with the byte that ends it."""
MOST_KEY_BYTES = 65_535

_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_STRING, _ARRAY = 8, 9

TENSOR_TYPES = {
    0: (1, 4),  # F32
    1: (1, 2),  # F16
    2: (32, 18),  # Q4_0
    3: (32, 20),  # Q4_1
    6: (32, 22),  # Q5_0
    7: (32, 24),  # Q5_1
    8: (32, 34),  # Q8_0
    9: (32, 36),  # Q8_1
    10: (256, 84),  # Q2_K
    11: (256, 110),  # Q3_K
    12: (256, 144),  # Q4_K
    13: (256, 176),  # Q5_K
    14: (256, 210),  # Q6_K
    15: (256, 292),  # Q8_K
    16: (256, 66),  # IQ2_XXS
    17: (256, 74),  # IQ2_XS
    18: (256, 98),  # IQ3_XXS
    19: (256, 50),  # IQ1_S
    20: (32, 18),  # IQ4_NL
    21: (256, 110),  # IQ3_S
    22: (256, 82),  # IQ2_S
    23: (256, 136),  # IQ4_XS
    24: (1, 1),  # I8
    25: (1, 2),  # I16
    26: (1, 4),  # I32
    27: (1, 8),  # I64
    28: (1, 8),  # F64
    29: (256, 56),  # IQ1_M
    30: (1, 2),  # BF16
}
"""Of each type of tensor: how many values a block has, and how many bytes it takes."""


@dataclass(frozen=True, slots=True)
class Header:
    """What the file says of itself.

    Attributes:
        metadata: keys and their values; an array is only its length.
        sizes: bytes of each tensor.
    """

    metadata: dict[str, Any]
    sizes: dict[str, int]


def check(path: Path) -> Header:
    """Read the header of a GGUF file and hold it against the file.

    Raises:
        NotGguf: it is none, or one whose parts do not lie inside the file.
    """
    try:
        with path.open("rb") as file:
            return _read(file)
    except _Bad as bad:
        raise NotGguf(
            f"{path} is not a GGUF model that can be loaded: {bad}. Get it anew, or take another."
        ) from None


def _read(file: BinaryIO) -> Header:
    if file.seek(0, os.SEEK_END) == 0:  # what is empty cannot be mapped
        raise _Bad("it is empty")
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _header(_Reader(data))


class _Bad(Exception):
    """What is wrong, as the end of a sentence."""


class _Reader:
    """Takes values off the front of the file; never reads past its end."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = 0
        self.size = len(data)

    def skip(self, count: int) -> int:
        """Pass over some bytes and give the place where they began."""
        start = self.at
        if count > self.size - start:
            raise _Bad(f"it ends within its header, at byte {self.size:,}")
        self.at += count
        return start

    def scalar(self, form: str) -> Any:
        return struct.unpack_from(form, self.data, self.skip(struct.calcsize(form)))[0]

    def count(self, most: int, what: str) -> int:
        number: int = self.scalar("<Q")
        if number > most:
            raise _Bad(f"it claims {number:,} {what}")
        return number

    def text(self, most: int, what: str) -> str:
        length = self.count(min(most, self.size), f"bytes of {what}")
        start = self.skip(length)
        try:
            return self.data[start : start + length].decode("utf-8")
        except UnicodeDecodeError:
            raise _Bad(f"{what} at byte {start:,} is not UTF-8") from None


def _header(reader: _Reader) -> Header:
    if reader.data[:4] != b"GGUF":
        raise _Bad("it does not begin with GGUF")
    reader.at = 4
    version = reader.scalar("<I")
    if version not in {2, 3}:
        raise _Bad(f"its format has the version {version}, where 2 or 3 is expected")
    tensors = reader.count(MOST_TENSORS, "tensors")
    metadata = _metadata(reader, reader.count(MOST_KEYS, "keys"))
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
        raise _Bad(f"its alignment is {alignment!r}")
    if not tensors:
        raise _Bad("it has no tensors")
    if not isinstance(metadata.get("general.architecture"), str):
        raise _Bad("it does not name its architecture")
    return Header(metadata, _tensors(reader, tensors, alignment))


def _metadata(reader: _Reader, count: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for _ in range(count):
        key = reader.text(MOST_KEY_BYTES, "a key")
        if not key or key in metadata:
            raise _Bad(f"its key {key!r} is empty or there twice")
        metadata[key] = _value(reader, reader.scalar("<I"))
    return metadata


def _value(reader: _Reader, kind: int) -> Any:
    if kind == _STRING:
        return reader.text(reader.size, "a text")
    if kind == _ARRAY:
        return _array(reader)
    if kind not in _SCALARS:
        raise _Bad(f"a value has the type {kind}, which does not exist")
    if kind == 7 and reader.data[reader.at : reader.at + 1] not in {b"\x00", b"\x01"}:
        raise _Bad("a yes or no is neither")
    return reader.scalar(_SCALARS[kind])


def _array(reader: _Reader) -> int:
    """Pass over an array and give its length. Arrays in arrays are for no model that is known."""
    kind = reader.scalar("<I")
    count = reader.count(reader.size, "values in an array")
    if kind == _STRING:
        for _ in range(count):
            reader.skip(reader.count(reader.size, "bytes of a text"))
    elif kind in _SCALARS:
        reader.skip(count * struct.calcsize(_SCALARS[kind]))
    else:
        raise _Bad(f"an array has values of the type {kind}")
    return count


def _tensors(reader: _Reader, count: int, alignment: int) -> dict[str, int]:
    """Bytes of each. It begins where the one before it ends, and the last ends inside the file."""
    sizes: dict[str, int] = {}
    end = 0
    for _ in range(count):
        name = reader.text(MOST_NAME_BYTES, "a tensor's name")
        if name in sizes:
            raise _Bad(f"its tensor {name!r} is there twice")
        size = sizes[name] = _tensor_bytes(reader, name)
        offset = reader.scalar("<Q")
        if offset != end:
            raise _Bad(f"its tensor {name!r} begins at {offset:,} where {end:,} is expected")
        end = _aligned(offset + size, alignment)
        last = offset + size
    data = _aligned(reader.at, alignment)
    if data + last > reader.size:
        raise _Bad(f"its tensors need {data + last:,} bytes and the file has {reader.size:,}")
    return sizes


def _tensor_bytes(reader: _Reader, name: str) -> int:
    dimensions = reader.scalar("<I")
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise _Bad(f"its tensor {name!r} has {dimensions} dimensions")
    shape = [reader.count(reader.size * 32, f"values in {name!r}") for _ in range(dimensions)]
    kind = reader.scalar("<I")
    if kind not in TENSOR_TYPES:
        raise _Bad(f"its tensor {name!r} has the type {kind}, which is not known here")
    values, size = TENSOR_TYPES[kind]
    if min(shape) < 1 or shape[0] % values:
        raise _Bad(f"its tensor {name!r} has the shape {shape}")
    return prod(shape) // values * size


def _aligned(number: int, alignment: int) -> int:
    return -(-number // alignment) * alignment
