"""The reading of a GGUF header: right files pass, and no change to one crashes it or slips by."""

import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models import gguf
from models.errors import NotGguf


@pytest.fixture
def check(tmp_path):
    def of(data):
        path = tmp_path / "x.gguf"
        path.write_bytes(data)
        return gguf.check(path)

    return of


def test_a_right_file(check, gguf_bytes):
    header = check(gguf_bytes())
    assert len(header.sizes) == 2
    assert header.metadata == {
        "general.architecture": "tiny",
        "general.alignment": 32,
        "tokens": 2,
    }


@pytest.mark.engine
@pytest.mark.parametrize("which", ["model", "small_model"])
def test_the_real_models(request, which):
    header = gguf.check(request.getfixturevalue(which).path)
    assert header.metadata["general.architecture"] in {"qwen2", "llama"}
    assert "tokenizer.chat_template" in header.metadata
    assert len(header.sizes) > 200


def test_every_shorter_file_is_refused(check, gguf_bytes):
    data = gguf_bytes()
    for length in range(len(data)):
        with pytest.raises(NotGguf):
            check(data[:length])


def replaced(data, old, new, count=1):
    assert data.count(old) >= 1
    return data.replace(old, new, count)


Q = struct.Struct("<Q").pack
I = struct.Struct("<I").pack  # noqa: E741  the letter of the format


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: b"GGML" + d[4:], "does not begin with GGUF"),
        (lambda d: d[:4] + I(1) + d[8:], "version 1"),
        (lambda d: d[:4] + b"\0\0\0\3" + d[8:], "version"),
        (lambda d: d[:8] + Q(2**63) + d[16:], "tensors"),
        (lambda d: d[:8] + Q(0) + d[16:], "no tensors"),
        (lambda d: d[:16] + Q(2**64 - 1) + d[24:], "keys"),
        (lambda d: d[:24] + Q(2**62) + d[32:], "bytes of a key"),
        (lambda d: replaced(d, I(4) + I(32), I(4) + I(24)), "alignment is 24"),
        (lambda d: replaced(d, I(4) + I(32), I(4) + I(0)), "alignment is 0"),
        (lambda d: replaced(d, I(4) + I(32), I(13) + I(32)), "type 13"),
        (lambda d: replaced(d, I(9) + I(8), I(9) + I(9)), "array has values of the type 9"),
        (lambda d: replaced(d, I(9) + I(8) + Q(2), I(9) + I(8) + Q(2**40)), "values in an array"),
        (lambda d: replaced(d, I(9) + I(8) + Q(2), I(9) + I(12) + Q(90)), "claims|ends within"),
        (lambda d: replaced(d, b"general.arch", b"general.Arch"), "does not name its architecture"),
        (lambda d: replaced(d, b"tiny", b"\xff\xfe\xfd\xfc"), "UTF-8"),
        (lambda d: replaced(d, b"two" + I(1), b"one" + I(1)), "there twice"),
        (lambda d: replaced(d, b"two" + I(1), b"two" + I(9)), "9 dimensions"),
        (lambda d: replaced(d, b"two" + I(1), b"two" + I(0)), "0 dimensions"),
        (lambda d: replaced(d, Q(32) + Q(2) + I(8), Q(31) + Q(2) + I(8)), "shape"),
        (lambda d: replaced(d, Q(32) + Q(2) + I(8), Q(0) + Q(2) + I(8)), "shape"),
        (lambda d: replaced(d, Q(32) + Q(2) + I(8), Q(2**62) + Q(2**62) + I(8)), "values in"),
        (lambda d: replaced(d, Q(2) + I(8), Q(2) + I(4)), "type 4, which is not known"),
        (lambda d: replaced(d, Q(2) + I(8), Q(2) + I(0)), "begins at 96 where 256"),
        (lambda d: replaced(d, I(0) + Q(96), I(0) + Q(64)), "begins at 64 where 96"),
        (lambda d: replaced(d, I(0) + Q(96), I(0) + Q(2**63)), "begins at"),
        (lambda d: replaced(d, Q(16) + I(0), Q(17) + I(0)), "tensors need"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(check, gguf_bytes, change, reason):
    with pytest.raises(NotGguf, match=reason) as error:
        check(change(gguf_bytes()))
    assert "\n" not in str(error.value)


@settings(
    max_examples=400,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.data())
def test_no_change_of_bytes_does_more_than_be_refused(check, gguf_bytes, data):
    """Whatever a changed header says, what passes has its tensors inside the file."""
    original = bytearray(gguf_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(original) - 9))
        new = data.draw(
            st.one_of(
                st.binary(min_size=1, max_size=8),
                st.sampled_from([Q(2**64 - 1), Q(2**63), Q(2**32), Q(0), I(2**32 - 1), I(2**31)]),
            )
        )
        original[at : at + len(new)] = new
    try:
        header = check(bytes(original))
    except NotGguf:
        return
    assert len(header.sizes) == 2


@given(st.binary(max_size=300))
@settings(
    max_examples=200,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_nor_does_noise(check, noise):
    with pytest.raises(NotGguf):
        check(b"GGUF" + struct.pack("<I", 3) + noise)
