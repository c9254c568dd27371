"""Trajectory files: what is read, errors and their texts, and that writing is atomic."""
import copy
import csv
import io
import os
import pickle
import re
import sys
import warnings

import numpy as np
import pytest

from liedyn.errors import ComputationError, TrajectoryError, UsageError
from liedyn.io.trajectory_csv import LARGEST_TRAJECTORY, Trajectory, read_trajectory, write_trajectory


@pytest.fixture
def read(tmp_path):
    def read(content):
        path = tmp_path / "motion.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_trajectory(path)
    return read


def refused(read, content):
    with pytest.raises(TrajectoryError) as caught:
        read(content)
    assert caught.value.exit_status == 3
    text = str(caught.value)
    assert "\n" not in text and "motion.csv" in text
    return text


# --- reading ---------------------------------------------------------------------------------------------------------

def test_reads_comments_names_units_and_lines(read):
    motion = read("# robot: ../arm.yaml\n# a remark\n# base : fixed\nt[s],q.elbow[rad],extra\n"
                  "0,1.5,7\n\n# later: no\n0.5,-2e-3,8\n\n")
    assert motion.header == {"robot": "../arm.yaml", "base": "fixed"}
    assert motion.t.tolist() == [0.0, 0.5]
    assert list(motion.columns) == ["q.elbow", "extra"]
    assert motion.columns["q.elbow"].tolist() == [1.5, -0.002]
    assert motion.units == {"q.elbow": "rad", "extra": ""}
    assert motion.lines.tolist() == [5, 8]
    assert motion.source.endswith("motion.csv")


def test_times_of_a_calendar_become_relative_to_the_first_row_without_loss_of_digits(read, tmp_path):
    motion = read("t[s],q.a[rad]\n1700000000.123456789,1\n1700000000.123456790,2\n1700000001.5,3\n")
    assert motion.t.tolist() == [0.0, 1e-9, 1.376543211] and motion.header == {"start": "1700000000.123456789"}
    motion.save(tmp_path / "again.csv")
    again = read_trajectory(tmp_path / "again.csv")
    assert again.t.tolist() == motion.t.tolist() and again.header == motion.header
    (tmp_path / "ns.csv").write_text("stamp,q.a\n1700000000123456789,1\n1700000000123456790,2\n")
    motion = read_trajectory(tmp_path / "ns.csv", columns="t=stamp[ns]")
    assert motion.t.tolist() == [0.0, 1e-9] and motion.header["start"] == "1700000000.123456789"
    assert "t = 0 to 1e-09 s" in repr(motion)
    assert read("t,q.a\n1e7,1\n1.1e7,2\n").t.tolist() == [1e7, 1.1e7]
    assert "expected a time above 1.0, got 0.0" in refused(read, "t,q.a\n1700000000,1\n1700000001,2\n1700000000,3\n")


@pytest.mark.parametrize("content", [
    "t,q.a[rad]\n0,1\n1,2\n",
    "q.a[rad],t[s]\n1,0\n2,1",                            # any order, no end of the last line
    "t,q.a[rad]\r\n0,1\r\n1,2\r\n\r\n\r\n",                 # CRLF, blank lines after
    "t,q.a[rad]\r0,1\r1,2\r",
    "\ufefft,q.a[rad]\n0,1\n1,2\n",                        # byte order mark
    '"t[s]", "q.a[rad]"\n0,1\n1,2\n',
    '"t[s]","q.a[rad]"\n"0","1"\n"1","2"\n',
    " t [s] , q.a [rad] \n 0 , 1 \n\t1,\t2\n",
    "\n\n# x: y\n\nt,q.a[ rad ]\n0,1\n  \n1,2\n",
])
def test_spellings_of_the_same_file(read, content):
    motion = read(content)
    assert motion.t.tolist() == [0, 1]
    assert motion.columns["q.a"].tolist() == [1, 2]
    assert motion.units == {"q.a": "rad"}


def test_names_with_commas_quotes_and_brackets(read):
    motion = read('t,"q.a,b[rad]","q.say ""hi""",q.x[1][m]\n0,1,2,3\n')
    assert motion.units == {"q.a,b": "rad", 'q.say "hi"': "", "q.x[1]": "m"}


