"""The model's side of the harness: any OpenAI-compatible endpoint over HTTP."""

from __future__ import annotations

from harness.provider.client import HttpProvider
from harness.provider.endpoint import (
    DEFAULT_BASE_URL,
    Endpoint,
    endpoint_from_environment,
    normal_base_url,
)
from harness.provider.listing import OfferedModel, choose_model, find_model, offered_models

__all__ = [
    "DEFAULT_BASE_URL",
    "Endpoint",
    "HttpProvider",
    "OfferedModel",
    "choose_model",
    "endpoint_from_environment",
    "find_model",
    "normal_base_url",
    "offered_models",
]
