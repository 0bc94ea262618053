"""Whether a project's `uitweg.toml` may name programs that run here.

Such a file comes with a folder, and a folder may come from anybody. So what in it reaches beyond
the loop (code, commands, addresses, other folders) counts only after the person has said so, once
for each wording of it: `uitweg config --trust`. Kept in the data folder as trusted.json.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.mcp_server import McpServer
from local import folders
from uitweg.config_file import ConfigError

REACHING = ("base_url", "workspace", "tools", "mcp.")
"""Keys, or the beginnings of keys, that need trust."""


class NotTrusted(ConfigError):
    """Nobody has said yet that this file may do what it says."""


def check_trusted(path: Path, values: Mapping[str, Any]) -> None:
    """Raise `NotTrusted` for a file with reaching keys whose wording has not been trusted."""
    reaching = reaching_in(values)
    if reaching and _trusted().get(str(path)) != _digest(reaching):
        raise NotTrusted(
            f"{path} sets {', '.join(reaching)}, and that is new or has changed. It decides what "
            "runs on this machine and where your files go. Read it, and if you trust it: "
            "uitweg config --trust"
        )


def trust(path: Path, values: Mapping[str, Any]) -> None:
    """Remember that the person trusts these keys of this file."""
    known = {**_trusted(), str(path): _digest(reaching_in(values))}
    target = folders.make(folders.data()) / "trusted.json"
    part = target.with_suffix(".part")
    part.write_text(json.dumps(known, indent=1), encoding="utf-8")
    part.replace(target)


def reaching_in(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the keys that need trust."""
    return {key: value for key, value in values.items() if key.startswith(REACHING)}


def _digest(values: Mapping[str, Any]) -> str:
    plain = {
        key: value.model_dump(mode="json") if isinstance(value, McpServer) else value
        for key, value in values.items()
    }
    text = json.dumps(plain, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _trusted() -> dict[str, str]:
    try:
        known = json.loads((folders.data() / "trusted.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
