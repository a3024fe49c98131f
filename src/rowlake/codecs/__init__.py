"""Bytes of single files: Avro containers, Puffin, deletion vectors, position deletes, sketches.

These modules know no table and no table format, and Spark tasks load them, so they import neither
PyIceberg nor pyspark.
"""
