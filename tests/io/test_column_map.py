"""Maps of foreign columns: text, dict and YAML file, patterns, defaults, what is ignored, and the errors."""
import io
import pickle
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.analysis.recorded_robot import unknown_warnings
from liedyn.errors import TrajectoryError
from liedyn.io.column_map import map_file, read_column_map
from liedyn.io.trajectory_csv import read_trajectory
from messages import has_parts

LOG = "stamp,mode,pos_elbow,pos_wrist,vel_elbow,vel_wrist,note\n0,RUN,90,180,30,60,\n10,RUN,45,-90,20,40,\"a, b\"\n"
TEXT = "t=stamp[ms],q.*=pos_*[deg],v.*=vel_*[deg/s]"
YAML = """
columns: {t: "stamp[ms]", q.*: pos_*, v.*: "vel_*[deg/s]"}
units: {q: deg}
"""


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(LOG)
    return "log.csv"


def content(trajectory):
    return {name: (x.tolist(), trajectory.units[name]) for name, x in trajectory.columns.items()}


EXPECTED = {"q.elbow": (np.radians([90, 45]).tolist(), "rad"), "q.wrist": (np.radians([180, -90]).tolist(), "rad"),
            "v.elbow": (np.radians([30, 20]).tolist(), "rad/s"), "v.wrist": (np.radians([60, 40]).tolist(), "rad/s")}


# --- forms of a map --------------------------------------------------------------------------------------------------

def test_text_dict_and_file_are_the_same_map(log):
    Path("map.yaml").write_text(YAML)
    structured = {"columns": {"t": "stamp[ms]", "q.*": "pos_*", "v.*": "vel_*[deg/s]"}, "units": {"q": "deg"}}
    flat = {"time": "stamp[ms]", "q.*": "pos_*[deg]", "v.*": "vel_*", "v": "[deg/s]"}
    for columns in (TEXT, structured, flat, "map.yaml", Path("map.yaml"), f"{TEXT.replace('[deg]', '')},q=[deg]"):
        trajectory = read_trajectory(log, columns=columns)
        assert content(trajectory) == EXPECTED and trajectory.t.tolist() == [0.0, 0.01]
        assert trajectory.mapping.ignored == ("mode", "note")


def test_the_comment_is_a_map_that_gives_the_same_trajectory(log):
    Path("map.yaml").write_text(YAML)
    for columns in (TEXT, "map.yaml", {"t": "stamp[ms]", "q.elbow": "-(pos_elbow - 3)[deg]", "q.a,b": "pos_wrist*2"}):
        once = read_trajectory(log, columns=columns)
        again = read_trajectory(log, columns=once.header["columns"])
        assert content(again) == content(once) and again.header == once.header
    assert once.header["columns"] == 't=stamp[ms],q.elbow=-(pos_elbow - 3)[deg],"q.a,b"=pos_wrist*2'


def test_a_file_next_to_the_csv_is_the_default(log):
    Path("log.columns.yaml").write_text(YAML)
    trajectory = read_trajectory(log)
    assert content(trajectory) == EXPECTED and trajectory.mapping.automatic and map_file(log) == "log.columns.yaml"
    assert list(read_trajectory(log, columns="t=stamp,q.elbow=pos_elbow").columns) == ["q.elbow"]
    assert map_file("other.csv") is None and map_file("-") is None


def test_a_file_that_liedyn_wrote_needs_no_map(log):
    """Also if it replaces the log whose map is next to it."""
    Path("log.columns.yaml").write_text(YAML)
    trajectory = read_trajectory(log)
    trajectory.save("log.csv", force=True)
    again = read_trajectory("log.csv")
    assert again.mapping is None and content(again) == EXPECTED and again.header == trajectory.header


def test_standard_input(log, monkeypatch):
    monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": io.BytesIO(LOG.encode())}))
    assert content(read_trajectory("-", columns=TEXT)) == EXPECTED


def test_a_map_names_the_robot_of_a_file_without_comments(log):
    Path("maps").mkdir()
    Path("arm.yaml").touch()
    Path("maps/log.yaml").write_text("robot: ../arm.yaml\n" + YAML)
    assert read_trajectory(log, columns="maps/log.yaml").header["robot"] == "arm.yaml"
    Path("log.csv").write_text("# robot: other.yaml\n" + LOG)
    assert read_trajectory(log, columns="maps/log.yaml").header["robot"] == "other.yaml"


