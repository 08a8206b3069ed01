"""A server that keeps dying is started a few times, then left alone."""

from clef.engines.llama.restarts import Budget, Pace

PACE = Pace(pauses_s=(1, 5), deaths=3, window_s=600)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_pauses_grow_and_the_fourth_death_within_the_window_is_the_last() -> None:
    budget = Budget(PACE, Clock())
    assert [budget.spend() for _ in range(4)] == [1, 5, 5, None]
    assert budget.spent == 4


def test_deaths_far_apart_never_add_up() -> None:
    clock = Clock()
    budget = Budget(PACE, clock)
    for _ in range(20):
        assert budget.spend() == 1
        clock.now += 601


def test_deaths_that_an_input_caused_do_not_count_whether_they_are_forgiven_before_or_after() -> None:
    budget = Budget(PACE, Clock())
    assert budget.spend() == 1
    for _ in range(20):
        budget.spend()
        budget.spend()
        budget.forgive(2)
        budget.spend()
        budget.forgive(2)
        budget.spend()
    assert budget.spent == 1
