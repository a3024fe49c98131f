"""Messages of Debezium, wal2json and pgoutput, and plain images: the rows that they lead to."""

from __future__ import annotations

import base64
import datetime as dt
import json
import random
import struct
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

from rowlake.errors import InvalidStatementError, SchemaMismatchError
from rowlake.model.schema import FIELD_ID, TYPE_NAME, Schema
from rowlake.stream.apply_events import Event
from rowlake.stream.cdc.array_text import parse_array
from rowlake.stream.cdc.messages import Decoded
from rowlake.stream.cdc.postgres_types import field_of_name
from rowlake.stream.cdc.values import reader
from tests.any_format import commit_count
from tests.lakes import make_lake

NAME = "shop.orders"
COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("status", pa.string()),
        pa.field("amount", pa.decimal128(9, 2)),
    ]
)
TOAST = "__debezium_unavailable_value"

pytestmark = pytest.mark.delta


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path) as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture
def table(lake):
    return lake.create_table(NAME, COLUMNS)


def held(table) -> dict[int, tuple]:
    rows = table.arrow(["id", "status", "amount"]).to_pylist()
    found = {row["id"]: (row["status"], row["amount"]) for row in rows}
    assert len(found) == len(rows)
    return found


def envelope(op, after=None, before=None, at=0) -> dict:
    return {"before": before, "after": after, "op": op, "ts_ms": at, "source": {"lsn": at}}


def row(key, status="new", amount="1.00") -> dict:
    return {"id": key, "status": status, "amount": amount}


def apply(table, messages, name="debezium", **options):
    return table.apply_changes(messages, keys=["id"], format=name, **options)


# ---------------------------------------------------------------------- Debezium


def test_debezium_creates_reads_updates_and_deletes(table):
    messages = [
        envelope("r", row(1)),
        envelope("c", row(2)),
        envelope("u", row(1, "paid", "2.50"), row(1)),
        envelope("d", None, row(2)),
        None,
    ]
    apply(table, messages)
    assert held(table) == {1: ("paid", Decimal("2.50"))}


@pytest.mark.parametrize(
    "wrap",
    [
        json.dumps,
        lambda one: {"key": None, "value": json.dumps(one)},
        lambda one: {"value": json.dumps(one).encode()},
        lambda one: {"payload": one, "schema": None},
    ],
    ids=["text", "Kafka", "bytes", "payload"],
)
def test_debezium_messages_come_in_many_shapes(table, wrap):
    apply(table, [wrap(envelope("c", row(1)))])
    assert held(table) == {1: ("new", Decimal("1.00"))}


def test_a_tombstone_of_kafka_is_passed_over(table):
    apply(table, [{"key": "1", "value": None}, {"key": "2", "value": b""}])
    assert held(table) == {}


def test_a_key_that_changes_takes_the_row_along(table):
    apply(table, [envelope("c", row(1)), envelope("c", row(5))])
    apply(table, [envelope("u", row(2, TOAST, "3.00"), {"id": 1})])
    assert held(table) == {2: ("new", Decimal("3.00")), 5: ("new", Decimal("1.00"))}


def test_a_truncate_removes_what_came_before(table):
    apply(table, [envelope("c", row(1)), envelope("c", row(2))])
    apply(table, [envelope("c", row(3)), envelope("t"), envelope("c", row(4))])
    assert held(table) == {4: ("new", Decimal("1.00"))}
    assert commit_count(table) == 2


def test_values_that_were_not_sent_stay_as_the_table_has_them(table):
    apply(table, [envelope("c", row(1, "long text")), envelope("c", row(2, "other"))])
    apply(table, [envelope("u", row(1, TOAST, "2.00")), envelope("u", row(2, "short", "3.00"))])
    assert held(table) == {1: ("long text", Decimal("2.00")), 2: ("short", Decimal("3.00"))}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_debezium_key_change_as_delete_and_create_keeps_values_that_were_not_sent(table, order):
    apply(table, [envelope("c", row(1, "long text"), at=1), envelope("c", row(5), at=2)])
    moved = [
        envelope("d", before={"id": 1}, at=7),
        envelope("c", row(2, TOAST, "3.00"), at=7),
    ]
    others = [envelope("d", before={"id": 5}, at=8), None]
    apply(table, [*(moved[at] for at in order), *others], sequence_by="source.lsn")
    assert held(table) == {2: ("long text", Decimal("3.00"))}


