"""The model's side of the harness: any OpenAI-compatible endpoint over HTTP."""

from __future__ import annotations

from harness.provider.client import HttpProvider
from harness.provider.endpoint import Endpoint, endpoint_from_environment, normal_base_url

__all__ = ["Endpoint", "HttpProvider", "endpoint_from_environment", "normal_base_url"]
