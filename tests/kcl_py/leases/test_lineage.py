"""Which shards get a row, where they begin, and what they wait for; against an oracle that reads whole streams."""

import random
from dataclasses import replace

import pytest

from kcl_py.leases.completed import deletable
from kcl_py.leases.lineage import (
    HASH_KEYS,
    NewLease,
    blocking_parents,
    discover,
    has_hole,
    unjudged,
    unknown_children,
    unread,
)
from kcl_py.leases.row import AT_TIMESTAMP, LATEST, SHARD_END, TRIM_HORIZON, LeaseRow, Native
from kcl_py.sources.source import LATEST as FROM_LATEST
from kcl_py.sources.source import TRIM_HORIZON as FROM_HORIZON
from kcl_py.sources.source import Listing, Position, PositionKind, ShardInfo
from tests.kcl_py.leases.streams import Stream, read_all

AT_INSTANT = Position(PositionKind.AT_TIMESTAMP, 1_000_123)
STARTS = [FROM_HORIZON, FROM_LATEST, AT_INSTANT]


def a_listing(text: str) -> Listing:
    """Read ``0 1 6=0+1 8=6`` as a listing; shards without children are open."""
    parents = {
        name: tuple(rest.split("+")) if rest else () for name, _, rest in (s.partition("=") for s in text.split())
    }
    closed = {parent for names in parents.values() for parent in names}
    shards = [
        ShardInfo(name, names, (0, HASH_KEYS - 1), name in closed, starts_at=int(name))
        for name, names in parents.items()
    ]
    return Listing(tuple(shards), server_time_s=1000.0)


def some_rows(listing: Listing, **checkpoints: str) -> dict[str, LeaseRow]:
    """Return rows such as ``s4="TRIM_HORIZON"`` for shard 4."""
    parents = {shard.shard_id: shard.parents for shard in listing.shards}
    return {
        name[1:]: LeaseRow(name[1:], checkpoint=checkpoint, parents=parents.get(name[1:], ()), hash_range=(0, 2**127))
        for name, checkpoint in checkpoints.items()
    }


def made(found: tuple[NewLease, ...]) -> dict[str, str]:
    """Return the checkpoints of what was discovered, in order."""
    return {new.shard.shard_id: new.checkpoint for new in found}


REFERENCE = "0 1 2 3 4 5 6=0+1 7=2+3 8=6+7 9=5 10=5"
"""Two merges and the merge of both, a split, and a shard that nothing happened to; 4, 8, 9 and 10 are open."""
LATE_SPLIT = "1 2=1 3=2 4=2"


@pytest.mark.parametrize(
    ("text", "rows", "start", "expected"),
    [
        pytest.param(REFERENCE, {"s4": "7", "s5": "7", "s7": "7"}, FROM_LATEST, {"6": LATEST}, id="reference"),
        pytest.param(
            REFERENCE,
            {"s4": "7", "s5": "7", "s7": "7"},
            FROM_HORIZON,
            {"0": TRIM_HORIZON, "1": TRIM_HORIZON},
            id="reference",
        ),
        pytest.param(
            REFERENCE,
            {"s4": "7", "s5": "7", "s7": "7"},
            AT_INSTANT,
            {"0": AT_TIMESTAMP, "1": AT_TIMESTAMP},
            id="reference",
        ),
        pytest.param(REFERENCE, {}, FROM_LATEST, {"4": LATEST, "8": LATEST, "9": LATEST, "10": LATEST}, id="first"),
        pytest.param(REFERENCE, {}, FROM_HORIZON, {str(n): TRIM_HORIZON for n in range(6)}, id="first"),
        pytest.param(LATE_SPLIT, {"s3": "700"}, FROM_HORIZON, {"4": TRIM_HORIZON}, id="a child that was not listed"),
        pytest.param(LATE_SPLIT, {"s3": "700"}, FROM_LATEST, {"4": TRIM_HORIZON}, id="a child that was not listed"),
        pytest.param(LATE_SPLIT, {"s3": LATEST}, FROM_LATEST, {"4": LATEST}, id="first discovery was cut short"),
        pytest.param("3=2 4=2", {"s3": "700"}, FROM_LATEST, {"4": TRIM_HORIZON}, id="the parent is trimmed"),
        pytest.param(LATE_SPLIT, {"s2": "5"}, FROM_LATEST, {}, id="children come at their parent's end"),
        pytest.param(
            LATE_SPLIT, {"s2": SHARD_END}, FROM_LATEST, {"3": TRIM_HORIZON, "4": TRIM_HORIZON}, id="lost rows"
        ),
        pytest.param(
            "1 2 3=1+2", {"s1": SHARD_END, "s2": "5"}, FROM_LATEST, {}, id="merge waits for its second parent"
        ),
        pytest.param(
            "7=6 8=6 9=7", {"s1": "5"}, FROM_LATEST, {"7": TRIM_HORIZON, "8": TRIM_HORIZON}, id="all rows aged out"
        ),
        pytest.param(
            "7=6 8=6 9=7", {"s6": "5"}, FROM_LATEST, {"7": TRIM_HORIZON, "8": TRIM_HORIZON}, id="the parent aged out"
        ),
    ],
)
def test_discover_finds_the_rows_to_create(
    text: str, rows: dict[str, str], start: Position, expected: dict[str, str]
) -> None:
    """One level of each lineage gets rows; what was read, or has descendants that were, gets none."""
    listing = a_listing(text)
    assert made(discover(listing, some_rows(listing, **rows), start)) == expected


