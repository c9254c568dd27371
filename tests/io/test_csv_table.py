"""Each command reads CSV files by one reader: what one accepts or rejects, all do, with the same words."""
import numpy as np
import pytest

from liedyn.errors import InputError, ScenarioError
from liedyn.io.csv_table import cell, read_table, title_cell, write_table
from liedyn.io.scenarios.control_schema import read_gain_matrix
from liedyn.io.sweep_file import read_sweep
from liedyn.io.trajectory_csv import read_trajectory
from liedyn.report.replay.sources import read_event_marks


def trajectory(file):
    return read_trajectory(file).columns["q.x"].tolist()


def gain(file):
    return [row[0] for row in read_gain_matrix(str(file))[0]]


def sweep(file):
    path = file.parent / "sweep.yaml"
    path.write_text("scenario: sweep.yaml\noutputs: {x: final(q(x))}\n"
                    f"parameters: [{{key: duration, csv: {{file: '{file}', column: q.x}}}}]\n")
    return list(read_sweep(path).parameters[0].values)


def marks(file):
    return [t for t, _, _ in read_event_marks(file)]


# titles, rows with places for two numbers
FILES = {trajectory: ("t,q.x", "0,{}", "1,{}"), gain: ("K,q.x", "tau.x,{}", "tau.y,{}"), sweep: ("n,q.x", "a,{}", "b,{}"),
         marks: ("t[s],event,phase", "{},hit,", "{},lift,flight")}
READERS = pytest.mark.parametrize("read", FILES, ids=lambda read: read.__name__)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "table.csv"


def content(read, *values):
    titles, *rows = FILES[read]
    return "\n".join([titles, *(row.format(x) for row, x in zip(rows, values, strict=True))]) + "\n"


def quoted(text, separator):
    return "".join(separator.join(f'"{x}"' for x in line.split(",")) + "\n" for line in text.split())


SPELLINGS = {
    "plain": str.encode, "byte order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(), "CR": lambda text: text.replace("\n", "\r").encode(),
    "no last line end": lambda text: text.rstrip("\n").encode(),
    "blank lines": lambda text: text.replace("\n", "\n \n\n").encode(),
    "comments": lambda text: ("# of: a test\n" + text.replace("\n", "\n# more\n")).encode(),
    "quoted cells": lambda text: quoted(text, ",").encode(), "blanks and quotes": lambda text: quoted(text, ", ").encode()}


@READERS
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings_of_one_file(file, read, spelling):
    file.write_bytes(SPELLINGS[spelling](content(read, 0.5, 1.25e1)))
    assert read(file) == [0.5, 12.5]


REFUSED = {
    "nan": (lambda read: content(read, 1, "nan").encode(), "finite"),
    "infinite": (lambda read: content(read, 1, "1e999").encode(), "finite"),
    "a word": (lambda read: content(read, 1, "two").encode(), ":3: .*: not a number"),
    "no value": (lambda read: content(read, 1, "").encode(), ":3: .*: (a value is missing|not a number)"),
    "UTF-16": (lambda read: content(read, 1, 2).encode("utf-16"), "the file is text in UTF-16: expected UTF-8"),
    "not UTF-8": (lambda read: content(read, 1, 2).encode() + b"\xe9,1,1\n", ":4: the file is not UTF-8 text: got 'byte 0xe9'"),
    "binary": (lambda read: content(read, 1, 2).encode() + b"\0\1", "the file is binary"),
    "an open quote": (lambda read: ('x,"' + content(read, 1, 2)).encode(), ":1: the line cannot be read: a quotation mark"),
    "a long cell": (lambda read: content(read, 1, "1" * 140_000 + "x").encode(), ":3: the row cannot be read: a cell is"),
    "a long line": (lambda read: content(read, 1, "1" * 1_000_001).encode(),
        ":3: the line is too long: expected at most 1000000 characters, got 10000"),
    "comments only": (lambda read: b"# nothing\n", "the file contains comments only"),
    "a short row": (lambda read: (content(read, 1, 2) + "3\n").encode(), ":4: ")}


