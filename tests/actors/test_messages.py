"""Tell, ask and status: what a sender can rely on."""

import anyio
import pytest

from actors import (
    ActorStoppedError,
    AskTimeoutError,
    Child,
    Ended,
    MailboxFullError,
    MessagesDropped,
    Restart,
    UnhandledMessageError,
    running,
)
from actors.testing import EventLog, settle
from tests.actors.players import PATIENCE_S, Do, Echo, Fail, Hang, Note, Player, Story, Troupe, refs

pytestmark = pytest.mark.anyio


class SmallPlayer(Player):
    """Has room for two messages."""

    capacity = 2


async def test_messages_are_handled_one_at_a_time_in_the_order_of_telling() -> None:
    """Nothing overtakes, nothing runs beside."""
    story: Story = []
    async with running(lambda: Player(story=story)) as root:
        for text in "abc":
            assert root.ref.tell(Note(text))
        assert await root.ref.ask(Echo("d"), timeout_s=PATIENCE_S) == "d"
    assert story == ["player starts", *(f"player notes {text}" for text in "abcd"), "player stops"]


async def test_tell_to_a_full_mailbox_raises_and_does_not_disturb_what_waits() -> None:
    """Back-pressure is an error at the sender, not a loss at the receiver."""
    story: Story = []
    begun, released = anyio.Event(), anyio.Event()
    async with running(lambda: SmallPlayer(story=story)) as root:
        root.ref.tell(Hang(begun, released))
        await begun.wait()
        root.ref.tell(Note("a"))
        with pytest.raises(MailboxFullError, match="cannot tell 'root' a Note: expected room in its mailbox, found 2"):
            root.ref.tell(Note("b"))
        with pytest.raises(MailboxFullError):
            await root.ref.ask(Echo("b"), timeout_s=PATIENCE_S)
        released.set()
        await settle()
        assert await root.ref.ask(Echo("c"), timeout_s=PATIENCE_S) == "c"
    assert story == ["player starts", "player has waited", "player notes a", "player notes c", "player stops"]


async def test_status_answers_and_stop_finishes_when_the_mailbox_is_full_and_io_hangs(log: EventLog) -> None:
    """The control lane is there when nothing else gets through."""
    story: Story = []
    async with running(lambda: SmallPlayer(story=story), observer=log, grace_s=PATIENCE_S) as root:
        root.ref.tell(Do(lambda player: player.run_task(anyio.sleep_forever)))
        await settle()
        root.ref.tell(Note("a"))
        root.ref.tell(Note("b"))
        with pytest.raises(MailboxFullError):
            root.ref.tell(Note("c"))
        status = await root.ref.status(timeout_s=PATIENCE_S)
        assert status == {"state": "running"}
        with anyio.fail_after(PATIENCE_S):
            root.ref.stop()
            await root.wait()
    assert story[-1] == "player stops"
    assert [e.error for e in log.of(Ended)] == [None]


async def test_ask_raises_a_timeout_when_no_answer_comes_and_the_question_is_handled_all_the_same() -> None:
    """The asker has given up; the actor does not know."""
    story: Story = []
    begun, released = anyio.Event(), anyio.Event()
    async with running(lambda: Player(story=story)) as root:
        root.ref.tell(Hang(begun, released))
        await begun.wait()
        with pytest.raises(AskTimeoutError, match=r"to Echo: none came within 0\.01 s"):
            await root.ref.ask(Echo("a"), timeout_s=0.01)
        with pytest.raises(AskTimeoutError, match="StatusRequest"):
            await root.ref.status(timeout_s=0.01)
        released.set()
        assert await root.ref.ask(Echo("b"), timeout_s=PATIENCE_S) == "b"
    assert story[1:-1] == ["player has waited", "player notes a", "player notes b"]


async def test_a_failing_ask_raises_in_the_asker_and_the_actor_goes_on(log: EventLog) -> None:
    """With the actor's own exception and its traceback."""
    story: Story = []
    async with running(lambda: Player(story=story), observer=log) as root:
        with pytest.raises(ZeroDivisionError, match="boom") as caught:
            await root.ref.ask(Fail(ZeroDivisionError("boom")), timeout_s=PATIENCE_S)
        assert caught.traceback[-1].name == "on_message"
        assert await root.ref.ask(Echo("a"), timeout_s=PATIENCE_S) == "a"
    assert story == ["player starts", "player notes a", "player stops"]


