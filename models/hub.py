"""The first source: the Hugging Face hub, at the commit that the catalogue names."""

from __future__ import annotations

import os

from models.catalogue import HubFile, Model
from models.download import Address
from models.errors import Refused, Unreachable

SOURCE = "the hub"


def address(model: Model) -> Address:
    """Where the hub has a model's file. Raises what `address_of` does, and `Refused`."""
    if model.hub is None:
        raise Refused(f"The hub has no {model.name}.")
    return address_of(model.hub, model.bytes)


def address_of(file: HubFile, size: int | None = None) -> Address:
    """Where the hub has a file, of `size` bytes if that is known.

    `HF_ENDPOINT` names another hub, `HF_TOKEN` logs in, `HF_HUB_OFFLINE=1` asks nobody: these are
    huggingface-hub's own.

    Raises:
        Unreachable: offline is what was asked for.
    """
    # Takes half a second to import, and most starts have no use for it.
    from huggingface_hub import constants, get_token, hf_hub_url

    if constants.is_offline_mode():
        raise Unreachable("The hub is not asked: HF_HUB_OFFLINE is set.")
    url = hf_hub_url(
        file.repo,
        file.file,
        revision=file.revision,
        endpoint=os.environ.get("HF_ENDPOINT") or None,
    )
    token = get_token()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Address(url, SOURCE, size, {"User-Agent": "uitweg", **headers})
