"""JSON schema to the rules of GBNF, llama.cpp's grammar language.

Own code, although llama-cpp-python ships a converter: that one leaves strings, lists and white
space without bound (so a small model loops inside the grammar), passes over keywords it does
not know, and fetches remote references. Here every text the grammar allows follows the schema,
and ends: strings, digits and lists are bounded, white space is fixed. A keyword for which that
cannot be promised is refused by name.
"""

from __future__ import annotations

import json
from typing import Any

from server.errors import BadRequest
from server.gbnf import CHARACTER, INTEGER, MOST_REPEATS, NUMBER, ROOT, Rules, literal, sequence
from server.ranges import integer_range, number_range

MOST_CHARACTERS = 1000
"""Characters of a string for which the schema names no maxLength."""
MOST_ITEMS = 32
"""Entries of a list or of a free object for which the schema names no limit."""
MOST_VISITS = 2000
"""Parts of one schema."""
MOST_DEPTH = 40
MOST_TEXT = 400_000
"""Characters of one schema's rules."""
FREE_DEPTH = 4
"""Levels of a value that the schema says nothing about."""

# Keywords that only inform, or that the grammar may obey by never using what they allow.
_MEANINGLESS = {"title", "description", "default", "examples", "example", "deprecated"} | {
    *("readOnly", "writeOnly", "format", "strict", "$schema", "$id", "$comment", "$anchor"),
    *("$defs", "definitions", "contentMediaType", "contentEncoding", "discriminator", "nullable"),
}
_KNOWN = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "prefixItems", "minItems", "maxItems"},
    "string": {"minLength", "maxLength"},
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "boolean": set[str](),
    "null": set[str](),
}
_STRUCTURE = frozenset(["type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"])
_SCALARS = ("string", "number", "boolean", "null")


