"""Whether the fallbacks are asked for."""
import os

from liedyn.errors import UsageError

_GIVEN = os.environ.get("LIEDYN_SEAM") or "auto"
if _GIVEN not in ("auto", "plain"):
    raise UsageError(f"LIEDYN_SEAM is not known; found {_GIVEN[:40]!r}, expected auto or plain (unset it for auto)")
PLAIN = _GIVEN == "plain"