@READERS
@pytest.mark.parametrize("kind", REFUSED)
def test_refused(file, read, kind):
    make, message = REFUSED[kind]
    file.write_bytes(make(read))
    with pytest.raises(InputError, match=message) as caught:
        read(file)
    assert "table.csv" in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 400


def points(file):
    return read_table(str(file), ScenarioError).parse_numbers()


@pytest.mark.parametrize("read", [trajectory, gain, sweep, points], ids=lambda read: read.__name__)
def test_semicolons(file, read):
    file.write_text(content(trajectory if read is points else read, 1, 2).replace(",", ";"))
    with pytest.raises(InputError, match=r"\(columns are separated by commas, not semicolons\)"):
        read(file)


@pytest.mark.parametrize("read", [trajectory, gain, sweep], ids=lambda read: read.__name__)
def test_decimal_commas(file, read):
    """A sweep read 0,5 and 1,5 as 0 and 1."""
    file.write_text(content(read, "0,5", "1,5"))
    with pytest.raises(InputError, match=r"table.csv:2: the row has the wrong number of values.*: expected 2, got 3 \(write "
                                         r"numbers "
                                         "with a decimal point; commas separate columns"):
        read(file)


@pytest.mark.parametrize("read", [trajectory, gain, sweep], ids=lambda read: read.__name__)
def test_two_columns_of_one_name(file, read):
    titles, *rows = content(read, 1, 2).splitlines()
    file.write_text("\n".join([f"{titles},q.x", *(f"{row},7" for row in rows)]))
    with pytest.raises(InputError, match=r"table.csv.* two columns have the same name"):
        read(file)


def test_two_rows_of_a_gain_with_one_name(file):
    file.write_text("K,q.x\ntau.x,1\ntau.x[N m],2\n")
    with pytest.raises(InputError, match="two rows have the same name"):
        gain(file)


@READERS
def test_files_that_cannot_be_read(tmp_path, read):
    with pytest.raises(InputError, match=r"this is a directory|no such CSV file"):
        read(tmp_path)


@pytest.mark.parametrize("read", [trajectory, gain, sweep], ids=lambda read: read.__name__)
def test_empty_files(file, read):
    file.write_text(" \n\n")
    with pytest.raises(InputError, match=r"table.csv: the file is empty: expected"):
        read(file)


def test_no_events(tmp_path, file):
    assert read_event_marks(tmp_path / "none.csv") == ()
    for text in ("", "t[s],event,phase\n"):
        file.write_text(text)
        assert read_event_marks(file) == ()


def test_sweeps_read_one_column_of_a_table_with_text_and_short_rows(file):
    file.write_text('n,q.x,remark\n1,0.5,"a, b"\n2,1.5\n3,2.5,nan,\n')
    assert sweep(file) == [0.5, 1.5, 2.5]


NAMES = ["a,b", 'say "hi"', "a\\b", " x ", "=1", "größe", "a;b"]


def test_names_of_a_gain_are_those_that_were_written(file):
    """Quoted names were split at their commas."""
    titles = [title_cell(f"q.{name}", "rad") for name in NAMES]
    with file.open("w", encoding="utf-8", newline="") as out:
        write_table(out, [("K", [f"tau.{name}" for name in NAMES]), *zip(titles, np.eye(len(NAMES)), strict=True)])
    values, rows, columns = read_gain_matrix(str(file))
    assert rows == tuple(f"tau.{name}" for name in NAMES) and columns == tuple(f"q.{name}" for name in NAMES)
    assert np.array_equal(values, np.eye(len(NAMES)))


def test_texts_and_numbers_of_a_written_table(file):
    with file.open("w", encoding="utf-8", newline="") as out:
        write_table(out, [("name", ["a,b", "=1", ""]), (title_cell("x", "m"), np.array([-0.0, np.nan, 1e-300]))], {"of": "a"})
    assert file.read_text() == '# of: a\nname,x[m]\n"a,b",-0.0\n\\x3d1,\n,1e-300\n'
    assert cell("=1") == "\\x3d1"
