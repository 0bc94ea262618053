"""Tokens as o200k_base counts them, from the vocabulary that ships with us.

tiktoken would fetch the vocabulary from the network on first use; here it comes from
`data/o200k_base.tiktoken`, the very file that tiktoken expects, checked by its digest.
The pattern and the special tokens are those of tiktoken's own definition of o200k_base
(tiktoken_ext/openai_public.py); a test compares the two.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import tiktoken

from server.json_text import compact_json

VOCABULARY_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"

SPECIAL_TOKENS = {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}

_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERN = "|".join(
    (
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_SHORT}",
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_SHORT}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)


class VocabularyError(Exception):
    """The shipped vocabulary is not the file that it should be."""


def read_ranks(data: bytes) -> dict[bytes, int]:
    """The vocabulary out of the file's bytes: token to rank.

    Raises:
        VocabularyError: when the SHA-256 is another one.
    """
    digest = hashlib.sha256(data).hexdigest()
    if digest != VOCABULARY_SHA256:
        raise VocabularyError(
            f"o200k_base.tiktoken has SHA-256 {digest}, not {VOCABULARY_SHA256}. "
            "The installation is damaged: install uitweg again."
        )
    pairs = (line.split() for line in data.splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


@cache
def encoding() -> tiktoken.Encoding:
    """The encoder. Read once a process, which takes about half a second."""
    data = resources.files("server.scripted").joinpath("data/o200k_base.tiktoken").read_bytes()
    return tiktoken.Encoding(
        name="o200k_base",
        pat_str=PATTERN,
        mergeable_ranks=read_ranks(data),
        special_tokens=SPECIAL_TOKENS,
    )


def count(text: str) -> int:
    """Tokens of a text; what looks like a special token is plain text."""
    return len(encoding().encode_ordinary(text))


def count_prompt(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> int:
    """Tokens of a request: both lists as compact JSON, in the key order they came in."""
    return count(compact_json(list(messages))) + count(compact_json(list(tools)))


def count_completion(content: str | None, calls: Sequence[Mapping[str, Any]]) -> int:
    """Tokens of a reply: its text, and its calls (or `[]`) as compact JSON."""
    return count(content or "") + count(compact_json(list(calls)))
