"""C files of a robot, compiled by the system's compiler and compared with what liedyn computes."""
import ctypes
import json
import re
import shutil
import subprocess
from pathlib import Path

import casadi
import numpy as np
import pytest

import liedyn as ld
from command_line import run
from liedyn.cli.robot_commands import FUNCTIONS
from liedyn.codegen.targets.c99 import comment, identifier
from liedyn.codegen.tracer import NotTraceableError
from liedyn.interop import scenario_step, traced_functions
from liedyn.interop.c_files import write_export, write_step_export
from liedyn.interop.wasm_files import write_wasm_step_export
from liedyn.kernels.simulation.rate_evaluation import INVALID_ARGUMENTS
from liedyn.kernels.simulation.right_hand_side import AT_EVENT
from other_units import in_units
from traced_cases import function_options
from zoo import model_of

ROOT = Path(__file__).parents[2]
FLAGS = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror")
SHORT = 1000              # lines: longer sources are compiled without optimization, which takes a third of the time
KINDS = ("helical", "ball", "free", "universal", "planar", "screws", "every kind, floating")
KINDS_AS_FLOAT = ("helical", "ball", "universal", "planar", KINDS[-1])          # these take a C compiler a quarter as long


def ran(folder: Path, name: str) -> subprocess.CompletedProcess:
    """Compile NAME_test.c with NAME.c and run the program."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, "these tests need a C compiler"
    level = "-O1" if (folder / f"{name}.c").read_text().count("\n") < SHORT else "-O0"
    subprocess.run([compiler, *FLAGS, level, f"{name}.c", f"{name}_test.c", "-lm", "-o", "program"], cwd=folder, check=True,
                   timeout=600)
    return subprocess.run([folder / "program"], capture_output=True, text=True, check=False, timeout=60)


SHORT_FUNCTIONS = ("bias_force", "gravity_force", "link_pose", "jacobian")    # of one robot with every kind of joint
OF_ALL_KINDS = (*SHORT_FUNCTIONS, "inverse_dynamics", "forward_dynamics", "mass_matrix", "inverse_mass_matrix",
                "inverse_dynamics_derivatives", "forward_dynamics_derivatives")
CASES = [(name, function, single) for single in (False, True) for name in (KINDS_AS_FLOAT if single else KINDS)
         for function in OF_ALL_KINDS if (function not in SHORT_FUNCTIONS or name == KINDS[-1])
         and not (single and name == KINDS[-1] and "derivatives" in function)]           # long: those of small robots do


@pytest.mark.parametrize(("name", "function", "single"), CASES)
def test_compiled_functions_give_what_liedyn_gives(name, function, single, tmp_path, worst):
    """The program's bound, 1e-9 or 1e-3 of the maximum, is loose, since robots may be badly conditioned."""
    model = model_of(name)
    of_link = {"link": model.link_names[-1]} if function in ("link_pose", "jacobian") else {}
    write_export(model, function, tmp_path / "f.c", dtype="float32" if single else "float64", with_test=True, **of_link)
    done = ran(tmp_path, "f")
    assert done.returncode == 0, done.stdout
    error = float(done.stdout.rpartition(":")[2])
    what = f"C, {'float' if single else 'double'}: {function}"
    twice = "derivatives" in function                          # conditioned by M twice, whose number is 4e3 for `screws`
    bound = (1e-3 if twice else 1e-4) if single else 1e-11 if twice else 1e-12
    assert worst(what, error, name) < bound


