"""The systems measured, by name; `rowlake` is ours, the others are peers and limits."""

from bench.peers.iceberg_java import IcebergJava
from bench.peers.pyarrow_limit import PyArrowLimit
from bench.peers.pyiceberg_peer import PyIcebergPeer
from bench.peers.rowlake_peer import RowlakePeer
from bench.peers.spark_parquet import SparkParquet

PEERS = {
    peer.name: peer
    for peer in (RowlakePeer, IcebergJava, SparkParquet, PyArrowLimit, PyIcebergPeer)
}

__all__ = ["PEERS"]
