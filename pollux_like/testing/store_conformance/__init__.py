"""What every conversation store has to do, as async functions over a factory: for stores on other databases too.

    @pytest.mark.anyio
    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    async def test_conformance(check): await check(lambda **options: ConversationStore(MyDatabase(), Policy(**options)))

A check opens the store once, in scopes of its own, and raises AssertionError where it behaves otherwise.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pollux_like.testing.store_conformance import histories, tools, turns
from pollux_like.testing.store_conformance.support import Factory

__all__ = ["CHECKS", "Factory"]

CHECKS: tuple[Callable[[Factory], Awaitable[None]], ...] = (
    turns.a_conversation_goes_on_from_the_store,
    turns.ids_are_unique_and_unknown_ones_are_an_error,
    turns.names_are_held_to_one_rule,
    turns.a_scope_sees_only_its_own,
    turns.of_two_writers_one_wins,
    turns.many_writers_take_one_turn_each,
    turns.an_input_is_durable_before_the_model_is_called,
    turns.a_failed_turn_can_be_taken_again_or_given_up,
    turns.a_key_gives_the_stored_turn,
    turns.a_retry_takes_over_a_crashed_turn,
    turns.one_object_takes_one_turn_at_a_time,
    turns.a_stream_that_is_left_leaves_its_input,
    turns.bad_input_is_refused_before_anything_is_written,
    turns.a_turn_whose_answer_does_not_fit_is_stored,
    histories.forks_share_and_never_mix,
    histories.rewinding_needs_the_newest_revision,
    histories.deletion_erases_what_no_fork_shares,
    histories.rewound_turns_go_with_their_conversation,
    histories.pruning_takes_only_the_old,
    tools.a_tool_runs_once,
    tools.one_worker_wins_a_call,
    tools.a_tool_that_fails_is_unknown,
    histories.content_comes_back_exactly,
    histories.lone_surrogates_are_refused,
    histories.search_finds_words_as_they_stand,
    histories.lists_are_paged_newest_first,
    histories.the_transcript_is_redacted_and_the_state_is_not,
    turns.turns_taken_elsewhere_can_be_appended,
    turns.the_environment_can_be_asked_for,
    histories.an_export_holds_everything,
)
