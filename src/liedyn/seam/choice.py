"""Whether the fallbacks are asked for."""
import os

PLAIN = os.environ.get("LIEDYN_SEAM") == "plain"
