"""The examples of deployment use options that exist."""

import re
from pathlib import Path

import pytest
import yaml

from genm.cli.serve import command

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
