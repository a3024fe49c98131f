// Writes tables' manifests and manifest lists with Iceberg's Java library; `make_manifests.py` runs it.
//
//   MakeManifests golden FOLDER      small tables, one folder each, for every shape that readers meet
//   MakeManifests describe FOLDER    what Java sees in the tables there, in seen_by_java.jsonl
//   MakeManifests large FOLDER N     one table of N data files in 5 commits, 5 columns with metrics

import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileMetadata;
import org.apache.iceberg.ManifestContent;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.Metrics;
import org.apache.iceberg.PartitionData;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;

public class MakeManifests {
  static final String BUCKET = "s3://bucket/table/data/";

  public static void main(String[] args) {
    if (args[0].equals("describe")) {
      for (java.io.File folder : new java.io.File(args[1]).listFiles()) {
        describe(folder);
      }
      return;
    }
    if (args[0].equals("large")) {
      large(args[1], Integer.parseInt(args[2]));
      return;
    }
    for (int version = 1; version <= 3; version++) {
      types(args[1] + "/types_v" + version, version);
      lifecycle(args[1] + "/lifecycle_v" + version, version);
      codec(args[1] + "/zstd_v" + version, version);
    }
    upgraded(args[1] + "/upgraded_v3");
    for (java.io.File folder : new java.io.File(args[1]).listFiles()) {
      describe(folder);
    }
  }

