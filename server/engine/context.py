"""One llama.cpp context: batches in, logits out, and the KV cache's own operations.

A greedy reply here depends on its prompt alone: not on what else is in the batch, on how the
prompt was cut in pieces, or on whether it was in the cache. llama.cpp does not promise that, and
with its usual settings it does not hold, since a sum in another order is another sum:

- attention takes one of three ways, by the number of rows and the length of the cache. Where keys
  and values are of different types, only the one that treats every row alike is left;
- weights are multiplied, and attention is computed, by kernels that treat every row alike: our
  own (`server/kernels`) where the library was built with them and the CPU has what they need.
  Elsewhere they are llama.cpp's, of which those for K-quants round differently for several rows
  than for one: they are switched off (`GGML_CPU_TILED_MM`, and no repacking: `Model`). Q4_0, Q4_1,
  Q5_0 and Q8_0 weights give the same bits for any number of rows, repacked or not;
- cells of a sequence lie in the order of its tokens: see `Sequences`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from server.engine.model import Model
from server.engine.native import Flag, Native, NativeError

DONE = 0
NO_ROOM = 1
ABORTED = 2

_BF16 = 30
"""GGML_TYPE_BF16 in ggml.h; the bindings do not name it."""

Logits = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """What a context is made with. Sizes in tokens."""

    tokens: int
    """Size of the KV cache, which all sequences share."""
    sequences: int
    threads: int
    batch: int = 512
    """Most tokens of one step."""
    outputs: int = 64
    """Most rows of one step whose logits are wanted; each costs the vocabulary times 4 bytes."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Tokens of one sequence in a step: they follow one another from position `at`."""

    sequence: int
    at: int
    tokens: Sequence[int] | npt.NDArray[np.int32]
    outputs: int
    """Of how many of the last tokens the logits are wanted."""


class Context:
    """Owned by the engine's thread."""

    def __init__(self, native: Native, model: Model, settings: ContextSettings) -> None:
        """Make it; its memory is taken here and now.

        Raises:
            NativeError: where there is not enough memory.
        """
        lib = native.lib
        self._lib = lib
        self._native = native
        self.settings = settings
        self.abort = Flag()
        params = lib.llama_context_default_params()
        params.n_ctx = settings.tokens
        params.n_batch = params.n_ubatch = settings.batch
        params.n_seq_max = settings.sequences
        params.n_outputs_max = settings.outputs
        params.n_threads = params.n_threads_batch = settings.threads
        params.flash_attn_type = lib.LLAMA_FLASH_ATTN_TYPE_ENABLED
        params.kv_unified = True
        # Of two types on purpose: see the module's docstring.
        params.type_k, params.type_v = lib.GGML_TYPE_F16, _BF16
        params.no_perf = True
        params.abort_callback = lib.ggml_abort_callback(self.abort.function)
        params.abort_callback_data = self.abort.address
        native.forget_errors()
        self.handle = lib.llama_init_from_model(model.handle, params)
        if not self.handle:
            reason = native.last_errors() or "there may be too little memory"
            raise NativeError(f"no context of {settings.tokens} tokens could be made: {reason}")
        self._open = True
        self.memory = lib.llama_get_memory(self.handle)
        self._vocabulary = model.tokens_known
        self._row_type = ctypes.c_float * model.tokens_known
        self._make_batch()

    def _make_batch(self) -> None:
        """The batch's arrays, made once: a step only writes numbers into them."""
        lib, size = self._lib, self.settings.batch
        self._token = np.zeros(size, np.int32)
        self._pos = np.zeros(size, np.int32)
        self._seq = np.zeros(size, np.int32)
        self._wanted = np.zeros(size, np.int8)
        self._one = np.ones(size, np.int32)
        base = self._seq.ctypes.data
        self._seq_at = np.arange(size, dtype=np.uintp) * 4 + np.uintp(base)

        def pointer(array: npt.NDArray[Any], kind: Any) -> Any:
            return ctypes.cast(array.ctypes.data, kind)

        fields = dict(lib.llama_batch._fields_)
        self._batch = lib.llama_batch()
        self._batch.token = pointer(self._token, fields["token"])
        self._batch.pos = pointer(self._pos, fields["pos"])
        self._batch.n_seq_id = pointer(self._one, fields["n_seq_id"])
        self._batch.seq_id = pointer(self._seq_at, fields["seq_id"])
        self._batch.logits = pointer(self._wanted, fields["logits"])

    def decode(self, rows: Sequence[Rows]) -> int:
        """Compute one step: `DONE`, `NO_ROOM` or `ABORTED`; then the cache is as before.

        Raises:
            NativeError: for everything else the library says.
        """
        at = 0
        for group in rows:
            end = at + len(group.tokens)
            self._token[at:end] = group.tokens
            self._pos[at:end] = range(group.at, group.at + len(group.tokens))
            self._seq[at:end] = group.sequence
            self._wanted[at:end] = 0
            self._wanted[end - group.outputs : end] = 1 if group.outputs else 0
            at = end
        self._batch.n_tokens = at
        status: int = self._lib.llama_decode(self.handle, self._batch)
        if status not in (DONE, NO_ROOM, ABORTED):
            reason = self._native.last_errors()
            raise NativeError(f"llama_decode gave {status} for {at} tokens. {reason}")
        if status != DONE:
            for group in rows:
                self.remove(group.sequence, group.at, -1)
        return status

    def logits(self, row: int) -> Logits:
        """A view of the logits of the batch's token number `row`; gone with the next step."""
        pointer = self._lib.llama_get_logits_ith(self.handle, row)
        address = ctypes.cast(pointer, ctypes.c_void_p).value
        if address is None:
            raise NativeError(f"no logits for row {row}")
        floats: Any = self._row_type.from_address(address)
        view: Logits = np.frombuffer(floats, np.float32)
        return view

    def copy(self, source: int, target: int, begin: int, end: int) -> None:
        """Let `target` hold the cells of `source` from position `begin` to before `end` too."""
        self._lib.llama_memory_seq_cp(self.memory, source, target, begin, end)

    def remove(self, sequence: int, begin: int, end: int) -> None:
        """Let a sequence hold these cells no longer; what nobody holds is free."""
        self._lib.llama_memory_seq_rm(self.memory, sequence, begin, end)

    def clear(self) -> None:
        """Forget everything."""
        self._lib.llama_memory_clear(self.memory, False)

    def save(self, sequence: int) -> bytes:
        """The state of one sequence."""
        size = self._lib.llama_state_seq_get_size(self.handle, sequence)
        buffer = (ctypes.c_uint8 * size)()
        written = self._lib.llama_state_seq_get_data(self.handle, buffer, size, sequence)
        return bytes(memoryview(buffer)[:written])

    def restore(self, sequence: int, state: bytes) -> bool:
        """Put a saved state into an empty sequence; False when it does not fit."""
        data = (ctypes.c_uint8 * len(state)).from_buffer_copy(state)
        done = self._lib.llama_state_seq_set_data(self.handle, data, len(state), sequence)
        if not done:
            self.remove(sequence, 0, -1)
        return bool(done)

    def close(self) -> None:
        """Free it. Safe to call twice."""
        if self._open:
            self._open = False
            self._lib.llama_free(self.handle)
