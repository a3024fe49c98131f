"""Fields and texts of every error class; one golden text each."""

from __future__ import annotations

import inspect
import pickle

import pytest

from rowlake import errors
from rowlake.errors import (
    CardinalityError,
    CommitConflictError,
    CommitStateUnknownError,
    CorruptTableError,
    EngineError,
    InternalError,
    InvalidStatementError,
    MissingFileError,
    RowlakeError,
    SchemaMismatchError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
    shown,
)
from tests.lakes import make_lake

GOLDEN: list[tuple[RowlakeError, dict[str, object], str]] = [
    (
        InvalidStatementError(
            "Unknown type intt", statement="SELECT 1,\n CAST(a AS intt)", position=21
        ),
        {"position": 21},
        "Unknown type intt (line 2, column 12)\n   CAST(a AS intt)\n             ^",
    ),
    (InvalidStatementError("Give one."), {"statement": None, "position": None}, "Give one."),
    (
        SchemaMismatchError("Cannot write null to the required column id.", column="id"),
        {"column": "id"},
        "Cannot write null to the required column id.",
    ),
    (
        TableNotFoundError("db.order", similar=["db.orders"]),
        {"name": "db.order", "similar": ("db.orders",)},
        "There is no table db.order. Did you mean db.orders?",
    ),
    (TableNotFoundError("db", kind="namespace"), {"similar": ()}, "There is no namespace db."),
    (UnsupportedFeatureError("No views."), {}, "No views."),
    (
        CardinalityError("2 source rows match one target row.", keys=[17]),
        {"keys": (17,)},
        "2 source rows match one target row.",
    ),
    (
        CommitConflictError(
            "MERGE",
            "db.orders",
            "snapshot 812 (overwrite) removed 4 data files that it read",
            snapshot_id=812,
            files=["a", "b", "c", "d"],
            retryable=True,
        ),
        {"operation": "MERGE", "table": "db.orders", "snapshot_id": 812, "files": tuple("abcd")},
        "Cannot commit MERGE to db.orders: snapshot 812 (overwrite) removed 4 data files that it "
        "read: a, b, c and 1 more. Table unchanged by this operation; run it again.",
    ),
    (
        CommitConflictError("append", "db.orders", "5 attempts lost", gave_up=True),
        {"retryable": False, "gave_up": True},
        "Cannot commit append to db.orders: 5 attempts lost. Table unchanged by this operation; "
        "run it again when fewer others write, or raise commit.retry.num-retries and "
        "commit.retry.total-timeout-ms.",
    ),
    (
        CommitConflictError("append", "db.orders", "branch audit was dropped"),
        {"retryable": False, "gave_up": False},
        "Cannot commit append to db.orders: branch audit was dropped. Table unchanged by this "
        "operation; look at what the other left before you run it again.",
    ),
    (
        CommitStateUnknownError("db.orders", 9917, "the catalog answered 504"),
        {"table": "db.orders", "snapshot_id": 9917, "cause": "the catalog answered 504"},
        "Commit to db.orders has an unknown outcome: the catalog answered 504 for snapshot 9917. "
        "No file was removed. Check with: rowlake snapshots db.orders.",
    ),
    (
        CommitStateUnknownError("db.orders", None, "the catalog answered 504"),
        {"snapshot_id": None},
        "Commit to db.orders has an unknown outcome: the catalog answered 504. "
        "No file was removed. Check with: rowlake describe db.orders.",
    ),
    (
        CorruptTableError("s3://b/m.avro", "it is cut off"),
        {"location": "s3://b/m.avro", "cause": "it is cut off"},
        "Cannot read s3://b/m.avro: it is cut off. Restore the file from a backup, or roll back "
        "to a snapshot without it.",
    ),
    (
        StorageError("s3://b/x", "permission denied", advice="Check the credentials."),
        {"location": "s3://b/x", "cause": "permission denied"},
        "Cannot reach s3://b/x: permission denied. Check the credentials.",
    ),
    (
        MissingFileError("/a", "there is no such file"),
        {"location": "/a"},
        "Cannot reach /a: there is no such file. Check the path, the permissions and the "
        "connection.",
    ),
    (EngineError("Java is missing."), {}, "Java is missing."),
    (InternalError("No such phase."), {}, "No such phase."),
]


@pytest.mark.parametrize(
    ("error", "fields", "text"), GOLDEN, ids=[type(each[0]).__name__ for each in GOLDEN]
)
def test_errors_carry_their_facts_and_render_them(error, fields, text) -> None:
    assert str(error) == text
    assert {name: getattr(error, name) for name in fields} == fields
    assert isinstance(error, RowlakeError)


def test_every_class_has_a_golden_text_and_a_line_in_the_tree() -> None:
    classes = {
        found
        for _, found in inspect.getmembers(errors, inspect.isclass)
        if issubclass(found, RowlakeError)
    }
    assert classes - {RowlakeError} == {type(each[0]) for each in GOLDEN}
    assert all(found.__name__ in str(errors.__doc__) for found in classes)


@pytest.mark.parametrize("error", [each[0] for each in GOLDEN], ids=lambda e: type(e).__name__)
def test_errors_travel_between_processes(error) -> None:
    """What a Spark task raises is pickled on its way to the driver."""
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_lists_show_three_items_and_a_count() -> None:
    assert shown([]) == ""
    assert shown("abc") == "a, b, c"
    assert shown("abcde") == "a, b, c and 2 more"


def test_only_the_wrong_part_of_a_long_line_is_shown():
    statement = "SELECT\n" + "a" * 5_000 + "#" + "b" * 5_000 + "\nFROM t"
    error = InvalidStatementError("Unexpected", statement=statement, position=5_007)
    head, line, mark = str(error).split("\n")
    assert head == "Unexpected (line 2, column 5001)"
    assert len(line) < 200
    assert line[mark.index("^")] == "#"
    assert error.statement == statement


@pytest.mark.parametrize("statement", ["SELECT\n", "a\x0bb\n", "\n", "a\u2028b"])
def test_the_end_of_a_statement_is_a_place_too(statement):
    error = InvalidStatementError("Unexpected end", statement=statement, position=len(statement))
    assert str(error).endswith("^")


def test_a_message_does_not_quote_a_statement_of_megabytes():
    error = InvalidStatementError("Expected a name but found " + "'x" * 1_000_000)
    assert len(str(error)) < 5_000


def caught(call):
    try:
        call()
    except RowlakeError as error:
        return error
    raise AssertionError("nothing was raised")


def test_a_notebook_shows_the_calling_line_and_the_message_alone(tmp_path):
    with make_lake(tmp_path / "lake") as lake:
        error = caught(lambda: lake.table("shop.nope"))
    lines = error._render_traceback_()
    assert lines[0].startswith(f"{__file__}, line ")
    assert lines[1].strip() == 'error = caught(lambda: lake.table("shop.nope"))'
    assert lines[-1] == f"TableNotFoundError: {error}"
    assert len(lines) == 4


def test_a_notebook_shows_all_of_a_fault_of_rowlakes():
    def fail():
        raise InternalError("a promise did not hold")

    lines = "".join(caught(fail)._render_traceback_())
    assert "in fail" in lines and "InternalError: a promise did not hold" in lines
