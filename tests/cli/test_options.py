"""What holds for every option of every command, whatever the version of typer."""

import inspect
from typing import get_args

import pytest
from typer.models import OptionInfo

from genm.cli.app import app


def commands():
    groups = [app, *(group.typer_instance for group in app.registered_groups)]
    return [command.callback for group in groups for command in group.registered_commands]


@pytest.mark.parametrize("command", commands(), ids=lambda command: f"{command.__module__}.{command.__name__}")
def test_an_option_that_shows_its_own_name_says_it(command):
    """typer 0.27 takes the metavar for the name if they differ in case alone: --query became --QUERY."""
    for name, parameter in inspect.signature(command).parameters.items():
        for option in get_args(parameter.annotation):
            if isinstance(option, OptionInfo) and (option.metavar or "").lower() == name:
                said = (option.default, *(option.param_decls or ()))  # inside Annotated the first is a name
                assert any(str(one).startswith("--") for one in said), name
