from decimal import Decimal

import pytest

from web import text


def test_visible_escapes_markup() -> None:
    assert text.visible("<b>&\"'") == "&lt;b&gt;&amp;&#34;&#39;"


@pytest.mark.parametrize(
    "character", ["\x00", "\x1b", "\x7f", "\x9b", "\u202e", "\u2066", "\u200e", "\u2028", "\ufeff"]
)
def test_what_hides_or_reorders_is_named_everywhere(character: str) -> None:
    shown = text.visible(f"a{character}b")
    assert character not in shown
    assert f"U+{ord(character):04X}" in shown


@pytest.mark.parametrize(
    "character", ["\u200d", "\u00ad", "\u00a0", "\ufe0f", "\U000e0041", "\u3164"]
)
def test_an_approval_names_what_looks_like_nothing(character: str) -> None:
    shown = text.visible(f"a{character}b", strict=True)
    assert character not in shown
    assert f"U+{ord(character):04X}" in shown
    assert text.hidden_count(f"a{character}b") == 1


def test_letters_of_all_scripts_and_emoji_stay() -> None:
    for word in ("żółć", "日本語", "שלום", "नमस्ते", "👩‍💻", "line\none\ttab"):
        assert text.visible(word) == word


def test_half_a_surrogate_pair_can_be_sent() -> None:
    assert "U+D800" in text.visible("a\ud800b")
    text.visible("a\ud800b").encode()
    assert text.whole("a\ud800b") == "a\ufffdb"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "unknown"),
        (Decimal(0), "$0"),
        (Decimal("0.002470"), "$0.00247"),
        (Decimal("1234.5"), "$1,234.50"),
        (Decimal("0.0000001"), "<$0.000001"),
        (0.1, "$0.10"),
    ],
)
def test_money(value: Decimal | None, shown: str) -> None:
    assert text.money(value) == shown


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (0.2, "less than 1 ms"), (999.4, "999 ms"), (999.6, "1.0 s"), (59_900, "59.9 s"),
        (59_960, "1 min 0 s"), (125_000, "2 min 5 s"), (3_720_000, "1 h 2 min"), (None, "unknown"),
    ],
)  # fmt: skip
def test_duration(ms: float | None, shown: str) -> None:
    assert text.duration(ms) == shown


def test_length_names_bytes_where_they_differ() -> None:
    assert text.length("abc") == "3 characters"
    assert text.length("é") == "1 character, 2 bytes"


def test_size() -> None:
    assert [text.size(n) for n in (0, 999, 1500, 398_000_000)] == [
        "0 B", "999 B", "1.5 kB", "398 MB",
    ]  # fmt: skip
