"""What DynamoDB must answer about items: values, conditions, updates."""

from tests.contract.dynamo_steps import (
    BAD,
    FAILED,
    LIST,
    RICH,
    Case,
    asked,
    delete,
    failing,
    n,
    put,
    refused_type,
    row,
    s,
    step,
    update,
)

VALUES = (
    Case("an item comes back as it was put", (put(RICH), row(RICH))),
    Case(
        "numbers come back plain",
        (
            put({"k": s("a"), "x": {"L": [n("1.50"), n("+7"), n("1e3"), n("-0"), n("007"), n(".5"), n("12E-4")]}}),
            row({"k": s("a"), "x": {"L": [n("1.5"), n(7), n(1000), n(0), n(7), n("0.5"), n("0.0012")]}}),
        ),
    ),
    Case("38 digits are kept", (put({"k": s("a"), "x": n("9" * 38)}), row({"k": s("a"), "x": n("9" * 38)}))),
    Case(
        "39 digits are refused",
        (put({"k": s("a"), "x": n("9" * 39)}, code=BAD, says="more than 38 significant digits in a Number"),),
    ),
    Case("a number too large is refused", (put({"k": s("a"), "x": n("1e126")}, code=BAD, says="Number overflow"),)),
    Case("a number too small is refused", (put({"k": s("a"), "x": n("1e-131")}, code=BAD, says="Number underflow"),)),
    Case(
        "what is no number is refused",
        (put({"k": s("a"), "x": n("one")}, code=BAD, says="cannot be converted to a numeric value"),),
    ),
    Case(
        "empty texts, binaries, lists and maps are kept",
        (
            put({"k": s("a"), "t": s(""), "b": {"B": b""}, "l": {"L": []}, "m": {"M": {}}}),
            row({"k": s("a"), "t": s(""), "b": {"B": b""}, "l": {"L": []}, "m": {"M": {}}}),
        ),
    ),
    Case("an empty set is refused", (put({"k": s("a"), "x": {"SS": []}}, code=BAD, says="may not be empty"),)),
    Case(
        "a set with a member twice is refused",
        (put({"k": s("a"), "x": {"SS": ["x", "x"]}}, code=BAD, says="contains duplicates"),),
    ),
    Case("a value without a type is refused", (put({"k": s("a"), "x": {}}, code=BAD),)),
    Case("an item without its key is refused", (put({"x": n(1)}, code=BAD, says="Missing the key k in the item"),)),
    Case(
        "a key of another type is refused",
        (put({"k": n(1)}, code=BAD, says="Type mismatch for key k expected: S actual: N"),),
    ),
    Case(
        "an empty key is refused", (put({"k": s("")}, code=BAD, says="cannot contain an empty string value. Key: k"),)
    ),
    Case(
        "a key that is none of the table's is refused",
        (
            step("GetItem", {"TableName": LIST, "Key": {"other": s("a")}}, code=BAD, says="does not match the schema"),
            step("DeleteItem", {"TableName": LIST, "Key": {"k": s("a"), "x": n(1)}}, code=BAD),
        ),
    ),
    Case("an item of 400 KB is kept", (put({"k": s("a"), "x": s("x" * (400 * 1024 - 3))}),)),
    Case(
        "an item above 400 KB is refused",
        (
            put(
                {"k": s("a"), "x": s("x" * (400 * 1024))},
                code=BAD,
                says="Item size has exceeded the maximum allowed size",
            ),
        ),
    ),
    Case(
        "an item that an update would bring above 400 KB stays",
        (
            put({"k": s("a"), "x": s("x" * (300 * 1024))}),
            update(
                "SET y = :y",
                {":y": s("y" * (200 * 1024))},
                code=BAD,
                says="Item size to update has exceeded the maximum allowed size",
            ),
        ),
    ),
)

