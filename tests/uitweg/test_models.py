"""`uitweg models`, on an empty folder."""

import pytest

from uitweg.main import run


@pytest.fixture(autouse=True)
def empty(monkeypatch, tmp_path):
    monkeypatch.setenv("UITWEG_CACHE", str(tmp_path))
    return tmp_path / "models"


def test_list(capsys):
    assert run(["models", "list"]) == 0
    out = capsys.readouterr().out
    assert "qwen2.5-0.5b-instruct           491 MB  Apache-2.0  not fetched, default" in out
    assert "smollm2-135m-instruct            98 MB" in out


@pytest.mark.parametrize("command", ["verify", "path"])
def test_a_model_that_is_not_here(command, capsys):
    assert run(["models", command, "smollm2-135m-instruct"]) == 1
    assert capsys.readouterr().err == (
        "uitweg: smollm2-135m-instruct is not here yet. "
        "Get it with: uitweg models fetch smollm2-135m-instruct\n"
    )


@pytest.mark.parametrize("command", ["verify", "path", "fetch"])
def test_a_model_that_is_not_known(command, capsys):
    assert run(["models", command, "gpt"]) == 1
    assert "There is no model 'gpt'. There are: qwen2.5" in capsys.readouterr().err


def test_a_damaged_model(empty, capsys):
    empty.mkdir()
    (empty / "smollm2-135m-instruct.gguf").write_bytes(b"GGUF")
    assert run(["models", "verify", "smollm2-135m-instruct"]) == 1
    assert "has 4 bytes where 98,362,432 are expected" in capsys.readouterr().err


@pytest.mark.engine
def test_a_model_that_is_here(small_model, monkeypatch, capsys):
    monkeypatch.setenv("UITWEG_CACHE", str(small_model.path.parents[1]))
    for command in (["verify", small_model.name], ["fetch", small_model.name]):
        assert run(["models", *command]) == 0
        assert "is here and right" in capsys.readouterr().out
    assert run(["models", "path", small_model.name]) == 0
    assert capsys.readouterr().out == f"{small_model.path}\n"


@pytest.mark.engine
def test_a_model_of_ones_own(tmp_path, monkeypatch, capsys, small_model):
    monkeypatch.setenv("UITWEG_DATA", str(tmp_path / "data"))
    assert run(["models", "add", "mine", "--path", str(small_model.path)]) == 0
    assert "uitweg serve --model mine" in capsys.readouterr().out
    assert run(["models", "path", "mine"]) == 0
    assert capsys.readouterr().out == f"{small_model.path}\n"
    assert run(["models", "list"]) == 0
    assert f"Added by you: {small_model.path}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "given", [[], ["--repo", "a/b"], ["--path", "x", "--repo", "a/b"], ["--file", "x"]]
)
def test_a_model_is_added_in_one_way_or_the_other(given, capsys):
    assert run(["models", "add", "mine", *given]) == 2
    assert "Give either --path" in capsys.readouterr().err


def test_fetch_tells_each_reason_in_a_line(monkeypatch, capsys):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    assert run(["models", "fetch", "qwen2.5-0.5b-instruct"]) == 1
    err = capsys.readouterr().err.splitlines()
    assert err[0] == "Fetching qwen2.5-0.5b-instruct from the hub."
    assert err[1].startswith("uitweg: qwen2.5-0.5b-instruct could not be fetched. The hub ")
    assert len(err) == 2
