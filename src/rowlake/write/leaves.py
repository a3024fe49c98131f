"""The leaf columns of a schema, and their values in Arrow data.

A leaf is what Parquet stores as a column: a field without children, at any depth. Comes in: the
Arrow schema of a data file. Goes out: one `Leaf` per Parquet column, in the file's order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.model.schema import children, field_id

if TYPE_CHECKING:
    from collections.abc import Iterator

STRUCT, LIST, KEY, VALUE = "struct", "list", "key", "value"


@dataclass(frozen=True)
class Step:
    """One step down from a column towards a leaf; `index` is the child of a struct."""

    kind: str
    index: int = 0


@dataclass(frozen=True)
class Leaf:
    """One leaf: its field, its name in the table and in Parquet, and the way to its values."""

    field: pa.Field
    name: str
    parquet_path: str
    column: int
    steps: tuple[Step, ...] = ()

    @cached_property
    def field_id(self) -> int:
        """The Iceberg id of the leaf."""
        return field_id(self.field)  # type: ignore[return-value]

    @cached_property
    def is_repeated(self) -> bool:
        """True below a list or a map: such leaves have no value metrics."""
        return any(step.kind != STRUCT for step in self.steps)


def leaves_of(schema: pa.Schema) -> list[Leaf]:
    """Return the leaves of a data file's Arrow schema, in the order of its Parquet columns."""
    found: list[Leaf] = []
    for column, top in enumerate(schema):
        found.extend(_below(Leaf(top, top.name, top.name, column)))
    return found


def containers_of(schema: pa.Schema) -> list[Leaf]:
    """Return the structs, lists and maps that are not below a list or a map, as if leaves."""
    pending = [Leaf(top, top.name, top.name, column) for column, top in enumerate(schema)]
    found: list[Leaf] = []
    while pending:
        leaf = pending.pop()
        if not children(leaf.field.type):
            continue
        found.append(leaf)
        if pa.types.is_struct(leaf.field.type):
            pending += _children(leaf)
    return found


def _below(parent: Leaf) -> Iterator[Leaf]:
    if not children(parent.field.type):
        yield parent
        return
    for child in _children(parent):
        yield from _below(child)


def _children(parent: Leaf) -> Iterator[Leaf]:
    for index, child in enumerate(children(parent.field.type)):
        step, name, path = _step_to(parent.field.type, index, child)
        yield Leaf(
            child,
            f"{parent.name}.{name}",
            f"{parent.parquet_path}.{path}",
            parent.column,
            (*parent.steps, step),
        )


def _step_to(parent: pa.DataType, index: int, child: pa.Field) -> tuple[Step, str, str]:
    if pa.types.is_struct(parent):
        return Step(STRUCT, index), child.name, child.name
    if pa.types.is_map(parent):
        kind = (KEY, VALUE)[index]
        return Step(kind), kind, f"key_value.{kind}"
    return Step(LIST), "element", "list.element"


def leaf_values(leaf: Leaf, columns: list[pa.Array]) -> pa.Array:
    """Return the values of a leaf; null also where a struct above is null."""
    values = columns[leaf.column]
    for step in leaf.steps:
        if step.kind == STRUCT:
            values = values.flatten()[step.index]
        elif step.kind == LIST:
            values = values.flatten()
        else:
            entries = values.keys if step.kind == KEY else values.items
            start, end = values.offsets[0].as_py(), values.offsets[-1].as_py()
            values = entries.slice(start, end - start)
    return values.storage if isinstance(values, pa.ExtensionArray) else values