  // What Java's own reader sees: one line per snapshot and live file, inherited values filled in.
  static void describe(java.io.File folder) {
    Table table = new HadoopTables(new Configuration()).load(folder.getPath());
    List<String> lines = new ArrayList<>();
    for (Snapshot snapshot : table.snapshots()) {
      for (ManifestFile manifest : snapshot.allManifests(table.io())) {
        if (manifest.content() == ManifestContent.DATA) {
          for (DataFile file : ManifestFiles.read(manifest, table.io(), table.specs())) {
            lines.add(line(snapshot, manifest, file, null, null));
          }
        } else {
          for (DeleteFile file :
              ManifestFiles.readDeleteManifest(manifest, table.io(), table.specs())) {
            lines.add(
                line(snapshot, manifest, file, file.referencedDataFile(), file.contentOffset()));
          }
        }
      }
    }
    try {
      java.nio.file.Files.write(folder.toPath().resolve("seen_by_java.jsonl"), lines);
    } catch (java.io.IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }

  static String line(
      Snapshot snapshot, ManifestFile manifest, ContentFile<?> file, String referenced, Long offset) {
    String name = manifest.path().substring(manifest.path().lastIndexOf('/') + 1);
    return String.format(
        "{\"snapshot\": %d, \"manifest\": \"%s\", \"location\": \"%s\", \"content\": %d, "
            + "\"file_format\": \"%s\", \"spec_id\": %d, \"record_count\": %d, "
            + "\"data_sequence_number\": %s, \"file_sequence_number\": %s, \"first_row_id\": %s, "
            + "\"referenced_data_file\": %s, \"content_offset\": %s, \"rest\": \"%s\"}",
        snapshot.snapshotId(),
        name,
        file.location(),
        file.content().id(),
        file.format(),
        file.specId(),
        file.recordCount(),
        file.dataSequenceNumber(),
        file.fileSequenceNumber(),
        file.firstRowId(),
        referenced == null ? "null" : "\"" + referenced + "\"",
        offset,
        rest(file));
  }

  // Partition values and metrics, as text to compare.
  static String rest(ContentFile<?> file) {
    List<Object> parts = new ArrayList<>();
    for (int i = 0; i < file.partition().size(); i++) {
      parts.add(text(file.partition().get(i, Object.class)));
    }
    for (Map<Integer, ?> metrics :
        Arrays.<Map<Integer, ?>>asList(
            file.columnSizes(),
            file.valueCounts(),
            file.nullValueCounts(),
            file.nanValueCounts(),
            file.lowerBounds(),
            file.upperBounds())) {
      Map<Integer, String> sorted = new java.util.TreeMap<>();
      if (metrics != null) {
        metrics.forEach((id, value) -> sorted.put(id, text(value)));
      }
      parts.add(metrics == null ? "null" : sorted);
    }
    parts.add(text(file.keyMetadata()));
    parts.add(file.splitOffsets());
    parts.add(file.equalityFieldIds());
    parts.add(file.sortOrderId());
    parts.add(file.fileSizeInBytes());
    return parts.toString();
  }

  static String text(Object value) {
    if (!(value instanceof ByteBuffer)) {
      return String.valueOf(value);
    }
    ByteBuffer bytes = ((ByteBuffer) value).duplicate();
    StringBuilder hex = new StringBuilder("0x");
    while (bytes.hasRemaining()) {
      hex.append(String.format("%02x", bytes.get()));
    }
    return hex.toString();
  }

  static Table create(String location, Schema schema, PartitionSpec spec, int version) {
    Map<String, String> properties = new HashMap<>();
    properties.put("format-version", String.valueOf(version));
    properties.put("commit.manifest-merge.enabled", "false");
    return new HadoopTables(new Configuration()).create(schema, spec, properties, location);
  }

  // Every partition type, every value twice, then nulls; names that Avro does not allow.
  static void types(String location, int version) {
    List<Types.NestedField> fields = new ArrayList<>();
    List<Object> values = new ArrayList<>();
    Object[][] columns = {
      {"bool", Types.BooleanType.get(), true},
      {"int", Types.IntegerType.get(), -7},
      {"long", Types.LongType.get(), 1L << 40},
      {"float", Types.FloatType.get(), 1.5f},
      {"double", Types.DoubleType.get(), -2.25d},
      {"date", Types.DateType.get(), -3},
      {"time", Types.TimeType.get(), 3_600_000_001L},
      {"ts", Types.TimestampType.withoutZone(), 1_510_871_468_123_456L},
      {"tstz", Types.TimestampType.withZone(), -1L},
      {"string", Types.StringType.get(), "a/b=é"},
      {"uuid", Types.UUIDType.get(), UUID.fromString("f79c3e09-677c-4bbd-a479-3f349cb785e7")},
      {"fixed", Types.FixedType.ofLength(3), ByteBuffer.wrap(new byte[] {0, 1, -1})},
      {"binary", Types.BinaryType.get(), ByteBuffer.wrap(new byte[] {9, 8})},
      {"dec9", Types.DecimalType.of(9, 2), new BigDecimal("-14.20")},
      {"dec38", Types.DecimalType.of(38, 10), new BigDecimal("12345678901234567890.0123456789")},
      {"odd.name with-é", Types.StringType.get(), "odd"},
      {"2nd", Types.IntegerType.get(), 2},
    };
    for (int i = 0; i < columns.length; i++) {
      fields.add(
          Types.NestedField.optional(i + 1, (String) columns[i][0], (Type) columns[i][1]));
      values.add(columns[i][2]);
    }
    Schema schema = new Schema(fields);
    PartitionSpec.Builder builder = PartitionSpec.builderFor(schema);
    for (Types.NestedField field : fields) {
      builder.identity(field.name());
    }
    builder.bucket("string", 16, "string_bucket");
    builder.day("ts", "ts_day");
    builder.truncate("binary", 1, "bin_trunc");
    builder.alwaysNull("int", "int_void");
    values.add(3);
    values.add(17486);
    values.add(ByteBuffer.wrap(new byte[] {9}));
    values.add(null);
    PartitionSpec spec = builder.build();
    Table table = create(location, schema, spec, version);
    PartitionData full = new PartitionData(spec.partitionType());
    for (int i = 0; i < values.size(); i++) {
      full.set(i, values.get(i));
    }
    PartitionData empty = new PartitionData(spec.partitionType());
    table
        .newFastAppend()
        .appendFile(file(spec, full, "full.parquet", 10))
        .appendFile(file(spec, empty, "empty.parquet", 0))
        .appendFile(file(spec, full, "full2.parquet", 11))
        .commit();
  }

  static DataFile file(PartitionSpec spec, PartitionData partition, String name, long rows) {
    DataFiles.Builder builder =
        DataFiles.builder(spec)
            .withPath(BUCKET + name)
            .withFormat(FileFormat.PARQUET)
            .withFileSizeInBytes(1000 + rows)
            .withRecordCount(rows);
    return (partition == null ? builder : builder.withPartition(partition)).build();
  }

  static Schema simple() {
    return new Schema(
        0,
        List.of(
            Types.NestedField.required(1, "id", Types.LongType.get()),
            Types.NestedField.optional(2, "name", Types.StringType.get(), "what it is called"),
            Types.NestedField.optional(3, "score", Types.DoubleType.get())));
  }

  // Appends with metrics, deletes of every kind (v2, v3), removed files, rewritten manifests.
  static void lifecycle(String location, int version) {
    PartitionSpec spec = PartitionSpec.builderFor(simple()).bucket("id", 4).build();
    Table table = create(location, simple(), spec, version);
    spec = table.spec();
    table
        .newAppend()
        .appendFile(measured(table, 0, "a.parquet", 100))
        .appendFile(measured(table, 1, "b.parquet", 200))
        .commit();
    table.newAppend().appendFile(measured(table, 2, "c.orc", 50)).commit();
    if (version >= 2) {
      deletes(table, version);
    }
    table.newDelete().deleteFile(BUCKET + "b.parquet").commit();
    table.rewriteManifests().clusterBy(ignored -> "one").commit();
    table.newAppend().appendFile(measured(table, 3, "d.parquet", 25)).commit();
  }

  static DataFile measured(Table table, int bucket, String name, long rows) {
    Schema schema = table.schema();
    Map<Integer, Long> sizes = Map.of(1, 10L * rows, 2, 7L, 3, 8L * rows);
    Map<Integer, Long> counts = Map.of(1, rows, 2, rows, 3, rows);
    Map<Integer, Long> nulls = Map.of(1, 0L, 2, rows / 2, 3, 1L);
    Map<Integer, Long> nans = Map.of(3, 2L);
    Map<Integer, ByteBuffer> lower = Map.of(1, bound(1, -rows, schema), 2, bound(2, "", schema));
    Map<Integer, ByteBuffer> upper = Map.of(1, bound(1, rows, schema), 2, bound(2, "zé", schema));
    PartitionData partition = new PartitionData(table.spec().partitionType());
    partition.set(0, bucket);
    return DataFiles.builder(table.spec())
        .withPath(BUCKET + name)
        .withFormat(FileFormat.fromFileName(name))
        .withFileSizeInBytes(1000 + rows)
        .withPartition(partition)
        .withMetrics(new Metrics(rows, sizes, counts, nulls, nans, lower, upper))
        .withSplitOffsets(Arrays.asList(4L, 500L))
        .withSortOrder(table.sortOrder())
        .withEncryptionKeyMetadata(ByteBuffer.wrap(new byte[] {1, 2}))
        .build();
  }

  static ByteBuffer bound(int id, Object value, Schema schema) {
    return Conversions.toByteBuffer(schema.findType(id), value);
  }

  static void deletes(Table table, int version) {
    PartitionData partition = new PartitionData(table.spec().partitionType());
    partition.set(0, 0);
    FileMetadata.Builder positions =
        FileMetadata.deleteFileBuilder(table.spec())
            .ofPositionDeletes()
            .withPartition(partition)
            .withFileSizeInBytes(40)
            .withRecordCount(3)
            .withReferencedDataFile(BUCKET + "a.parquet");
    DeleteFile position =
        version == 2
            ? positions.withPath(BUCKET + "p.parquet").withFormat(FileFormat.PARQUET).build()
            : positions
                .withPath(BUCKET + "v.puffin")
                .withFormat(FileFormat.PUFFIN)
                .withContentOffset(4)
                .withContentSizeInBytes(36)
                .build();
    DeleteFile equality =
        FileMetadata.deleteFileBuilder(table.spec())
            .ofEqualityDeletes(1, 2)
            .withPath(BUCKET + "e.avro")
            .withFormat(FileFormat.AVRO)
            .withPartition(partition)
            .withFileSizeInBytes(50)
            .withRecordCount(4)
            .build();
    table.newRowDelta().addDeletes(position).addDeletes(equality).commit();
  }

  static void codec(String location, int version) {
    Table table = create(location, simple(), PartitionSpec.unpartitioned(), version);
    table.updateProperties().set("write.avro.compression-codec", "zstd").commit();
    AppendFiles append = table.newFastAppend();
    for (int i = 0; i < 5; i++) {
      append.appendFile(file(table.spec(), null, i + ".parquet", i));
    }
    append.commit();
  }

  // v2 files that get row ids at the first commit after the upgrade, existing entries included.
  static void upgraded(String location) {
    Table table = create(location, simple(), PartitionSpec.unpartitioned(), 2);
    table
        .newAppend()
        .appendFile(file(table.spec(), null, "a.parquet", 10))
        .appendFile(file(table.spec(), null, "b.parquet", 20))
        .appendFile(file(table.spec(), null, "c.parquet", 30))
        .commit();
    table.updateProperties().set("format-version", "3").commit();
    table.newDelete().deleteFile(BUCKET + "a.parquet").commit();
    table.newAppend().appendFile(file(table.spec(), null, "d.parquet", 40)).commit();
    table.rewriteManifests().clusterBy(ignored -> "one").commit();
  }

  static void large(String location, int count) {
    List<Types.NestedField> fields = new ArrayList<>();
    fields.add(Types.NestedField.required(1, "day", Types.DateType.get()));
    for (int id = 2; id <= 6; id++) {
      Type type = id % 2 == 0 ? Types.LongType.get() : Types.StringType.get();
      fields.add(Types.NestedField.optional(id, "c" + id, type));
    }
    Schema schema = new Schema(fields);
    PartitionSpec spec = PartitionSpec.builderFor(schema).identity("day").build();
    Table table = create(location, schema, spec, 2);
    int done = 0;
    for (int commit = 0; commit < 5; commit++) {
      AppendFiles append = table.newFastAppend();
      for (int i = 0; i < count / 5; i++, done++) {
        append.appendFile(one(table, done));
      }
      append.commit();
    }
  }

  static DataFile one(Table table, int number) {
    Map<Integer, Long> sizes = new HashMap<>();
    Map<Integer, Long> counts = new HashMap<>();
    Map<Integer, Long> nulls = new HashMap<>();
    Map<Integer, ByteBuffer> lower = new HashMap<>();
    Map<Integer, ByteBuffer> upper = new HashMap<>();
    for (int id = 2; id <= 6; id++) {
      sizes.put(id, 100_000L + number * id);
      counts.put(id, 1_000_000L);
      nulls.put(id, (long) number % 100);
      Object low = id % 2 == 0 ? (Object) (long) number : "customer-" + number;
      Object high = id % 2 == 0 ? (Object) (number + 1000L) : "customer-" + (number + 1);
      lower.put(id, bound(id, low, table.schema()));
      upper.put(id, bound(id, high, table.schema()));
    }
    PartitionData partition = new PartitionData(table.spec().partitionType());
    partition.set(0, 19000 + number % 365);
    String name = String.format("day=%d/%05d-%s.parquet", number % 365, number, new UUID(7, number));
    return DataFiles.builder(table.spec())
        .withPath(BUCKET + name)
        .withFormat(FileFormat.PARQUET)
        .withFileSizeInBytes(100_000_000L + number)
        .withPartition(partition)
        .withMetrics(new Metrics(1_000_000L, sizes, counts, nulls, new HashMap<>(), lower, upper))
        .withSplitOffsets(Arrays.asList(4L))
        .build();
  }
}
