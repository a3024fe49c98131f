import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/**
 * Serves Iceberg's own REST catalog on the loopback address only.
 *
 * <p>Arguments: port, JDBC address of the catalog's database, warehouse, then name=value pairs of
 * further catalog properties.
 */
public final class RestCatalogMain {
  private RestCatalogMain() {}

  public static void main(String[] arguments) throws Exception {
    int port = Integer.parseInt(arguments[0]);
    Map<String, String> properties = new HashMap<>();
    properties.put("catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog");
    properties.put("jdbc.schema-version", "V1");
    properties.put("clients", "1");
    properties.put("uri", arguments[1]);
    properties.put("warehouse", arguments[2]);
    for (int index = 3; index < arguments.length; index++) {
      String[] pair = arguments[index].split("=", 2);
      properties.put(pair[0], pair[1]);
    }

    Catalog catalog = CatalogUtil.buildIcebergCatalog("rest", properties, new Configuration());
    ServletContextHandler handler = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    handler.setContextPath("/");
    ServletHolder servlet = new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog)));
    handler.addServlet(servlet, "/*");

    Server server =
        new Server(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
    server.setHandler(handler);
    server.start();
    System.out.println("ready");
    server.join();
  }
}
