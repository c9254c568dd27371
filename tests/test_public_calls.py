"""Arguments that a public function does not take: the error names what was found, what is expected, and what to call."""
import inspect
import pickle

import numpy as np
import pytest

import liedyn as ld
from liedyn.interop.c_files import write_export
from liedyn.public_calls import _kinds, explained

TEXT = """
links: {arm: {mass: 1, com: [0, 0, -1], inertia: [0.1, 0.1, 0.1]}}
joints: {hinge: {type: continuous, parent: world, child: arm, axis: [0, 1, 0]}}
"""
FUNCTIONS = {name: one for name in ld.__all__ if inspect.isfunction(one := getattr(ld, name))}
OF_MODELS = [name for name, one in FUNCTIONS.items() if next(iter(inspect.signature(one).parameters)) == "model"]
NAMED = [name for name, one in FUNCTIONS.items()
         if not any(x.kind is x.VAR_KEYWORD for x in inspect.signature(one).parameters.values())]


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    path = tmp_path_factory.mktemp("calls") / "arm.yaml"
    path.write_text(TEXT)
    return ld.load_description(path)


def required(function, first) -> list:
    """`first`, and zeros for the other parameters without a default."""
    others = [x for x in list(inspect.signature(function).parameters.values())[1:] if x.default is x.empty]
    return [first, *[np.zeros(1) for x in others if x.kind is x.POSITIONAL_OR_KEYWORD]], {
        x.name: 1 for x in others if x.kind is x.KEYWORD_ONLY}


@pytest.mark.parametrize("name", OF_MODELS)
def test_other_objects_than_a_model_are_refused_with_what_to_call(name, robot):
    function = FUNCTIONS[name]
    kinds = [kind.__name__ for kind in _kinds(inspect.unwrap(function))["model"]]
    motion = ld.trajectory_of(ld.build(robot), [0.0, 0.1], np.zeros((2, 1)))
    cases = {"Robot": (robot, r"got Robot \(ld\.build\(robot\)\)"),
             "str": (robot.source, r"got the path '.*arm\.yaml' \(ld\.load\(path\)\)"),
             "Trajectory": (motion, r"got Trajectory \(load the robot with ld\.load"),
             "NoneType": (None, "got NoneType$")}
    for kind, (first, text) in cases.items():
        if kind not in kinds:
            arguments, options = required(function, first)
            with pytest.raises(ld.ArgumentError, match=f"^{name}: model must be a Model.*, {text}"):
                function(*arguments, **options)


@pytest.mark.parametrize("name", NAMED)
def test_unknown_keywords_name_the_nearest(name, robot):
    function = FUNCTIONS[name]
    parameters = [x for x in inspect.signature(function).parameters.values() if x.kind is x.KEYWORD_ONLY]
    arguments, options = required(function, ld.build(robot))
    wrong, text = "xyzzy", f"^{name} has no argument 'xyzzy'; its arguments are "
    if parameters and len(parameters[-1].name) > 3:
        word = parameters[-1].name
        wrong, text = word[:-2] + word[-1], f"^{name} has no argument '{word[:-2] + word[-1]}'; did you mean '"
    with pytest.raises(ld.ArgumentError, match=text):
        function(*arguments, **options, **{wrong: 1})


