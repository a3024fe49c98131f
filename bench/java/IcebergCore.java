package bench;

import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestWriter;
import org.apache.iceberg.Metrics;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableScan;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.hadoop.HadoopCatalog;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Types;

/** What the bench asks of Iceberg's core directly; compiled in the running JVM by Janino. */
public class IcebergCore {
  private static final int DATES = 1823;
  private static final long FILES_PER_COMMIT = 10000L;
  private static final int FIRST_DATE = 2450816;

  private static Schema schema() {
    return new Schema(
        new Types.NestedField[] {
          Types.NestedField.optional(1, "ss_ticket_number", Types.LongType.get()),
          Types.NestedField.optional(2, "ss_item_sk", Types.LongType.get()),
          Types.NestedField.optional(3, "ss_sold_date_sk", Types.IntegerType.get()),
          Types.NestedField.optional(4, "ss_quantity", Types.IntegerType.get()),
          Types.NestedField.optional(5, "ss_note", Types.StringType.get())
        });
  }

  private static PartitionSpec spec(Schema schema) {
    return PartitionSpec.builderFor(schema).identity("ss_sold_date_sk").build();
  }

  /** File i of n: dates and tickets grow with i, five columns have statistics. */
  private static DataFile file(PartitionSpec spec, String folder, long i, long n, long dates) {
    Map sizes = new HashMap();
    Map counts = new HashMap();
    Map nulls = new HashMap();
    Map lower = new HashMap();
    Map upper = new HashMap();
    int date = FIRST_DATE + (int) (i * dates / n);
    bound(lower, upper, 1, Types.LongType.get(), Long.valueOf(i * 1000L), Long.valueOf(i * 1000L + 999L));
    bound(lower, upper, 2, Types.LongType.get(), Long.valueOf(i % 997L), Long.valueOf(204000L - i % 991L));
    bound(lower, upper, 3, Types.IntegerType.get(), Integer.valueOf(date), Integer.valueOf(date));
    bound(lower, upper, 4, Types.IntegerType.get(), Integer.valueOf(1), Integer.valueOf(100));
    bound(lower, upper, 5, Types.StringType.get(), "aa" + (i * 7919L % 1000003L), "zz" + (i * 104729L % 1000003L));
    for (int id = 1; id <= 5; id++) {
      sizes.put(Integer.valueOf(id), Long.valueOf(40000L + i * 31L % 5000L + id));
      counts.put(Integer.valueOf(id), Long.valueOf(10000L));
      nulls.put(Integer.valueOf(id), Long.valueOf(0L));
    }
    Metrics metrics = new Metrics(Long.valueOf(10000L), sizes, counts, nulls, null, lower, upper);
    return ((DataFiles.Builder) DataFiles.builder(spec)
        .withPath(folder + "/ss_sold_date_sk=" + date + "/00000-" + i + "-5f6c1e0a-8d7b-4c1e-9f00-00001.parquet"))
        .withFormat(FileFormat.PARQUET)
        .withFileSizeInBytes(200000L + i % 4096L)
        .withPartitionPath("ss_sold_date_sk=" + date)
        .withMetrics(metrics)
        .build();
  }

  private static void bound(Map lower, Map upper, int id, org.apache.iceberg.types.Type type, Object low, Object high) {
    lower.put(Integer.valueOf(id), Conversions.toByteBuffer(type, low));
    upper.put(Integer.valueOf(id), Conversions.toByteBuffer(type, high));
  }

  private static HadoopCatalog catalog(String warehouse) {
    return new HadoopCatalog(new Configuration(), warehouse);
  }

  private static TableIdentifier identifier(String name) {
    return TableIdentifier.parse(name);
  }

  /** Makes a table of n data files that exist only in its metadata; sizes are "files [dates]". */
  public static String build(String warehouse, String name, String sizes) {
    Schema schema = schema();
    Map properties = new HashMap();
    properties.put("format-version", "2");
    Table table = catalog(warehouse).createTable(identifier(name), schema, spec(schema), properties);
    String[] both = sizes.split(" ");
    long n = Long.parseLong(both[0]);
    long dates = both.length > 1 ? Long.parseLong(both[1]) : DATES;
    String folder = table.location() + "/data";
    for (long first = 0; first < n; first += FILES_PER_COMMIT) {
      AppendFiles append = table.newFastAppend();
      for (long i = first; i < Math.min(n, first + FILES_PER_COMMIT); i++) {
        append.appendFile(file(table.spec(), folder, i, n, dates));
      }
      append.commit();
    }
    return "" + table.currentSnapshot().allManifests(table.io()).size();
  }

