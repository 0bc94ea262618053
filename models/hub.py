"""The first source: the Hugging Face hub, at the commit that the catalogue names."""

from __future__ import annotations

import os

from models.catalogue import Model
from models.download import Address
from models.errors import Refused, Unreachable

SOURCE = "the hub"


def address(model: Model) -> Address:
    """Where the hub has a model's file.

    `HF_ENDPOINT` names another hub, `HF_TOKEN` logs in, `HF_HUB_OFFLINE=1` asks nobody: these are
    huggingface-hub's own.

    Raises:
        Unreachable: offline is what was asked for.
        Refused: the catalogue knows no such file there.
    """
    if model.hub is None:
        raise Refused(f"The hub has no {model.name}.")
    # Takes half a second to import, and most starts have no use for it.
    from huggingface_hub import constants, get_token, hf_hub_url

    if constants.is_offline_mode():
        raise Unreachable("The hub is not asked: HF_HUB_OFFLINE is set.")
    url = hf_hub_url(
        model.hub.repo,
        model.hub.file,
        revision=model.hub.revision,
        endpoint=os.environ.get("HF_ENDPOINT") or None,
    )
    token = get_token()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Address(url, SOURCE, model.bytes, {"User-Agent": "uitweg", **headers})