def test_arrays_of_a_robot_are_those_of_motion_of(read):
    trajectory = read("t,q.a\n0,1\n")
    with pytest.raises(AttributeError, match=r"no attribute 'q': columns have names .*ld\.motion_of\(model, trajectory\)\.q is"):
        _ = trajectory.q
    with pytest.raises(AttributeError, match=r"'Trajectory' object has no attribute 'unit'$"):
        _ = trajectory.unit
    assert pickle.loads(pickle.dumps(trajectory)) == trajectory == copy.copy(trajectory)


def test_single_row(read):
    motion = read("t\n0.25\n")
    assert motion.t.shape == (1,) and motion.columns == {}


def test_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(b"t,q.a\n0,1\n")
    monkeypatch.setattr("sys.stdin", Stdin)
    assert read_trajectory("-").source == "-"


@pytest.mark.parametrize("content, words", [
    (b"", ["the file is empty"]),
    (b"\n \n\n", ["the file is empty"]),
    (b"# robot: x\n", ["comments only"]),
    (b"\x7fELF\0\0\1\2", ["the file is binary"]),
    (b"\xff\xfet\0,\0", ["UTF-16", "expected UTF-8"]),
    (b"t,q.a\n0,1\n0.5,\xe9\n", [":3:", "not UTF-8 text", "0xe9"]),
    ("time,q.a\n0,1\n", [":1:", "no column `t`", "column names such as t[s]"]),
    ("0,1\n1,2\n", [":1:", "no column `t`", "column names such as"]),
    ("t;q.a\n0;1\n", ["no column `t`", "commas, not semicolons"]),
    ("t\tq.a\n0\t1\n", ["no column `t`", "commas, not tabs"]),
    ("t[ms],q.a\n0,1\n", [":1: t:", "not in seconds", "'ms'", "t[s]"]),
    ("t,q.a,q.a\n0,1,2\n", [":1: q.a:", "same name"]),
    ("t,q.a[rad],q.a\n0,1,2\n", [":1: q.a:", "same name"]),
    ("t,q.a,\n0,1,2\n", [":1:", "column 3 has no name"]),
    ("t,[rad]\n0,1\n", [":1:", "column 2 has no name", "'[rad]'"]),
    ('t,"q.a\n0,1\n', [":1:", "the line cannot be read: a quotation mark is not closed"]),
    ("# x: y\nt,q.a\n", [":2:", "no rows"]),
    ("t,q.a\n0,1\n1\n", [":3:", "expected 2, got 1"]),
    ("t,q.a\n\n0,1\n1,2,3\n", [":4:", "values: 1,2,3: expected 2, got 3"]),
    ("t,q.a\n0,1,2\n1,2,3\n", [":2:", "values: 0,1,2: expected 2, got 3"]),
    ("t,q.a\n0,1;5\n", [":2: q.a:", "not a number", "'1;5'"]),
    ("t,q.a\n0;0,1;5\n1;0,2;0,3;0\n", [":2: t:", "not a number", "'0;0'"]),
    ("t,q.a\n0,1\n1,two\n", [":3: q.a:", "not a number", "'two'"]),
    ("t,q.a\n0,1\n1,\n", [":3: q.a:", "a value is missing"]),
    ("t,q.a\n0,1\n1, \n", [":3: q.a:", "a value is missing"]),
    ("t,q.a\n0,1_0\n", [":2: q.a:", "not a number", "'1_0'"]),
    ("t,q.a\n0,٣\n", [":2: q.a:", "not a number"]),
    ("t,q.a\n0,0x10\n", [":2: q.a:", "not a number", "'0x10'"]),
    ("t,q.a\n0,1 # remark\n", [":2: q.a:", "not a number"]),
    ("t,q.a\n0,nan\n", [":2: q.a:", "not finite", "nan"]),
    ("t,q.a\n0,1\n\n1,-inf\n", [":4: q.a:", "not finite", "-inf"]),
    ("t,q.a\n0,1e999\n", [":2: q.a:", "not finite"]),
    ("t,q.a\n0,1\n1,1\n1,1\n", [":4: t:", "time does not increase", "expected a time above 1.0, got 1.0", "`# events: 1`"]),
    ("# events: 1\nt,q.a\n0,1\n1,1\n0.5,1\n", [":5: t:", "time does not increase", "expected a time above 1.0, got 0.5"]),
    ("t,q.a\n0,1\n-1,1\n", [":3: t:", "expected a time above 0.0, got -1.0"]),
    ("t,q.a\n0," + "1" * 1_000_001 + "\n", [":2:", "too long", "at most 1000000"]),
    ("t,q.a\n0,0,1\n", [":2: the row has the wrong number of values: 0,0,1: expected 2, got 3 (write numbers with a decimal "
                        "point; commas separate columns)"]),
])
def test_refused(read, content, words):
    text = refused(read, content)
    assert all(word in text for word in words), text


