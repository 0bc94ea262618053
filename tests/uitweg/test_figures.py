"""The command as a person calls it. The figures themselves: tests/harness/figures."""

import io
import json

import httpx
import pytest
from rich.console import Console

from harness.figures.compare import compare
from uitweg.commands.figures import figures, scripted_server
from uitweg.figure_tables import show, shown


@pytest.fixture(scope="module")
def printed():
    """The exit code and the JSON of one whole `uitweg figures --json`."""
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", output)
        code = figures(as_json=True)
    return code, json.loads(output.getvalue())


def test_every_figure_agrees(printed):
    code, result = printed
    assert [figure for figure in result["figures"] if not figure["agrees"]] == []
    assert (code, result["agrees"]) == (0, True)
    assert all(figure["measured"] is not None for figure in result["figures"])


def tables(measured):
    console = Console(width=120, file=io.StringIO())
    show(console, measured, compare(measured))
    return console.file.getvalue()


def test_the_tables_show_published_beside_measured(printed):
    text = tables(printed[1]["measured"])
    assert "✗" not in text.split("✗ differs")[0]
    assert "337,299 ✓" in text
    assert "$0.702198" in text
    assert 'delete_file({"path":"access.log"}) ✓' in text


def test_a_figure_that_differs_is_marked(printed):
    measured = json.loads(json.dumps(printed[1]["measured"]))
    measured["plan"]["in"] = 816
    assert "816 ✗" in tables(measured)


def test_the_server_of_the_figures_ends_with_them():
    with scripted_server() as base_url:
        assert httpx.get(f"{base_url}/models").json()["data"][0]["id"] == "plan"
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{base_url}/models")


@pytest.mark.parametrize(
    ("value", "name", "text"),
    [
        (0.0107, "cost", "$0.010700"),
        (4.7, "told_cost_over_fatal_cost", "4.7"),
        (1201.26, "stopped_after_ms", "1,201.3 ms"),
        ([], "deleted", "(none)"),
        ("", "answer", "(none)"),
        (["a", "b"], "deleted", "a, b"),
        (None, "in", "None"),
    ],
)
def test_figures_for_people(value, name, text):
    assert shown(value, name) == text
