"""Sums over the children of a body, as a backward pass (children first) gathers them: `sums` has room for one a body."""
from liedyn.jit import primitive
from liedyn.joints.kinds import HAS_CHILDREN, LAST_CHILD
from liedyn.lie.inertia import add_sym6
from liedyn.lie.rows import load_sym6, load_twist, store_sym6, store_twist
from liedyn.lie.se3 import add


@primitive
def with_children(tree, i, F, sums):
    """F + what the children of body i have handed to it: wrenches."""
    return add(F, load_twist(sums, i)) if tree.marks[i] & HAS_CHILDREN else F


@primitive
def hand_to_parent(tree, i, F, sums):
    """The wrench F, seen from the parent of body i, to the parent's sum. The ground gathers nothing."""
    p = tree.parent[i]
    if p > 0:
        store_twist(sums, p, F if tree.marks[i] & LAST_CHILD else add(F, load_twist(sums, p)))


@primitive
def inertia_with_children(tree, i, X, sums):
    """The same of symmetric 6x6."""
    return add_sym6(X, load_sym6(sums, i)) if tree.marks[i] & HAS_CHILDREN else X


@primitive
def hand_inertia_to_parent(tree, i, X, sums):
    p = tree.parent[i]
    if p > 0:
        store_sym6(sums, p, X if tree.marks[i] & LAST_CHILD else add_sym6(X, load_sym6(sums, p)))
