"""Views that a catalog keeps, with rowlake's errors. Of PyIceberg's catalogs only REST has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyiceberg import exceptions as theirs
from pyiceberg.view.metadata import SQLViewRepresentation, ViewRepresentation, ViewVersion

from rowlake.catalog.failures import failing
from rowlake.catalog.tables import ensure_default
from rowlake.errors import TableNotFoundError, UnsupportedFeatureError
from rowlake.iceberg.definition import FORMAT_VERSIONS, iceberg_schema
from rowlake.model.names import DEFAULT_NAMESPACE, quoted
from rowlake.model.properties import validate_no_secrets
from rowlake.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.catalog import Catalog
    from pyiceberg.view import View

    from rowlake.model.names import Identifier

DIALECT = "spark"
_PRODUCED = "spark.query-column-names"  # where Iceberg's Spark catalogs keep them


@dataclass(frozen=True)
class CatalogView:
    """A view's query in Spark's dialect, and what its names mean.

    `produced` are the columns that the query gave when the view was made, `columns` what the view
    calls them.
    """

    name: Identifier
    query: str
    columns: tuple[str, ...]
    produced: tuple[str, ...]
    namespace: Identifier
    comment: str | None = None


def keeps_views(catalog: Any) -> bool:
    """Return whether the catalog can keep views."""
    return any(kind.__name__ == "RestCatalog" for kind in type(_under(catalog)).__mro__)


def validate_keeps_views(catalog: Any, act: str) -> None:
    """Refuse what only a catalog with views can do."""
    if not keeps_views(catalog):
        raise UnsupportedFeatureError(
            f"Cannot {act}: the catalog {catalog.name} keeps no views. REST catalogs do; CREATE "
            "TEMPORARY VIEW works with every catalog."
        )


def load_view(catalog: Any, name: Identifier) -> CatalogView | None:
    """Return a view; None where there is none, or the catalog keeps none."""
    if not keeps_views(catalog):
        return None
    with failing(catalog, f"load {quoted(name)}", name):
        try:
            return _read(name, _under(catalog).load_view(name))
        except (theirs.NoSuchViewError, theirs.NoSuchNamespaceError, NotImplementedError):
            return None


def _read(name: Identifier, view: View) -> CatalogView:
    found = view.sql_for(DIALECT)
    if found is None:
        known = [one.root.dialect for one in view.current_version().representations]
        raise UnsupportedFeatureError(
            f"The view {quoted(name)} is written in the SQL of {', '.join(known)}, not of Spark."
        )
    columns = tuple(view.schema().column_names)
    columns = tuple(one for one in columns if "." not in one)
    kept = [one for one in view.properties.get(_PRODUCED, "").split(",") if one]
    return CatalogView(
        name,
        found.sql,
        columns,
        tuple(kept) if len(kept) == len(columns) else columns,
        tuple(view.current_version().default_namespace) or DEFAULT_NAMESPACE,
        view.properties.get("comment"),
    )


def create_view(
    catalog: Catalog, view: CatalogView, schema: Mapping[str, Any], properties: Mapping[str, str]
) -> None:
    """Create a view with a schema in the spec's JSON form; the name must be free."""
    validate_no_secrets(properties)
    columns = iceberg_schema(dict(schema), FORMAT_VERSIONS[-1])
    version = ViewVersion(
        schema_id=columns.schema_id,
        summary={"engine-name": "rowlake", "engine-version": __version__},
        representations=[
            ViewRepresentation(SQLViewRepresentation(type="sql", sql=view.query, dialect=DIALECT))
        ],
        default_namespace=view.namespace,
    )
    given = dict(properties)
    if view.comment is not None:
        given["comment"] = view.comment
    if view.produced != view.columns:
        given[_PRODUCED] = ",".join(view.produced)
    with failing(catalog, f"create view {quoted(view.name)}", view.name):
        ensure_default(catalog, view.name[:-1])
        try:
            catalog.create_view(view.name, columns, version, properties=given)
        except NotImplementedError as error:
            raise _not_by_server(catalog) from error


def drop_view(catalog: Catalog, name: Identifier) -> None:
    """Drop a view."""
    with failing(catalog, f"drop view {quoted(name)}", name):
        try:
            catalog.drop_view(name)
        except theirs.NoSuchViewError as error:
            raise TableNotFoundError(quoted(name), kind="view") from error
        except NotImplementedError as error:
            raise _not_by_server(catalog) from error


def list_views(catalog: Any, namespace: Identifier) -> list[Identifier]:
    """Return the views of a namespace, sorted; none where the catalog keeps none."""
    if not keeps_views(catalog):
        return []
    with failing(catalog, f"list the views of {quoted(namespace)}", namespace):
        try:
            return sorted(tuple(found) for found in _under(catalog).list_views(namespace))
        except (theirs.NoSuchNamespaceError, NotImplementedError):
            return []


def _under(catalog: Any) -> Any:
    """Return the catalog that a transaction holds commits back from, else the catalog itself."""
    return getattr(catalog, "under", catalog)


def _not_by_server(catalog: Catalog) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"The server of the catalog {catalog.name} does not offer views. CREATE TEMPORARY VIEW "
        "works with every catalog."
    )
