"""`make bench`: the figures that the README quotes, and the bounds that they are held to.

A whole run appends its main figures to docs/benchmarks/history.csv."""
from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path

os.environ.setdefault("LIEDYN_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")        # before NumPy: threads make small matrix products ten times slower
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(1, str(Path(__file__).parents[1] / "support"))

from benchmarks import (
    batches,
    chains,
    commands,
    constrained,
    derivatives,
    dynamics,
    events,
    higher_order,
    identification,
    inverse_kinematics,
    live_pages,
    long_runs,
    memory,
    mimic,
    rollouts,
    single_precision,
    state_blocks,
    work_precision,
)
from benchmarks.history import FILE, History
from benchmarks.measure import keep_freed_memory, pin_to_one_core

BATCH = {"forward": 15.0, "inverse": 15.0}    # times Pinocchio's batch call
SINGLE = {"forward": 3.0, "inverse": 2.5}     # times Pinocchio's call
RK4 = {7: 5.0, 30: 4.0}                       # times MuJoCo's mj_step, by joints
FLAT = 1.3
DERIVATIVES = {"one": 2.5, "batch": 8.0}      # times Pinocchio's computeRNEADerivatives, computeABADerivatives
SECOND = 8.0                                  # times central differences of computeRNEADerivatives
CONSTRAINED = {"one": 1.5, "batch": 6.0}      # times Pinocchio's constraintDynamics
REACH, ROW, REACHED = 50.0, 1000.0, 0.99        # us a pose of a Panda, us a row of a humanoid's path; part of the targets reached
MIMIC = 1.1                                   # times the same tree without mimic joints and couplings
HYBRID, GEAR = 1.0, 5.0                       # times our forward derivatives; times the published figure


def line(holds: bool, text: str) -> None:
    print(f"{'ok  ' if holds else 'MISS'} {text}", flush=True)