def test_debezium_create_without_values_and_without_its_delete_is_refused(table):
    apply(table, [envelope("c", row(1, "long text"), at=1)])
    with pytest.raises(InvalidStatementError, match="REPLICA IDENTITY FULL"):
        apply(table, [envelope("c", row(2, TOAST, "3.00"), at=7)], sequence_by="source.lsn")
    assert held(table) == {1: ("long text", Decimal("1.00"))}


def test_values_that_were_not_sent_come_from_earlier_events_of_the_batch(table):
    first, second = row(1, "long text"), row(1, TOAST, "2.00")
    apply(
        table, [envelope("c", first), envelope("u", second), envelope("u", row(1, TOAST, "3.00"))]
    )
    assert held(table) == {1: ("long text", Decimal("3.00"))}


@pytest.mark.not_delta("equality deletes")
def test_values_that_were_not_sent_are_read_for_equality_deletes(lake):
    table = lake.create_table(NAME, COLUMNS, properties={"format-version": "2"})
    apply(table, [envelope("c", row(1, "long text"))], deletes="equality")
    apply(table, [envelope("u", row(1, TOAST, "2.00"))], deletes="equality")
    assert held(table) == {1: ("long text", Decimal("2.00"))}


def test_late_messages_are_left_out_by_a_field_of_the_envelope(table):
    late = envelope("c", row(1, "first"), at=1)
    apply(table, [envelope("u", row(1, "second"), at=2), late], sequence_by="source.lsn")
    assert held(table)[1][0] == "second"


def test_an_unknown_operation_is_named(table):
    with pytest.raises(InvalidStatementError, match="op='x'"):
        apply(table, [envelope("x", row(1))])
    with pytest.raises(InvalidStatementError, match="A message is no JSON"):
        apply(table, ["{"])


def encoded(number: int) -> str:
    return base64.b64encode(number.to_bytes(4, "big", signed=True)).decode()


LOGICAL = [
    ("day", "int32", "io.debezium.time.Date", {}, 19_000, dt.date(2022, 1, 8)),
    ("clock", "int64", "io.debezium.time.MicroTime", {}, 3_600_000_001, dt.time(1, 0, 0, 1)),
    ("millis", "int32", "io.debezium.time.Time", {}, 3_600_001, dt.time(1, 0, 0, 1000)),
    (
        "at_ms",
        "int64",
        "io.debezium.time.Timestamp",
        {},
        86_400_001,
        dt.datetime(1970, 1, 2, 0, 0, 0, 1000),
    ),
    (
        "at_us",
        "int64",
        "io.debezium.time.MicroTimestamp",
        {},
        86_400_000_001,
        dt.datetime(1970, 1, 2, 0, 0, 0, 1),
    ),
    (
        "at_ns",
        "int64",
        "io.debezium.time.NanoTimestamp",
        {},
        86_400_000_001_000,
        dt.datetime(1970, 1, 2, 0, 0, 0, 1),
    ),
    (
        "zoned",
        "string",
        "io.debezium.time.ZonedTimestamp",
        {},
        "2024-01-01T02:00:00.5+02:00",
        dt.datetime(2024, 1, 1, 0, 0, 0, 500_000, dt.timezone.utc),
    ),
    (
        "price",
        "bytes",
        "org.apache.kafka.connect.data.Decimal",
        {"scale": "2", "connect.decimal.precision": "9"},
        encoded(-12345),
        Decimal("-123.45"),
    ),
    (
        "ratio",
        "struct",
        "io.debezium.data.VariableScaleDecimal",
        {},
        {"scale": 3, "value": encoded(1500)},
        "1.500",
    ),
    ("raw", "bytes", None, {}, base64.b64encode(b"\0\xff").decode(), b"\0\xff"),
    ("code", "string", "io.debezium.data.Uuid", {}, str(uuid.UUID(int=7)), uuid.UUID(int=7).bytes),
]


