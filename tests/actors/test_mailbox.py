"""The mailbox as a data structure: lanes, capacity, and what belongs to whom."""

from typing import Any

import anyio
import pytest

from actors import ActorStoppedError, MailboxFullError
from actors.mailbox import IN_A_ROW, Envelope, Mailbox, Reply

pytestmark = pytest.mark.anyio


def some_mail(*messages: Any, capacity: int = 3) -> Mailbox:
    mailbox = Mailbox("root/a", capacity)
    for message in messages:
        mailbox.put(Envelope(message))
    return mailbox


async def handled(mailbox: Mailbox) -> list[Any]:
    messages = []
    while len(mailbox):
        envelope = await mailbox.head()
        messages.append(envelope.message)
        mailbox.remove(envelope)
    return messages


async def test_mailbox_at_capacity_refuses_and_keeps_what_it_has() -> None:
    """The sender learns that nothing was accepted."""
    mailbox = some_mail(1, 2, 3)
    with pytest.raises(MailboxFullError, match="found 3 messages waiting"):
        mailbox.put(Envelope(4))
    assert await handled(mailbox) == [1, 2, 3]


async def test_mailbox_has_room_again_for_each_message_handled_and_for_no_other() -> None:
    """Own outcomes and control messages neither take room nor give it."""
    mailbox = some_mail(1, 2, 3)
    mailbox.put(Envelope("own", is_own=True))
    mailbox.put_control(Envelope("control"))
    for _ in range(2):  # "control", 1
        mailbox.remove(await mailbox.head())
    mailbox.put(Envelope(4))
    with pytest.raises(MailboxFullError):
        mailbox.put(Envelope(5))
    mailbox.drop_own()
    with pytest.raises(MailboxFullError):
        mailbox.put(Envelope(5))
    assert await handled(mailbox) == [2, 3, 4]


async def test_control_messages_overtake_all_others_in_their_own_order() -> None:
    """Also when one arrives while a message is in hand."""
    mailbox = some_mail("first", "second")
    in_hand = await mailbox.head()
    mailbox.put_control(Envelope("control 1"))
    mailbox.put_control(Envelope("control 2"))
    mailbox.remove(in_hand)
    assert await handled(mailbox) == ["control 1", "control 2", "second"]


async def test_a_message_stays_at_the_head_until_it_is_removed() -> None:
    """So whoever is cancelled between the two has lost nothing."""
    mailbox = some_mail("only")
    assert await mailbox.head() is await mailbox.head()
    assert len(mailbox) == 1


async def test_a_waiter_that_is_cancelled_leaves_the_mailbox_usable() -> None:
    """The next one gets the message."""
    mailbox = some_mail()
    with anyio.move_on_after(0):
        await mailbox.head()
    mailbox.put(Envelope("late"))
    assert await handled(mailbox) == ["late"]


async def test_dropping_what_is_own_leaves_what_others_sent_in_order() -> None:
    """An incarnation's timers, outcomes and stop requests end with it."""
    mailbox = some_mail(1)
    mailbox.put(Envelope("timer", is_own=True))
    mailbox.put(Envelope(2))
    mailbox.put_control(Envelope("stop", is_own=True))
    mailbox.put_control(Envelope("status"))
    assert mailbox.drop_own() == ["stop", "timer"]
    assert await handled(mailbox) == ["status", 1, 2]


async def test_a_closed_mailbox_refuses_and_fails_what_waits_for_an_answer() -> None:
    """It counts what is lost for good: messages told, not questions, which learn of it."""
    mailbox = some_mail(1, 2)
    reply = Reply("root/a")
    mailbox.put(Envelope("question", reply))
    mailbox.put(Envelope("own", is_own=True))
    assert mailbox.close() == 2
    assert not mailbox.put(Envelope(3))
    assert not mailbox.put_control(Envelope("control"))
    assert len(mailbox) == 0
    with pytest.raises(ActorStoppedError, match="root/a"):
        await reply.wait()


async def test_a_mailbox_that_never_runs_dry_lets_others_have_a_turn() -> None:
    """An actor that is busy without end does not stop the event loop."""
    mailbox = some_mail(*range(3 * IN_A_ROW), capacity=3 * IN_A_ROW)
    left_at_turn: list[int] = []

    async def other() -> None:
        left_at_turn.append(len(mailbox))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        await handled(mailbox)
    assert left_at_turn[0] > IN_A_ROW
