"""The limbs of a tree, for `joints.limbs`: chains of screws that end it."""
from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from liedyn.joints.kinds import SCREW
from liedyn.model.cache_lines import on_cache_lines

_HAS_CHILDREN, _LAST_CHILD, _TURNS, _SLIDES, _BARE = 1, 2, 4, 8, 16          # joints.tree, which needs numba
_HEADER, _WIDTH, _FIRST = 16, 8, 2         # joints.limbs
_SAVED, _TRUNK, _SCRATCH = 7, 8, 13        # in its header: bodies that are saved, where the trunk and the scratch begin
_STEP = 2.0                                # eight bodies side by side, in bodies one by one
_FEWEST, _FEWEST_OF_SERIES = 4, 8          # bodies saved, below which going there and back costs more


def limbs(index: np.ndarray, constants: np.ndarray) -> np.ndarray | None:
    """The array that `joints.limbs` reads, or None where limbs side by side would not be faster."""
    tree = _Tree.of(index, constants)
    groups = _groups(tree)
    saved = sum(len(limb) - _STEP * len(groups[0][0]) / len(group) for group in groups for limb in group)
    return _packed(tree, groups, round(saved)) if saved > _FEWEST else None


def limbs_for_series(limbs: np.ndarray | None, memory, K: int) -> np.ndarray | None:
    """The same with scratch for a kernel of series of K coefficients, zero: `memory(groups, bodies of a chain, bodies of the
    trunk, nv, K)` numbers. None where they would not be faster."""
    if limbs is None or limbs.view(np.int64)[_SAVED] < _FEWEST_OF_SERIES:
        return None
    header = limbs.view(np.int64)
    groups, n, _, nv = map(int, header[:4])
    bodies, head = int(header[header[_TRUNK]]), int(header[_SCRATCH])
    array = on_cache_lines(head + _whole(memory(groups, n, bodies, nv, K)))
    array[:head] = limbs[:head]
    return array


@dataclass(frozen=True)
class _Tree:
    """The parts of `joints.tree` that are needed here; rows of the constants by body or coordinate."""

    header: np.ndarray
    parent: np.ndarray
    kind: np.ndarray
    iq: np.ndarray
    iv: np.ndarray
    marks: np.ndarray
    ground: np.ndarray         # dV0
    S: np.ndarray
    T0: np.ndarray
    I: np.ndarray
    figures: np.ndarray        # (6, nv) armature … floor

    @classmethod
    def of(cls, index, constants):
        n, _, nv, nl = index[:4]
        by_body = index[8:8 + 6 * n].reshape(6, n)
        edges = 6 + n * np.array([0, 2, 14, 24])
        S, T0, I = (constants[a:b].reshape(n, -1) for a, b in pairwise(edges))
        return cls(index[:8], *by_body[:5], constants[:6], S, T0, I, constants[6 + 24 * n + 12 * nl:].reshape(6, nv))


def _groups(tree: _Tree) -> list[list[list[int]]]:
    """The limbs, each a list of bodies from the trunk outwards, in groups of up to eight of about the same length."""
    n, parent = len(tree.parent), tree.parent
    children = np.bincount(parent[1:], minlength=n)
    found = []
    for i in range(1, n):
        if children[i] == 0:
            limb = []
            while i > 0 and tree.kind[i] == SCREW and children[i] <= 1:
                limb.insert(0, i)
                i = parent[i]
            if limb:
                found.append(limb)
    found.sort(key=len, reverse=True)
    groups = [found[k:k + _WIDTH] for k in range(0, len(found), _WIDTH)]
    while groups and sum(map(len, groups[-1])) <= _STEP * len(groups[0][0]):
        groups.pop()                                       # what they hold stays with the trunk
    return groups


