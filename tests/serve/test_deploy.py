"""The examples of deployment use options that exist, and the chart renders to what a cluster takes."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from genm.cli.serve import command
from genm.version import __version__

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

DEPLOY = Path(__file__).parents[2] / "deploy"


def options_of_run():
    return {name for parameter in command.commands["run"].params for name in parameter.opts}


@pytest.mark.parametrize("name", ["Dockerfile", "genm.service", "compose.yaml"])
def test_every_option_exists(name):
    text = (DEPLOY / name).read_text(encoding="utf-8")
    used = set(re.findall(r"(?<![\w-])--(?:host|tokens|store|port|tls-\w+)\b", text))
    assert used
    assert used <= options_of_run()


def test_the_compose_file_has_replicas_that_share_a_database():
    found = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert found["genm"]["deploy"]["replicas"] == 3
    assert any("postgresql://" in word for word in found["genm"]["command"])
    assert (DEPLOY / found["genm"]["build"]["context"] / found["genm"]["build"]["dockerfile"]).is_file()


def test_the_unit_keeps_the_store_where_it_may_write():
    unit = (DEPLOY / "genm.service").read_text(encoding="utf-8")
    assert "StateDirectory=genm" in unit
    assert "WorkingDirectory=/var/lib/genm" in unit


CHART = DEPLOY / "helm" / "genm"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
TEMPLATES = sorted((CHART / "templates").iterdir())


def test_the_chart_names_the_version_that_it_installs():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["apiVersion"], chart["name"], chart["appVersion"]) == ("v2", "genm", __version__)


def test_the_chart_uses_every_value_and_no_other():
    used = {
        name for path in TEMPLATES for name in re.findall(r"\.Values\.([\w.]+)", path.read_text(encoding="utf-8"))
    }
    whole = {"resources"}  # written as it is
    known = {
        f"{name}.{part}" if isinstance(value, dict) and name not in whole else name
        for name, value in VALUES.items()
        for part in (value if isinstance(value, dict) else [""])
    }
    assert used == known


def test_the_chart_uses_options_that_exist():
    used = set(
        re.findall(r"^ +- (--[\w-]+)$", (CHART / "templates" / "deployment.yaml").read_text(encoding="utf-8"), re.M)
    )
    assert {"--store", "--host", "--tokens", "--telemetry"} == used
    assert used <= options_of_run()


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    """What the chart makes of some values, by kind."""
    helm = shutil.which("helm")
    if helm is None:
        pytest.skip("needs helm: go install helm.sh/helm/v3/cmd/helm@latest")
    values = {"replicas": 2, "telemetry": "http://collector:4318", "extraArguments": ["--influence", "0.1"]}
    path = tmp_path_factory.mktemp("helm") / "values.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")

    def template(*words):
        done = subprocess.run(
            [helm, "template", "search", CHART, *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return {one["kind"]: one for one in yaml.safe_load_all(done.stdout)}

    return template(), template("--values", path)


def test_the_chart_renders_to_what_a_cluster_takes(rendered):
    plain, changed = rendered
    for found in rendered:
        assert set(found) == {"Deployment", "Service", "PodDisruptionBudget"}
        labels = {"app.kubernetes.io/name": "genm", "app.kubernetes.io/instance": "search"}
        spec = found["Deployment"]["spec"]
        assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"] == labels
        assert found["Service"]["spec"]["selector"] == labels
        assert found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    (pod,) = plain["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert pod["image"] == f"genm:{__version__}"
    assert pod["args"] == [
        "/secret/model.json", "--store", VALUES["store"], "--host", "0.0.0.0",
        "--tokens", "/secret/genm-tokens.json",
    ]  # fmt: skip
    assert pod["resources"] == VALUES["resources"]
    assert pod["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    assert not any("PASSWORD" in word or "password" in word for word in pod["args"])
    assert changed["Deployment"]["spec"]["replicas"] == 2
    (pod,) = changed["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert pod["args"][-4:] == ["--telemetry", "http://collector:4318", "--influence", "0.1"]
    mounted = {one["name"] for one in pod["volumeMounts"]}
    assert mounted == {one["name"] for one in changed["Deployment"]["spec"]["template"]["spec"]["volumes"]}