def test_discovered_row_holds_the_instant_where_it_begins() -> None:
    """LATEST is the server's time of the listing less two seconds, a timestamp is itself, the horizon has none."""
    listing = a_listing("1")
    latest, horizon, instant = (discover(listing, {}, start)[0] for start in (FROM_LATEST, FROM_HORIZON, AT_INSTANT))
    assert (latest.start_ms, horizon.start_ms, instant.start_ms) == (998_000, None, 1_000_123)
    assert latest.row(stream="s:1") == LeaseRow(
        "1", checkpoint=LATEST, hash_range=(0, HASH_KEYS - 1), native=Native(stream="s:1", start_ms=998_000)
    )


def test_latest_is_the_instant_of_the_first_attempt_when_discovery_was_cut_short() -> None:
    """What came in between the two attempts is not lost."""
    rows = {"3": LeaseRow("3", checkpoint=LATEST, native=Native(start_ms=700_000))}
    [new] = discover(a_listing("3 4"), rows, FROM_LATEST)
    assert (new.checkpoint, new.start_ms) == (LATEST, 700_000)


def test_hundreds_of_generations_are_no_matter() -> None:
    """A long lineage is walked without recursion, and begins at its first shard."""
    listing = a_listing("1 " + " ".join(f"{n}={n - 1}" for n in range(2, 3000)))
    assert made(discover(listing, {}, FROM_HORIZON)) == {"1": TRIM_HORIZON}
    assert made(discover(listing, {}, FROM_LATEST)) == {"2999": LATEST}


@pytest.mark.parametrize(
    ("rows", "parents"),
    [
        ({"s6": "5", "s7": "5"}, ("6", "7")),
        ({"s6": SHARD_END, "s7": "5"}, ("7",)),
        ({"s6": SHARD_END, "s7": SHARD_END}, ()),
        ({"s7": SHARD_END}, ("6",)),
    ],
)
def test_parent_blocks_while_it_is_to_be_read(rows: dict[str, str], parents: tuple[str, ...]) -> None:
    """Each link is judged alone: by its row, or where there is none, by what discovery says."""
    listing = a_listing("0 1 6=0+1 7 8=6+7")
    table = some_rows(listing, **rows)
    child = LeaseRow("8", parents=("6", "7"))
    assert blocking_parents(child, table, unread(listing, table, FROM_HORIZON)) == parents