def _packed(tree: _Tree, groups: list[list[list[int]]], saved: int) -> np.ndarray:
    limbs = [limb for group in groups for limb in group]
    length, nv = len(limbs[0]), int(tree.header[2])
    in_limbs = {i for limb in limbs for i in limb}
    bodies = [i for i in range(len(tree.parent)) if i not in in_limbs]         # of the trunk, parents first
    roots = [bodies.index(tree.parent[limb[0]]) for limb in limbs]
    empty = [0] * (_WIDTH * len(groups) - len(limbs))
    adds = [root in roots[:k] for k, root in enumerate(roots)]
    cells = [(tree.iq[i], tree.iv[i], _WIDTH * (k // _WIDTH * length + row) + k % _WIDTH)
             for k, limb in enumerate(limbs) for row, i in enumerate(limb)]
    lists = [*map(len, groups), *roots, *empty, *adds, *empty, *np.transpose(cells).ravel()]
    n, nt = length + _FIRST, len(bodies)
    scratch = 51 * nt + 9 * nv + _WIDTH + _WIDTH * len(groups) * (51 * n + 13 * length)      # of `kernels.recursions.limbs`
    header = [len(groups), n, *tree.header[1:3], len(cells), *tree.header[4:6], saved]
    return _joined(header, [_trunk_index(tree, bodies, roots), _trunk_constants(tree, bodies), _chain_index(tree, limbs), lists,
                            np.concatenate([_chain_constants(tree, group, length) for group in groups]), np.zeros(scratch)])


def _trunk_index(tree: _Tree, bodies: list[int], roots: list[int]) -> np.ndarray:
    n, nv = len(bodies), int(tree.header[2])
    parent = [-1] + [bodies.index(tree.parent[i]) for i in bodies[1:]]
    marks = [tree.marks[i] & ~(_HAS_CHILDREN | _LAST_CHILD) | _HAS_CHILDREN * (k in roots) for k, i in enumerate(bodies)]
    for i in range(n - 1, 0, -1):
        p = parent[i]
        marks[i] |= _LAST_CHILD * (not marks[p] & _HAS_CHILDREN)
        marks[p] |= _HAS_CHILDREN
    header = [n, *tree.header[1:3], 0, *tree.header[4:]]
    by_body = [parent, tree.kind[bodies], tree.iq[bodies], tree.iv[bodies], marks, range(n)]
    return np.concatenate([header, *by_body, np.zeros(3 * nv)]).astype(np.int64)


def _trunk_constants(tree: _Tree, bodies: list[int]) -> np.ndarray:
    return np.concatenate([tree.ground, *[x[bodies].ravel() for x in (tree.S, tree.T0, tree.I)], tree.figures.ravel()])


def _chain_index(tree: _Tree, limbs: list[list[int]]) -> np.ndarray:
    length = len(limbs[0])
    n = length + _FIRST
    coordinate = [0, 0, *range(length)]
    marks = [_HAS_CHILDREN | _LAST_CHILD] * (n - 1) + [_LAST_CHILD]
    for row in range(length):                # what any of the bodies side by side does; BARE where all are
        beside = [tree.marks[limb[row]] for limb in limbs if row < len(limb)]
        marks[_FIRST + row] |= np.bitwise_or.reduce(beside) & (_TURNS | _SLIDES) | np.bitwise_and.reduce(beside) & _BARE
    header = [n, length, length, 0, 0, 0, 0, 0]
    by_body = [range(-1, n - 1), [SCREW] * n, coordinate, coordinate, marks, [0] * n]
    return np.concatenate([header, *by_body, [0] * (3 * length)]).astype(np.int64)


def _chain_constants(tree: _Tree, group: list[list[int]], length: int) -> np.ndarray:
    """(rows, 8) of the chains of a group."""
    lanes = []
    for limb in group + [[]] * (_WIDTH - len(group)):
        before, after = _FIRST, length - len(limb)
        S, T0, I = (np.concatenate([np.tile(still, (before, 1)), x[limb], np.tile(still, (after, 1))])
                    for x, still in ((tree.S, [1.0, 0.0]), (tree.T0, [*np.eye(3).ravel(), 0, 0, 0]), (tree.I, [0.0] * 10)))
        figures = np.concatenate([tree.figures[:, tree.iv[limb]], np.zeros((6, after))], axis=1)
        figures[0, len(limb):] = 1.0
        lanes.append(np.concatenate([np.zeros(6), S.ravel(), T0.ravel(), I.ravel(), figures.ravel()]))
    return np.transpose(lanes).ravel()


def _whole(count: int) -> int: return -(-count // _WIDTH) * _WIDTH


def _joined(header: list[int], parts: list) -> np.ndarray:
    """One array: the header, followed by where the parts begin, and the parts."""
    starts = np.cumsum([_HEADER] + [_whole(len(part)) for part in parts])
    array = on_cache_lines(starts[-1])
    array.view(np.int64)[:_HEADER] = [*header, *starts[:-1], *[0] * (_HEADER - len(header) - len(parts))]
    for start, part in zip(starts, parts, strict=False):
        part = np.asarray(part)
        (array if part.dtype == float else array.view(np.int64))[start:start + len(part)] = part
    return array