@pytest.mark.parametrize("function", ["hybrid_dynamics", "hybrid_dynamics_derivatives", "regressor", "energy", "integrate",
                                      "link_acceleration", "constraint_jacobian", "constraint_bias"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_other_functions_of_small_robots(function, dtype, tmp_path, worst):
    model = ld.load(ROOT / f"robots/{'four_bar' if 'constraint' in function else 'double_pendulum'}.yaml")
    write_export(model, function, tmp_path / "f.c", dtype=dtype, with_test=True, **function_options(model, function))
    done = ran(tmp_path, "f")
    assert done.returncode == 0, done.stdout
    assert worst(f"C, {dtype}: other functions", float(done.stdout.rpartition(":")[2]), function) < (
        1e-13 if dtype == "float64" else 1e-5)


@pytest.mark.parametrize("frame", ["local", "local_world_aligned", "world"])
def test_a_jacobian_of_a_loop_is_that_of_python(frame, tmp_path, monkeypatch):
    """Kinematics do not depend on constraints; frames are those of `ld.jacobian`."""
    monkeypatch.chdir(tmp_path)
    done = run("export", str(ROOT / "robots/four_bar.yaml"), "--function", "jacobian", "--link", "coupler", "--frame", frame,
               "--with-test")
    assert done.exit_code == 0, done.stderr
    assert ran(tmp_path, "four_bar_coupler_jacobian").returncode == 0
    text = {"local": "its axes about its origin", "local_world_aligned": "the world about the origin of the link",
            "world": "the world about the origin of the world"}[frame]
    assert text in (tmp_path / "four_bar_coupler_jacobian.h").read_text()


def test_gravity_and_pose_take_the_configuration_only(tmp_path):
    model = model_of("ball")
    for function, link, output in (("gravity_force", None, f"g[{model.nv}]"), ("link_pose", model.link_names[0], "T[16]")):
        write_export(model, function, tmp_path / "f.c", link=link, force=True)
        assert f"int f(const double q[{model.nq}], double {output});" in (tmp_path / "f.h").read_text()


def test_options_are_those_of_the_function(tmp_path):
    model = model_of("ball")
    for options, error, message in (({"passive": "no"}, ld.ArgumentError, "passive must be True or False, got 'no'"),
                                    ({"dtype": "int8"}, ld.ArgumentError, "dtype must be float64 or float32, got 'int8'"),
                                    ({"linc": "a"}, ld.UsageError, "forward_dynamics has no option linc")):
        with pytest.raises(error, match=message):
            write_export(model, "forward_dynamics", tmp_path / "f.c", **options)


def test_the_command_offers_what_can_be_written():
    assert list(FUNCTIONS) == list(traced_functions.FUNCTIONS)


def test_a_robot_without_moving_joint_has_no_function(tmp_path, monkeypatch):
    """The command ended with a traceback."""
    monkeypatch.chdir(tmp_path)
    Path("rigid.yaml").write_text("links: {bar: {mass: 1}}\njoints: {weld: {type: fixed, parent: world, child: bar}}\n")
    done = run("export", "rigid.yaml")
    assert done.exit_code == 3 and "cannot be traced: it has no moving joint" in done.stderr


def test_a_wrong_result_fails_the_program(tmp_path):
    write_export(model_of("ball"), "forward_dynamics", tmp_path / "f.c", with_test=True)
    source = (tmp_path / "f.c").read_text()
    assert "    a[1] = " in source
    (tmp_path / "f.c").write_text(source.replace("    a[1] = ", "    a[1] = 1e-3 + "))
    assert ran(tmp_path, "f").returncode == 1


@pytest.mark.parametrize("mass", [1.0, 1e-9])
def test_the_program_judges_light_robots_by_their_own_forces(tmp_path, mass):
    """An error of a thousandth fails, even of a torque of a nanonewton metre."""
    model = ld.build(in_units(model_of("ball").description, mass=mass))
    write_export(model, "inverse_dynamics", tmp_path / "f.c", with_test=True)
    assert ran(tmp_path, "f").returncode == 0
    source = (tmp_path / "f.c").read_text()
    assert source.count("    tau[") == model.nv
    (tmp_path / "f.c").write_text(source.replace("    tau[1] = ", "    tau[1] = 1.001 * "))
    assert ran(tmp_path, "f").returncode == 1


def test_bad_numbers_are_refused_by_the_function(tmp_path):
    write_export(model_of("ball"), "inverse_dynamics", tmp_path / "f.c", with_test=True)
    good = (tmp_path / "f_test.c").read_text()
    for old, new in (("v[] = {", "v[] = {NAN, "), ("q[] = {", "q[] = {2.0, "), ("a[] = {", "a[] = {INFINITY, ")):
        assert old in good
        (tmp_path / "f_test.c").write_text(good.replace(old, new))
        done = ran(tmp_path, "f")
        assert (done.returncode, done.stdout) == (1, "refused\n")


def test_export_names_files_and_says_what_they_hold(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    robot = str(ROOT / "robots/panda.yaml")
    done = run("export", robot, "--function", "inverse_dynamics", "--with-test", "--json", "-q")
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["files"] == ["panda_inverse_dynamics.c", "panda_inverse_dynamics.h", "panda_inverse_dynamics_test.c"]
    header = (tmp_path / "panda_inverse_dynamics.h").read_text()
    assert "int panda_inverse_dynamics(const double q[9], const double v[9], const double a[9], double tau[9]);" in header
    assert "3  panda_joint4 [rad/s^2]" in header and "7  panda_finger_joint1 [N]" in header
    assert ran(tmp_path, "panda_inverse_dynamics").returncode == 0
    assert run("export", robot, "--function", "inverse_dynamics").exit_code == 2                 # it is there already
    assert run("export", robot, "-o", "my_arm.c", "--no-passive").exit_code == 0
    assert "and friction do not act" in (tmp_path / "my_arm.c").read_text()


@pytest.mark.parametrize("arguments, status, message", [
    (["robots/panda.yaml", "-o", "arm.cpp"], 2, "arm.cpp is not the name of a C file"),
    (["robots/panda.yaml", "-o", "7-arm.c"], 2, "7-arm.c is not the name of a C file"),
    (["robots/panda.yaml", "--function", "energies"], 2, "'energies' is not one of"),
    (["robots/four_bar.yaml"], 3, "forward_dynamics does not account for the constraints of robot four_bar"),
    (["robots/panda.yaml", "-o", "double.c"], 2, "the function would have the name double, which C or an array uses"),
    (["robots/panda.yaml", "-o", "tau.c"], 2, "the function would have the name tau, which C or an array uses"),
    (["robots/panda.yaml", "--function", "hybrid_dynamics"], 2, "hybrid_dynamics needs prescribed"),
    (["robots/panda.yaml", "--function", "hybrid_dynamics", "-p", "panda_joint9"], 2,
     "no moving joint matches 'panda_joint9'"),
    (["robots/panda.yaml", "-p", "panda_joint1"], 2, "forward_dynamics has no option prescribed"),
    (["robots/panda.yaml", "--function", "constraint_jacobian"], 3, "no constraints"),
    (["robots/panda.yaml", "--to", "ptx", "--gpu", "hopper"], 2,
     "expected the name of an architecture from sm_50 on, such as sm_80, got 'hopper'"),
    (["robots/panda.yaml", "--function", "jacobian"], 2, "jacobian needs the name of a link"),
    (["robots/panda.yaml", "--function", "jacobian", "--link", "panda_hnd"], 3, "no link 'panda_hnd'; did you mean 'panda_hand'"),
    (["robots/panda.yaml", "--function", "link_pose", "--link", "panda_hand", "--frame", "world"], 2,
     "link_pose has no option frame"),
    (["robots/panda.yaml", "--function", "mass_matrix", "--no-passive"], 2, "mass_matrix has no option passive"),
])
def test_bad_exports_are_one_line(arguments, status, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    done = run("export", str(ROOT / arguments[0]), *arguments[1:])
    assert done.exit_code == status and message in done.stderr and not list(tmp_path.iterdir())
    assert len(done.stderr.strip().splitlines()) == 1


def test_names_cannot_end_a_comment_or_be_no_name_of_c():
    assert comment("a*/ system(0); /*é\n") == "a* / system(0); /*??"
    assert [identifier(text) for text in ("7 dof arm", "é", "a-b.c")] == ["robot_7_dof_arm", "robot", "a_b_c"]


# steps of scenarios -----------------------------------------------------------------------------------------------------

RK4 = "integrator={method: rk4, step: 0.001}"
SCENARIOS = {
    "arm with pd": ("configs/double_pendulum_lift.yaml", ()),
    "hybrid panda": ("configs/panda_hybrid.yaml", ("external_forces.0.from=0.2", "external_forces.0.until=0.4")),
    "four-bar": ("configs/four_bar.yaml", (RK4,)),
    "adapted parameters": ("configs/ur5_adaptive.yaml", (RK4, "events=null")),
    "sampled controller": ("configs/ur5_sampled.yaml", ("events=null", "sampling.delay=0.003")),
    "quadruped with contact": ("configs/quadruped_stands.yaml", ("integrator={method: rk4, step: 0.0001}",
                                                                 "initial.q.base=[0, 0, 0.3087, 0, 0, 0, 1]")),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_compiled_steps_equal_a_run_of_the_scenario(name, tmp_path, worst):
    """To 1e-12 over 1,000 steps. Rounding of a landing grows by 1e6: the quadruped stands from the start."""
    scenario, overrides = SCENARIOS[name]
    _, files = write_step_export(ROOT / scenario, tmp_path / "double_.c", overrides=overrides, with_test=True)
    assert [path.name for path in files] == ["double_.c", "double_.h", "double__test.c"]
    done = ran(tmp_path, "double_")
    assert done.returncode == 0 and "after 1000 steps" in done.stdout
    assert worst("C: 1,000 steps of a scenario", float(done.stdout.rpartition(":")[2]), name) < 1e-12


def test_an_event_within_the_first_step_is_returned(tmp_path):
    """Its side at the start is not known before: the step evaluates it."""
    scenario = {"robot": str(ROOT / "robots/double_pendulum.yaml"), "duration": 1, "integrator": {"method": "rk4", "step": 0.01},
                "output_step": 0.01, "events": {"down": {"when": "q(shoulder)", "do": "stop"}}}
    write_step_export(scenario, tmp_path / "f.c")
    (tmp_path / "f_test.c").write_text("""#include <stdio.h>
#include "f.h"
int main(void)
{
    double q[2], v[2], work[5];
    f_reset(q, v, work);
    q[0] = 1e-3; v[0] = -1;
    int across = f_step(0, 0.01, q, v, work), until = f_step(0, 0.0009, q, v, work);
    printf("%d %d %g ", across, until, q[0]);
    work[1] = work[2] = work[3] = work[4] = 0; q[0] = -0.5; v[0] = 0;                       /* set by hand */
    printf("%d %d %d", f_step(0, 0.01, q, v, work), f_step(0, -0.01, q, v, work), f_step(0.0 / 0.0, 0.01, q, v, work));
    return 0;
}
""")
    across, until, q, *codes = ran(tmp_path, "f").stdout.split()
    assert (int(across), int(until)) == (AT_EVENT, 0) and float(q) == pytest.approx(1e-4, rel=1e-2)
    assert [*map(int, codes)] == [0, INVALID_ARGUMENTS, INVALID_ARGUMENTS]


@pytest.mark.parametrize("name", ["arm with pd", "hybrid panda", "sampled controller"])
def test_compiled_steps_in_single_precision(name, tmp_path, worst):
    """Over 1,000 steps. Curves, a controller that samples with a delay, and switching times, which stay on their side.

    A controller rounds measured positions that differ in the seventh digit to other multiples of a resolution.
    """
    scenario, overrides = SCENARIOS[name]
    write_step_export(ROOT / scenario, tmp_path / "f.c", overrides=overrides, with_test=True, dtype="float32")
    assert "const float" in (tmp_path / "f.h").read_text() and "double q[" not in (tmp_path / "f.c").read_text()
    done = ran(tmp_path, "f")
    assert done.returncode == 0, done.stdout
    assert worst("C, float: 1,000 steps of a scenario", float(done.stdout.rpartition(":")[2]), name) < (
        1e-3 if name == "sampled controller" else 1e-5)


CONTROLLERS = {"panda_computed_torque": (RK4,), "ur5_motors": (RK4,), "ur5_sampled": ("events=null",)}


@pytest.mark.parametrize("name", CONTROLLERS)
def test_control_laws_alone_give_the_torques_of_a_run(name, tmp_path, monkeypatch, worst):
    """At all states of a run; with states of laws, integrals of pid, and with samples, at the start."""
    monkeypatch.chdir(tmp_path)
    scenario = ROOT / f"configs/{name}.yaml"
    done = run("export", str(scenario), "--control", "-o", "law.c", "--json", "-q",
               *(x for text in CONTROLLERS[name] for x in ("-S", text)))
    assert done.exit_code == 0, done.stderr
    function = json.loads(done.stdout)["function"]
    header = Path("law.h").read_text()
    subprocess.run(["cc", *FLAGS, "-O1", "-shared", "-fPIC", "law.c", "-lm", "-o", "law.so"], check=True)
    law, motion = ctypes.CDLL(str(tmp_path / "law.so")), ld.run_scenario(scenario, (*CONTROLLERS[name], "duration=0.02",
                                                                                    "output_step=0.01"))
    sizes = {x: int(n) for x, n in re.findall(r"double (\w+)\[(\d+)\]", header)}
    arrays = {x: np.zeros(n) for x, n in sizes.items()}
    def call(kind):
        names = re.findall(r"double (\w+)\[", re.search(rf"_{kind}\((.*?)\);", header, re.DOTALL)[1])
        return [ctypes.c_void_p(arrays[x].ctypes.data) for x in names]
    law.law_reset(*call("reset"))
    for t, q, v, tau in list(zip(motion.t, motion.q, motion.v, motion.tau, strict=True))[:3 if name.startswith("panda") else 1]:
        arrays["q"][:], arrays["v"][:] = q, v
        assert getattr(law, function)(ctypes.c_double(t), *call(function.removeprefix("law_"))) == 0
        error = np.abs(arrays["torque"] - tau)[:7 if name.startswith("panda") else 6].max() / np.abs(tau).max()   # no fingers
        assert np.count_nonzero(arrays["torque"]) >= 3 and worst("C: control laws", error, name) < 1e-12
    if name == "ur5_motors":                               # integrals: ki times the error of the first four joints
        arrays["q"] -= 1e-3
        assert law.law_control(ctypes.c_double(0.0), *call("control")) == 0
        np.testing.assert_allclose(arrays["rates"], 1e-3 * np.array([600, 1500, 800, 100]), rtol=1e-9)


@pytest.mark.parametrize("scenario, overrides, message", [
    ("double_pendulum_dop853", (), "cannot contain the integrator DOP853"),
    ("stick_slip", (RK4,), "cannot contain rigid friction of"),
    ("bouncing_arm", (RK4,), "cannot contain hard stops"),
    ("pendulum_latch", (RK4,), "cannot contain what event"),
    ("delta_guided", (RK4,), "cannot contain the motion of a driven loop"),
    ("slider_crank", (RK4, "constraints.stabilization=baumgarte"), "cannot contain stabilization by baumgarte"),
    ("ur5_sampled", ("events=null", "sampling.delay=0", "sampling.hold=first"), "cannot contain a hold of first order"),
    ("ur5_sampled", ("events=null", "sampling.delay=0", "sampling.noise={q: 0.001}"), "cannot contain noise of measurements"),
    ("cart_pole_lqg", (), "cannot contain an observer"),
    ("delta_computed_torque", (RK4,), "cannot contain a law that computes with loops"),
])
def test_what_a_step_cannot_contain_is_an_error(scenario, overrides, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    done = run("export", str(ROOT / f"configs/{scenario}.yaml"), *(x for text in overrides for x in ("-S", text)))
    assert done.exit_code == 3 and message in done.stderr and not list(tmp_path.iterdir()), done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_controller_in_python_is_no_code(tmp_path):
    for scenario, message in (("cart_pole_lqg", "a controller in another language cannot contain an observer"),
                              ("delta_computed_torque", "cannot contain a law that computes with loops")):
        with pytest.raises(ld.ScenarioError, match=message):
            write_step_export(ROOT / f"configs/{scenario}.yaml", tmp_path / "f.c", control=True)
    with pytest.raises(ld.UsageError, match="not for control laws alone"):
        write_step_export(ROOT / "configs/panda_hybrid.yaml", tmp_path / "f.c", control=True, with_test=True)


def test_a_test_program_needs_a_delay_of_whole_steps(tmp_path):
    with pytest.raises(ld.ScenarioError, match=r"a delay of whole steps: expected a multiple of 0\.001 s, got 0\.0015"):
        write_step_export(ROOT / "configs/ur5_sampled.yaml", tmp_path / "f.c", with_test=True,
                          overrides=("events=null", "sampling.delay=0.0015"))


def test_a_law_that_cannot_be_traced_is_an_error(monkeypatch, tmp_path):
    def trace_step(*_):
        raise NotTraceableError
    monkeypatch.setattr(scenario_step, "trace_step", trace_step)
    with pytest.raises(ld.ScenarioError, match="cannot contain the law computed_torque, whose"):
        write_step_export(ROOT / "configs/cart_arm.yaml", tmp_path / "f.c")


@pytest.mark.parametrize("arguments, message", [
    (["configs/panda_hybrid.yaml", "--function", "jacobian"], "--function applies to functions of a robot file"),
    (["configs/panda_hybrid.yaml", "-p", "panda_joint1"], "--prescribed applies to functions of a robot file"),
    (["robots/panda.yaml", "--control"], "--control applies to scenarios, and this is a robot file"),
    (["configs/panda_hybrid.yaml", "--control", "--to", "wasm"], "--control applies to C"),
    (["configs/panda_hybrid.yaml", "--control", "--with-test"], "--with-test applies to functions and steps, and not to"),
    (["robots/panda.yaml", "-S", "duration=1"], "-S applies to scenarios, and this is a robot file"),
    (["robots/panda.yaml", "--to", "casadi", "--dtype", "float32"], "--dtype float32 applies to C, WebAssembly, OpenCL, PTX"),
    (["robots/panda.yaml", "--to", "opencl", "--gpu", "sm_90"], "--gpu applies to PTX"),
    (["robots/panda.yaml", "--dtype", "float16"], "'float16' is not one of 'float64', 'float32'"),
    (["robots/panda.yaml", "--to", "opencl", "-o", "fd.c"], "fd.c is not the name of a kernel file"),
    (["configs/panda_hybrid.yaml", "--to", "wasm", "--with-test"], "--with-test applies to C"),
    (["robots/panda.yaml", "--to", "wasm", "-o", "fd.c"], "fd.c is not the name of a WebAssembly file"),
    (["robots/panda.yaml", "--to", "lua"], "'lua' is not one of 'c', 'wasm', 'opencl', 'ptx', 'casadi', 'latex'"),
    (["configs/panda_hybrid.yaml", "--to", "ptx"], "--to ptx applies to functions of a robot file"),
    (["configs/panda_hybrid.yaml", "--to", "latex"], "--to latex applies to functions of a robot file"),
    (["robots/panda.yaml", "--to", "wasm", "--parameter", "mass.panda_hand"], "--parameter applies to CasADi, LaTeX"),
    (["robots/panda.yaml", "--to", "latex", "-o", "f.c"], "f.c is not the name of a LaTeX file"),
    (["robots/panda.yaml", "--to", "casadi", "--parameter", "mass.panda_hand=m"], "expected the name alone"),
])
def test_options_of_the_other_kind_of_file_are_errors(arguments, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    done = run("export", str(ROOT / arguments[0]), *arguments[1:])
    assert done.exit_code == 2 and message in done.stderr


def test_formulas_are_written_in_latex_with_their_symbols(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("export", str(ROOT / "robots/double_pendulum.yaml"), "--to", "latex", "--function", "gravity_force", "--parameter",
               "mass.lower=m2", "--parameter", "gravity.z", "--json", "-q")
    name = "double_pendulum_gravity_force"
    assert json.loads(done.stdout) == {"files": [f"{name}.tex"], "function": name, "equations": 1}
    text = Path(f"{name}.tex").read_text()
    assert text.splitlines()[1:5] == ["% q1: shoulder", "% q2: elbow", "% mass.lower: m2", "% gravity.z: g_z"]
    assert r"g = \left[\begin{matrix}" in text and r"\sin{\left(q_{1} + q_{2} \right)}" in text


def test_files_of_casadi_are_functions(tmp_path):
    from liedyn.interop.formula_files import write_formulas
    model = model_of("ball")
    export, _ = write_formulas(model, "gravity_force", tmp_path / "g.casadi", to="casadi", parameters=["gravity.z"])
    f = casadi.Function.load(str(tmp_path / "g.casadi"))
    q = ld.random_configuration(model, np.random.default_rng(0))
    expected = ld.gravity_force(model.with_changes(gravity=[*model.gravity[:2], -2]), q)
    assert np.abs(f(q, [-2.0]).full().ravel() - expected).max() < 1e-13 and export.size == f.n_instructions()


@pytest.mark.parametrize(("write", "ending"), [(write_step_export, ".c"), (write_wasm_step_export, ".wasm")])
def test_a_step_with_switches_of_the_state_warns_in_python(write, ending, tmp_path):
    with pytest.warns(ld.LiedynWarning, match="switches-in-steps"):
        write(ROOT / "configs/panda_computed_torque.yaml", tmp_path / f"step{ending}", overrides=[RK4])


def test_a_step_with_switches_of_the_state_warns_and_names_its_values(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("export", str(ROOT / "configs/panda_computed_torque.yaml"), "-S", RK4, "--json", "-q")
    report = json.loads(done.stdout)
    assert report["files"] == ["panda_computed_torque.c", "panda_computed_torque.h"]
    assert report["function"] == "panda_computed_torque_step" and report["warnings"][-1]["code"] == "switches-in-steps"
    header = Path("panda_computed_torque.h").read_text()
    assert "values: position of panda_finger_joint1, external force 1 on link panda_hand, external force 1, fx" in header
