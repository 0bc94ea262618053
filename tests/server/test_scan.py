"""JSON followed character by character."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from server.scan import CallScanner, calls_of

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.lists(JSON) | st.dictionaries(st.text(), JSON), st.sampled_from([None, 2]))
def test_json_is_valid_until_its_last_bracket(value: object, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    scanner = CallScanner(["f"])
    for at, char in enumerate(text, 1):
        scanner.feed(char)
        assert scanner.valid
        assert scanner.done == (at == len(text))


@given(st.text(alphabet='{}[]",: \\anullt1-', max_size=30))
def test_what_the_real_parser_takes_is_done_here(text: str) -> None:
    scanner = CallScanner(["f"])
    for at, char in enumerate("[" + text, 1):
        scanner.feed(char)
        try:
            json.loads(("[" + text)[:at])
        except ValueError:
            if scanner.done or not scanner.valid:
                return
        else:
            assert scanner.done
            return


def test_a_call_is_plausible_as_long_as_it_may_be_one() -> None:
    scanner = CallScanner(["f"])
    for char in '{"name": "f", "arguments": {"name": "other"}':
        scanner.feed(char)
        assert scanner.plausible
    assert scanner.closable
    assert scanner.missing == "}"
    for text in ('{"nation', '{"name": "fg', '[{"name": "f"}, 3', '{"name": "f", "x":'):
        scanner = CallScanner(["f"])
        for char in text:
            scanner.feed(char)
        assert scanner.valid
        assert not scanner.plausible


def test_an_empty_list_is_no_call() -> None:
    assert calls_of("[]", ["f"], tagged=True) == []
    assert calls_of("{}", ["f"], tagged=True) == []
