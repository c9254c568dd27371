"""configs/double_pendulum_flips.py: what is known of the pattern without computing it, and its files."""
import numpy as np
import pytest

import liedyn as ld
from command_line import script_of


@pytest.fixture(scope="module")
def script():
    return script_of("double_pendulum_flips")


def test_energy_and_symmetry_decide_where_pendulums_flip(script):
    angles = np.linspace(-np.pi, np.pi, 81)[1::2]
    times = script.flip_times(ld.load(script.ROBOT), angles, 2.5)
    never = 3 * np.cos(angles)[:, None] + np.cos(angles) > 2.0
    assert np.isnan(times[never]).all() and 0.2 < np.isfinite(times[~never]).mean() < 1.0
    mirrored = times[::-1, ::-1]                                      # left and right are the same
    assert np.array_equal(np.isnan(times), np.isnan(mirrored))
    assert np.nanmax(np.abs(times - mirrored)) < 1e-6                 # chaos has magnified rounding


def test_the_folder(script, tmp_path, capsys):
    folder = tmp_path / "flips"
    assert script.main(["-o", str(folder), "--size", "12", "--duration", "1"]) == 0
    assert "of 144 pendulums flip within 1 s" in capsys.readouterr().out and (folder / "flips.png").stat().st_size > 10_000
    table = np.genfromtxt(folder / "flips.csv", delimiter=",", skip_header=1)
    assert table.shape == (144, 3) and np.nanmax(table[:, 2]) <= 1.0
    assert script.main(["-o", str(folder)]) == 2 and "exists" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--size", "1"], ["--size", "-3"], ["--duration", "nan"], ["--duration", "0"],
                                       ["--duration", "1e9"]])
def test_bad_arguments_are_one_line(script, arguments, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        script.main(["-o", str(tmp_path / "flips"), *arguments])
    assert ended.value.code == 2 and not (tmp_path / "flips").exists()
    assert f"error: {arguments[0]} is" in capsys.readouterr().err