@pytest.mark.parametrize(("call", "text"), [
    (lambda robot: ld.simulate(ld.build(robot), duraton=1), r"simulate has no argument 'duraton'; did you mean 'duration'\?"),
    (lambda robot: ld.simulate(ld.build(robot), duration=1, contatcs={}), "did you mean 'contacts'"),
    (lambda robot: ld.plan(ld.build(robot), "jacobian", lnk="arm"), r"jacobian has no argument 'lnk'; did you mean 'link'\?"),
    (lambda robot: ld.linearize(ld.build(robot), [0], [0], [0]).lqr(1, 1, stpe=0.1), "lqr has no argument 'stpe'; did you"),
    (lambda robot: ld.build(robot).with_changes(mas={"arm": 2.0}), r"with_changes has no argument 'mas'; did you mean 'mass'\?"),
    (lambda robot: ld.build(robot.source), r"build: robot must be a Robot, got the path .* \(ld\.load_description\(path\)\)"),
    (lambda robot: ld.build(ld.build(robot)), r"build: robot must be a Robot, got Model \(model\.description\)"),
    (lambda robot: ld.load(ld.build(robot)), r"load: path must be a path, got Model \(it is already a model\)"),
    (lambda robot: ld.run_scenario(ld.build(robot)), r"got Model \(ld\.simulate\(model, scenario\)\)"),
    (lambda robot: ld.motion_of(ld.build(robot), robot), "motion_of: trajectory must be a Trajectory or path, got Robot"),
    (lambda robot: ld.mass_matrix(ld.Variants([ld.build(robot)]), [0.0]), r"got Variants \(functions of variants are"),
    (lambda robot: ld.write_run(robot, "run"), "write_run: result must be a Result, got Robot"),
])
def test_messages_name_the_way(call, text, robot):
    with pytest.raises(ld.ArgumentError, match=text):
        call(robot)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda model: ld.excite(model, position=[(-1, 1)]), ld.ArgumentError, "excite: position must be a Mapping, got list"),
    (lambda model: ld.excite(model, velocity=1.0, noise={1: 0.5}), ld.NameLookupError, "noise: the robot has no moving joint 1"),
    (lambda model: ld.consistent_parameters(["a"]), ld.ArgumentError, "fits must have entries of class Identification, got 'a'"),
    (lambda model: ld.consistent_parameters([model]), ld.ArgumentError, "of class Identification, got <Model"),
    (lambda model: ld.identify(model, np.arange(50), *np.sin(np.arange(100).reshape(2, 50, 1)), zero_offsets=3), ld.ArgumentError,
     "identify: zero_offsets must be a Sequence or str, got int"),
    (lambda model: ld.base_parameters(model, joints="damping"), ld.NameLookupError, "expected a sequence of names, such as "),
    (lambda model: ld.base_parameters(model, tolerance=-1), ld.UsageError, "tolerance must be a number >= 0 and < 1, got -1"),
])
def test_entries_and_keys_of_another_class(call, error, text, robot):
    """They were AttributeError and TypeError of Python."""
    with pytest.raises(error, match=text):
        call(ld.build(robot))


def test_methods_with_options_name_unknown_ones():
    """As functions do: `run.plot("positions", agianst=other)` was a TypeError of Python, without the arguments."""
    classes = [one for name in ld.__all__ if inspect.isclass(one := getattr(ld, name))]
    bare = [f"{one.__name__}.{name}" for one in classes for name, method in vars(one).items()
            if inspect.isfunction(method) and not name.startswith("_") and not hasattr(method, "__wrapped__")
            and any(x.kind is x.KEYWORD_ONLY for x in inspect.signature(method).parameters.values())]
    assert not bare


def test_an_argument_error_is_a_type_error_and_of_the_family():
    assert issubclass(ld.ArgumentError, TypeError) and issubclass(ld.ArgumentError, ld.UsageError)


def test_errors_of_right_arguments_stay_as_they_are(robot):
    with pytest.raises(ld.ShapeError, match="q has the wrong shape"):
        ld.mass_matrix(ld.build(robot), [0.0, 1.0])
    with pytest.raises(TypeError, match=r"mass_matrix\(\) missing 1 required positional argument: 'q'"):
        ld.mass_matrix(ld.build(robot))


def test_public_functions_keep_name_signature_defaults_and_place():
    def function(model, q=3, *, passive=True):
        """Text."""
        return model, q, passive
    found = explained(function)
    assert found(1) == (1, 3, True) and found(1, 2, passive=0) == (1, 2, 0) and found(q=4, model=2) == (2, 4, True)
    assert found.__doc__ == "Text." and inspect.signature(found) == inspect.signature(function)
    for name, one in FUNCTIONS.items():
        assert pickle.loads(pickle.dumps(one)) is one and one.__name__ == name


RETURNED = {"Mobility.__init__"}                # classes of results, which callers do not construct