def test_a_mapped_trajectory_can_be_pickled(log):
    once = read_trajectory(log, columns=TEXT)
    again = pickle.loads(pickle.dumps(once))
    assert content(again) == EXPECTED and again.mapping == once.mapping


# --- what a map does -------------------------------------------------------------------------------------------------

def test_an_entry_of_a_name_comes_before_that_of_a_pattern(log):
    for text in ("t=stamp,q.elbow=-pos_elbow,q.*=pos_*[deg]", "t=stamp,q.*=pos_*[deg],q.elbow=-pos_elbow"):
        assert read_trajectory(log, columns=text).columns["q.elbow"].tolist() == [-90, -45]


def test_names_of_joints_for_what_a_pattern_matches(log):
    Path("log.csv").write_text("t,actual_q_0,actual_q_1,i_0,i_1\n0,1,2,3,4\n")
    columns = {"columns": {"q.*": "actual_q_*", "tau.*": "i_*[mA] * 10"}, "names": {"0": "pan", "1": "lift"}}
    assert {name: x.tolist() for name, x in read_trajectory(log, columns=columns).columns.items()} == {
        "q.pan": [1], "q.lift": [2], "tau.pan": [0.03], "tau.lift": [0.04]}


@pytest.mark.parametrize("text", ["q.*=*[deg]", 'q.*="*"[deg]', "q.*=(*)[deg]", "q.*=* * 1[deg]", "q.*=1.0[deg] * *",
                                  "q.*=- -*[deg]"])
def test_a_star_alone_stands_for_the_columns_that_are_left(tmp_path, text):
    (tmp_path / "log.csv").write_text("stamp,pan,lift,v.pan,i_pan,t\n0,90,180,1,2,5\n1,91,181,1,2,6\n")
    for entries in (f"t=stamp,{text},tau.*=i_*", f"{text},tau.*=i_*,t=stamp"):
        motion = read_trajectory(tmp_path / "log.csv", columns=entries)
        assert sorted(motion.columns) == ["q.lift", "q.pan", "tau.pan", "v.pan"] and motion.t.tolist() == [0.0, 1.0]
        np.testing.assert_allclose([motion.columns["q.pan"][0], motion.columns["q.lift"][0]], [np.pi / 2, np.pi])


def test_a_star_with_a_suffix_after_a_dot(tmp_path):
    (tmp_path / "log.csv").write_text("stamp,pan.pos,lift.pos,pan.i\n0,90,180,1\n1,91,181,1\n")
    motion = read_trajectory(tmp_path / "log.csv", columns="t=stamp,q.*=-*.pos[deg]")
    np.testing.assert_allclose([motion.columns[f"q.{name}"][0] for name in ("pan", "lift")], [-np.pi / 2, -np.pi])
    with pytest.raises(TrajectoryError, match=r"the expression of a pattern must contain exactly one name with \*.*got "
                                              r"'\*\.pos\*\*'"):
        read_trajectory(tmp_path / "log.csv", columns="t=stamp,q.*=*.pos**")


@pytest.mark.parametrize("text", ["tau.*=i_*[mA]*0.5", "tau.*=i_* * 0.0005", "tau.*=0.0005*i_*", "tau.*=i_**0.0005",
                                  'tau.*="i_*"[A]*0.0005', "tau.*=(i_* - 0)*0.0005", "tau.*=i_*/2000", "tau.*=-i_*/-2000"])
def test_patterns_and_products(log, text):
    Path("log.csv").write_text("t,i_a,i_b\n0,1,2\n")
    found = read_trajectory(log, columns=text).columns
    np.testing.assert_allclose([*found["tau.a"], *found["tau.b"]], [5e-4, 1e-3], rtol=1e-15)


def test_patterns_of_titles_with_an_index(log):
    Path("log.csv").write_text("t,position[0],position[1]\n0,1,2\n")
    found = read_trajectory(log, columns='q.joint_*="position[*]"').columns
    assert {name: x.tolist() for name, x in found.items()} == {"q.joint_0": [1], "q.joint_1": [2]}