CONDITIONS = (
    Case("a first put wins", (put({"k": s("a")}, ConditionExpression="attribute_not_exists(k)"),)),
    Case(
        "a second put is refused and shows the item if asked",
        (
            put({"k": s("a"), "n": n(1)}),
            put(
                {"k": s("a")},
                ConditionExpression="attribute_not_exists(k)",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                code=FAILED,
                gives={"Item": {"k": s("a"), "n": n(1)}},
            ),
            put({"k": s("a")}, ConditionExpression="attribute_not_exists(k)", code=FAILED, lacks=("Item",)),
            row({"k": s("a"), "n": n(1)}),
        ),
    ),
    Case(
        "equality is of type and value",
        (
            put(RICH),
            asked("num = :v", {":v": n("5.0")}),
            failing("num = :v", {":v": s("5")}),
            asked("tags = :v", {":v": {"SS": ["y", "x"]}}),
            asked("nums = :v", {":v": {"NS": ["10", "2.0", "1"]}}),
            asked("doc.#i.n = :v", {":v": n(1)}, ExpressionAttributeNames={"#i": "inner"}),
            asked("seq[2].deep = :v", {":v": n(3)}),
        ),
    ),
    Case(
        "what is missing equals nothing",
        (
            put(RICH),
            failing("absent = :v", {":v": n(1)}),
            asked("absent <> :v", {":v": n(1)}),
            failing("absent = gone"),
            asked("absent <> gone"),
            failing("absent < :v", {":v": n(1)}),
            failing("NOT (absent <> :v)", {":v": n(1)}),
        ),
    ),
    Case(
        "order is of numbers, texts and binaries",
        (
            put(RICH),
            asked("num < :v", {":v": n(10)}),
            failing("num < :v", {":v": n("4.999")}),
            asked("#t > :v", {":v": s("Hello")}, ExpressionAttributeNames={"#t": "text"}),
            asked("bin >= :v", {":v": {"B": b"\x01\x02"}}),
            failing("num < :v", {":v": s("9")}),
            asked("num BETWEEN :a AND :b", {":a": n(5), ":b": n(5)}),
            failing("num BETWEEN :a AND :b", {":a": n(6), ":b": n(7)}),
            asked("num IN (:a, :b)", {":a": s("5"), ":b": n(5)}),
        ),
    ),
    Case(
        "functions",
        (
            put(RICH),
            asked("attribute_exists(doc.#i.n)", ExpressionAttributeNames={"#i": "inner"}),
            asked("attribute_not_exists(seq[3])"),
            asked("attribute_type(nil, :t)", {":t": s("NULL")}),
            failing("attribute_type(num, :t)", {":t": s("S")}),
            asked("begins_with(#t, :v)", {":v": s("hell")}, ExpressionAttributeNames={"#t": "text"}),
            asked("contains(#t, :v)", {":v": s("ell")}, ExpressionAttributeNames={"#t": "text"}),
            asked("contains(tags, :v)", {":v": s("x")}),
            asked("contains(seq, :v)", {":v": s("two")}),
            failing("contains(nums, :v)", {":v": s("1")}),
            asked("size(seq) = :v", {":v": n(3)}),
            asked("size(bin) > :v AND size(doc) = :v2", {":v": n(2), ":v2": n(2)}),
        ),
    ),
    Case(
        "NOT binds before AND and AND before OR",
        (
            put(RICH),
            asked("attribute_exists(num) OR attribute_exists(q) AND attribute_exists(r)"),
            failing("(attribute_exists(num) OR attribute_exists(q)) AND attribute_exists(r)"),
            asked("NOT attribute_exists(q) AND attribute_exists(num)"),
            asked("not attribute_exists(q) and num between :a and :b or num in (:a)", {":a": n(1), ":b": n(9)}),
        ),
    ),
    Case(
        "a delete is conditional too",
        (
            put({"k": s("a"), "n": n(1)}),
            delete("n = :n", n(2), code=FAILED),
            delete("n = :n", n(1), ReturnValues="ALL_OLD", gives={"Attributes": {"k": s("a"), "n": n(1)}}),
            delete("n = :n", n(1), code=FAILED),
            row(None),
        ),
    ),
)

