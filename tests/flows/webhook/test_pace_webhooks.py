"""While the clock is moved, a hanging receiver gets short timeouts. In normal operation, timeouts do not change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from cuota.core.webhook.delivery import MOST_AT_ONCE, TIMED_OUT, TIMETABLE, Attempt
from cuota.db.webhook.lanes import Lane
from cuota.flows.webhook.limit_receivers import ReceiverLimits
from cuota.flows.webhook.pace_webhooks import MANY_SILENT, HurriedPace, Pace
from cuota.rails.http import ACKNOWLEDGE_SECONDS

DEAD, FINE = (Lane(UUID(int=1), UUID(int=2), host) for host in ("dead.example", "fine.example"))
# As many callback hosts of one merchant never answer.
MANY = 2700
HUNG, OK, BROKEN = Attempt(None, 1, TIMED_OUT), Attempt(200, 1), Attempt(500, 1)


def granted(pace: Pace, lane: Lane, *attempts: Attempt) -> list[float]:
    """Return the timeout of each of these attempts."""
    given = []
    for attempt in attempts:
        given.append(pace.seconds(lane))
        pace.learn(lane, attempt)
    return given


def test_after_one_timeout_a_receiver_s_timeout_is_one_second_and_after_several_a_tenth_of_a_second() -> None:
    assert granted(HurriedPace(), DEAD, *[HUNG] * 6) == [ACKNOWLEDGE_SECONDS, 1, 1, 0.1, 0.1, 0.1]


def test_the_timeout_of_a_receiver_that_hung_before_is_one_second_from_the_start() -> None:
    assert granted(HurriedPace([DEAD]), DEAD, *[HUNG] * 4) == [1, 1, 0.1, 0.1]


def test_any_answer_resets_a_receiver_s_timeout_to_one_second() -> None:
    given = granted(HurriedPace(), DEAD, HUNG, HUNG, HUNG, BROKEN, HUNG, OK, OK)
    assert given == [ACKNOWLEDGE_SECONDS, 1, 1, 0.1, 1, 1, 1]


def test_a_slow_receiver_that_answers_in_time_keeps_the_full_timeout() -> None:
    pace = HurriedPace()
    granted(pace, DEAD, HUNG, HUNG)
    assert granted(pace, FINE, OK, BROKEN, OK) == [ACKNOWLEDGE_SECONDS] * 3


def test_attempts_and_acknowledgments_and_timeouts_are_counted_apart() -> None:
    pace = HurriedPace()
    granted(pace, DEAD, HUNG, HUNG)
    granted(pace, FINE, OK, BROKEN)
    assert pace.attempts == {"attempts": 4, "acknowledged": 1, "timedOut": 2}
    assert pace.timed_out == {DEAD: 2}


def test_ten_attempts_of_four_dead_receivers_take_less_than_30_seconds_together() -> None:
    pace, now = HurriedPace(), datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
    lanes = [Lane(UUID(int=1), UUID(int=n), f"{n}.example") for n in range(4)]
    due: dict[Lane, datetime | None] = dict.fromkeys(lanes, now)
    waited, instants = 0.0, 0
    for failed in range(1, len(TIMETABLE) + 1):
        # Attempts at the same instant are made at the same time.
        for at in sorted({at for at in due.values() if at is not None}):
            together = [lane for lane in lanes if due[lane] == at]
            waited += max(pace.seconds(lane) for lane in together)
            instants += 1
            for lane in together:
                pace.learn(lane, HUNG)
                wait = pace.wait(failed, HUNG, at)
                due[lane] = None if wait is None else at + wait
    assert pace.attempts["attempts"] == 4 * len(TIMETABLE)
    assert instants == len(TIMETABLE)
    assert waited < 30


def silent(count: int) -> list[Lane]:
    """Return queues of one merchant, of receivers that never answer."""
    return [Lane(DEAD.merchant_id, DEAD.receiver, f"{n}.example") for n in range(count)]


def waited_for(lanes: list[Lane], pace: HurriedPace, tries: int) -> float:
    """Attempt this often to reach all of these receivers, none of which answers. Return the sum of the waits: each waits for its slowest attempt."""
    limits, waited = ReceiverLimits(pace.at_once, pace.part), 0.0
    for _ in range(tries):
        left = list(lanes)
        while left:
            # Each of the deliveries has its own queue, as if each order named its own host.
            together = list(limits.room(left))
            waited += max(pace.seconds(lane) for lane in together)
            for lane in together:
                limits.learn(lane, HUNG)
                pace.learn(lane, HUNG)
            left = [lane for lane in left if lane not in set(together)]
    return waited


def test_ten_attempts_of_2700_dead_receivers_of_one_merchant_wait_less_than_a_minute_together() -> None:
    assert waited_for(silent(MANY), HurriedPace(), len(TIMETABLE)) < 60


def test_a_merchant_s_next_receiver_gets_one_second_after_many_of_its_receivers_never_answered() -> None:
    pace = HurriedPace()
    for lane in silent(MANY_SILENT - 1):
        pace.learn(lane, HUNG)
    assert pace.seconds(FINE) == ACKNOWLEDGE_SECONDS
    pace.learn(DEAD, HUNG)
    assert pace.seconds(FINE) == 1
    # The clock stops at each event of a receiver that hangs, so each of these stops must be short.
    assert pace.seconds(DEAD) == 0.1


def test_a_receiver_that_answers_gets_the_full_timeout_however_many_others_never_answer() -> None:
    pace = HurriedPace(silent(MANY))
    assert granted(pace, FINE, OK, BROKEN, OK) == [1, ACKNOWLEDGE_SECONDS, ACKNOWLEDGE_SECONDS]


def test_the_dead_receivers_of_one_merchant_do_not_shorten_another_merchant_s_timeouts() -> None:
    other = Lane(UUID(int=9), FINE.receiver, FINE.host)
    assert granted(HurriedPace(silent(MANY)), other, OK, BROKEN) == [ACKNOWLEDGE_SECONDS] * 2


def test_receivers_that_answer_again_do_not_count_as_silent() -> None:
    pace = HurriedPace(silent(MANY_SILENT))
    granted(pace, silent(1)[0], OK)
    assert pace.seconds(FINE) == ACKNOWLEDGE_SECONDS


def test_a_hanging_receiver_gets_several_attempts_at_once_only_while_the_clock_is_moved() -> None:
    assert HurriedPace().at_once(4, HUNG) == MOST_AT_ONCE
    assert Pace().at_once(4, HUNG) == 1


def test_in_normal_operation_timeouts_are_those_of_the_docs_and_retries_have_jitter() -> None:
    pace, now = Pace(), datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
    assert granted(pace, DEAD, *[HUNG] * 6) == [ACKNOWLEDGE_SECONDS] * 6
    waits = {pace.wait(5, HUNG, now) for _ in range(50)}
    assert len(waits) > 1
    assert all(wait and abs(wait / timedelta(seconds=TIMETABLE[5]) - 1) <= 0.1 for wait in waits)