def test_the_unit_of_the_file_applies_unless_the_map_gives_one(log):
    Path("log.csv").write_text("t[ms],a[deg],b[deg],c\n20,90,90,90\n")
    trajectory = read_trajectory(log, columns="t=t,q.a=a,q.b=b[rad],q.c=c,q=[mrad]")
    assert trajectory.t.tolist() == [0.02]
    assert content(trajectory) == {"q.a": ([np.pi / 2], "rad"), "q.b": ([90], "rad"), "q.c": ([0.09], "rad")}


def test_columns_with_names_of_a_trajectory_need_no_entry(log):
    Path("log.csv").write_text("t,q.elbow,tau.elbow,other\n0,90,3,x\n")
    trajectory = read_trajectory(log, columns="q.elbow=q.elbow[deg]")
    assert content(trajectory) == {"q.elbow": ([np.pi / 2], "rad"), "tau.elbow": ([3], "")}
    assert trajectory.mapping.ignored == ("other",)
    assert content(read_trajectory(log, columns="q=[deg]"))["q.elbow"] == ([np.pi / 2], "rad")


def test_columns_that_are_not_used_may_contain_anything(log):
    """Text, no value, no name, equal names. A missing value of a used column and a short row remain errors."""
    Path("log.csv").write_text(",stamp,x,x,pos\n0,0,a,,1\n1,1,,nan,2\n")
    assert read_trajectory(log, columns="t=stamp,q.a=pos").mapping.ignored == ("column 1", "x", "x")
    for row, words in (("2,2,,,", "log.csv:4: pos: a value is missing"), ("2,2,,3", "log.csv:4: the row has the wrong number")):
        Path("log.csv").write_text(f",stamp,x,x,pos\n0,0,a,,1\n1,1,,nan,2\n{row}\n")
        with pytest.raises(TrajectoryError, match=words):
            read_trajectory(log, columns="t=stamp,q.a=pos")


def test_time_is_checked_as_without_a_map(log):
    Path("log.csv").write_text("stamp,pos\n7000,1\n7010,2\n7010,3\n")
    with pytest.raises(TrajectoryError, match=r"log.csv:4: t: time does not increase: expected a time above 7.01, got 7.01"):
        read_trajectory(log, columns="t=stamp[ms],q.a=pos")


def test_a_start_of_time_can_be_subtracted(log):
    Path("log.csv").write_text("stamp,pos\n7000,1\n7300,2\n")
    assert read_trajectory(log, columns="t=(stamp - 7000)[ms],q.a=pos").t.tolist() == [0.0, 0.3]