def test_parent_without_a_row_does_not_block_when_it_is_not_to_be_read() -> None:
    """Shards before the start, trimmed ones, and those read and deleted hold nobody up."""
    listing = a_listing(REFERENCE)
    rows = some_rows(listing, s8=LATEST, s9="7", s10="7", s4="7")
    missing = unread(listing, rows, FROM_LATEST)
    assert not missing
    assert not [parent for row in rows.values() for parent in blocking_parents(row, rows, missing)]
    assert blocking_parents(LeaseRow("8", parents=("gone",)), rows, missing) == ()


def test_parent_without_a_row_blocks_while_the_listing_is_older_than_the_child() -> None:
    """0 was split into 2 and 3, and 3 merged with 1, which has ended; 0 still holds back 3, and that 4."""
    before, after = a_listing("0 1"), a_listing("0 1 2=0 3=0 4=3+1")
    rows = some_rows(after, s0="5", s1=SHARD_END, s4=TRIM_HORIZON)
    missing = unread(before, rows, FROM_HORIZON) | unjudged(rows, {"0", "1"})
    assert blocking_parents(rows["4"], rows, missing) == ("3",)
    missing = unread(after, rows, FROM_HORIZON) | unjudged(rows, {"0", "1", "4"})
    assert blocking_parents(rows["4"], rows, missing) == ("3",)


def test_parent_that_no_listing_shows_blocks_until_one_began_after_the_child_was_known() -> None:
    """Then it has aged out; and children that have ended or whose parents have rows need no listing."""
    rows = some_rows(a_listing("0 3=0 4=3+1 5=0"), s0="5", s4=TRIM_HORIZON, s5=TRIM_HORIZON)
    assert unjudged(rows, set()) == {"1", "3"}
    assert unjudged(rows, {"4"}) == set()
    assert unjudged({"4": replace(rows["4"], checkpoint=SHARD_END)}, set()) == set()


def test_parent_whose_row_has_vanished_blocks_until_a_listing_began_without_it() -> None:
    """The listing before took it for a shard that is being read, so it does not say that it is still to be read."""
    rows = some_rows(a_listing("0 3=0 4=3+1 5=0"), s0="5", s4=TRIM_HORIZON, s5=TRIM_HORIZON)
    assert unjudged(rows, {"0", "3", "4", "5"}) == {"3"}
    assert unjudged(rows, {"0", "4", "5"}) == set()


def test_child_that_an_ended_shard_names_and_nobody_has_a_row_for_is_noticed() -> None:
    """Something went wrong between the parent's end and its child's row."""
    ended = LeaseRow("parent", checkpoint=SHARD_END, children=("child",))
    assert unknown_children({"parent": ended})
    assert not unknown_children({"parent": ended, "child": LeaseRow("child")})


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([(0, HASH_KEYS - 1)], False),
        ([(0, 9), (10, HASH_KEYS - 1)], False),
        ([(0, 50), (10, HASH_KEYS - 1)], False),
        ([(0, 90), (10, 20), (91, HASH_KEYS - 1)], False),
        ([(0, 9), (11, HASH_KEYS - 1)], True),
        ([(1, HASH_KEYS - 1)], True),
        ([(0, HASH_KEYS - 2)], True),
        ([(0, 9), None], False),
        ([], True),
    ],
)
def test_hole_is_a_hash_key_that_no_row_covers(ranges: list[tuple[int, int] | None], expected: bool) -> None:
    """Overlaps are fine, as a child's row is made before its parent ends; finished rows cover nothing."""
    rows = [LeaseRow(f"s{number}", hash_range=found) for number, found in enumerate(ranges)]
    done = LeaseRow("done", checkpoint=SHARD_END, hash_range=(0, HASH_KEYS - 1))
    assert has_hole([*rows, done]) is expected


@pytest.mark.parametrize("seed", range(40))
def test_whole_stream_is_read_once_when_started_at_the_horizon(seed: int) -> None:
    """From an empty table every record of every generation is read, parents before children."""
    stream = Stream(random.Random(seed))
    stream.live_on(15)
    rows = {new.shard.shard_id: new.row(stream="s:1") for new in discover(stream.listing(), {}, FROM_HORIZON)}
    _check(stream, read_all(stream, rows, FROM_HORIZON), since_ms=0)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("tenths", [0, 2, 5, 8, 10])
