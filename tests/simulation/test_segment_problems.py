"""Which events may happen again: of one run, and of several at once."""
import numpy as np

from liedyn.io.scenarios.action_schema import EndRun
from liedyn.io.scenarios.scenario import Event
from liedyn.simulation.segment_problems import EventLedger

EVENTS = (Event("always", (EndRun(),)), Event("once", (EndRun(),), once=True), Event("slow", (EndRun(),), debounce=0.5),
          Event("walking", (EndRun(),), phases=("walk", "run")))


def test_runs_are_independent_and_follow_the_rules_of_one_run():
    times, runs = [0.0, 0.25, 0.5, 0.75, 1.0, 1.25], np.array([2, 0])
    several, singles = EventLedger(EVENTS, 3), [EventLedger(EVENTS) for _ in runs]
    for t in times:
        for event in EVENTS[:3]:
            at_once = several.may_happen(event, np.array([t, t + 0.1]), runs)
            each = [bool(single.may_happen(event, t + 0.1 * k)) for k, single in enumerate(singles)]
            assert at_once.tolist() == each
            several.record(event, np.array([t, t + 0.1])[at_once], runs[at_once])
            for k, single in enumerate(singles):
                if each[k]:
                    single.record(event, t + 0.1 * k)
    assert several.times_by_name(2) == {"always": 1.25, "once": 0.0, "slow": 1.0} == singles[0].times_by_name()
    assert several.times_by_name(1) == {} and several.is_over(EVENTS[1], runs).all() and not several.is_over(EVENTS[1], 1)


def test_an_event_is_over_outside_of_its_phases():
    ledger = EventLedger(EVENTS)
    assert ledger.is_over(EVENTS[3]) and ledger.is_over(EVENTS[3], phase="stand") and not ledger.is_over(EVENTS[3], phase="run")


def test_short_flights_are_counted_in_a_row_and_restored():
    ledger, other = EventLedger(EVENTS, 2), EventLedger(EVENTS, 2)
    for is_short in ([True, True], [True, False], [True, True]):
        ledger.count_short_flight(EVENTS[0], np.array(is_short), np.arange(2))
    ledger.record(EVENTS[1], 0.5, 1)
    other.load_state_dict(ledger.state_dict())
    assert [other.n_short_flights(EVENTS[0], k) for k in (0, 1)] == [3, 1]
    assert other.times_by_name(1) == {"once": 0.5} and other.times_by_name(0) == {}
