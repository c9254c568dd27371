"""Materials and textures of MJCF files: the colours of geoms for drawing."""
from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from liedyn.io.robots.mjcf_geometry import Compiler, Defaults, asset_path, compiler_of
from liedyn.io.robots.visual_shapes import Material
from liedyn.io.robots.xml_elements import XmlElement
from liedyn.model.links import Colour, Texture, vector

_WHITE = (1.0, 1.0, 1.0, 1.0)
_SIDES = "fileright", "fileleft", "fileup", "filedown", "filefront", "fileback"
_GRADIENT = 16                  # pixels along a side of a gradient


@dataclass(frozen=True, slots=True)
class Materials:
    """The <material> and <texture> elements of a file by name; materials have the attributes of their classes."""

    materials: Mapping[str, XmlElement]
    textures: Mapping[str, XmlElement]
    folder: Path
    compiler: Compiler

    def of(self, geom: XmlElement) -> Material:
        """Return the colour of a geom (its own, or that of its material; None without both) and its texture."""
        material = self.materials.get(geom.text("material", ""))
        coloured = geom if "rgba" in geom.attributes else material
        colour = None if coloured is None else vector(min(1.0, max(0.0, x)) for x in coloured.vector("rgba", _WHITE)[:3])
        layers = [] if material is None else [layer for layer in material.every("layer") if layer.text("role") == "rgb"]
        named = next((each.text("texture") for each in (material, *layers) if each is not None and each.text("texture")), None)
        if material is None or named is None:
            return Material(colour)
        element = self.textures.get(named)
        repeat = material.vector("texrepeat", (1.0, 1.0))
        return Material(colour, Texture((named,)) if element is None else self._texture(element, repeat))

    def _texture(self, element: XmlElement, repeat: tuple[float, float]) -> Texture:
        is_cube = element.text("type", "cube") != "2d"
        compiler = compiler_of(element, self.compiler)
        files = tuple(str(asset_path(element, key, compiler, compiler.texture_folder, self.folder).absolute())
                      for key in ("file", *_SIDES) if element.text(key))
        return Texture(files, () if files else _builtin(element, is_cube), repeat, is_cube)


def read_materials(root: XmlElement, compiler: Compiler, defaults: Defaults) -> Materials:
    """Return the materials and textures of the <asset> sections."""
    assets = [*root.within("asset")]
    textures = {child.name or Path(child.text("file", "").replace("\\", "/")).stem: child for child in assets
                if child.tag == "texture"}
    return Materials({child.name: defaults.of(child) for child in assets if child.tag == "material" and child.name}, textures,
                     Path(root.file).parent, compiler)


def _builtin(element: XmlElement, is_cube: bool) -> tuple[tuple[Colour, ...], ...]:
    """Return the pixels of a texture without a file, whose marks are left out.

    A gradient of two dimensions is from the centre to the sides; MuJoCo has another sigmoid, which differs by at most 0.04.
    """
    first, second = element.vector("rgb1", (0.8, 0.8, 0.8)), element.vector("rgb2", (0.5, 0.5, 0.5))
    kind = element.text("builtin")
    if kind == "checker":
        return (first, second), (second, first)
    if kind != "gradient":
        return ((first,) * 5 + (second,),) if is_cube else ((first,),)
    if is_cube:
        return (first,), (second,)

    def mixed(x: float, y: float) -> Colour:
        r = min(1.0, math.hypot(x, y))
        weight = r * r * (3 - 2 * r)
        return vector(a + weight * (b - a) for a, b in zip(first, second, strict=True))

    grid = [2 * k / (_GRADIENT - 1) - 1 for k in range(_GRADIENT)]
    return tuple(tuple(mixed(x, y) for x in grid) for y in grid)