UPDATES = (
    Case(
        "an update sets, removes, adds and deletes at once, reading what was there before",
        (
            put(RICH),
            update(
                "SET num = num + :two, was = num, doc.word = :t REMOVE bin, seq[0] ADD nums :three DELETE tags :x",
                {":two": n(2), ":t": s("new"), ":three": {"NS": ["3"]}, ":x": {"SS": ["x"]}},
            ),
            step(
                "GetItem",
                {
                    "TableName": LIST,
                    "Key": {"k": s("a")},
                    "ProjectionExpression": "num, was, doc.word, tags, nums, seq[0], bin",
                },
                ConsistentRead=True,
                gives={
                    "Item": {
                        "num": n(7),
                        "was": n(5),
                        "doc": {"M": {"word": s("new")}},
                        "tags": {"SS": ["y"]},
                        "nums": {"NS": ["1", "2", "3", "10"]},
                        "seq": {"L": [s("two")]},
                    }
                },
            ),
        ),
    ),
    Case("an update makes the item", (update("SET x = :v", {":v": n(1)}), row({"k": s("a"), "x": n(1)}))),
    Case("an update that only takes away makes no item", (update("REMOVE x"), row(None))),
    Case(
        "a counter begins at nothing",
        (
            update("ADD x :v", {":v": n(3)}, ReturnValues="UPDATED_NEW", gives={"Attributes": {"x": n(3)}}),
            update("ADD x :v", {":v": n("-0.5")}, ReturnValues="UPDATED_NEW", gives={"Attributes": {"x": n("2.5")}}),
        ),
    ),
    Case(
        "the last member of a set takes the set with it",
        (
            put({"k": s("a"), "x": {"SS": ["p"]}}),
            update("DELETE x :v", {":v": {"SS": ["p"]}}),
            row({"k": s("a")}),
            update("DELETE x :v", {":v": {"SS": ["p"]}}),
        ),
    ),
    Case(
        "defaults and lists",
        (
            update("SET x = if_not_exists(x, :v), l = :l", {":v": n(1), ":l": {"L": [n(1)]}}),
            update("SET x = if_not_exists(x, :v) + :v", {":v": n(5)}),
            update("SET l = list_append(:l, l)", {":l": {"L": [n(0)]}}),
            row({"k": s("a"), "x": n(6), "l": {"L": [n(0), n(1)]}}),
            update("SET l[9] = :b, l[5] = :a", {":a": s("a"), ":b": s("b")}),
            row({"k": s("a"), "x": n(6), "l": {"L": [n(0), n(1), s("a"), s("b")]}}),
        ),
    ),
    Case(
        "removals count from the list as it was",
        (
            put({"k": s("a"), "l": {"L": [n(0), n(1), n(2), n(3)]}}),
            update("REMOVE l[0], l[2], l[9] SET l[3] = :v", {":v": s("x")}),
            row({"k": s("a"), "l": {"L": [n(1), s("x")]}}),
        ),
    ),
    Case(
        "each kind of return value",
        (
            put({"k": s("a"), "x": n(1), "m": {"M": {"p": n(1), "q": n(2)}}}),
            update("SET x = :v", {":v": n(2)}, lacks=("Attributes",)),
            update("SET x = :v", {":v": n(3)}, ReturnValues="UPDATED_OLD", gives={"Attributes": {"x": n(2)}}),
            update(
                "SET m.p = :v",
                {":v": n(9)},
                ReturnValues="UPDATED_NEW",
                gives={"Attributes": {"m": {"M": {"p": n(9)}}}},
            ),
            update(
                "REMOVE m",
                ReturnValues="ALL_OLD",
                gives={"Attributes": {"k": s("a"), "x": n(3), "m": {"M": {"p": n(9), "q": n(2)}}}},
            ),
            update("SET y = x", ReturnValues="ALL_NEW", gives={"Attributes": {"k": s("a"), "x": n(3), "y": n(3)}}),
        ),
    ),
    Case(
        "a put returns the old item only",
        (
            put({"k": s("a"), "x": n(1)}),
            put({"k": s("a")}, ReturnValues="ALL_OLD", gives={"Attributes": {"k": s("a"), "x": n(1)}}),
            put({"k": s("a")}, ReturnValues="ALL_NEW", code=BAD, says="ReturnValues can only be ALL_OLD or NONE"),
        ),
    ),
    Case(
        "a path into nothing is refused",
        (
            put({"k": s("a"), "x": n(1), "w": s("text")}),
            update("SET m.p = :v", {":v": n(1)}, code=BAD, says="document path provided in the update expression is"),
            update("REMOVE x.p", code=BAD, says="invalid for update"),
            update("SET y = z", code=BAD, says="refers to an attribute that does not exist in the item"),
            update("SET y = x + w", code=BAD, says="incorrect data type"),
        ),
    ),
    Case(
        "the key stays",
        (
            update(
                "SET k = :v",
                {":v": s("b")},
                code=BAD,
                says="Cannot update attribute k. This attribute is part of the key",
            ),
        ),
    ),
)

