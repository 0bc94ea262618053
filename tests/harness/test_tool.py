"""Tools as typed functions, and what their types refuse."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel

from harness.tool import InvalidArguments, ToolContext, tool
from harness.tools import bundled_tools


class Span(BaseModel):
    first: int
    last: int


@tool(effect="read")
def look(
    path: Annotated[str, "The name of the file."],
    context: ToolContext,
    kind: Literal["text", "bytes"] = "text",
    limit: int | None = None,
    spans: list[Span] | None = None,
) -> str:
    """Look into
    a file.

    This is for people.
    """
    return f"{path} {kind} {limit}"


def test_the_model_sees_the_first_paragraph_and_a_small_schema():
    parameters = look.wire["function"]["parameters"]
    assert look.wire["function"]["description"] == "Look into a file."
    assert parameters["properties"]["path"] == {
        "type": "string",
        "description": "The name of the file.",
    }
    assert parameters["properties"]["limit"] == {"type": "integer"}
    assert parameters["properties"]["kind"]["enum"] == ["text", "bytes"]
    assert parameters["required"] == ["path"]
    assert "context" not in parameters["properties"]
    assert "title" not in json.dumps(parameters)


def test_the_bundled_tools_are_worded_as_the_published_counts_need():
    wire = [json.dumps(t.wire, separators=(",", ":")) for t in bundled_tools().values()]
    assert wire[:3] == [
        '{"type":"function","function":{"name":"list_files","description":"List the names of the '
        'files in the folder.","parameters":{"type":"object","properties":{},"required":[]}}}',
        '{"type":"function","function":{"name":"read_file","description":"Read one text file of '
        'the folder.","parameters":{"type":"object","properties":{"path":{"type":"string",'
        '"description":"The name of the file, as listed."}},"required":["path"]}}}',
        '{"type":"function","function":{"name":"delete_file","description":"Delete one file of '
        'the folder for good.","parameters":{"type":"object","properties":{"path":{"type":"string"'
        ',"description":"The name of the file, as listed."}},"required":["path"]}}}',
    ]
    assert list(bundled_tools())[3:] == ["scan_archive", "research"]


def test_a_tool_that_does_not_say_it_reads_needs_approval():
    @tool
    def touch(path: str) -> str:
        """Touch."""
        return path

    assert touch.needs_approval
    assert not look.needs_approval
    assert "touch" in touch.describe_effect({"path": "x"}, None)  # type: ignore[arg-type]
    assert touch.fingerprint({"path": "x"}, None) == ""  # type: ignore[arg-type]


def test_arguments_come_back_as_what_would_run():
    assert look.validate('{"path":"x"}') == {"path": "x"}
    assert look.validate('{"limit":"3","path":"x"}') == {"path": "x", "limit": 3}
    assert look.check({"path": "y", "kind": "bytes"}) == {"path": "y", "kind": "bytes"}
    spans = '{"path":"x","spans":[{"first":1,"last":2}]}'
    assert look.validate(spans)["spans"] == [{"first": 1, "last": 2}]


@pytest.mark.parametrize(
    "text",
    [None, "", "  ", "ls", "{", "[]", "null", "3", '"x"', "{'path': 'x'}", '{"path":"x"} {}', "NaN",
     '{"path":"x","limit":NaN}', '{"path":"x","path":"y"}', "[" * 100_000, '{"path":"\\ud800"}',
     '{"path":"' + "x" * 300_000 + '"}', '{"path":"x","limit":' + "9" * 5000 + "}", "\0"],
)  # fmt: skip
def test_h20_what_is_no_json_object_never_runs(text):
    with pytest.raises(InvalidArguments) as caught:
        look.validate(text)
    assert '"path": <string>' in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("text", ["", "ls", "[]", "null", "none"])
def test_h20_not_even_a_tool_without_arguments(text):
    with pytest.raises(InvalidArguments, match="list_files did not run"):
        bundled_tools()["list_files"].validate(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "`path` is missing"),
        ('{"path":1}', "`path` is a number"),
        ('{"path":null}', "`path` is null"),
        ('{"path":"x","force":true}', "`force` is not an argument"),
        ('{"path":"x","kind":"all"}', "`kind` is a string"),
        ('{"path":"x","spans":[{"first":1}]}', "`spans.0.last` is missing"),
        ('{"path":"x","context":{}}', "`context` is not an argument"),
    ],
)
def test_h20_the_message_names_the_field_and_the_shape(text, said):
    with pytest.raises(InvalidArguments) as caught:
        look.validate(text)
    assert said in str(caught.value)
    assert (
        'arguments of this shape: {"path": <string>, "kind": <"text" or "bytes", optional>'
        in str(caught.value)
    )


def test_a_function_that_cannot_be_described_is_refused_at_once():
    with pytest.raises(TypeError, match="docstring"):

        @tool
        def silent(path: str) -> str:
            return path

    with pytest.raises(TypeError, match="needs a type"):

        @tool
        def untyped(path) -> str:  # type: ignore[no-untyped-def]
            """Do."""
            return str(path)

    with pytest.raises(TypeError, match="cannot be described"):

        @tool
        def many(*paths: str) -> str:
            """Do."""
            return str(paths)
