import org.apache.solr.client.solrj.embedded.JettyConfig;
import org.apache.solr.client.solrj.embedded.JettySolrRunner;

/** Starts one Solr server on loopback in this process; it ends when its input does. */
class SolrServer {
    public static void main(String[] words) throws Exception {
        JettyConfig config = JettyConfig.builder().setContext("/solr").setPort(Integer.parseInt(words[1])).build();
        JettySolrRunner server = new JettySolrRunner(words[0], config);
        server.start();
        System.out.println("started");
        while (System.in.read() >= 0) { }
        server.stop();
    }
}