def test_stream_is_read_from_an_instant_when_started_at_a_timestamp(seed: int, tenths: int) -> None:
    """Closed shards wholly before it get no row; one that it lies in is read first, then its children."""
    stream = Stream(random.Random(seed))
    stream.live_on(15)
    start = Position(PositionKind.AT_TIMESTAMP, 1_000_000 + (stream.now_ms - 1_000_000) * tenths // 10)
    found = discover(stream.listing(start), {}, start)
    assert not [new for new in found if (stream.shards[new.shard.shard_id].closed_ms or start.value) < start.value]
    rows = {new.shard.shard_id: new.row(stream="s:1") for new in found}
    _check(stream, read_all(stream, rows, start), since_ms=start.value)


@pytest.mark.parametrize("seed", range(40))
def test_stream_is_read_from_now_on_when_started_at_latest(seed: int) -> None:
    """Only open shards get rows, at the instant of the listing, and what comes later is read whole."""
    stream = Stream(random.Random(seed))
    stream.live_on(15)
    stream.now_ms += 5000
    rows = {new.shard.shard_id: new.row(stream="s:1") for new in discover(stream.listing(), {}, FROM_LATEST)}
    assert all(stream.shards[key].closed_ms is None for key in rows)
    since_ms = stream.now_ms
    stream.live_on(10)
    _check(stream, read_all(stream, rows, FROM_LATEST), since_ms=since_ms)


@pytest.mark.parametrize("start", [FROM_HORIZON, FROM_LATEST], ids=["horizon", "latest"])
@pytest.mark.parametrize("seed", range(60))
def test_discovery_goes_on_where_it_was_cut_short(seed: int, start: Position) -> None:
    """However many rows the first attempt made, and whatever was resharded since, nothing since then is passed over."""
    rng = random.Random(seed)
    stream = Stream(rng)
    stream.live_on(10)
    stream.now_ms += 5000
    begun_ms = 0 if start is FROM_HORIZON else stream.now_ms
    first = discover(stream.listing(), {}, start)
    made_first = rng.sample(first, rng.randrange(1, len(first) + 1))
    rows = {new.shard.shard_id: new.row(stream="s:1") for new in made_first}
    stream.live_on(5)
    stream.now_ms += 5000
    rows |= {new.shard.shard_id: new.row(stream="s:1") for new in discover(stream.listing(), rows, start)}
    stream.live_on(5)
    handed = read_all(stream, rows, start)
    assert set(_records(stream, begun_ms)) <= set(handed)
    if len(made_first) == len(first):
        assert set(handed) == set(_records(stream, begun_ms))
    assert not discover(stream.listing(), rows, start)


@pytest.mark.parametrize("start", STARTS[:2], ids=["horizon", "latest"])
@pytest.mark.parametrize("seed", range(40))
def test_rows_deleted_after_their_end_do_not_come_back(seed: int, start: Position) -> None:
    """Their shards stay listed as long as the stream keeps data; reading them again would replay it."""
    stream = Stream(random.Random(seed))
    stream.live_on(8)
    rows = {new.shard.shard_id: new.row(stream="s:1") for new in discover(stream.listing(), {}, start)}
    for _ in range(3):
        stream.live_on(4)
        rows = {key: replace(row, sub=0) for key, row in rows.items()}
        read_all(stream, rows, start)
        for row in deletable(rows, rows):
            del rows[row.key]
        assert not discover(stream.listing(), rows, start)
        assert not unread(stream.listing(), rows, start)


@pytest.mark.parametrize("seed", range(40))
def test_lost_row_is_found_while_its_parents_row_is_there(seed: int) -> None:
    """A row that somebody deleted begins anew; its finished parents and its siblings are left alone."""
    rng = random.Random(seed)
    stream = Stream(rng)
    stream.live_on(12)
    rows = {new.shard.shard_id: new.row(stream="s:1") for new in discover(stream.listing(), {}, FROM_LATEST)}
    stream.live_on(12)
    read_all(stream, rows, FROM_LATEST)
    lost = rng.choice(sorted(row.key for row in rows.values() if not row.has_ended and set(row.parents) & set(rows)))
    del rows[lost]
    assert made(discover(stream.listing(), rows, FROM_LATEST)) == {lost: TRIM_HORIZON}


def test_row_made_again_begins_at_the_horizon() -> None:
    """Nobody knows how far it was, and its epochs keep rising."""
    [new] = discover(a_listing("1"), {}, FROM_LATEST)
    again = new.row(stream="s:1", counter=1_700_000_000)
    assert (again.checkpoint, again.native.start_ms, again.counter) == (TRIM_HORIZON, None, 1_700_000_000)


def _records(stream: Stream, since_ms: int) -> list[tuple[str, int]]:
    return [(s.name, at_ms) for s in stream.shards.values() for at_ms in s.records if at_ms >= since_ms]


def _check(stream: Stream, handed: list[tuple[str, int]], *, since_ms: int) -> None:
    """Every record since then came once, and no child's record before its parents'."""
    assert sorted(handed) == sorted(_records(stream, since_ms))
    order = list(dict.fromkeys(name for name, _ in handed))
    for name in order:
        assert all(order.index(parent) < order.index(name) for parent in stream.shards[name].parents if parent in order)


def test_closed_shard_is_read_when_its_row_was_never_made_at_latest() -> None:
    """Reading began when the rows that exist were made, also if they have ended; it was open then, and is not now."""
    listing = a_listing("0 1 2=1 3=1")
    rows = some_rows(listing, s0=SHARD_END)
    rows["0"] = replace(rows["0"], native=Native(start_ms=900_000))
    [new] = discover(listing, rows, FROM_LATEST)
    assert (new.shard.shard_id, new.checkpoint, new.start_ms) == ("1", LATEST, 900_000)


@pytest.mark.parametrize("start", STARTS)
def test_other_leg_of_a_merge_is_read_when_its_row_was_never_made(start: Position) -> None:
    """One row could not be made, the other leg ended and made the child: the child is at its beginning and waits."""
    listing = a_listing("0 1 2=0+1")
    rows = some_rows(listing, s0=SHARD_END, s2=TRIM_HORIZON)
    assert [new.shard.shard_id for new in discover(listing, rows, start)] == ["1"]
    assert blocking_parents(rows["2"], rows, unread(listing, rows, start)) == ("1",)


def test_row_deleted_before_a_split_and_a_merge_is_made_anew() -> None:
    """The merged child was made at the other leg's end: it says nothing of what is before the leg without a row."""
    listing = a_listing("0 1 2=0 3=0 4=3+1")
    rows = some_rows(listing, s1=SHARD_END, s4=TRIM_HORIZON)
    assert list(made(discover(listing, rows, FROM_HORIZON))) == ["0"]
    assert unread(listing, rows, FROM_HORIZON) == {"0", "2", "3"}


def test_both_legs_of_a_merge_are_read_when_neither_has_a_row() -> None:
    """The child at its beginning was made at the end of one of them, and does not tell which."""
    listing = a_listing("0 1 2=0 3=0 4=3+1")
    rows = some_rows(listing, s4=TRIM_HORIZON)
    assert set(made(discover(listing, rows, FROM_HORIZON))) == {"0", "1"}
    assert blocking_parents(rows["4"], rows, unread(listing, rows, FROM_HORIZON)) == ("3", "1")


@pytest.mark.parametrize(
    "parents", [{"1": ("1",)}, {"1": ("0",), "0": ("1",)}, {"1": ("3",)}, {"1": ("1", "0"), "0": ("1", "0")}]
)
def test_rows_that_descend_from_themselves_keep_no_others_from_being_made(parents: dict[str, tuple[str, ...]]) -> None:
    """Somebody has written that by hand, into rows of shards that have aged out."""
    rows = {key: LeaseRow(key, checkpoint=SHARD_END, parents=names) for key, names in parents.items()}
    listing = a_listing("2=1 3=2 4")
    assert [new.shard.shard_id for new in discover(listing, rows, FROM_HORIZON)] == ["2", "4"]
