from __future__ import annotations

import pytest

from rowlake.errors import InvalidStatementError
from rowlake.model.partition import SortField, SortOrder
from rowlake.write.distribution import Kind, choose_distribution, clustered_order
from tests.write_helpers import spec_of

PLAIN, UNSORTED = spec_of(), SortOrder(0)
BY_DAY = spec_of((1, "day", "d"), (2, "bucket[4]", "b"))
BY_ID = SortOrder(1, (SortField(3, "identity"),))
MODE = "write.distribution-mode"


@pytest.mark.parametrize(
    ("properties", "spec", "order", "operation", "kind"),
    [
        ({}, PLAIN, UNSORTED, "append", Kind.NONE),
        ({}, BY_DAY, UNSORTED, "append", Kind.HASH),
        ({}, BY_DAY, BY_ID, "append", Kind.RANGE),
        ({}, PLAIN, BY_ID, "overwrite", Kind.RANGE),
        ({MODE: "none"}, BY_DAY, BY_ID, "append", Kind.NONE),
        ({MODE: "hash"}, PLAIN, BY_ID, "append", Kind.NONE),
        ({MODE: "RANGE"}, PLAIN, UNSORTED, "append", Kind.NONE),
        ({MODE: "range"}, BY_DAY, UNSORTED, "append", Kind.RANGE),
        ({}, BY_DAY, UNSORTED, "delete", Kind.HASH),
        ({"write.update.distribution-mode": "none"}, BY_DAY, UNSORTED, "update", Kind.NONE),
        ({}, BY_DAY, BY_ID, "merge", Kind.HASH),
        ({}, PLAIN, BY_ID, "merge", Kind.RANGE),
        ({"write.merge.distribution-mode": "range"}, BY_DAY, BY_ID, "merge", Kind.RANGE),
    ],
)
def test_modes_follow_icebergs_rules(properties, spec, order, operation, kind):
    assert choose_distribution(properties, spec, order, operation).kind is kind


def test_an_unknown_mode_or_operation_is_refused():
    with pytest.raises(InvalidStatementError, match=r"distribution-mode=some"):
        choose_distribution({MODE: "some"}, BY_DAY, UNSORTED)
    with pytest.raises(InvalidStatementError, match="'drop'"):
        choose_distribution({}, BY_DAY, UNSORTED, "drop")


def test_hash_goes_by_partition_and_range_by_partition_then_order():
    assert choose_distribution({}, BY_DAY, UNSORTED).keys == (
        SortField(1, "day"),
        SortField(2, "bucket[4]"),
    )
    ranged = choose_distribution({}, BY_DAY, BY_ID)
    assert ranged.keys == ranged.order
    assert ranged.keys == (SortField(1, "day"), SortField(2, "bucket[4]"), SortField(3, "identity"))


def test_fan_out_writers_need_no_order_without_a_sort_order():
    assert choose_distribution({}, BY_DAY, UNSORTED).order == ()
    assert len(choose_distribution({}, BY_DAY, UNSORTED, fanout=False).order) == 2


def test_a_sort_order_that_clusters_by_partition_needs_no_more():
    by_time = SortOrder(1, (SortField(1, "identity"),))
    assert clustered_order(spec_of((1, "day", "d")), by_time) == by_time.fields
    same = SortOrder(1, (SortField(1, "day"), SortField(3, "identity")))
    assert clustered_order(spec_of((1, "day", "d")), same) == same.fields
    other = SortOrder(1, (SortField(1, "bucket[4]"),))
    assert clustered_order(spec_of((1, "day", "d")), other)[0] == SortField(1, "day")
    both = spec_of((1, "day", "d"), (1, "hour", "h"))
    assert clustered_order(both, UNSORTED) == (SortField(1, "hour"),)
