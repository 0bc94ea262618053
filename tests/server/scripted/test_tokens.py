import hashlib
from importlib import resources

import pytest
from tiktoken_ext import openai_public

from server.scripted import tokens

FILE = resources.files("server.scripted").joinpath("data/o200k_base.tiktoken")


def test_the_encoder_is_the_one_that_tiktoken_defines(tmp_path, monkeypatch):
    """tiktoken's own definition, reading our file through its cache: no network."""
    address = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
    cached = tmp_path / hashlib.sha1(address.encode()).hexdigest()
    cached.write_bytes(FILE.read_bytes())
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    theirs = openai_public.o200k_base()
    assert theirs["pat_str"] == tokens.PATTERN
    assert theirs["special_tokens"] == tokens.SPECIAL_TOKENS
    assert theirs["mergeable_ranks"] == tokens.read_ranks(FILE.read_bytes())


def test_a_damaged_vocabulary_is_refused():
    with pytest.raises(tokens.VocabularyError, match="install uitweg again"):
        tokens.read_ranks(FILE.read_bytes()[:-1])


def test_what_looks_like_a_special_token_is_text():
    assert tokens.count("<|endoftext|>") > 1


def test_published_counts_of_calls():
    def calls(name, arguments):
        function = {"name": name, "arguments": arguments}
        return [{"id": "c1", "type": "function", "function": function}]

    assert tokens.count_completion(None, calls("list_files", "{}")) == 23
    assert tokens.count_completion(None, calls("read_file", '{"path":"errors.log"}')) == 29
    assert tokens.count_completion(None, calls("delete_file", '{"path":"access.log"}')) == 29


def test_non_ascii_is_left_as_it_is():
    message = [{"role": "user", "content": "größer 日本"}]
    assert tokens.count_prompt(message, []) == tokens.count(
        '[{"role":"user","content":"größer 日本"}]'
    ) + tokens.count("[]")
