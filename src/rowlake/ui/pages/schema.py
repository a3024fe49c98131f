"""The columns of a table, its layout and its properties, now and before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.model.table_schema import table_schema
from rowlake.secrets import redacted
from rowlake.ui.frame import badge, card, clock, facts, grid, nothing, page, table_head
from rowlake.ui.markup import Element, Node, el
from rowlake.ui.pasts import schemas_of

if TYPE_CHECKING:
    from rowlake.model.partition import PartitionSpec, SortOrder
    from rowlake.model.view import TableView
    from rowlake.ui.looks import Look
    from rowlake.ui.site import Asked, Site

PATH = "/table/schema"


def schema_page(site: Site, asked: Asked) -> Element:
    """Return the page of a table's schema and its history."""
    look = asked.look(site)
    view = look.handle.view()
    return page(
        site,
        PATH,
        *table_head(look.name, PATH, badge(look.health.verdict.value)),
        el(
            "div",
            card("Columns", _columns(view)),
            el(
                "div",
                card("Schema history", _history(look)),
                card("Partition specs", _specs(view)),
                card("Sort orders", _orders(view)),
                class_="stack",
            ),
            class_="columns",
        ),
        card("Properties", _properties(look), note="Secrets are hidden."),
    )


def _columns(view: TableView) -> Element:
    schema = table_schema(view.schema)
    keys = set(schema.identifier_field_ids)
    rows: list[list[Node]] = []
    for name in schema.column_names:
        one = schema.find_field(name)
        marks: list[Node] = [el("span", "key", class_="pill")] if one.field_id in keys else []
        marks += [el("span", "required", class_="pill")] if one.required else []
        depth = min(name.count("."), 6) if not any("." in each.name for each in schema) else 0
        named = el("th", el("span", one.name, class_=f"deep{depth}"), scope="row")
        kind = one.field_type.name if one.field_type.fields else str(one.field_type)
        rows.append([one.field_id, named, el("td", el("code", kind)), [*marks], one.doc or ""])
    return grid("Columns", ["Id", "Column", "Type", "", "Comment"], rows)


def _history(look: Look) -> Element:
    lines = []
    for each in schemas_of(look):
        since = f"since {clock(each.since_ms)}" if each.since_ms else "no kept snapshot has it"
        current = el("span", "current", class_="pill strong") if each.is_current else None
        head = (el("strong", each.label), current, el("span", since, class_="when"))
        told = [el("li", change) for change in each.changes]
        lines.append(el("li", el("div", *head, class_="line"), el("ul", *told) if told else None))
    return el("ol", *lines, class_="versions")


def _specs(view: TableView) -> Element:
    lines = [
        _numbered(f"spec {number}", spec_of(spec, view), is_current=number == view.default_spec_id)
        for number, spec in sorted(view.specs.items(), reverse=True)
    ]
    return el("ol", *lines, class_="versions")


def _orders(view: TableView) -> Element:
    lines = [
        _numbered(
            f"order {number}", _keys(order, view), is_current=number == view.default_sort_order_id
        )
        for number, order in sorted(view.sort_orders.items(), reverse=True)
    ]
    if not lines:
        return nothing("No order was ever asked for.")
    return el("ol", *lines, class_="versions")


def _numbered(label: str, text: str, *, is_current: bool) -> Element:
    current = el("span", "current", class_="pill strong") if is_current else None
    return el(
        "li", el("div", el("strong", label), current, class_="line"), el("p", el("code", text))
    )


def spec_of(spec: PartitionSpec, view: TableView) -> str:
    """Return a partition spec as text."""
    found = [
        one.name if one.transform == "identity" else f"{one.transform}({_column(view, one)})"
        for one in spec.fields
    ]
    return ", ".join(found) or "unpartitioned"


def order_of(view: TableView) -> str:
    """Return the sort order of new files as text."""
    return _keys(view.sort_order, view)


def _keys(order: SortOrder, view: TableView) -> str:
    found = []
    for key in order.fields:
        column = ".".join(view.schema.paths.get(key.source_id, ("a dropped column",)))
        named = column if key.transform == "identity" else f"{key.transform}({column})"
        nulls = "NULLS FIRST" if key.nulls_first else "NULLS LAST"
        found.append(f"{named} {'ASC' if key.ascending else 'DESC'} {nulls}")
    return ", ".join(found) or "unsorted"


def _column(view: TableView, one: object) -> str:
    number = getattr(one, "source_id", -1)
    return ".".join(view.schema.paths.get(number, ("a dropped column",)))


def _properties(look: Look) -> Element:
    found = sorted(redacted(look.handle.properties).items())
    if not found:
        return nothing("No properties are set.")
    return facts(*((key, el("code", value)) for key, value in found))
