"""Places, and what overrides them."""

from pathlib import Path

from local import folders


def test_the_usual_places_are_ours():
    for place in (folders.data({}), folders.cache({}), folders.config()):
        assert place.is_absolute()
        assert "uitweg" in place.parts


def test_variables_override(tmp_path):
    assert folders.data({"UITWEG_DATA": str(tmp_path)}) == tmp_path
    assert folders.cache({"UITWEG_CACHE": str(tmp_path)}) == tmp_path
    assert folders.models({"UITWEG_CACHE": str(tmp_path)}) == tmp_path / "models"
    assert folders.data({"UITWEG_DATA": ""}) == folders.data({})
    assert folders.data({"UITWEG_DATA": "here"}) == Path("here").absolute()
    assert folders.data({"UITWEG_DATA": "~/here"}) == Path("~/here").expanduser()


def test_a_new_folder_is_its_owners(tmp_path):
    made = folders.make(tmp_path / "a/b")
    assert made.stat().st_mode & 0o077 == 0
    assert folders.make(made) == made
