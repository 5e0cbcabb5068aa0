"""What a journal keeps, and what a live scheduler still knows of a pod after many others."""

from __future__ import annotations

from mooring.scheduler.journal import (
    DECISIONS,
    NOTHING,
    TIMELINE,
    Decided,
    Fact,
    FactKind,
    Journal,
    RecentFacts,
)

QUEUED = Fact(0.0, FactKind.QUEUED, "default/p", "uid")
DECIDED = Decided(0.0, FactKind.DECIDED, "default/p", "uid", "n1", number=1, feasible=3)
BOUND = Fact(0.5, FactKind.BOUND, "default/p", "uid", "n1")


def journal(keeps) -> Journal:
    journal = Journal(keeps)
    for fact in (QUEUED, DECIDED, BOUND):
        journal.add(fact)
    return journal


def test_a_journal_keeps_what_it_is_asked_to_keep():
    assert journal(NOTHING).facts == []
    assert journal(DECISIONS).facts == journal(DECISIONS).decisions == [DECIDED]
    assert journal(TIMELINE).facts == [QUEUED, BOUND]
    assert journal(DECISIONS | TIMELINE).facts == [QUEUED, DECIDED, BOUND]


def test_a_timeline_has_what_users_see_and_is_missing_if_it_was_not_kept():
    assert journal(DECISIONS | TIMELINE).timeline == (QUEUED, BOUND)
    assert journal(DECISIONS).timeline is None


def test_a_pod_that_waits_keeps_its_story_among_many_others():
    recent = RecentFacts()
    recent.add(QUEUED)
    for i in range(20_000):
        recent.add(Fact(float(i), FactKind.BOUND, f"default/other-{i % 5_000}", "", "n"))
    recent.add(BOUND)

    assert recent.story("default/p") == [QUEUED, BOUND]
    assert recent.story("default/unknown") == []
    assert len(recent.facts) == 10_000
    assert recent.facts[-1] is BOUND


def test_of_a_pod_that_fails_again_and_again_the_last_facts_are_kept():
    recent = RecentFacts()
    facts = [Fact(float(i), FactKind.FAILED, "default/p", "uid") for i in range(25)]
    for fact in facts:
        recent.add(fact)

    assert recent.story("default/p") == facts[-10:]


def test_pods_that_nothing_has_happened_to_for_long_are_forgotten():
    recent = RecentFacts()
    for i in range(10_001):
        recent.add(Fact(float(i), FactKind.BOUND, f"default/p{i}", "", "n"))

    assert recent.story("default/p0") == []
    assert len(recent.story("default/p1")) == 1
