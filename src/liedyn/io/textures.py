"""Images that robot files name for the colours of shapes and meshes, read by Pillow."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from liedyn.errors import ComputationError
from liedyn.model.links import Colour, Texture

_MOST_PIXELS = 512              # along a side: each triangle of a page has one colour


def painted(texture: Texture, files: Sequence[Path], colour: Colour | None) -> tuple[Texture, Colour]:
    """Return a texture with its pixels, whose colours are multiplied by that of the material, and their mean from 0 to 1.

    files: of the image, or of the sides of a cube. Raise ComputationError if one cannot be read.
    """
    pixels = np.concatenate([_pixels(file, len(files)) for file in files]) if files else 255 * np.array(texture.rows)
    pixels = pixels * np.array(colour or (1.0, 1.0, 1.0))
    red, green, blue = (pixels.mean(axis=(0, 1)) / 255).round(3).tolist()
    return replace(texture, colour=colour, pixels=pixels), (red, green, blue)


def _pixels(file: Path, count: int) -> np.ndarray:
    """Return the pixels (h, w, 3) of an image from 0 to 255, the first row at its top; of several files, all of one size."""
    from PIL import Image
    try:
        with Image.open(file) as image:
            image.draft("RGB", (_MOST_PIXELS, _MOST_PIXELS))
            rgb = image.convert("RGB")
    except Exception as problem:                            # of many readers
        raise ComputationError(f"{file} cannot be read as an image: {type(problem).__name__}") from None
    width, height = (min(side, _MOST_PIXELS) if count == 1 else _MOST_PIXELS for side in rgb.size)
    return np.asarray(rgb.resize((width, height), Image.Resampling.BOX), dtype=float)


def colours_at(pixels: np.ndarray, uv: np.ndarray) -> np.ndarray:
    """Return the mean colours (m, 3) of pixels (h, w, 3) at texture coordinates (k, m, 2), which start at the lower left."""
    h, w, _ = pixels.shape
    u, v = np.moveaxis(uv, -1, 0)
    colours: np.ndarray = pixels[((1 - v) % 1.0 * h).astype(int) % h, (u % 1.0 * w).astype(int) % w].mean(axis=0)
    return colours
