import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.opensearch.Version;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.plugins.PluginInfo;

/** Starts one OpenSearch node in this process, with plugins from the class path; it ends when its input does. */
class OpenSearchNode extends Node {
    OpenSearchNode(Environment environment, List<PluginInfo> plugins) {
        super(environment, plugins, true);
    }

    public static void main(String[] words) throws Exception {
        Path home = Path.of(words[0]);
        Settings settings = Settings.builder()
            .put("path.home", home)
            .put("cluster.name", "genm-tests")
            .put("node.name", "one")
            .put("discovery.type", "single-node")
            .put("http.type", "netty4")
            .put("transport.type", "netty4")
            .put("network.host", "127.0.0.1")
            .put("http.port", words[1])
            .put("transport.port", "0")
            .build();
        List<PluginInfo> plugins = new ArrayList<>();
        for (int i = 2; i < words.length; i++) {
            plugins.add(new PluginInfo(words[i], "", "NA", Version.CURRENT, "21", words[i], Collections.emptyList(), false));
        }
        Environment environment = InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "one");
        try (Node node = new OpenSearchNode(environment, plugins)) {
            node.start();
            System.out.println("started");
            while (System.in.read() >= 0) { }
        }
    }
}