def test_two_rows_of_an_event(read):
    motion = read("# events: 1\nt,q.a\n0,1\n1,1\n1,2\n")
    assert motion.t.tolist() == [0, 1, 1] and motion.columns["q.a"].tolist() == [1, 1, 2]


def test_the_error_of_a_long_file_names_the_right_line(read):
    rows = [f"{k},{k}" for k in range(5000)]
    rows[4321] = "4321,4321x"
    assert ":4323: q.a: not a number: got '4321x'" in refused(read, "t,q.a\n" + "\n".join(rows))


def test_a_found_text_is_cut_short(read):
    assert len(refused(read, "t,q.a\n0," + "x" * 5000)) < 400


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(TrajectoryError, match=r"none\.csv: no such file"):
        read_trajectory(tmp_path / "none.csv")
    with pytest.raises(TrajectoryError, match="this is a directory"):
        read_trajectory(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_refused_and_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(TrajectoryError, match=r"this is a pipe: expected a file \(use - for standard input\)"):
        read_trajectory(tmp_path / "pipe.csv")


def test_a_file_that_is_too_large_is_refused_unread(tmp_path):
    with open(tmp_path / "large.csv", "wb") as file:
        file.truncate(LARGEST_TRAJECTORY + 1)               # a hole: it takes no room on the disk
    with pytest.raises(TrajectoryError, match=r"large\.csv: the file is too large: expected at most 1000 MB"):
        read_trajectory(tmp_path / "large.csv")


def test_standard_input_without_end_is_refused(monkeypatch):
    monkeypatch.setattr("liedyn.io.trajectory_csv.LARGEST_TRAJECTORY", 1000)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"t,q.a\n" + b"0,1\n" * 1000)))
    with pytest.raises(TrajectoryError, match="-: the file is too large"):
        read_trajectory("-")


@pytest.mark.parametrize("row", ["0," + "1" * 140_000 + "x", "0,'" + "x" * 200_000], ids=["number", "text"])
def test_a_cell_that_is_longer_than_pythons_reader_takes(read, row):
    text = refused(read, "t,q.a\n" + row)
    assert ":2: the row cannot be read: a cell is too long: expected at most 131072 characters" in text and len(text) < 400


def test_times_whose_difference_overflows_give_no_warning(read):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read("t,q.a\n-1e308,0\n1e308,1\n").t.tolist() == [-1e308, 1e308]


# --- writing ---------------------------------------------------------------------------------------------------------

def test_numbers_come_back_bit_by_bit(tmp_path):
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.integers(0, 2**63, 2000, dtype=np.uint64).view(float), [0.0, -0.0, 5e-324, 1 / 3, 1e22, -1e-5]])
    values = values[np.isfinite(values)]
    t = np.cumsum(rng.random(values.size))
    write_trajectory(tmp_path / "x.csv", {"robot": "a b.yaml", "passive": True}, t,
                     [("q.a", "rad", values), ("q.b.qx", "", -values)])
    motion = read_trajectory(tmp_path / "x.csv")
    assert motion.t.tobytes() == t.tobytes()
    assert motion.columns["q.a"].tobytes() == values.tobytes()
    assert motion.columns["q.b.qx"].tobytes() == (-values).tobytes()
    assert motion.header == {"robot": "a b.yaml", "passive": "True"}
    assert motion.units == {"q.a": "rad", "q.b.qx": ""}


def test_written_text(tmp_path):
    write_trajectory(tmp_path / "x.csv", {"robot": "two\nlines"}, [0, 0.5], [("q.a,b", "rad", [1, 0.1]), ("u", "", [2, 3])])
    assert (tmp_path / "x.csv").read_bytes() == b'# robot: two\\x0alines\nt[s],"q.a,b[rad]",u\n0.0,1.0,2.0\n0.5,0.1,3.0\n'
    assert os.listdir(tmp_path) == ["x.csv"]


