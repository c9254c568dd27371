"""How many cores are used: LIEDYN_THREADS, and quotas of containers."""
import pytest

from command_line import run
from liedyn.dynamics.batching import threads as module
from liedyn.dynamics.batching.threads import cores, quota
from liedyn.errors import UsageError

UNLIMITED = 1 << 30


@pytest.fixture(autouse=True)
def a_machine_of_eight(monkeypatch):
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(module, "quota", lambda: UNLIMITED)
    monkeypatch.delenv("LIEDYN_THREADS", raising=False)
    cores.cache_clear()
    yield
    cores.cache_clear()


@pytest.mark.parametrize(("text", "expected"), [(None, 8), ("", 8), ("  ", 8), ("1", 1), ("3", 3), (" 5 ", 5), ("99", 8)])
def test_what_LIEDYN_THREADS_may_be(monkeypatch, text, expected):
    if text is not None:
        monkeypatch.setenv("LIEDYN_THREADS", text)
    assert cores() == expected


@pytest.mark.parametrize("text", ["abc", "1.5", "0", "-2", "2 cores", "nan", "1e3"])
def test_what_LIEDYN_THREADS_may_not_be(monkeypatch, text):
    """Was a traceback of int()."""
    monkeypatch.setenv("LIEDYN_THREADS", text)
    with pytest.raises(UsageError) as caught:
        cores()
    assert str(caught.value) == (f"LIEDYN_THREADS is not a number of threads: expected an integer >= 1, got {text!r} "
                                 "(unset it for all cores)")


def test_the_least_counts(monkeypatch):
    monkeypatch.setattr(module, "quota", lambda: 3)
    assert cores() == 3
    cores.cache_clear()
    monkeypatch.setenv("LIEDYN_THREADS", "2")
    assert cores() == 2


def write(root, files):
    for name, text in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="ascii")


CASES = {
    "no control groups": ("", {}, UNLIMITED),
    "no limit": ("0::/\n", {"cpu.max": "max 100000\n"}, UNLIMITED),
    "two cores": ("0::/\n", {"cpu.max": "200000 100000\n"}, 2),
    "half a core": ("0::/\n", {"cpu.max": "50000 100000\n"}, 1),
    "a core and a half": ("0::/\n", {"cpu.max": "150000 100000\n"}, 2),
    "of the group": ("0::/a/b\n", {"a/b/cpu.max": "300000 100000\n", "a/cpu.max": "max 100000\n"}, 3),
    "of a group above": ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "400000 100000\n"}, 4),
    "a path from outside": ("0::/system.slice/docker-1.scope\n", {"cpu.max": "500000 100000\n"}, 5),
    "of another group": ("0::/a\n", {"b/cpu.max": "100000 100000\n"}, UNLIMITED),
    "version 1": ("12:memory:/x\n4:cpu,cpuacct:/x/y\n", {"cpu,cpuacct/x/y/cpu.cfs_quota_us": "250000\n",
                                                       "cpu,cpuacct/x/y/cpu.cfs_period_us": "100000\n"}, 3),
    "version 1, by a link's name": ("4:cpuacct,cpu:/x\n", {"cpu/cpu.cfs_quota_us": "600000\n",
                                                         "cpu/cpu.cfs_period_us": "100000\n"}, 6),
    "version 1, no limit": ("4:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, UNLIMITED),
    "both versions": ("4:cpu:/\n0::/\n", {"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2),
    "garbled": ("0\n:\n0::/\n", {"cpu.max": "what?\n"}, UNLIMITED),
}


@pytest.mark.parametrize(("own", "files", "expected"), CASES.values(), ids=CASES)
def test_quotas_of_containers_count(tmp_path, own, files, expected):
    """Sixteen threads on two cores' time wait for each other."""
    groups, file = tmp_path / "groups", tmp_path / "own"
    write(tmp_path, {"own": own})
    write(groups, files)
    assert quota(groups, file) == expected


def test_a_system_without_control_groups(tmp_path):
    assert quota(tmp_path / "none", tmp_path / "nothing") == UNLIMITED


def test_the_command_line_refuses_before_it_runs(monkeypatch):
    monkeypatch.setenv("LIEDYN_THREADS", "abc")
    result = run("info", "no such file")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == ("error: LIEDYN_THREADS is not a number of threads: expected an integer "
                             ">= 1, got 'abc' (unset it for all cores)\n")
