"""Model files: which there are, where they come from, and that they are what they should be.

resolved = models.ensure(name, progress)     # name None: the default, or what stands in for it
resolved.path                                # a GGUF file whose digest was checked
"""

from models.store import Resolved, ensure

__all__ = ["Resolved", "ensure"]
