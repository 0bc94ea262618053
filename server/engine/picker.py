"""The next token out of the logits: greedy, sampled, and under a grammar."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from server.engine.context import Logits
from server.engine.model import Model
from server.engine.native import Native

FEW = 64
"""Candidates that are looked at before the whole vocabulary is."""
_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])

Candidates = npt.NDArray[np.void]


class GrammarError(Exception):
    """The library cannot use this grammar."""


class Picker(Protocol):
    """Chooses tokens for one reply."""

    greedy: bool
    """Whether the choice depends on the logits alone."""

    def pick(self, logits: Logits) -> int:
        """The token to go on with."""
        ...

    def among(self, candidates: Candidates) -> int:
        """The token to go on with, out of those whose logit is not minus infinity."""
        ...

    def close(self) -> None:
        """Free what belongs to it."""
        ...


class Greedy:
    """The likeliest token; of several that are equally likely, the one with the lowest id."""

    greedy = True

    def pick(self, logits: Logits) -> int:
        """One pass over the logits where they lie: nothing is copied."""
        return int(logits.argmax())

    def among(self, candidates: Candidates) -> int:
        """The same, for fewer."""
        return int(candidates["id"][candidates["logit"].argmax()])

    def close(self) -> None:
        """Nothing to free."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample. `seed`: 32 bits."""

    temperature: float
    top_p: float
    seed: int


class Sampled:
    """The library's samplers: temperature, then top-p, then chance from a seed."""

    greedy = False

    def __init__(self, native: Native, how: Sampling) -> None:
        """Its own chain, with its own random numbers."""
        lib = self._lib = native.lib
        self._chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
        lib.llama_sampler_chain_add(self._chain, lib.llama_sampler_init_temp(how.temperature))
        if how.top_p < 1:
            lib.llama_sampler_chain_add(self._chain, lib.llama_sampler_init_top_p(how.top_p, 1))
        lib.llama_sampler_chain_add(self._chain, lib.llama_sampler_init_dist(how.seed))

    def pick(self, logits: Logits) -> int:
        """A token by chance."""
        return self.among(candidates_of(logits))

    def among(self, candidates: Candidates) -> int:
        """A token by chance."""
        array = _array(self._lib, candidates)
        self._lib.llama_sampler_apply(self._chain, ctypes.byref(array))
        return int(array.data[array.selected].id)

    def close(self) -> None:
        """Free the chain."""
        self._lib.llama_sampler_free(self._chain)


class Grammar:
    """What a reply's next token may be, by a grammar in GBNF."""

    def __init__(self, native: Native, model: Model, text: str) -> None:
        """Parse it; the rule `root` is the whole.

        Raises:
            GrammarError: where the library refuses it.
        """
        self._lib = native.lib
        self._model = model
        native.forget_errors()
        self._sampler = self._lib.llama_sampler_init_grammar(model.vocab, text.encode(), b"root")
        if not self._sampler:
            raise GrammarError(native.last_errors() or "the grammar cannot be parsed")

    def allows(self, token: int) -> bool:
        """Whether this token may come next."""
        one = np.zeros(1, _CANDIDATE)
        one["id"] = token
        return bool(self._filtered(one)["logit"][0] == 0)

    def accept(self, token: int) -> None:
        """This token came; it must be one that `allows` allows."""
        self._lib.llama_sampler_accept(self._sampler, token)

    def begins_with(self, text: str) -> bool:
        """Take in text that is there already; False if the grammar does not allow it."""
        for token in self._model.tokenize(text, special=False) if text else ():
            if not self.allows(token):
                return False
            self.accept(token)
        return True

    def pick(self, logits: Logits, picker: Picker) -> int:
        """The picker's choice among what is allowed, once its own choice was refused.

        The whole vocabulary costs as much as the model itself, so a greedy picker is given the
        likeliest tokens first, of which one is nearly always allowed.
        """
        if picker.greedy and len(logits) > FEW:
            likely = np.sort(np.argpartition(logits, -FEW)[-FEW:])
            few = np.zeros(FEW, _CANDIDATE)
            few["id"], few["logit"] = likely, logits[likely]
            if np.isfinite(self._filtered(few)["logit"]).any():
                return picker.among(few)
        return picker.among(self._filtered(candidates_of(logits)))

    def close(self) -> None:
        """Free it."""
        self._lib.llama_sampler_free(self._sampler)

    def _filtered(self, candidates: Candidates) -> Candidates:
        """The same array, the logit of what is refused minus infinity."""
        array = _array(self._lib, candidates)
        self._lib.llama_sampler_apply(self._sampler, ctypes.byref(array))
        return candidates


def candidates_of(logits: Logits) -> Candidates:
    """The whole vocabulary as the library's samplers want it."""
    candidates = np.zeros(len(logits), _CANDIDATE)
    candidates["id"] = np.arange(len(logits))
    candidates["logit"] = logits
    return candidates


def _array(lib: Any, candidates: Candidates) -> Any:
    kind = dict(lib.llama_token_data_array._fields_)["data"]
    data = ctypes.cast(candidates.ctypes.data, kind)
    return lib.llama_token_data_array(data, len(candidates), -1, False)
