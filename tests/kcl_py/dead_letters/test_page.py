"""The page on dead letters: its form is the form, its places are places, and its program replays."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from kcl_py.config import Config, Delivery
from kcl_py.dead_letters import parse
from tests.docs.pages import DOCS, blocks, rows
from tests.kcl_py.dead_letters.places import REGION, a_letter
from tests.kcl_py.local.world import World, serving

PAGE = DOCS / "dead_letters.md"


def test_form_on_the_page_is_that_of_letters() -> None:
    """The example is one, and the table has its keys in their order."""
    [example] = blocks(PAGE, "json")
    letter = parse(example)
    assert json.loads(letter.encoded()) == json.loads(example)
    documented = [key for row in rows(PAGE, "Key of a letter") for key in row[0].split(", ")]
    assert documented == list(json.loads(a_letter(encryption_type="KMS").encoded()))


def test_places_on_the_page_are_places() -> None:
    """As they stand there."""
    shown = [row[0].partition(",")[0] for row in rows(PAGE, "`delivery.dead_letter`")]
    texts = [text for text in shown if re.match(r"\w+:", text)]
    assert [text.partition(":")[0] for text in texts] == ["kinesis", "sqs", "s3", "file"]
    for text in texts:
        config = Config(app="shop", stream="orders", processor="m:C", delivery=Delivery(dead_letter=text))
        assert config.delivery.dead_letter == text


def test_program_on_the_page_puts_records_back(tmp_path: Path) -> None:
    """Each once, though a letter is there twice, and half a one."""
    [program] = blocks(PAGE, "python")
    (tmp_path / "replay.py").write_text(program, encoding="utf-8")
    letters = [a_letter(b"first\xff"), a_letter(b"second", sub_sequence_number=1)]
    lines = [letter.encoded() for letter in [*letters, letters[0]]]
    (tmp_path / "letters").write_bytes(b"\n".join([lines[0][:99], *lines, b""]))
    world = World()
    world.model.add_stream("orders", 1)
    with serving(world) as url:
        env = os.environ | {"AWS_ENDPOINT_URL": url, "AWS_DEFAULT_REGION": REGION, "PYTHONPATH": str(DOCS.parent)}
        command = [sys.executable, "replay.py", "letters"]
        ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert ran.stdout == "2 records\n"
    assert ran.stderr.startswith("cannot read a dead letter: ")
    shard = {"ShardId": "shardId-000000000000", "ShardIteratorType": "TRIM_HORIZON"}
    answer = world.call(
        "GetRecords", ShardIterator=world.call("GetShardIterator", StreamName="orders", **shard)["ShardIterator"]
    )
    assert [(record.partition_key, record.data) for record in answer["Records"]] == [
        ("key", b"first\xff"),
        ("key", b"second"),
    ]
