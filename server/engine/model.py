"""A GGUF model in memory: its vocabulary, its template, text to tokens and back."""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable
from pathlib import Path

from models import gguf
from models.errors import NotGguf
from server.engine.native import Native, NativeError

_CONTROL = 1 << 3
_PLAIN_FILES = frozenset([0, 1, 2, 3, 7, 8, 9])
"""`general.file_type` of files without K-quants: F32, F16, Q4_0, Q4_1, Q8_0, Q5_0, Q5_1."""
_CALL_TAG = re.compile(r"</?(tool_call|tools|function_call|tool_response)>")


class Model:
    """Owned by the engine's thread; tokenising is safe from any thread."""

    def __init__(
        self,
        native: Native,
        path: Path,
        on_progress: Callable[[float], bool] = lambda _: True,
    ) -> None:
        """Load it; `on_progress` hears 0.0 to 1.0 and gives up the loading by returning False.

        Raises:
            NativeError: with the library's reason.
        """
        lib = native.lib
        self._lib = lib
        self._free: Callable[[], None] | None = None
        # Tokenising happens in other threads, which must not find the model gone half way.
        self._in_use = threading.Lock()
        params = lib.llama_model_default_params()
        try:
            params.use_extra_bufts = native.kernels is not None or _may_repack(path)
        except (NotGguf, OSError) as error:
            raise NativeError(f"{path} could not be loaded: {error}") from error
        if native.kernels is not None:
            # They keep the weights in another order: mapped as well, the file would count twice.
            params.load_mode = lib.LLAMA_LOAD_MODE_NONE
        callback = lib.llama_progress_callback(lambda done, _user: on_progress(done))
        params.progress_callback = callback
        native.forget_errors()
        self.handle = lib.llama_model_load_from_file(str(path).encode(), params)
        if not self.handle:
            reason = native.last_errors() or "the library gave no reason"
            raise NativeError(f"{path} could not be loaded: {reason}")
        self._free = lambda: lib.llama_model_free(self.handle)
        self.vocab = lib.llama_model_get_vocab(self.handle)
        self.tokens_known: int = lib.llama_vocab_n_tokens(self.vocab)
        self.trained_context: int = lib.llama_model_n_ctx_train(self.handle)
        template = lib.llama_model_chat_template(self.handle, None)
        self.template: str | None = template.decode() if template else None
        self._pieces: dict[int, bytes] = {}
        self._read_special_tokens()

    def _read_special_tokens(self) -> None:
        lib, vocab = self._lib, self.vocab
        self.bos = self._special_text(lib.llama_vocab_bos(vocab))
        self.eos = self._special_text(lib.llama_vocab_eos(vocab))
        self._adds_bos = bool(lib.llama_vocab_get_add_bos(vocab))
        known = range(self.tokens_known)
        self.ends = frozenset(t for t in known if lib.llama_vocab_is_eog(vocab, t))
        control = [t for t in known if lib.llama_vocab_get_attr(vocab, t) & _CONTROL]
        self.control = {text: t for t in control if (text := self._special_text(t))}
        # Some files mark the tags of a call as control tokens, which are not printed otherwise.
        for text, token in self.control.items():
            if _CALL_TAG.fullmatch(text):
                self._pieces[token] = text.encode()

    def tokenize(self, text: str, *, special: bool = True, begin: bool = False) -> list[int]:
        """Token ids. `special`: control tokens in the text count as such. `begin`: of a prompt."""
        data = text.encode(errors="replace")
        begin = begin and self._adds_bos and not (self.bos and text.startswith(self.bos))
        room = len(data) + 8
        out = (self._lib.llama_token * room)()
        with self._in_use:
            if self._free is None:
                raise NativeError("the model is closed")
            count = self._lib.llama_tokenize(self.vocab, data, len(data), out, room, begin, special)
        if count < 0:
            raise NativeError(f"the text of {len(data)} bytes could not be tokenised")
        return list(out[:count])

    def piece(self, token: int) -> bytes:
        """The bytes that a token stands for; none for control tokens."""
        known = self._pieces.get(token)
        if known is None:
            known = self._pieces[token] = self._bytes_of(token, special=False)
        return known

    def close(self) -> None:
        """Free it. Safe to call twice."""
        with self._in_use:
            if self._free is not None:
                self._free()
                self._free = None

    def _special_text(self, token: int) -> str:
        return "" if token < 0 else self._bytes_of(token, special=True).decode(errors="replace")

    def _bytes_of(self, token: int, *, special: bool) -> bytes:
        room = 64
        while True:
            buffer = ctypes.create_string_buffer(room)
            size = self._lib.llama_token_to_piece(self.vocab, token, buffer, room, 0, special)
            if size >= 0:
                return buffer.raw[:size]
            room = -size


def _may_repack(path: Path) -> bool:
    """Whether llama.cpp's repacked weights give the same bits for one row as for several."""
    return gguf.check(path).metadata.get("general.file_type") in _PLAIN_FILES
