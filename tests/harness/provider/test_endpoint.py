"""Where the model is."""

from __future__ import annotations

import pytest

from harness.errors import SettingsError
from harness.provider.endpoint import endpoint_from_environment, normal_base_url


def test_nothing_set_means_the_bundled_server():
    endpoint = endpoint_from_environment({})
    assert (endpoint.base_url, endpoint.named) == ("http://127.0.0.1:8080/v1", False)


def test_ours_goes_before_openais():
    endpoint = endpoint_from_environment(
        {"LLM_BASE_URL": "http://a", "OPENAI_BASE_URL": "http://b", "OPENAI_API_KEY": "k"}
    )
    assert (endpoint.base_url, endpoint.api_key) == ("http://a/v1", None)


def test_openais_variables_fill_in_together():
    endpoint = endpoint_from_environment({"OPENAI_BASE_URL": "http://b/x/", "OPENAI_API_KEY": "k"})
    assert (endpoint.base_url, endpoint.api_key) == ("http://b/x", "k")


def test_a_key_without_its_address_is_not_sent_to_the_bundled_server():
    assert endpoint_from_environment({"OPENAI_API_KEY": "k"}).api_key is None


def test_a_key_goes_to_its_own_host_only():
    endpoint = endpoint_from_environment({"LLM_BASE_URL": "https://a", "LLM_API_KEY": "k"})
    assert endpoint.key_for("https://a/v1") == "k"
    assert [endpoint.key_for(u) for u in ("https://b/v1", "http://a/v1", "https://a:1/v1")] == [
        None, None, None,
    ]  # fmt: skip
    assert "k" not in repr(endpoint).replace("api_key", "").replace("k=", "")


@pytest.mark.parametrize(
    "text", ["", "127.0.0.1:8080", "ftp://a", "http://", "http://[", "http://a:x"]
)
def test_what_is_no_address_is_said(text):
    with pytest.raises(SettingsError, match="no address"):
        normal_base_url(text)


def test_a_password_in_an_address_is_refused():
    with pytest.raises(SettingsError, match="LLM_API_KEY"):
        normal_base_url("http://me:secret@host/v1")