@pytest.mark.iceberg
def test_logical_types_of_a_schema_become_columns(tmp_path):
    fields = [
        {"field": name, "type": kind, "name": logical, "parameters": parameters}
        for name, kind, logical, parameters, _, _ in LOGICAL
    ]
    tags = {"field": "tags", "type": "array", "items": {"type": "string"}}
    schema = {
        "fields": [{"field": "after", "fields": [{"field": "id", "type": "int64"}, *fields, tags]}]
    }
    after = {"id": 1, "tags": ["a", None], **{one[0]: one[4] for one in LOGICAL}}
    with make_lake(tmp_path) as lake:
        lake.create_namespace("shop")
        table = lake.create_table(NAME, pa.schema([pa.field("id", pa.int64(), nullable=False)]))
        message = {"schema": schema, "payload": envelope("c", after)}
        apply(table, [json.dumps(message)], schema_evolution=True)
        (found,) = table.arrow().to_pylist()
    assert found == {"id": 1, "tags": ["a", None], **{one[0]: one[5] for one in LOGICAL}}


@pytest.mark.iceberg
def test_a_column_that_the_source_widens_is_widened(tmp_path):
    def message(kind: str, number: int) -> dict:
        columns = [{"field": "id", "type": "int64"}, {"field": "n", "type": kind}]
        schema = {"fields": [{"field": "after", "fields": columns}]}
        return {"schema": schema, "payload": envelope("c", {"id": number, "n": number})}

    with make_lake(tmp_path) as lake:
        lake.create_namespace("shop")
        table = lake.create_table(NAME, pa.schema([pa.field("id", pa.int64(), nullable=False)]))
        apply(table, [message("int32", 1)], schema_evolution=True)
        apply(table, [message("int64", 2**40)], schema_evolution=True)
        assert sorted(table.arrow()["n"].to_pylist()) == [1, 2**40]


# ---------------------------------------------------------------------- wal2json


def test_wal2json_of_version_1(table):
    def change(kind, key, status=None, old=None) -> dict:
        found = {"kind": kind, "schema": "public", "table": "orders"}
        if kind != "delete":
            found |= {
                "columnnames": ["id", "status", "amount"] if status else ["id", "amount"],
                "columntypes": ["bigint", "text", "numeric(9,2)"]
                if status
                else ["bigint", "numeric(9,2)"],
                "columnvalues": [key, status, 1.5] if status else [key, 2.5],
            }
        if old is not None:
            found["oldkeys"] = {"keynames": ["id"], "keytypes": ["bigint"], "keyvalues": [old]}
        return found

    apply(table, [{"change": [change("insert", 1, "new"), change("insert", 2, "new")]}], "wal2json")
    later = [change("update", 1, old=1), change("delete", 2, old=2), change("insert", 3, "x")]
    apply(table, [{"change": later}], "wal2json")
    assert held(table) == {1: ("new", Decimal("2.50")), 3: ("x", Decimal("1.50"))}


def test_wal2json_of_version_2(table):
    def message(action, columns=None, identity=None) -> str:
        types = {"id": "bigint", "status": "text", "amount": "numeric(9,2)"}
        found = {"action": action, "schema": "public", "table": "orders", "lsn": "0/16B3748"}
        for name, part in (("columns", columns), ("identity", identity)):
            if part is not None:
                found[name] = [
                    {"name": column, "type": types[column], "value": value}
                    for column, value in part.items()
                ]
        return json.dumps(found)

    messages = [
        message("B"),
        message("I", {"id": 1, "status": "new", "amount": 1}),
        message("I", {"id": 2, "status": "new", "amount": 1}),
        message("U", {"id": 3, "amount": 2}, {"id": 1}),
        message("D", None, {"id": 2}),
        message("C"),
    ]
    apply(table, messages, "wal2json")
    assert held(table) == {3: ("new", Decimal("2.00"))}
    apply(table, [message("T")], "wal2json")
    assert held(table) == {}