# --- errors ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("columns, words", [
    ("", "columns: the map has no entries: expected entries such as t=stamp[ms],q.elbow=joint_3_pos[deg]"),
    ({}, "columns: the map has no entries"),
    ("stamp", "columns: neither a file nor entries with = … got 'stamp'"),
    ("none.yaml", "none.yaml: no such file"),
    ("t=stamp,,q.elbow=pos_elbow", "columns: not an entry of a map"),
    ("t=stamp,pos_elbow", "columns: not an entry of a map … got 'pos_elbow'"),
    ("t=stamp,q.elbow=pos_elbw", "columns: q.elbow: log.csv has no such column: expected one of stamp, mode, pos_elbow, "
                                 "pos_wrist, vel_elbow, vel_wrist, note, got 'pos_elbw' (did you mean pos_elbow?)"),
    ("q.elbow=pos_elbow", "log.csv:1: no column is mapped to `t`: expected an entry such as t=stamp[ms]"),
    ("t=stamp,time=stamp", "columns: time: two entries have the same target … got 't'"),
    ("t=stamp,q.elbow=pos_elbow,q.elbow=pos_wrist", "columns: q.elbow: two entries have the same target"),
    ("t=stamp,q.*=pos_*,q.*=vel_*", "columns: q.*: two entries have the same target … got 'q.elbow'"),
    ("t=stamp,elbow=pos_elbow", "columns: elbow: not a column of a trajectory: expected t, q.<joint>, v.<joint> … got 'elbow'"),
    ("t=stamp,q.elbow[deg]=pos_elbow", "columns: q.elbow[deg]: not a column of a trajectory … got 'q.elbow[deg]'"),
    ("t=stamp,d1q.elbow=pos_elbow", "columns: d1q.elbow: not a column of a trajectory"),
    ("t=stamp,q.*=pso_*", "columns: q.*: log.csv has no such column: expected one of … got 'pso_*'"),
    ("t=stamp,q.*=pos_elbow", "columns: q.*: the expression of a pattern must contain exactly one name with * … got 'pos_elbow'"),
    ("t=stamp,q.*.*=pos_*", "columns: q.*.*: a pattern must contain exactly one *"),
    ("t=stamp[deg],q.*=pos_*", "columns: t: not a time: expected a unit such as s, ms, us or ns, got 'rad'"),
    ("t=stamp,q.elbow=pos_elbow[degs]", "columns: q.elbow: unknown unit: expected a unit such as deg, rpm, deg/s, mm, N m, "
                                        "ms or mA, got 'degs'"),
    ("t=stamp,q.elbow=pos_elbow,x=[deg]", "columns: x: not a kind of columns: expected t, q, v, a, tau or fext, got 'x'"),
    ("t=stamp,q.elbow=pos_elbow,q=[foo]", "columns: q: unknown unit … got 'foo'"),
    ("t=stamp,q.elbow=note", "log.csv:2: note: a value is missing"),
    ({"q.elbow": 3}, "columns: q.elbow: not an entry of a map … got 3"),
    ({"columns": {"t": "stamp", "q.*": "pos_*"}, "names": {"7": "a"}},
     "columns: names.7: no column of a pattern has this name … got '7'"),
])
def test_broken_maps(log, columns, words):
    with pytest.raises(TrajectoryError) as caught:
        read_trajectory(log, columns=columns)
    text = str(caught.value)
    assert text.startswith(words.partition(" … ")[0]) and has_parts(text, words) and "\n" not in text
    assert caught.value.exit_status == 3


@pytest.mark.parametrize("text, words", [
    ("colums: {t: stamp}", "map.yaml:1: colums: unknown key: expected one of columns, units, names, robot (did you mean col"),
    ("columns: {}", "map.yaml:1: columns: empty value: expected a mapping from columns of a trajectory to those of the file"),
    ("units: {q: deg}", "map.yaml:1: the key columns is missing: expected a mapping such as {t: stamp, q.elbow: joint_3_pos}"),
    ("columns:\n  t: stamp\n  q.elbow: [pos]", "map.yaml:3: columns.q.elbow: expected text, got [pos]"),
    ("columns:\n  t: stamp\n  t: stamp", "map.yaml:3: columns.t: duplicate key, first on line 2"),
    ("columns:\n  t: stamp\n  q.elbow: pos_elbo", "map.yaml:3: columns.q.elbow: log.csv has no such column … got 'pos_elbo'"),
    ("columns:\n  t: stamp\n  q.elbow: pos_elbow*mode", "map.yaml:3: columns.q.elbow: an entry reads one column"),
    ("columns: {t: stamp}\nunits: {q: foo}", "map.yaml:2: units.q: unknown unit … got 'foo'"),
    ("columns: {t: stamp}\nrobot: none.yaml", "map.yaml:2: robot: no such robot file: got 'none.yaml'"),
    ("columns: {t: stamp}\nnames: {0: a}", "map.yaml:2: names: the key is a number: expected a name (write it in quotes)"),
])
def test_broken_files(log, text, words):
    Path("map.yaml").write_text(text)
    with pytest.raises(TrajectoryError) as caught:
        read_trajectory(log, columns="map.yaml")
    text = str(caught.value)
    assert text.startswith(words.partition(" … ")[0]) and has_parts(text, words), text


def test_two_columns_of_one_name(log):
    Path("log.csv").write_text("t,x,x\n0,1,2\n")
    with pytest.raises(TrajectoryError, match=r"columns: q\.a: log\.csv has 2 columns of this name: expected a name of one "
                                              r"column, got 'x'"):
        read_trajectory(log, columns="q.a=x")
    Path("log.csv").write_text("t,q.x,q.x,y\n0,1,2,3\n")
    with pytest.raises(TrajectoryError, match=r"log\.csv:1: q\.x: two columns have the same name"):
        read_trajectory(log, columns="q.a=y")


