"""`replicate` and `attach` of MJCF, written out as bodies and frames like by MuJoCo's compiler.

Tendons, equality constraints and actuators of copied bodies are copied, too, if all that they refer to is copied. Names of copies
get a suffix or a prefix. Bodies of an attached model are read with the settings of its <compiler> and with its default classes.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from liedyn.errors import nearest
from liedyn.io.robots import IGNORABLE
from liedyn.io.robots.mjcf_geometry import (
    MAIN,
    Defaults,
    LeftOut,
    check_known,
    compiler_of,
    compose,
    euler_rotation,
    read_compiler,
    read_option,
)
from liedyn.io.robots.mjcf_meshes import mesh_name
from liedyn.io.robots.write_robot_yaml import quaternion_of
from liedyn.io.robots.xml_elements import LocatedText, XmlElement, read_mjcf_tree
from liedyn.model.links import Pose, vector

MAX_COPIES = 100_000                 # of elements
MAX_DEPTH = 20                       # of models in models
_KINDS = ("joint", "body", "site", "geom", "tendon")
# attributes that name an element, and its kind
_REFERENCES = {**{f"{kind}{number}": kind for kind in _KINDS for number in ("", "1", "2")},
               "refsite": "site", "cranksite": "site", "slidersite": "site", "jointinparent": "joint"}
_SECTIONS = ("tendon", "equality", "actuator")                   # tendons first: the others refer to them
_UNPLACED = ("body", "camera", "light", "plugin")                # in a world: what no setting of its <compiler> places here
_ZERO = (0.0, 0.0, 0.0)

Names = dict[str, set[str]]
Rename = Callable[[str], str]


@dataclass(slots=True)
class Expansion:
    """What a file has beyond its tree, after it was written out.

    classes  default classes of attached models, as in `Defaults`
    counts   parts of attached models and of copies that are not read, by description
    """

    classes: dict[str, dict[str, dict[str, LocatedText]]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    copies: int = 0

    def count(self, part: str, number: int = 1) -> None:
        """Count a part that is not read."""
        if number:
            self.counts[part] = self.counts.get(part, 0) + number


def expand(root: XmlElement, outer: tuple[str, ...] = ()) -> Expansion:
    """Replace each <replicate> and <attach> within <worldbody>, in place.

    outer: files of the models to which this one is attached. Raises ModelError for unknown models and bodies, and for more than
    `MAX_COPIES` elements.
    """
    expansion = Expansion()
    expander = _Expander(root, expansion, (*outer, os.path.realpath(root.file)))
    for world in root.every("worldbody"):
        expander.expand(world)
    return expansion


class _Expander:
    """The elements of one file, of which some are replaced."""

    def __init__(self, root: XmlElement, expansion: Expansion, files: tuple[str, ...]):
        self.root, self.expansion, self.files = root, expansion, files
        self.compiler = read_compiler(root)

    def expand(self, parent: XmlElement) -> None:
        """Replace the elements within `parent`, inner ones first."""
        children: list[XmlElement] = []
        for child in parent.children:
            if child.tag in ("body", "frame", "replicate"):
                self.expand(child)
            if child.tag == "replicate":
                children += self._copies(child)
            elif child.tag == "attach":
                children += self._attached(child)
            else:
                children.append(child)
        parent.children = children

    def _copies(self, element: XmlElement) -> list[XmlElement]:
        """Return the copies of the children of a <replicate>.

        The angles of copy k are k times those of `euler`. Its position is that of the previous copy plus `offset` in the axes of
        the previous copy.
        """
        check_known(element, ("count", "offset", "euler", "sep"))
        element.require("count")
        count = element.number("count", 0.0)
        if count < 0 or count != int(count):
            raise element.problem("wrong value", "count", found=element.text("count"), expected="a whole number")
        for child in element.children:
            if child.tag in ("joint", "freejoint", "inertial"):
                raise child.problem(f"a {child.tag} cannot be replicated", expected="bodies, frames, geoms and sites")
        self._check_size(element, int(count) * len(list(_every(element))))
        compiler = compiler_of(element, self.compiler)
        offset, angles = element.vector("offset", _ZERO), element.vector("euler", _ZERO)
        digits, names, position = len(str(int(count))), _names_of(element.children), _ZERO
        frames, renames = [], [_suffix(f"{element.text('sep', '')}{k:0{digits}d}") for k in range(int(count))]
        for k, rename in enumerate(renames):
            at = Pose(euler_rotation(vector(k * x for x in angles), compiler), position)
            frames.append(_frame(element, at, [_copy(child, names, rename) for child in element.children]))
            position = compose(at, Pose(translation=offset)).translation
        self._copy_sections(names, renames)
        return frames

    def _copy_sections(self, names: Names, renames: list[Rename]) -> None:
        """Replace elements that refer to `names` by copies."""
        for section in (section for tag in _SECTIONS for section in self.root.every(tag)):
            children: list[XmlElement] = []
            for child in section.children:
                references = list(_references(child))
                if not any(name in names[kind] for kind, name in references):
                    children.append(child)
                elif all(name in names[kind] for kind, name in references):
                    if section.tag == "tendon" and child.name:
                        names["tendon"].add(child.name)
                    children += [_copy(child, _with_own_name(names, child), rename) for rename in renames]
                else:
                    self.expansion.count("constraints and actuators of copies together with other elements")
            section.children = children

    # attach ---------------------------------------------------------------------------------------------------------

    def _attached(self, element: XmlElement) -> list[XmlElement]:
        """Return the bodies of another model. Its sections and default classes are added to those of this file."""
        check_known(element, ("model", "body", "prefix"))
        model, prefix = self._model(element), element.require("prefix")
        inner = expand(model, self.files)
        self._check_size(element, len(list(_every(model))))
        for part, number in inner.counts.items():
            self.expansion.count(part, number)
        classes = Defaults(model).classes | inner.classes
        rename: Rename = lambda name: prefix + name                                           # noqa: E731
        class_names = {name: set(classes) for name in ("class", "childclass")} | {"mesh": set(_meshes(model))}
        bodies, childclass = self._bodies(element, model)
        names = _names_of(bodies)
        for section in (section for tag in _SECTIONS for section in model.every(tag)):
            children = []
            for child in section.children:
                if all(name in names[kind] for kind, name in _references(child)):
                    if section.tag == "tendon" and child.name:
                        names["tendon"].add(child.name)
                    of_class = _with(child, "class", child.text("class", MAIN))
                    children.append(_copy(of_class, _with_own_name(names, child) | class_names, rename, model))
            self.root.children.append(replace(section, children=children))
        self._add_classes(element, classes, class_names, rename)
        meshes = [_copy(_with(_with(mesh, "name", name), "class", mesh.text("class", MAIN)), class_names, rename, model)
                  for name, mesh in _meshes(model).items()]
        self.root.children.append(XmlElement("asset", {}, element.file, element.line, meshes))
        self.expansion.count("key frames of attached models", len(list(model.within("keyframe"))))
        ours, theirs = (read_option(root, LeftOut(IGNORABLE)) for root in (self.root, model))
        self.expansion.count("other options of attached models", ours != theirs)
        copies = [_copy(body, names | class_names, rename, model) for body in bodies]
        return [_with(_frame(element, Pose(), copies), "childclass", prefix + childclass)]

    def _model(self, element: XmlElement) -> XmlElement:
        """Return the root of a model by its name, that of its <asset> or of the model itself."""
        name, models = element.require("model"), {}
        for asset in self.root.within("asset"):
            if asset.tag == "model":
                path = Path(self.root.file).parent / asset.require("file")
                if not path.is_file():
                    raise asset.problem("the file of the model does not exist", "file", found=asset.text("file"),
                                        expected=f"a file in {Path(self.root.file).parent}")
                if asset.name in (None, name):
                    model = read_mjcf_tree(path)
                    models[asset.name or model.text("model", "MuJoCo Model")] = model
        if name not in models:
            raise element.problem("unknown model", "model", found=name, expected="the name of a <model> in <asset>",
                                  hint=nearest(name, models))
        if os.path.realpath(models[name].file) in self.files or len(self.files) > MAX_DEPTH:
            raise element.problem("the model contains itself", "model", found=name)
        return models[name]

    def _bodies(self, element: XmlElement, model: XmlElement) -> tuple[list[XmlElement], str]:
        """Return the body that is attached, or all elements of the world of a model, and the default class around them."""
        bodies = {body.name: (body, name) for world in model.every("worldbody")
                  for body, name in _bodies_within(world, world.text("childclass", MAIN)) if body.name}
        if "body" in element.attributes:
            name = element.name_of("body", bodies, "unknown body", "the name of a body of the model")
            return [bodies[name][0]], bodies[name][1]
        children = [child for child in model.within("worldbody")]
        if read_compiler(model) != self.compiler:
            for child in children:
                if child.tag not in _UNPLACED:
                    raise element.problem(f"a world with a <{child.tag}> and other settings of <compiler> cannot be attached",
                                          "model", expected="the same settings, or the attribute body")
        world = next(iter(model.every("worldbody")), model)
        return children, world.text("childclass", MAIN)

    def _add_classes(self, element: XmlElement, classes: dict[str, dict[str, dict[str, LocatedText]]], class_names: Names,
                     rename: Rename) -> None:
        for name, tags in classes.items():
            renamed = {tag: {key: _renamed(key, text, class_names, rename) for key, text in attributes.items()}
                       for tag, attributes in tags.items()}
            if self.expansion.classes.setdefault(rename(name), renamed) != renamed:
                raise element.problem("another model is attached with the same prefix and default class", "prefix",
                                      found=element.text("prefix"), expected="another prefix")

    def _check_size(self, element: XmlElement, copies: int) -> None:
        self.expansion.copies += copies
        if self.expansion.copies > MAX_COPIES:
            raise element.problem("too many copies", expected=f"at most {MAX_COPIES} elements")


# elements ---------------------------------------------------------------------------------------------------------------

def _every(element: XmlElement) -> Iterator[XmlElement]:
    """Yield all elements within an element."""
    waiting = [*element.children]
    while waiting:
        child = waiting.pop()
        yield child
        waiting += child.children


def _bodies_within(element: XmlElement, childclass: str) -> Iterator[tuple[XmlElement, str]]:
    """Yield all bodies within an element, with the default class around each."""
    waiting = [(element, childclass)]
    while waiting:
        parent, name = waiting.pop()
        for child in parent.children:
            if child.tag == "body":
                yield child, name
            waiting.append((child, child.text("childclass", name)))


def _names_of(elements: list[XmlElement]) -> Names:
    """Return the names of all elements within these, by kind."""
    names: Names = {kind: set() for kind in _KINDS}
    for element in (element for first in elements for element in (first, *_every(first))):
        kind = "joint" if element.tag == "freejoint" else element.tag
        if element.name and kind in names:
            names[kind].add(element.name)
    return names


def _with_own_name(names: Names, element: XmlElement) -> Names:
    """Return the names with that of an element of a section, whose tag may be that of another kind, such as `joint`."""
    return names | {element.tag: names.get(element.tag, set()) | ({element.name} if element.name else set())}


def _references(element: XmlElement) -> Iterator[tuple[str, str]]:
    """Yield kind and name of each element that an element of a section names."""
    for part in (element, *_every(element)):
        for attribute, kind in _REFERENCES.items():
            name = part.text(attribute)
            if name is not None and (kind, name) != ("body", "world"):
                yield kind, name


def _meshes(model: XmlElement) -> dict[str, XmlElement]:
    return {mesh_name(child): child for child in model.within("asset") if child.tag == "mesh"}


def _frame(element: XmlElement, at: Pose, children: list[XmlElement]) -> XmlElement:
    x, y, z, w = quaternion_of(at.rotation)
    texts = {"pos": at.translation, "quat": (w, x, y, z)}
    attributes = {key: LocatedText(" ".join(map(repr, values)), element.file, element.line) for key, values in texts.items()}
    return XmlElement("frame", attributes, element.file, element.line, children)


def _with(element: XmlElement, attribute: str, text: str) -> XmlElement:
    written = {attribute: LocatedText(text, element.file, element.line)}
    return replace(element, attributes=element.attributes | written)


def _suffix(suffix: str) -> Rename:
    return lambda name: name + suffix


def _copy(element: XmlElement, names: Names, rename: Rename, model: XmlElement | None = None) -> XmlElement:
    """Return a copy of an element and of all within it, with other names.

    names  names that change, by kind of element, or by the attributes `class`, `childclass` and `mesh`
    model  the attached model that the element is from
    """
    kind = "joint" if element.tag == "freejoint" else element.tag
    attributes = {key: _renamed(kind if key == "name" else key, text, names, rename) for key, text in element.attributes.items()}
    return replace(element, attributes=attributes, children=[_copy(child, names, rename, model) for child in element.children],
                   model=element.model or model)


def _renamed(attribute: str, text: LocatedText, names: Names, rename: Rename) -> LocatedText:
    """Return the text of an attribute, or of a name of this kind, with a prefix or suffix if it is one of `names`."""
    known = names.get(_REFERENCES.get(attribute, attribute), ())
    return text._replace(text=rename(text.text)) if text.text in known else text