def public_callables():
    """Return {name: function} of functions, constructors and methods."""
    found = dict(FUNCTIONS)
    for name, one in ((name, getattr(ld, name)) for name in ld.__all__ if inspect.isclass(getattr(ld, name))):
        found |= {f"{name}.{key}": method for key, method in inspect.getmembers(one, inspect.isfunction)
                  if key == "__init__" or not key.startswith("_")}
    found |= {"write_export": write_export}
    return {name: one for name, one in found.items() if name not in RETURNED}


FLAGS = [(name, x.name) for name, one in public_callables().items()
         for x in inspect.signature(one).parameters.values() if "bool" in str(x.annotation)]


@pytest.mark.parametrize(("name", "flag"), FLAGS)
def test_every_flag_is_true_or_false(name, flag):
    """"no" counted as true, also for methods and flags that may be None."""
    function = public_callables()[name]
    parameters = inspect.signature(function).parameters
    required = [None for x in parameters.values() if x.default is x.empty and x.kind is x.POSITIONAL_OR_KEYWORD]
    values = ["no", "", 2, -1, 1.0, [], np.array([True]), np.array(1), np.array("no")]
    for value in [*values, *[None] * ("None" not in str(parameters[flag].annotation))]:
        with pytest.raises(ld.ArgumentError, match=f"{flag} must be True or False, got "):
            function(*required, **{flag: value})


def test_flags_of_methods_are_among_them():
    assert {("Trajectory.save", "force"), ("Result.save", "plots"), ("view", "meshes"), ("identify", "passive"),
            ("Loop.__init__", "driven"), ("Stepper.__init__", "passive")} <= {*FLAGS} and len(FLAGS) > 50


@pytest.mark.parametrize("call", [
    lambda model: ld.plan(model, "inverse_dynamics", passive="no"),
    lambda model: ld.Variants([model]).inverse_dynamics([[0.0]], [[0.0]], [[0.0]], passive="no")])
def test_flags_that_other_functions_pass_on(call, robot):
    with pytest.raises(ld.ArgumentError, match="inverse_dynamics: passive must be True or False, got 'no'"):
        call(ld.build(robot))


@pytest.mark.parametrize("value", [True, np.True_, 1, np.int64(1), np.uint8(1), np.array(True),
                                   False, np.False_, 0, np.int64(0), np.array(False)], ids=repr)
def test_a_flag_is_a_bool(value, robot, tmp_path):
    """Boolean arrays without axes are flags, as `np.load` returns them. The function gets a bool."""
    def function(model, named: bool = True, *, passive: bool = True, meshes: bool | None = True):
        return named, passive, meshes
    found = explained(function)(1, value, passive=value, meshes=value)
    assert all(one is bool(value) for one in found) and explained(function)(1, meshes=None) == (True, True, None)
    model = ld.build(robot).with_changes(damping={"hinge": 1.0})
    assert ld.inverse_dynamics(model, [0], [1], [0], passive=value)[0] == pytest.approx(float(value), abs=1e-12)
    motion = ld.trajectory_of(model, [0.0, 0.1], np.zeros((2, 1)))
    motion.save(tmp_path / "motion.csv")
    if value:
        motion.save(tmp_path / "motion.csv", force=value)
    else:
        with pytest.raises(ld.UsageError, match="exists"):
            motion.save(tmp_path / "motion.csv", force=value)


@pytest.mark.parametrize(("options", "text"), [
    ({"duration": "5"}, "excite: duration must be a number, got '5'"),
    ({"rate": None}, "excite: rate must be a number, got None"),
    ({"harmonics": [1]}, "excite: harmonics must be a number, got \\[1\\]"),
    ({"period": "x"}, "excite: period must be a number, got 'x'"),
    ({"harmonics": np.nan}, "harmonics must be an integer >= 2, got nan")])
def test_other_objects_than_a_number_are_errors(options, text, robot):
    with pytest.raises(ld.LiedynError, match=f"^{text}$"):
        ld.excite(ld.build(robot), **options)
