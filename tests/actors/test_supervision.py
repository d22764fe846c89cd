"""Crash tests: who is restarted when a child ends, with what, and who is not."""

import anyio
import pytest

from actors import Child, Ended, GraceExceeded, Intensity, Restart, Restarting, RestartLimitError, Strategy, running
from actors.testing import EventLog, ManualClock, settle
from tests.actors.players import (
    PATIENCE_S,
    Do,
    Echo,
    Fail,
    Hang,
    Note,
    Player,
    Story,
    Troupe,
    failing,
    players,
    refs,
)

pytestmark = pytest.mark.anyio

STRATEGIES = [
    (Strategy.ONE_FOR_ONE, ["b stops", "b starts"]),
    (Strategy.ONE_FOR_ALL, ["b stops", "c stops", "a stops", "a starts", "b starts", "c starts"]),
    (Strategy.REST_FOR_ONE, ["b stops", "c stops", "b starts", "c starts"]),
]


@pytest.mark.parametrize(("strategy", "expected"), STRATEGIES)
async def test_a_crash_takes_along_whom_the_strategy_names_stopping_in_reverse_and_starting_in_order(
    strategy: Strategy, expected: Story
) -> None:
    """The others notice nothing."""
    story: Story = []
    async with running(lambda: Troupe(players("abc", story), strategy=strategy), observer=EventLog()) as root:
        assert story == ["a starts", "b starts", "c starts"]
        story.clear()
        refs(root.ref)["b"].tell(Fail(ValueError("boom")))
        await settle()
        assert story == expected


async def test_a_crash_cascades_neither_up_nor_sideways_within_the_intensity(log: EventLog) -> None:
    """The supervisor and the siblings are the same incarnations as before."""
    story: Story = []
    async with running(lambda: Troupe(players("abc", story)), observer=log) as root:
        for _ in range(3):
            refs(root.ref)["b"].tell(Fail(ValueError("boom")))
            await settle()
        assert {n.name: n.restarts for n in root.tree().children} == {"a": 0, "b": 3, "c": 0}
        assert {e.path for e in log.of(Ended)} == {"root/b"}


async def test_only_the_message_that_crashed_the_child_is_lost_and_the_ref_stays_valid(log: EventLog) -> None:
    """What waits, messages and questions, is handled by the next incarnation in order."""
    story: Story = []
    answers: list[str] = []
    begun, released = anyio.Event(), anyio.Event()

    async def ask() -> None:
        answers.append(await child.ask(Echo("c"), timeout_s=PATIENCE_S))

    async with running(lambda: Troupe(players("a", story)), observer=log) as root, anyio.create_task_group() as tasks:
        child = refs(root.ref)["a"]
        child.tell(Hang(begun, released))
        child.tell(Fail(ValueError("boom")))
        child.tell(Note("b"))
        tasks.start_soon(ask)
        await begun.wait()
        released.set()
        await log.wait_for(Restarting)
        await settle()
        assert refs(root.ref)["a"] is child
        child.tell(Note("d"))
        await settle()
    assert answers == ["c"]
    assert story == [
        "a starts",
        "a has waited",
        "a stops",
        "a starts",
        "a notes b",
        "a notes c",
        "a notes d",
        "a stops",
    ]


@pytest.mark.parametrize(
    ("restart", "crash", "is_back"),
    [
        (Restart.PERMANENT, True, True),
        (Restart.PERMANENT, False, True),
        (Restart.TRANSIENT, True, True),
        (Restart.TRANSIENT, False, False),
        (Restart.TEMPORARY, True, False),
        (Restart.TEMPORARY, False, False),
    ],
)
async def test_a_child_comes_back_as_its_policy_says(
    restart: Restart, crash: bool, is_back: bool, log: EventLog
) -> None:
    """After a crash, and after a stop that its supervisor did not ask for."""
    story: Story = []
    async with running(lambda: Troupe(players("a", story, restart)), observer=log) as root:
        child = refs(root.ref)["a"]
        child.tell(Fail(ValueError("boom"))) if crash else child.stop()
        await settle()
        assert child.is_alive is is_back
        assert ("a" in refs(root.ref)) is is_back
        assert story.count("a starts") == 1 + is_back
        assert log.of(Ended, "root") == []


async def test_a_temporary_sibling_taken_along_by_a_crash_does_not_come_back() -> None:
    """Never means never; a transient one that was well does come back."""
    story: Story = []
    children = [*players("a", story), *players("b", story, Restart.TEMPORARY), *players("c", story, Restart.TRANSIENT)]
    async with running(lambda: Troupe(children, strategy=Strategy.ONE_FOR_ALL), observer=EventLog()) as root:
        story.clear()
        refs(root.ref)["a"].tell(Fail(ValueError("boom")))
        await settle()
        assert story == ["a stops", "c stops", "b stops", "a starts", "c starts"]
        assert list(refs(root.ref)) == ["a", "c"]