# ---------------------------------------------------------------------- pgoutput


def relation() -> bytes:
    head = b"R" + struct.pack(">I", 16400) + b"public\0orders\0" + b"d" + struct.pack(">H", 3)
    columns = [("id", 20, -1, 1), ("status", 25, -1, 0), ("amount", 1700, (9 << 16) + 2 + 4, 0)]
    return head + b"".join(
        struct.pack(">B", flags) + name.encode() + b"\0" + struct.pack(">Ii", oid, modifier)
        for name, oid, modifier, flags in columns
    )


def values(*texts) -> bytes:
    parts = [struct.pack(">H", len(texts))]
    for text in texts:
        if text is None or text is ...:
            parts.append(b"n" if text is None else b"u")
        else:
            parts.append(b"t" + struct.pack(">I", len(text.encode())) + text.encode())
    return b"".join(parts)


def change(kind: bytes, *parts: bytes) -> bytes:
    return kind + struct.pack(">I", 16400) + b"".join(parts)


def test_pgoutput_messages(table):
    messages = [
        b"B" + struct.pack(">QQI", 100, 0, 7),
        relation(),
        change(b"I", b"N", values("1", "größe", "1.50")),
        change(b"I", b"N", values("2", None, None)),
        change(b"I", b"N", values("4", "gone", "1")),
        change(b"U", b"N", values("1", ..., "2.50")),
        change(b"U", b"K", values("2", None, None), b"N", values("3", "moved", "3")),
        change(b"D", b"K", values("4", None, None)),
        b"C" + struct.pack(">BQQQ", 0, 100, 120, 0),
    ]
    apply(table, messages, "pgoutput")
    assert held(table) == {1: ("größe", Decimal("2.50")), 3: ("moved", Decimal("3.00"))}
    gone = b"T" + struct.pack(">IB", 1, 0) + struct.pack(">I", 16400)
    apply(table, [relation(), gone], "pgoutput")
    assert held(table) == {}


@pytest.mark.parametrize(
    "broken", [b"I\0\0", relation()[:20], change(b"I", b"N", b"\0\1t\0\0\0\x09x"), b"?"]
)
def test_damaged_pgoutput_is_refused(table, broken):
    with pytest.raises(InvalidStatementError, match="Cannot decode"):
        apply(table, [relation(), broken], "pgoutput")


# ---------------------------------------------------------------------- images, values


def test_plain_images(table):
    pairs = [
        {"before": None, "after": row(1)},
        {"before": None, "after": row(2)},
        {"before": row(1), "after": row(7, "moved")},
        {"before": row(2), "after": None},
    ]
    apply(table, pairs, "images")
    assert held(table) == {7: ("moved", Decimal("1.00"))}
    with pytest.raises(InvalidStatementError, match="neither a row before nor one after"):
        apply(table, [{"before": None, "after": None}], "images")


