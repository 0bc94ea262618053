"""Text and figures for the terminal."""

from __future__ import annotations

from decimal import Decimal

import pytest

from uitweg.text import duration, excerpt, money, safe


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ä 文字\n\ttab", "plain ä 文字\n\ttab"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\rb", "a\\x0db"),
        ("\u202eevil\u200b", "\\u202eevil\\u200b"),
        ("\udcff", "\\udcff"),
        ("\x9b", "\\x9b"),
    ],
)
def test_what_could_act_on_a_terminal_is_made_visible(text, shown):
    assert safe(text) == shown


def test_a_long_text_says_how_much_is_missing():
    assert excerpt("short\n") == "short"
    assert excerpt("line\n" * 100).endswith("line\n… 440 more characters")
    assert len(excerpt("x" * 1_000_000)) < 2000


def test_figures():
    assert (money(None), money(Decimal("0.00247"))) == ("cost unknown", "$0.002470")
    assert [duration(ms) for ms in (0.2, 17.4, 1234)] == ["<1 ms", "17 ms", "1.2 s"]