FAULTS = (
    Case(
        "an unknown value is named",
        (update("SET x = :gone", code=BAD, says="An expression attribute value used in expression is not defined"),),
    ),
    Case(
        "an unknown name is named",
        (update("SET #x = y", code=BAD, says="not defined; attribute name: #x"),),
    ),
    Case(
        "an unused value is named",
        (
            update(
                "SET x = :v",
                {":v": n(1), ":w": n(2)},
                code=BAD,
                says="Value provided in ExpressionAttributeValues unused in expressions: keys: {:w}",
            ),
        ),
    ),
    Case(
        "an unused name is named",
        (
            update(
                "REMOVE x",
                ExpressionAttributeNames={"#y": "y"},
                code=BAD,
                says="Value provided in ExpressionAttributeNames unused in expressions: keys: {#y}",
            ),
        ),
    ),
    Case("a syntax error is shown", (update("SET x == :v", {":v": n(1)}, code=BAD, says='Syntax error; token: "="'),)),
    Case("an empty expression is refused", (update("", code=BAD, says="The expression can not be empty;"),)),
    Case(
        "a section comes once",
        (update("SET x = z SET y = z", code=BAD, says='The "SET" section can only be used once'),),
    ),
    Case(
        "paths that overlap are refused",
        (update("SET x = z, x.y = z", code=BAD, says="Two document paths overlap with each other"),),
    ),
    Case(
        "a reserved word is refused",
        (update("SET size = y", code=BAD, says="Attribute name is a reserved keyword; reserved keyword: size"),),
    ),
    Case(
        "an operand of another type is refused before the item is looked at",
        (
            refused_type("x < :v", {"BOOL": True}, "operator: <, operand type: BOOL"),
            refused_type("begins_with(x, :v)", n(1), "operator or function: begins_with, operand type: N"),
        ),
    ),
    Case(
        "bounds the wrong way round are refused",
        (
            asked(
                "x BETWEEN :a AND :b",
                {":a": n(2), ":b": n(1)},
                code=BAD,
                says="upper bound to be greater than or equal to lower bound",
            ),
        ),
    ),
    Case("an unknown function is named", (asked("foo(x)", code=BAD, says="Invalid function name; function: foo"),)),
    Case(
        "redundant parentheses are refused",
        (asked("((attribute_exists(x)))", code=BAD, says="The expression has redundant parentheses"),),
    ),
    Case(
        "what an enumeration does not have is refused",
        (update("REMOVE x", ReturnValues="SOME", code=BAD, says="Member must satisfy enum value set"),),
    ),
    Case(
        "a table that is not there is refused",
        (
            step(
                "GetItem",
                {"TableName": "no-such-table", "Key": {"k": s("a")}},
                code="ResourceNotFoundException",
                says="Requested resource not found",
            ),
        ),
    ),
)

CASES = (*VALUES, *CONDITIONS, *UPDATES, *FAULTS)