@pytest.mark.parametrize("strategy", [Strategy.ONE_FOR_ALL, Strategy.REST_FOR_ONE])
async def test_siblings_that_crash_together_are_restarted_together_once(strategy: Strategy, log: EventLog) -> None:
    """No request to stop meant for the dead reaches the living."""
    story: Story = []
    begun, released = anyio.Event(), anyio.Event()
    troupe = Troupe(players("abc", story, Restart.TRANSIENT), strategy=strategy, intensity=Intensity(restarts=1))
    async with running(lambda: troupe, observer=log) as root:
        root.ref.tell(Do(lambda _: _hang(begun, released)))
        await begun.wait()
        for child in refs(root.ref).values():
            child.tell(Fail(ValueError("boom")))
            await settle()
        assert len(log.of(Ended)) == 3
        story.clear()
        released.set()
        await settle()
        assert story == ["a starts", "b starts", "c starts"]
        assert [n.state for n in root.tree().children] == ["running"] * 3


async def _hang(begun: anyio.Event, released: anyio.Event) -> None:
    begun.set()
    await released.wait()


async def test_more_restarts_than_the_intensity_allows_end_the_supervisor_with_the_cause_chained(
    clock: ManualClock, log: EventLog
) -> None:
    """It stops its other children first, and says who failed it."""
    story: Story = []
    troupe = Troupe(players("ab", story), intensity=Intensity(restarts=2, within_s=5.0))
    boom = [ValueError(str(n)) for n in range(3)]
    async with running(lambda: troupe, clock=clock, observer=log) as root:
        child = refs(root.ref)["a"]
        for error in boom:
            child.tell(Fail(error))
            await settle()
        with pytest.raises(RestartLimitError, match=r"cannot restart 'a' under 'root': .* 2 restarts in 5 s") as caught:
            await root.wait()
        assert caught.value.__cause__ is boom[-1]
        assert not child.is_alive
    assert story[-1] == "b stops"
    assert [e.error for e in log.of(Ended, "root/a")] == boom


async def test_restarts_spread_wider_than_the_window_go_on_for_ever(clock: ManualClock) -> None:
    """The window is in seconds of the injected clock."""
    story: Story = []
    troupe = Troupe(players("a", story), intensity=Intensity(restarts=1, within_s=5.0))
    async with running(lambda: troupe, clock=clock, observer=EventLog()) as root:
        for _ in range(6):
            refs(root.ref)["a"].tell(Fail(ValueError("boom")))
            await clock.advance(5.5)
        assert root.tree().children[0].restarts == 6
        assert len(troupe._restarted_at) == 1


async def test_a_supervisor_that_gave_up_is_restarted_by_its_own_with_new_children() -> None:
    """Failures climb one level at a time."""
    story: Story = []
    inner = Child("inner", lambda: Troupe(players("ab", story), intensity=Intensity(restarts=0)))
    async with running(lambda: Troupe([inner]), observer=EventLog()) as root:
        before = refs(refs(root.ref)["inner"])["a"]
        story.clear()
        before.tell(Fail(ValueError("boom")))
        await settle()
        assert story == ["a stops", "b stops", "a starts", "b starts"]
        assert root.tree().children[0].restarts == 1
        after = refs(refs(root.ref)["inner"])["a"]
        assert after.is_alive
        assert not before.is_alive


@pytest.mark.parametrize("strategy", [Strategy.ONE_FOR_ALL, Strategy.REST_FOR_ONE])
async def test_a_child_that_cannot_start_again_is_tried_before_those_that_come_after_it(strategy: Strategy) -> None:
    """They may need it, so they wait for it; each try counts."""
    story: Story = []
    trouble = failing(None, OSError("once"), OSError("twice"))
    children = [Child("a", lambda: Player("a", story, on_start_fails=trouble)), *players("b", story)]
    async with running(lambda: Troupe(children, strategy=strategy), observer=EventLog()) as root:
        story.clear()
        refs(root.ref)["a"].tell(Fail(ValueError("boom")))
        await settle()
        assert story == ["a stops", "b stops", *["a starts", "a stops"] * 2, "a starts", "b starts"]
        assert [(n.state, n.restarts) for n in root.tree().children] == [("running", 3), ("running", 1)]


async def test_a_child_that_never_starts_again_fails_its_supervisor() -> None:
    """The last reason is the cause."""
    errors = [OSError(str(n)) for n in range(4)]
    trouble = failing(None, *errors)
    story: Story = []
    children = [Child("a", lambda: Player("a", story, on_start_fails=trouble)), *players("b", story)]
    async with running(lambda: Troupe(children), observer=EventLog()) as root:
        refs(root.ref)["a"].tell(Fail(ValueError("boom")))
        with pytest.raises(RestartLimitError) as caught:
            await root.wait()
        assert caught.value.__cause__ is errors[2]
    assert story[-1] == "b stops"


async def test_a_sibling_that_does_not_stop_for_a_restart_is_cancelled_and_keeps_its_message(log: EventLog) -> None:
    """Its handler was torn, so the message is delivered again."""
    story: Story = []
    begun, released = anyio.Event(), anyio.Event()
    children = [*players("a", story), Child("b", lambda: Player("b", story), grace_s=0.01)]
    async with running(lambda: Troupe(children, strategy=Strategy.ONE_FOR_ALL), observer=log) as root:
        a, b = refs(root.ref).values()
        b.tell(Hang(begun, released))
        b.tell(Note("next"))
        await begun.wait()
        a.tell(Fail(ValueError("boom")))
        await log.wait_for(GraceExceeded, "b")
        released.set()
        await b.ask(Echo("last"), timeout_s=PATIENCE_S)
    assert [s for s in story if s.startswith("b")] == [
        *["b starts", "b stops", "b starts"],
        *["b has waited", "b notes next", "b notes last", "b stops"],
    ]