class SchemaRules:
    """Collects the rules of one schema."""

    def __init__(self, root: dict[str, Any], field: str, prefix: str = "") -> None:
        """`root`: the whole schema; `field`: its name in the request; `prefix`: of rule names."""
        self._root = root
        self._field = field
        self._rules = Rules(prefix)
        self._references: dict[str, str] = {}
        self._open: set[str] = set()
        self._visits = 0
        self._depth = 0

    def lines(self) -> list[str]:
        """The rules, one a line."""
        return self._rules.lines()

    def text(self, root: str) -> str:
        """The whole grammar, with the expression `root` as what it allows."""
        return "\n".join([ROOT + root, *self.lines(), ""])

    def value(self, schema: Any, path: str) -> str:
        """An expression (a rule's name or a literal) for a value after `schema`."""
        self._visits += 1
        if self._visits > MOST_VISITS or self._depth >= MOST_DEPTH:
            raise self._refused(path, "a schema this large")
        self._depth += 1
        try:
            return self._visited(schema, path)
        finally:
            self._depth -= 1

    def _inner(self, schema: Any, path: str) -> str:
        """Like `value`, for a value inside a list or an object: there a reference may recur."""
        outside, self._open = self._open, set()
        try:
            return self.value(schema, path)
        finally:
            self._open = outside

    def _visited(self, schema: Any, path: str) -> str:
        if schema is True or schema == {}:
            return self._free_value(FREE_DEPTH - 1)
        if not isinstance(schema, dict):
            raise self._refused(path, "this schema")
        if "$ref" in schema:
            return self._reference(schema, path)
        if "const" in schema:
            return literal(_json(schema["const"]))
        if "enum" in schema:
            return self._enum(schema["enum"], path)
        if "allOf" in schema:
            return self.value(self._merged(schema, schema["allOf"], path), path)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self._alternatives(schema, key, path)
        return self._typed(schema, path)

    def object(self, schema: Any, path: str) -> str:
        """Like `value`, where only an object will do."""
        if not _STRUCTURE.isdisjoint(schema.keys() - {"type"}):
            return self.value(schema, path)
        return self._object(schema, path)

    def free_object(self, depth: int) -> str:
        """Some object, `depth` levels deep at the most."""
        return self._map(self._free_value(depth - 1), f"object{depth}")

    def _typed(self, schema: dict[str, Any], path: str) -> str:
        kind = schema.get("type", self._implied_type(schema))
        if isinstance(kind, list) and kind:
            options = [self.value({**schema, "type": one}, path) for one in kind]
            return self._rule(" | ".join(options), path)
        if kind is None:
            self._check_keywords(schema, set(), path)
            return self._free_value(FREE_DEPTH - 1)
        if not isinstance(kind, str) or kind not in _KNOWN:
            raise self._refused(path, f"type {kind!r}")
        # With several types in a list, each takes the keywords that are about it.
        foreign = {key for keys in _KNOWN.values() for key in keys} - _KNOWN[kind]
        self._check_keywords(
            {k: v for k, v in schema.items() if k not in foreign}, _KNOWN[kind], path
        )
        return getattr(self, f"_{kind}")(schema, path)  # type: ignore[no-any-return]  # by kind

    @staticmethod
    def _implied_type(schema: dict[str, Any]) -> str | None:
        """The type of a schema that names none, by the keywords it uses."""
        fits = (kind for kind, keys in _KNOWN.items() if not keys.isdisjoint(schema))
        return next(fits, None)

    def _check_keywords(self, schema: dict[str, Any], known: set[str], path: str) -> None:
        unknown = schema.keys() - known - _MEANINGLESS - {"type"}
        if unknown:
            raise self._refused(path, min(unknown))

    def _object(self, schema: dict[str, Any], path: str) -> str:
        self._check_keywords(schema, _KNOWN["object"], path)
        properties = schema.get("properties", {})
        required = schema.get("required", [])
        names = isinstance(required, list) and all(isinstance(name, str) for name in required)
        if not isinstance(properties, dict) or not names:
            raise self._refused(path, "properties or required of this form")
        extra = schema.get("additionalProperties", True)
        if not properties and not required:
            if extra is False or "properties" in schema:
                return '"{}"'
            return self._map(self._inner(extra, f"{path}/additionalProperties"), "map")
        missing = {name: extra for name in required if name not in properties}
        if missing and extra is False:
            raise self._refused(path, "required names without a property")
        return self._members({**properties, **missing}, set(required), path)

    def _members(self, properties: dict[str, Any], required: set[str], path: str) -> str:
        """Properties in order, optional ones left out or not; rules linear in their number.

        `first` is what may follow the brace, `later` what may follow a written property.
        """
        first, later = '""', '""'
        for name, schema in reversed(properties.items()):
            place = f"{path}/properties/{name}"
            pair = f"{literal(_json(name) + ': ')} {self._inner(schema, place)}"
            if name in required:
                first, later = f"{pair} {later}", f'", " {pair} {later}'
            else:
                first = f"{pair} {later} | {first}"
                later = f'(", " {pair})? {later}'
            first, later = self._rule(first, place), self._rule(later, place)
        return self._rule(f'"{{" {first} "}}"', path)

    def _array(self, schema: dict[str, Any], path: str) -> str:
        low = self._count(schema, "minItems", 0, path)
        high = self._count(schema, "maxItems", max(low, MOST_ITEMS), path)
        fixed, items = schema.get("prefixItems", []), schema.get("items", True)
        if isinstance(items, list):
            fixed, items = items, schema.get("additionalItems", True)
        if low > min(high, MOST_REPEATS) or not isinstance(fixed, list):
            raise self._refused(path, "minItems or prefixItems of this form")
        if fixed:
            if not low <= len(fixed) <= high:
                raise self._refused(path, "prefixItems beside other item limits")
            parts = [self._inner(one, f"{path}/prefixItems/{i}") for i, one in enumerate(fixed)]
            listed = ' ", " '.join(parts)
            return self._rule(f'"[" {listed} "]"', path)
        if items is False or high == 0:
            return '"[]"'
        item = self._rule(self._inner(items, f"{path}/items"), path)
        return self._rule(sequence("[", item, low, min(high, MOST_REPEATS), "]"), path)

    def _string(self, schema: dict[str, Any], path: str) -> str:
        low = self._count(schema, "minLength", 0, path)
        high = min(self._count(schema, "maxLength", max(low, MOST_CHARACTERS), path), MOST_REPEATS)
        if low > high:
            raise self._refused(path, f"minLength above {high}")
        character = self._rule(CHARACTER, "character")
        return self._rule(f'"\\"" {character}{{{low},{high}}} "\\""', path)

    def _integer(self, schema: dict[str, Any], path: str) -> str:
        return self._numeric(schema, path, whole=True)

    def _number(self, schema: dict[str, Any], path: str) -> str:
        return self._numeric(schema, path, whole=False)

    def _numeric(self, schema: dict[str, Any], path: str, *, whole: bool) -> str:
        bounds = {key: schema[key] for key in sorted(_KNOWN["number"]) if key in schema}
        if any(isinstance(b, bool) or not isinstance(b, int | float) for b in bounds.values()):
            raise self._refused(path, "a bound that is no number")
        if not bounds:
            return self._rule(INTEGER if whole else NUMBER, path)
        made = integer_range(bounds) if whole else number_range(bounds)
        if made is None:
            raise self._refused(path, "a range this narrow")
        return self._rule(made, path)

    def _boolean(self, _schema: dict[str, Any], _path: str) -> str:
        return '("true" | "false")'

    def _null(self, _schema: dict[str, Any], _path: str) -> str:
        return '"null"'

    def _enum(self, values: Any, path: str) -> str:
        if not isinstance(values, list) or not values:
            raise self._refused(path, "an enum without values")
        return self._rule(" | ".join(literal(_json(value)) for value in values), path)

    def _alternatives(self, schema: dict[str, Any], key: str, path: str) -> str:
        options = schema[key]
        rest = {name: part for name, part in schema.items() if name != key}
        if not isinstance(options, list) or not options:
            raise self._refused(path, f"{key} without alternatives")
        made = [
            self.value(self._merged(rest, [option], path), f"{path}/{key}/{number}")
            for number, option in enumerate(options)
        ]
        return self._rule(" | ".join(made), path)

    def _merged(self, schema: dict[str, Any], parts: Any, path: str) -> dict[str, Any]:
        """`schema` and every one of `parts` as one schema, where that is plainly possible."""
        merged = {k: v for k, v in schema.items() if k != "allOf" and k not in _MEANINGLESS}
        if not isinstance(parts, list):
            raise self._refused(path, "allOf of this form")
        for part in parts:
            if merged and isinstance(part, dict) and "$ref" in part:
                part = self._looked_up(part["$ref"], path)
            if not isinstance(part, dict):
                raise self._refused(path, "a combination with such a schema")
            for key, value in part.items():
                if key in _MEANINGLESS or merged.get(key, value) == value:
                    merged[key] = value
                elif key == "properties" and merged[key].keys().isdisjoint(value):
                    merged[key] = {**merged[key], **value}
                elif key == "required":
                    merged[key] = [*merged[key], *value]
                else:
                    raise self._refused(path, f"a combination of two {key}")
        return merged

    def _reference(self, schema: dict[str, Any], path: str) -> str:
        pointer = schema["$ref"]
        if not isinstance(pointer, str) or schema.keys() - _MEANINGLESS - {"$ref"}:
            raise self._refused(path, "$ref beside other keywords")
        if pointer in self._open:
            raise self._refused(path, "$ref that leads to itself")
        if pointer not in self._references:
            target = self._looked_up(pointer, path)
            name = self._rules.reserve()
            # Named before it is visited: a schema may refer to itself.
            self._references[pointer] = name
            self._open.add(pointer)
            self._rules.define(name, self.value(target, path))
            self._open.discard(pointer)
        return self._references[pointer]

    def _looked_up(self, pointer: Any, path: str) -> Any:
        if not isinstance(pointer, str) or not pointer.startswith("#"):
            raise self._refused(path, "a $ref out of the schema")
        target: Any = self._root
        for step in pointer[1:].split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, dict) or key not in target:
                raise self._refused(path, f"$ref {pointer[:100]!r}, which leads nowhere")
            target = target[key]
        return target

    def _free_value(self, depth: int) -> str:
        kinds = [self._typed({"type": kind}, kind) for kind in _SCALARS]
        if depth > 0:
            inner = self._free_value(depth - 1)
            kinds.append(self._map(inner, "map"))
            kinds.append(self._rule(sequence("[", inner, 0, MOST_ITEMS, "]"), "list"))
        return self._rule(" | ".join(kinds), "value")

    def _map(self, value: str, path: str) -> str:
        key = self._string({"maxLength": 64}, path)
        pair = self._rule(f'{key} ": " {value}', path)
        return self._rule(sequence("{", pair, 0, MOST_ITEMS, "}"), path)

    def _count(self, schema: dict[str, Any], key: str, default: int, path: str) -> int:
        value = schema.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self._refused(path, f"{key} {value!r}")
        return value

    def _rule(self, body: str, path: str) -> str:
        """The name of the rule with this body."""
        name = self._rules.add(body)
        if self._rules.letters > MOST_TEXT:
            raise self._refused(path, "a schema this large")
        return name

    def _refused(self, path: str, what: str) -> BadRequest:
        return BadRequest(
            f"{self._field}: {what[:100]} at {path[:200] or 'its root'} is not supported.",
            param=self._field,
            code="unsupported_schema",
        )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
