"""Change-data-capture formats: messages of other databases as events.

decode.decoded(rows, format, sequence_by)    messages of any format -> `Decoded`
debezium, wal2json, pgoutput, images         one format each
values                                       texts and encodings -> values of a column
follow, postgres, postgres_log               a database that is followed, and its log
postgres_types                               types of PostgreSQL -> types of columns
"""