def main(quick: bool = False, history: Path = FILE) -> int:
    figures = History()
    few = {"repeats": 3} if quick else {}
    how = f"{pin_to_one_core()}, {keep_freed_memory()}"
    print(f"liedyn benchmarks: {platform.machine()}, Python {platform.python_version()}, {how}; medians\n")
    print("batch, Pinocchio's batch call at one thread (us a state)")
    for robot, what, nv, us, pair in dynamics.batches(**({"states": 512} if quick else {}), **few):
        theirs = us * pair.theirs / pair.ours
        figures.add(f"{what} dynamics, batch, {robot}", us, pair.ratio)
        line(pair.ratio >= BATCH[what], f"{robot:14s} {nv:3d} DoF {what}: ours {us:6.3f}, Pinocchio {theirs:7.3f}, "
             f"{pair.ratio:5.1f}x (asked {BATCH[what]:g}x)")
    print("\none call from Python a state (us)")
    for robot, what, nv, us, pair in dynamics.single_calls(**({"states": 200} if quick else {}), **few):
        theirs = us * pair.theirs / pair.ours
        figures.add(f"{what} dynamics, one call, {robot}", us, pair.ratio)
        line(pair.ratio >= SINGLE[what], f"{robot:14s} {nv:3d} DoF {what}: ours {us:6.2f}, Pinocchio {theirs:6.2f}, "
             f"{pair.ratio:5.2f}x (asked {SINGLE[what]:g}x)")
    print("\nforward dynamics of chains, us a body: a batch on Lanes, an rk4 run on float64 (flat within 30% is asked)")
    for kind, rows in chains.microseconds_per_body(**({"lengths": (10, 100)} if quick else {}), **few).items():
        ratios = [ratio for _, _, ratio in rows]
        line(max(ratios) <= FLAT * min(ratios), f"{kind:8s}" + ", ".join(f"{n}: {us:.4f}" for n, us, _ in rows)
             + f"; largest / smallest {max(ratios) / min(ratios):.2f}")
    print("\none rk4 step of a chain (us), MuJoCo's RK4 mj_step without contacts")
    for n in (7, 30):
        ours, theirs, pair = chains.rk4_step(n, **({"steps": 100} if quick else {}), **few)
        figures.add(f"rk4 step, chain of {n}", ours, pair.ratio)
        line(pair.ratio >= RK4[n], f"{n:2d} joints: ours {ours:6.2f}, MuJoCo {theirs:6.2f}, {pair.ratio:5.2f}x "
             f"(asked {RK4[n]:g}x)")
    print("\nderivatives by q, v and the input (us a state), Pinocchio's computeRNEADerivatives and computeABADerivatives")
    for robot, what, nv, how, us, pair in derivatives.against_pinocchio(**({"numbers": 50_000} if quick else {}), **few):
        theirs, asked = us * pair.theirs / pair.ours, DERIVATIVES[how]
        figures.add(f"derivatives of {what} dynamics, {how}, {robot}", us, pair.ratio)
        line(pair.ratio >= asked, f"{robot:15s} {nv:3d} DoF {what} {how:5s}: ours {us:7.3f}, Pinocchio {theirs:6.2f}, "
             f"{pair.ratio:5.2f}x (asked {asked:g}x)")
    print("\nthe same with 40 MB of results (us a state), in times of a state of the batches above")
    for robot, what, states, us, ratio in derivatives.large_batches(**({"numbers": 200_000} if quick else {}), **few):
        line(ratio <= FLAT, f"{robot:15s} {what}: {states:6d} states, {us:7.3f}, {ratio:4.2f} (asked {FLAT:g})")
    print("\nresults in new arrays (us a state of a Panda), in times of `out=`")
    for function, states, size, us, ratio in memory.against_out(**({"states": (64,)} if quick else {}), **few):
        line(ratio <= FLAT, f"{function:28s}: {states:6d} states, {size:6.2f} MB, {us:7.3f}, {ratio:4.2f} (asked {FLAT:g})")
    print("\nsecond derivatives of inverse dynamics (us a state), central differences of Pinocchio's computeRNEADerivatives")
    for robot, nv, how, us, pair in derivatives.second(**({"states": 8} if quick else {}), **few):
        line(pair.ratio >= SECOND, f"{robot:15s} {nv:3d} DoF {how:5s}: ours {us:7.2f}, by differences {pair.theirs * 1e6:7.1f}, "
             f"{pair.ratio:5.1f}x (asked {SECOND:g}x)")
    print("\nrobots with mimic joints and couplings, times the same tree without them")
    for robot, what, pair in mimic.against_open_trees(**({"states": 512} if quick else {}), **few):
        line(pair.ratio <= MIMIC, f"{robot:14s} {what}: {pair.ratio:5.2f} (asked {MIMIC:g})")
    print("\ninverse kinematics to 1e-10 (us a target), Pinocchio's damped least-squares loop with the same guess")
    for each in inverse_kinematics.figures(**({"targets": 100, "compared": 10, "rows": 50} if quick else {}), **few):
        if each.theirs:
            figures.add(f"inverse kinematics, {each.what}", each.ours, each.theirs / each.ours)
        asked = ROW if "path" in each.what else REACH
        peer = f", Pinocchio {each.theirs:.0f} ({100 * each.theirs_reached:.0f}% reached)" if each.theirs else ""
        line(each.ours <= asked and each.reached >= REACHED, f"{each.what}: ours {each.ours:.1f} "
             f"({100 * each.reached:.1f}% reached){peer} (asked {asked:g})")
    print("\nidentification (processor time and accuracy)")
    for figure in identification.figures(**({"rows": 500, "starts": 2, "repeats": 1, "seeds": 2} if quick else {})):
        asked = f" (asked {figure.asked:g})" if figure.asked < float("inf") else ""
        line(figure.value <= figure.asked, f"{figure.what}: {figure.value:.3f} {figure.unit}{asked}")
    print("\nconstrained forward dynamics (us a state), Pinocchio's constraintDynamics with the same rows (balls)")
    for robot, nv, rows, how, us, pair in constrained.against_pinocchio(**({"states": 100} if quick else {}), **few):
        theirs, asked = us * pair.theirs / pair.ours, CONSTRAINED[how]
        figures.add(f"constrained forward dynamics, {how}, {robot}", us, pair.ratio)
        line(pair.ratio >= asked, f"{robot:9s} {nv:3d} DoF, {rows:2d} rows {how:5s}: ours {us:7.3f}, Pinocchio {theirs:6.2f}, "
             f"{pair.ratio:5.2f}x (asked {asked:g}x)")
    rows = list(constrained.microseconds_per_body(**({"lengths": (30, 100)} if quick else {}), **few))
    times = [us for n, us in rows if n >= 30]
    line(max(times) <= FLAT * min(times), "ring of n bodies, us a body: " + ", ".join(f"{n}: {us:.4f}" for n, us in rows)
         + f"; from 30 on largest / smallest {max(times) / min(times):.2f} (asked {FLAT:g})")
    print("\nhybrid derivatives, every other joint prescribed, against our forward ones (us a state)")
    for robot, nv, how, us, forward, ratio in derivatives.hybrid_against_forward(**({"numbers": 50_000} if quick else {}), **few):
        line(ratio >= HYBRID, f"{robot:15s} {nv:3d} DoF {how:5s}: {us:7.3f}, forward {forward:7.3f}, {ratio:4.2f}x "
             f"(asked {HYBRID:g}x)")
    for joints, us, theirs in derivatives.hybrid_chains(**few):
        line(theirs >= GEAR * us, f"chain of {joints} joints: {us:6.2f}, GEAR's published {theirs:g}, "
             f"{theirs / us:.1f}x (asked {GEAR:g}x)")
    events.report(line, quick)
    work_precision.report(line, quick)
    long_runs.report(line, quick)
    rollouts.report(line, quick)
    single_precision.report(line, quick)
    state_blocks.report(line, quick)
    batches.report(line, quick)
    higher_order.report(line, quick)
    if not quick:
        live_pages.report(line)
        commands.report(line)
        figures.append_to(history)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few states and repeats, no whole processes: whether all of it runs")
    sys.exit(main(parser.parse_args().quick))