@pytest.mark.parametrize(
    "kind, text, value",
    [
        ("boolean", "t", True),
        ("integer", "-5", -5),
        ("double precision", "NaN", pytest.approx(float("nan"), nan_ok=True)),
        ("numeric(10,3)", "1.5", Decimal("1.500")),
        ("numeric", "12345678901234567890.5", "12345678901234567890.5"),
        ("character varying(10)", "x", "x"),
        ("bytea", "\\x00ff", b"\0\xff"),
        ("date", "2024-02-29", dt.date(2024, 2, 29)),
        ("time without time zone", "01:02:03.5", dt.time(1, 2, 3, 500_000)),
        (
            "timestamp without time zone",
            "2024-01-01 00:00:00.25",
            dt.datetime(2024, 1, 1, 0, 0, 0, 250_000),
        ),
        (
            "timestamp(3) with time zone",
            "2024-01-01 05:30:00+05:30",
            dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc),
        ),
        ("uuid", str(uuid.UUID(int=9)), uuid.UUID(int=9).bytes),
        ("integer[]", "{1,NULL,3}", [1, None, 3]),
        ("text[]", '{"a,b","c\\"d",NULL,"NULL"}', ["a,b", 'c"d', None, "NULL"]),
        ("jsonb", '{"a": 1}', '{"a": 1}'),
    ],
)
def test_values_of_postgresql_keep_their_type(kind, text, value):
    field = field_of_name("x", kind)
    found = reader(field)(text)
    assert found == value
    assert pa.array([found], field.type).null_count == 0


@pytest.mark.parametrize(
    "kind, value",
    [
        ("integer", "x"),
        ("date", "infinity"),
        ("numeric(9,2)", "1.005"),
        ("uuid", "x"),
        ("time", "25"),
    ],
)
def test_values_that_do_not_fit_are_named(kind, value):
    field = field_of_name("x", kind)
    schema = Schema(pa.schema([field.with_metadata({**(field.metadata or {}), FIELD_ID: b"1"})]))
    with pytest.raises(SchemaMismatchError, match=r"Cannot put .* into column x"):
        Decoded([Event({"x": value})]).typed(schema)


@pytest.mark.parametrize("text", ["", "{", "{1", '{"a}', "{1}2", "x{1}", "{" * 40])
def test_damaged_arrays_are_refused(text):
    with pytest.raises(ValueError, match=r"it|array|element"):
        parse_array(text)


def test_uuids_are_marked_as_such():
    assert field_of_name("x", "uuid").metadata == {TYPE_NAME: b"uuid"}


# ---------------------------------------------------------------------- batches


def drawn_log(draw: random.Random) -> tuple[list[dict], dict[int, tuple]]:
    """Return the log of a database whose images lack columns, and the rows that it ends with."""
    log: list[dict] = []
    rows: dict[int, dict] = {}
    for _ in range(draw.randint(5, 25)):
        key, kind = draw.randint(1, 4), draw.random()
        some = {name: row(key)[name] for name in draw.sample(["status", "amount"], 1)}
        some |= {"status": f"s{draw.randint(1, 9)}"} if "status" in some else {}
        image = {"id": key, **some}
        if kind < 0.06:
            log.append(envelope("t"))
            rows.clear()
        elif key not in rows:
            log.append(envelope("c", image))
            rows[key] = {"status": None, "amount": None, **some}
        elif kind < 0.3:
            log.append(envelope("d", before={"id": key}))
            del rows[key]
        elif kind < 0.5 and key + 10 not in rows:
            log.append(envelope("u", {**image, "id": key + 10}, {"id": key}))
            rows[key + 10] = rows.pop(key) | some
        else:
            log.append(envelope("u", image))
            rows[key] |= some
    found = {
        key: (one["status"], None if one["amount"] is None else Decimal(one["amount"]))
        for key, one in rows.items()
    }
    return log, found


@pytest.mark.parametrize("seed", range(8))
def test_rows_do_not_depend_on_how_a_log_is_cut_into_batches(table, seed):
    draw = random.Random(seed)
    log, wanted = drawn_log(draw)
    while log:
        size = draw.randint(1, 8)
        apply(table, log[:size])
        log = log[size:]
    assert held(table) == wanted


def test_a_row_that_is_deleted_and_inserted_again_keeps_nothing(table):
    apply(table, [envelope("c", row(1, "old"))])
    apply(
        table,
        [
            envelope("d", before={"id": 1}),
            envelope("c", {"id": 1, "status": "new"}),
            envelope("c", row(2)),
        ],
    )
    assert held(table)[1] == ("new", None)
