"""The laws of a life: each returns sentences about what broke it.

Records are known by their numbers, shards by their ids, and everything is seen from outside: what was put, what
processors were handed and finished, what the lease table held. All of them import the standard library only.
"""

from collections.abc import Callable, Iterator

from tests.sim.checker import attempts, batchers, bounds, deliveries, table
from tests.sim.checker.story import Story

LAWS: tuple[Callable[[Story], Iterator[str]], ...] = (
    deliveries.every_record_is_finished,
    deliveries.nothing_is_passed_over,
    deliveries.a_processor_goes_on_where_it_is,
    deliveries.nothing_finished_comes_again,
    deliveries.what_is_asked_for_is_read,
    deliveries.what_is_paused_rests,
    deliveries.keys_keep_their_order,
    deliveries.effects_are_applied_once,
    deliveries.who_hands_over_has_taken,
    deliveries.ownerships_are_disjoint,
    deliveries.epochs_grow,
    deliveries.parents_come_first,
    attempts.what_failed_comes_again_as_what_it_is,
    attempts.nothing_is_given_up_early,
    attempts.what_was_in_hand_is_marked,
    attempts.a_lane_is_serial,
    attempts.what_halts_rests,
    attempts.no_more_are_in_work_than_may_be,
    batchers.a_batcher_keeps_its_order,
    batchers.batches_are_no_larger_than_may_be,
    table.checkpoints_are_true,
    table.only_the_owner_writes_a_checkpoint,
    table.an_end_is_final,
    table.a_row_goes_when_it_is_done_with,
    table.requests_are_carried_out,
    table.who_lets_go_stores_what_is_finished,
    table.what_is_finished_is_soon_stored,
    table.shares_are_even,
    bounds.what_stops_leaves_nothing,
    bounds.a_stop_takes_no_longer_than_its_grace,
    bounds.reading_ahead_is_bounded,
    bounds.memory_is_bounded,
    bounds.nobody_fails,
    bounds.nobody_spins,
    bounds.all_is_read_in_the_end,
)