  /** Plans a scan and returns how many files it gave: all, from a ticket on, or of one date "=date". */
  public static String plan(String warehouse, String name, String wanted) {
    Table table = catalog(warehouse).loadTable(identifier(name));
    TableScan scan = table.newScan();
    if (wanted.startsWith("=")) {
      scan = (TableScan) scan.filter(Expressions.equal("ss_sold_date_sk", Integer.valueOf(wanted.substring(1))));
    } else if (wanted.length() > 0) {
      scan = (TableScan) scan.filter(Expressions.greaterThanOrEqual("ss_ticket_number", Long.valueOf(wanted)));
    }
    CloseableIterable tasks = scan.planFiles();
    long count = 0;
    try {
      Iterator iterator = tasks.iterator();
      while (iterator.hasNext()) {
        iterator.next();
        count++;
      }
      tasks.close();
    } catch (java.io.IOException e) {
      throw new RuntimeException(e);
    }
    return "" + count;
  }

  /** Writes one manifest of n entries, made before the clock starts; returns wall and CPU nanoseconds. */
  public static String write(String location, String files, String unused) {
    Schema schema = schema();
    PartitionSpec spec = spec(schema);
    int n = Integer.parseInt(files);
    DataFile[] entries = new DataFile[n];
    for (int i = 0; i < n; i++) {
      entries[i] = file(spec, "file:/bench/data", i, n, DATES);
    }
    java.lang.management.ThreadMXBean threads = java.lang.management.ManagementFactory.getThreadMXBean();
    long cpu = threads.getCurrentThreadCpuTime();
    long start = System.nanoTime();
    org.apache.iceberg.hadoop.HadoopFileIO io = new org.apache.iceberg.hadoop.HadoopFileIO(new Configuration());
    ManifestWriter writer = ManifestFiles.write(2, spec, io.newOutputFile(location), Long.valueOf(7L));
    try {
      for (int i = 0; i < n; i++) {
        writer.add(entries[i]);
      }
      writer.close();
    } catch (java.io.IOException e) {
      throw new RuntimeException(e);
    }
    return (System.nanoTime() - start) + " " + (threads.getCurrentThreadCpuTime() - cpu);
  }

  /** Makes a table of another's data files, linked into its own folder; names are "from to". */
  public static String copy(String warehouse, String names, String properties) {
    String[] both = names.split(" ");
    HadoopCatalog catalog = catalog(warehouse);
    Table from = catalog.loadTable(identifier(both[0]));
    Map settings = new HashMap();
    String[] lines = properties.split("\n");
    for (int i = 0; i < lines.length; i++) {
      int at = lines[i].indexOf('=');
      settings.put(lines[i].substring(0, at), lines[i].substring(at + 1));
    }
    Table to = catalog.createTable(identifier(both[1]), from.schema(), from.spec(), settings);
    AppendFiles append = to.newFastAppend();
    TableScan scan = (TableScan) from.newScan().includeColumnStats();
    CloseableIterable tasks = scan.planFiles();
    long count = 0;
    try {
      Iterator iterator = tasks.iterator();
      while (iterator.hasNext()) {
        DataFile file = (DataFile) ((org.apache.iceberg.FileScanTask) iterator.next()).file();
        append.appendFile(linked(file, from, to));
        count++;
      }
      tasks.close();
    } catch (java.io.IOException e) {
      throw new RuntimeException(e);
    }
    append.commit();
    return "" + count;
  }

  private static DataFile linked(DataFile file, Table from, Table to) throws java.io.IOException {
    String old = file.path().toString();
    String made = to.location() + old.substring(old.indexOf("/data/"));
    java.nio.file.Path target = local(made);
    java.nio.file.Files.createDirectories(target.getParent(), new java.nio.file.attribute.FileAttribute[0]);
    java.nio.file.Files.createLink(target, local(old));
    return ((DataFiles.Builder) DataFiles.builder(to.spec()).copy(file))
        .withPath(made)
        .withSortOrder(org.apache.iceberg.SortOrder.unsorted())
        .build();
  }

  private static java.nio.file.Path local(String location) {
    String path = location.startsWith("file:") ? java.net.URI.create(location).getPath() : location;
    return java.nio.file.Paths.get(path, new String[0]);
  }
}
