"""Tables of files made from rows, with the metrics and partitions that a writer would record,
and a plain-Python reading of predicates with Spark's semantics."""

import math

import pyarrow as pa

from rowlake.iceberg.manifest_writer import partition_summaries
from rowlake.model.files import MANIFESTS, files_schema
from rowlake.model.partition import PartitionField, PartitionSpec
from rowlake.model.predicate import And, Leaf, Op, Or
from rowlake.model.schema import Schema, field_id
from rowlake.model.transform import apply_transform, partition_type
from rowlake.model.values import encode

UNPARTITIONED = PartitionSpec(0)


def column(name, arrow_type, number, *, nullable=True, **metadata):
    tags = {"PARQUET:field_id": str(number)} | {f"rowlake:{k}": v for k, v in metadata.items()}
    return pa.field(name, arrow_type, nullable=nullable, metadata=tags)


def schema_of(*fields):
    return Schema(pa.schema(list(fields)))


def spec_of(*fields, spec_id=0):
    """Make a spec from (source id, transform) pairs."""
    parts = [
        PartitionField(source, 1000 + index, transform, f"p{index}")
        for index, (source, transform) in enumerate(fields)
    ]
    return PartitionSpec(spec_id, tuple(parts))


def is_nan(value):
    return isinstance(value, float) and math.isnan(value)


def successor(text):
    """Return the least text above all that start with this one, None where there is none."""
    for place in range(len(text) - 1, -1, -1):
        if isinstance(text, bytes):
            if text[place] < 255:
                return text[:place] + bytes([text[place] + 1])
            continue
        point = ord(text[place]) + 1
        if 0xD800 <= point <= 0xDFFF:
            point = 0xE000
        if point <= 0x10FFFF:
            return text[:place] + chr(point)
    return None


def bounds_of(values, truncate):
    lower, upper = min(values), max(values)
    if isinstance(lower, (str, bytes)) and truncate:
        if len(upper) > truncate:
            upper = successor(upper[:truncate])
        lower = lower[:truncate]
    return lower, upper


def encoded(bound, kind):
    return bound if isinstance(bound, bytes) else encode(pa.array([bound], kind))[0].as_py()


def metrics_of(rows, schema, *, truncate=None, drop=()):
    """Return the five maps of a file of these rows but for (map name, field id) in `drop`."""
    maps = {
        "value_counts": [],
        "null_value_counts": [],
        "nan_value_counts": [],
        "lower_bounds": [],
        "upper_bounds": [],
    }
    for arrow_field in schema.arrow:
        number = field_id(arrow_field)
        values = [row[arrow_field.name] for row in rows]
        numbers = [value for value in values if value is not None and not is_nan(value)]
        maps["value_counts"].append((number, len(values)))
        maps["null_value_counts"].append((number, sum(value is None for value in values)))
        if pa.types.is_floating(arrow_field.type):
            maps["nan_value_counts"].append((number, sum(is_nan(value) for value in values)))
        if numbers:
            lower, upper = bounds_of(numbers, truncate)
            for name, bound in (("lower_bounds", lower), ("upper_bounds", upper)):
                if bound is not None:
                    maps[name].append((number, encoded(bound, arrow_field.type)))
    return {
        name: [pair for pair in pairs if (name, pair[0]) not in drop]
        for name, pairs in maps.items()
    }


def partition_of(row, spec, schema):
    values = {}
    for part in spec.fields:
        source = schema.by_id[part.source_id]
        result = apply_transform(part.transform, pa.array([row[source.name]], source.type))
        values[part.name] = result[0].as_py()
    return values


def entries_of(files, schema, spec=UNPARTITIONED, *, truncate=None, drop=(), **columns):
    """Make a table of data files, one per list of rows; `columns` override whole columns."""
    kind = partition_type(spec, schema)
    layout = files_schema(kind)
    rows = []
    for number, held in enumerate(files):
        row = {
            "status": 1,
            "snapshot_id": 1,
            "data_sequence_number": 1,
            "file_sequence_number": 1,
            "content": 0,
            "location": f"s3://lake/t/data/{number:05d}.parquet",
            "file_format": "PARQUET",
            "spec_id": spec.spec_id,
            "partition": partition_of(held[0], spec, schema) if held else {},
            "record_count": len(held),
            "file_size_in_bytes": 1000,
            **metrics_of(held, schema, truncate=truncate, drop=drop),
        }
        rows.append(row)
    for name, values in columns.items():
        for row, value in zip(rows, values, strict=True):
            row[name] = value
    return pa.Table.from_pylist(rows, schema=layout)


def manifests_of(groups, schema, spec):
    """Make rows of a manifest list: one manifest per group of files, without locations."""
    rows = [
        {
            "content": 0,
            "partition_spec_id": spec.spec_id,
            "partitions": partition_summaries(
                entries_of(files, schema, spec).column("partition").combine_chunks()
            ),
        }
        for files in groups
    ]
    return pa.Table.from_pylist(rows, schema=MANIFESTS)


def by_partition(rows, spec, schema):
    """Group rows into files, one per partition."""
    groups = {}
    for row in rows:
        key = repr(sorted(partition_of(row, spec, schema).items()))
        groups.setdefault(key, []).append(row)
    return list(groups.values())


def sort_key(value):
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    if isinstance(value, str):
        return value.encode()
    return value


def holds(predicate, row, schema):
    """Return whether the predicate is TRUE of the row."""
    if isinstance(predicate, And):
        return all(holds(part, row, schema) for part in predicate.parts)
    if isinstance(predicate, Or):
        return any(holds(part, row, schema) for part in predicate.parts)
    return leaf_holds(predicate, row[predicate.path[0]])


def leaf_holds(leaf: Leaf, value):
    if leaf.op is Op.IS_NULL:
        return value is None
    if leaf.op is Op.NOT_NAN:
        return not is_nan(value)
    if value is None:
        return False
    if leaf.op is Op.NOT_NULL:
        return True
    if leaf.op is Op.IS_NAN:
        return is_nan(value)
    if leaf.op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        return value.startswith(leaf.value) is (leaf.op is Op.STARTS_WITH)
    mine, others = sort_key(value), [sort_key(each) for each in leaf.values]
    if leaf.op in (Op.IN, Op.NOT_IN):
        return (mine in others) is (leaf.op is Op.IN)
    other = others[0]
    return {
        Op.EQ: mine == other,
        Op.NE: mine != other,
        Op.LT: mine < other,
        Op.LE: mine <= other,
        Op.GT: mine > other,
        Op.GE: mine >= other,
    }[leaf.op]
