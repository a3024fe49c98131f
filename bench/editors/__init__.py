"""The systems that change rows, by name."""

from bench.editors.delta import DeltaRewrites, DeltaVectors
from bench.editors.delta_rs import DeltaRs
from bench.editors.iceberg import IcebergCopyOnWrite, IcebergMergeOnRead, IcebergVectors
from bench.editors.pyarrow_rewrite import PyArrowRewrite, PyArrowUpsert
from bench.editors.pyiceberg import PyIcebergEditor
from bench.editors.rowlake import (
    RowlakeAuto,
    RowlakeEager,
    RowlakeEquality,
    RowlakeLazy,
    RowlakePositions,
)

EDITORS = {
    kind.name: kind
    for kind in (
        RowlakeLazy,
        RowlakeEager,
        RowlakeAuto,
        RowlakePositions,
        RowlakeEquality,
        IcebergVectors,
        IcebergMergeOnRead,
        IcebergCopyOnWrite,
        DeltaVectors,
        DeltaRewrites,
        DeltaRs,
        PyIcebergEditor,
        PyArrowRewrite,
        PyArrowUpsert,
    )
}
OURS = ("rowlake-lazy", "rowlake-eager", "rowlake-auto", "rowlake-v2")
ICEBERG = ("iceberg-v3", "iceberg-mor-v2", "iceberg-cow")
# Those in the session; delta-rs works on the tables that Delta makes.
DELTA = ("delta-dv", "delta", "delta-rs")

__all__ = ["DELTA", "EDITORS", "ICEBERG", "OURS"]