def test_long_lists_of_columns_are_shortened_and_keep_the_nearest(log):
    names = [f"signal_{k}" for k in range(100)]
    Path("log.csv").write_text(f"t,{','.join(names)}\n0{',1' * 100}\n")
    with pytest.raises(TrajectoryError) as caught:
        read_trajectory(log, columns="q.a=signal_99x")
    assert has_parts(str(caught.value), "expected one of signal_99, t, signal_0, … and 81 more, got 'signal_99x' (did you mean")


def test_files_without_a_map_point_to_it(log):
    with pytest.raises(TrajectoryError, match=r"no column `t`: .* \(--columns \(or columns=\) t=stamp reads the column stamp"):
        read_trajectory(log)
    Path("log.csv").write_text("t[ms],q.a\n0,1\n")
    with pytest.raises(TrajectoryError, match=r"time is not in seconds: .*\(convert it with --columns \(or columns=\) t=t\)"):
        read_trajectory(log)
    assert read_trajectory(log, columns="t=t").t.tolist() == [0.0]


def test_a_file_with_the_sign_of_an_entry_in_its_name(log):
    Path("a=b.yaml").write_text(YAML)
    assert read_column_map("a=b.yaml").file == "a=b.yaml"
    assert ld.read_trajectory(log, columns="a=b.yaml").columns.keys() == EXPECTED.keys()


# --- units in titles ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("title", ["base_deg", "base [deg]", "base (deg)", "Base.deg", "baseDeg"])
def test_units_of_titles_are_converted(tmp_path, title):
    """For every form of a title, with a sign and an offset. An explicit factor or unit takes precedence."""
    (tmp_path / "log.csv").write_text(f"t,{title},v_deg_per_s\n0,90,180\n1,45,90\n")
    name = title.split(" ")[0]
    trajectory = read_trajectory(tmp_path / "log.csv", columns={"q.j": f"-({name} - 90)", "v.j": "v_deg_per_s"})
    assert content(trajectory) == {"q.j": ([0.0, np.radians(45)], "rad"), "v.j": ([np.pi, np.pi / 2], "rad/s")}
    again = read_trajectory(tmp_path / "log.csv", columns=trajectory.header["columns"])
    assert content(again) == content(trajectory)
    scaled, stated = (read_trajectory(tmp_path / "log.csv", columns={"q.j": text}) for text in (f"{name}*0.5", f"{name}[mrad]"))
    assert scaled.columns["q.j"][0] in (45.0, np.pi / 4) and stated.columns["q.j"][0] == pytest.approx(0.09)


def test_units_of_names_are_reported(tmp_path):
    (tmp_path / "log.csv").write_text("t,arm_deg\n0,90\n1,45\n2,30\n")
    arm = ld.Joint("arm", "revolute", "world", "a", axis=[0, 0, 1], limits=(-2, 2))
    model = ld.build(ld.Robot("r", [ld.Link("a", 1.0, inertia=[1, 1, 1])], [arm]))
    warnings = unknown_warnings(model, read_trajectory(tmp_path / "log.csv", columns="q.*=*_deg"))
    assert "units are those of their names: arm_deg[deg]" in warnings[0].message
    assert unknown_warnings(model, read_trajectory(tmp_path / "log.csv", columns="q.*=*_deg[deg]")) == []


def test_the_name_of_a_joint_is_not_a_unit(tmp_path):
    (tmp_path / "log.csv").write_text("t,slide_mm\n0,0.5\n1,0.6\n")
    assert read_trajectory(tmp_path / "log.csv", columns="q.*=*").columns["q.slide_mm"].tolist() == [0.5, 0.6]


@pytest.mark.parametrize("title", ["base (degs)", "base (Grad)", "base[degs]"])
def test_units_that_are_not_understood_are_an_error(tmp_path, title):
    (tmp_path / "log.csv").write_text(f"t,{title}\n0,90\n1,45\n")
    with pytest.raises(TrajectoryError, match=r"unknown unit of the column base: expected a unit .*got '(degs|Grad)'"):
        read_trajectory(tmp_path / "log.csv", columns={"q.j": "base"})