async def test_a_failing_tell_ends_the_actor() -> None:
    """There is no one else to tell."""
    async with running(Player) as root:
        root.ref.tell(Fail(ZeroDivisionError("boom")))
        with pytest.raises(ZeroDivisionError, match="boom"):
            await root.wait()


async def test_a_message_without_a_case_is_an_error() -> None:
    """A typing mistake does not go by in silence."""
    async with running(Player) as root:
        root.ref.tell("what is this")
        with pytest.raises(UnhandledMessageError, match="cannot handle str in 'root'"):
            await root.wait()


async def test_a_failing_status_raises_in_the_asker_and_does_not_end_the_actor() -> None:
    """To look at an actor must not harm it."""

    class Shy(Player):
        def status(self) -> dict[str, object]:
            raise LookupError("no status today")

    async with running(Shy) as root:
        with pytest.raises(LookupError, match="no status today"):
            await root.ref.status(timeout_s=PATIENCE_S)
        assert await root.ref.ask(Echo("a"), timeout_s=PATIENCE_S) == "a"


async def test_messages_left_behind_fail_their_askers_and_are_counted(log: EventLog) -> None:
    """When an actor has ended for good, nobody waits for it in vain."""
    begun, released = anyio.Event(), anyio.Event()
    failures: list[str] = []

    async def ask() -> None:
        try:
            await child.ask(Echo("a"), timeout_s=PATIENCE_S)
        except ActorStoppedError as error:
            failures.append(str(error))

    troupe = Troupe([Child("a", Player, Restart.TEMPORARY)])
    async with running(lambda: troupe, observer=log) as root, anyio.create_task_group() as tasks:
        child = refs(root.ref)["a"]
        child.tell(Hang(begun, released))
        await begun.wait()
        tasks.start_soon(ask)
        await settle()
        child.tell(Note("b"))
        child.stop()
        released.set()
        await child.ended()
        assert not child.is_alive
        assert child.tell(Note("c")) is False
        with pytest.raises(ActorStoppedError):
            await child.ask(Echo("d"), timeout_s=PATIENCE_S)
        with pytest.raises(ActorStoppedError):
            await child.status(timeout_s=PATIENCE_S)
    assert failures == ["cannot get an answer from 'root/a': expected a live actor, found it stopped"]
    assert [e.count for e in log.of(MessagesDropped, "root/a")] == [1]


async def test_an_actor_that_tells_itself_without_end_can_still_be_stopped() -> None:
    """Busy is not deaf."""
    told = 0

    def again(player: Player) -> None:
        nonlocal told
        told += 1
        player.ref.tell(Do(again))

    async with running(Player, grace_s=PATIENCE_S) as root:
        root.ref.tell(Do(again))
        await root.ref.status(timeout_s=PATIENCE_S)
    assert told > 0


async def test_tree_shows_names_states_depths_and_restarts() -> None:
    """One look says how it goes, as data and as text."""
    begun, released = anyio.Event(), anyio.Event()
    async with running(lambda: Troupe([Child("a", Player), Child("b", Player)]), observer=EventLog()) as root:
        a, b = refs(root.ref).values()
        a.tell(Fail(ValueError("boom")))
        await settle()
        b.tell(Do(lambda player: setattr(player, "state", "reading")))
        b.tell(Hang(begun, released))
        await begun.wait()
        b.tell(Note("waits"))
        tree = root.tree()
        assert [(n.name, n.state, n.mailbox, n.restarts) for n in tree.children] == [
            ("a", "running", 0, 1),
            ("b", "reading", 2, 0),
        ]
        assert b.tree() == tree.children[1]
        assert str(tree).splitlines() == [
            "root [running] mailbox 0",
            "├── a [running] mailbox 0, 1 restarts",
            "└── b [reading] mailbox 2",
        ]
        released.set()
    assert root.tree().children == ()
    assert root.tree().state == "stopped"
