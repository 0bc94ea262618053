"""The catalogue that comes with the program, and what no catalogue may be."""

import json

import pytest
from pydantic import ValidationError

from models import catalogue
from models.errors import UnknownModel


@pytest.fixture
def real():
    return catalogue.load()


def test_the_default_and_what_stands_in_for_it(real):
    names = [model.name for model in real.choices(None)]
    assert names == [
        "qwen2.5-0.5b-instruct",
        "qwen2.5-coder-0.5b-instruct",
        "smollm2-135m-instruct",
    ]
    assert [model.name for model in real.choices("smollm2-135m-instruct")] == [names[2]]


def test_every_model_has_a_licence_and_what_pins_it(real):
    for model in real.models:
        assert model.licence == "Apache-2.0"
        assert len(model.sha256) == 64
        assert all(part.version for part in model.parts)


def test_an_unknown_name_lists_the_known_ones(real):
    with pytest.raises(UnknownModel, match=r"'gpt'\. There are: qwen2\.5-0\.5b-instruct, "):
        real.find("gpt")


def changed(real, change):
    data = json.loads(real.model_dump_json())
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d["models"][1]["parts"].pop(), "do not add up"),
        (lambda d: d["models"][0].update(hub=None), "has no source"),
        (lambda d: d["models"][0].update(name="smollm2-135m-instruct"), "same name"),
        (lambda d: d.update(default="other"), "not in the catalogue"),
        (lambda d: d["models"][0].update(name="../x"), "pattern"),
        (lambda d: d["models"][0].update(sha256="abc"), "pattern"),
        (lambda d: d["models"][0]["hub"].update(revision="main"), "pattern"),
        (lambda d: d["models"][2]["parts"][0].update(member="../../x"), "outside"),
        (lambda d: d["models"][0].update(surprise=1), "Extra inputs"),
    ],
)
def test_what_no_catalogue_may_be(real, change, reason, tmp_path):
    path = tmp_path / "catalogue.json"
    path.write_text(changed(real, change))
    with pytest.raises(ValidationError, match=reason):
        catalogue.load(path)
