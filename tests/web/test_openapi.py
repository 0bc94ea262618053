"""The page's description of itself says what there is."""

from __future__ import annotations

import re
from typing import Any

from web.openapi import DESCRIPTION


def test_it_describes_every_route_and_no_other(page: Any) -> None:
    routes = {
        (re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule), method)
        for rule in page.app.url_map.iter_rules()
        for method in (rule.methods or set()) & {"GET", "POST"}
    }
    described = {
        (path, method.upper()) for path, item in DESCRIPTION["paths"].items() for method in item
    }
    assert described == routes


def test_it_names_every_field_of_a_path(page: Any) -> None:
    for path, item in DESCRIPTION["paths"].items():
        for operation in item.values():
            named = {field["name"] for field in operation["parameters"] if field["in"] == "path"}
            assert named == set(re.findall(r"\{(\w+)\}", path)), path


def test_it_is_served(page: Any) -> None:
    assert page.get("/openapi.json").json == DESCRIPTION