def test_standard_output(capsys):
    write_trajectory("-", {}, [0.0], [("q.a", "rad", [1.0])])
    assert capsys.readouterr().out == "t[s],q.a[rad]\n0.0,1.0\n"


def test_an_existing_file_is_replaced_only_by_force(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("mine")
    with pytest.raises(UsageError, match=r"x\.csv already exists; --force or force=True overwrites it") as caught:
        write_trajectory(path, {}, [0.0], [])
    assert caught.value.exit_status == 2
    assert path.read_text() == "mine"
    write_trajectory(path, {}, [0.0], [], force=True)
    assert path.read_text() == "t[s]\n0.0\n"


def test_a_failure_leaves_nothing_behind(tmp_path):
    path = tmp_path / "x.csv"
    with pytest.raises(ComputationError, match=r"q\.b\[rad\] is nan at t = 0\.5 s: nothing is written"):
        write_trajectory(path, {}, [0, 0.5], [("q.a", "rad", [0, 0]), ("q.b", "rad", [0, np.nan])])
    assert os.listdir(tmp_path) == []


# --- names and comments that a file could not hold as they are --------------------------------------------------------

NAMES = [" ", "  a b  ", "", "a,b", '"x"', "a;b", "=1+1", "+1", "-1", "@x", "a\\b", "a\\x41", "a\\", "\\\\", "a\nb", "a\r", "\t",
         "\x1b[31m", "\x9b2J", "\u202egnp", "\u2028", "\u200b", "\ufeff", "größe", "关节", "\U0001f600", "\U000e0001", "a[1]",
         "[", "]", "a[b", "#", "/..", "\xa0"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prefix, unit", [("q.", "rad"), ("q.", ""), ("", "rad")])
def test_a_column_is_read_back_under_its_name(tmp_path, name, prefix, unit):
    """A joint called " " was written but not read."""
    if not prefix + name:
        return
    write_trajectory(tmp_path / "x.csv", {}, [0, 1], [(prefix + name, unit, [2, 3])])
    again = read_trajectory(tmp_path / "x.csv")
    assert {**again.columns}.keys() == {prefix + name} and again.units == {prefix + name: unit}
    head = (tmp_path / "x.csv").read_text(encoding="utf-8").splitlines()[0]
    assert head.isprintable()
    assert next(csv.reader([head]))[1][0] not in "=+-@"


@pytest.mark.parametrize("text", [*NAMES, " a, b ", "a,=1+1", "a; +x", "../a/b c.urdf", "v, a"])
def test_a_comment_is_read_back(tmp_path, text):
    write_trajectory(tmp_path / "x.csv", {"robot": text, "note": "second"}, [0, 1], [])
    assert read_trajectory(tmp_path / "x.csv").header == {"robot": text, "note": "second"}
    first = (tmp_path / "x.csv").read_text(encoding="utf-8").splitlines()[0]
    assert first.isprintable() and not re.search(r"[,;]\s*[=+@-]", first)


def test_names_and_comments_of_plain_words_are_written_as_they_are(tmp_path):
    columns = [("q.left arm-2.x[1]", "rad", [2, 3]), ("d1a/dq", "", [2, 3])]
    write_trajectory(tmp_path / "x.csv", {"derived": "v, a"}, [0, 1], columns)
    assert (tmp_path / "x.csv").read_text().splitlines()[:2] == ["# derived: v, a", "t[s],q.left arm-2.x[1][rad],d1a/dq"]


def test_backslashes_that_escape_nothing_are_read_as_they_stand(tmp_path):
    (tmp_path / "x.csv").write_text("# robot: arms\\new\\urdf.yaml\nt,q.a\\b,q.\\north\n0,1,2\n")
    again = read_trajectory(tmp_path / "x.csv")
    assert list(again.columns) == ["q.a\\b", "q.\\north"] and again.header == {"robot": "arms\\new\\urdf.yaml"}


def test_without_pandas_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="to_pandas needs pandas: pip install pandas"):
        Trajectory({}, np.zeros(1), {"q.a": np.zeros(1)}, {"q.a": "rad"}).to_pandas()
