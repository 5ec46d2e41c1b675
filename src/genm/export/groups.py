"""A model with weights by group as files for an engine: one artefact per group, and what selects it.

The engine takes weights with the request, so each group is one more request, pipeline or retriever; the application
finds the group of a query and uses the artefact of that group. `query_groups.py` does so: it holds the rules and
needs nothing but Python. `groups.json` says the same for other languages. For LangChain, LlamaIndex and Haystack a
component chooses by itself.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from genm.align import Aligned
from genm.errors import ExportError
from genm.export.engines import find_target
from genm.export.export import export_model
from genm.export.quoting import py_literal
from genm.export.target import Exported, Target
from genm.grouping import OTHER, SEEN_CHARACTERS
from genm.model import Groups, Model
from genm.records import Note, Run

INDEX_FILE, SELECTOR_FILE, COMPONENT_FILE = "groups.json", "query_groups.py", "learned_by_group.py"


@dataclass(frozen=True, slots=True)
class GroupExport:
    """The files of a model with weights by group."""

    files: Mapping[str, str]
    """Text by file name: one artefact per group, the global one, groups.json, query_groups.py, a component."""
    by_group: Mapping[str, Exported]
    notes: tuple[Note, ...]


def export_groups(
    model: Model,
    to: str,
    *,
    settings: Mapping[str, str] | None = None,
    approximate: bool = False,
    runs: Mapping[str, Run] | Aligned | None = None,
) -> GroupExport:
    """Write the global weights and those of every group as the target takes them, and what selects among them.

    A target that takes equal weights only is refused, and so is a gate: no engine computes its features.
    """
    target, groups = find_target(to), model.groups
    if groups is None:
        raise ExportError("this model has no weights by group. Use export_model.")
    if target.weights.equal:
        raise ExportError(
            f"{target.title} takes equal weights only, so groups cannot differ there. Fuse by scores, or leave the "
            f"groups out: fit again without --groups."
        )
    options: dict[str, Any] = {"settings": settings, "approximate": approximate, "runs": runs}
    whole = export_model(model.for_group(None), to, **options)
    found = {name: export_model(model.for_group(name), to, **options) for name in groups.weights}
    stem, _, suffix = whole.file_name.rpartition(".")
    names = file_names(list(found), stem, suffix)
    files = {whole.file_name: whole.text}
    files |= {names[name]: exported.text for name, exported in found.items()}
    files[INDEX_FILE] = json.dumps(_index(model, target, whole, found, names), indent=2, ensure_ascii=False) + "\n"
    files[SELECTOR_FILE] = selector_code(groups)
    if target.name in COMPONENTS:
        files[COMPONENT_FILE] = _component(target.name, whole.file_name, names)
    notes = {note.text: note for exported in (whole, *found.values()) for note in exported.notes}
    return GroupExport(files, found, tuple(notes.values()))


def file_names(groups: list[str], stem: str, suffix: str) -> dict[str, str]:
    """Return a file name for each group, of plain letters and unlike all others."""
    names: dict[str, str] = {}
    for group in groups:
        plain = re.sub(r"[^a-z0-9]+", "_", group.lower()).strip("_") or "group"
        name = f"{stem}_{plain}.{suffix}"
        number = 2
        while name in names.values():
            name = f"{stem}_{plain}_{number}.{suffix}"
            number += 1
        names[group] = name
    return names


def _index(
    model: Model, target: Target, whole: Exported, found: Mapping[str, Exported], names: Mapping[str, str]
) -> dict[str, Any]:
    """Return the file that says which artefact belongs to which queries."""
    assert model.groups is not None
    grouping = model.groups.grouping
    how = {
        "given": "The application knows each query's group.",
        "column": f"The group is the value of {grouping.column}.",
        "rules": f"The first rule that is true gives the group, {OTHER} if none is.",
    }[grouping.source]
    return {
        "target": target.name,
        "how": f"{how} A query of no group listed here gets the fallback.",
        "rules": [{"group": rule.group, "test": rule.test} for rule in grouping.rules],
        "groups": {
            name: {
                "file": names[name],
                "weights": dict(zip(model.rankers, weights, strict=True)),
                **_request(target, names[name], found[name]),
            }
            for name, weights in model.groups.weights.items()
        },
        "fallback": {"file": whole.file_name, "weights": model.ranker_weights},
    }


def _request(target: Target, file_name: str, exported: Exported) -> dict[str, Any]:
    """Return what a request says to use the group's weights where they need no artefact of their own."""
    if target.name == "vespa":
        rankers = exported.document["rankers"]
        return {"request": {f"input.query(w_{one['name']})": one["weight"] for one in rankers}}
    if target.name.startswith("opensearch") and "query" not in exported.document:
        return {"request": {"search_pipeline": file_name.rpartition(".")[0]}}
    return {}


def selector_code(groups: Groups) -> str:
    """Return a Python module that finds the group of a query, by the same rules and without genm."""
    grouping = groups.grouping
    return f'''"""Finds the group of a query; written by genm."""

import re

GROUPS = {py_literal(list(groups.weights))}
COLUMN = {py_literal(grouping.column)}
RULES = {py_literal([[rule.group, rule.test] for rule in grouping.rules])}


def group_of(text="", columns=None, group=None):
    """Return the group of a query, None if it has none of GROUPS: use the fallback then."""
    columns = columns or {{}}
    found = group or (columns.get(COLUMN) if COLUMN else None)
    if found is None and RULES:
        found = next((name for name, test in RULES if is_true(test, text, columns)), {py_literal(OTHER)})
    return found if found in GROUPS else None


def is_true(test, text, columns):
    """Whether a query passes a test: a number of words or characters, digits, a column, a regular expression."""
    counted = re.fullmatch(r"(words|characters)\\s*(<=|>=|<|>|=)\\s*(\\d+)", test)
    if counted:
        size = len(text.split()) if counted[1] == "words" else len(text)
        limit = int(counted[3])
        return {{
            "<": size < limit, "<=": size <= limit, "=": size == limit, ">=": size >= limit, ">": size > limit
        }}[counted[2]]
    if test == "digits":
        return any(letter.isdigit() for letter in text)
    column = re.fullmatch(r"([A-Za-z_][A-Za-z0-9_]*)\\s*=\\s*(\\S.*)", test)
    if column:
        return columns.get(column[1]) == column[2]
    return re.search(test, text[:{SEEN_CHARACTERS}]) is not None
'''


_LANGCHAIN = '''"""A retriever that fuses by the weights of the query's group."""

from typing import Any

from langchain_core.retrievers import BaseRetriever
from query_groups import group_of

IMPORTS


class GroupRetriever(BaseRetriever):
    by_group: dict[str, Any]
    fallback: Any

    def _get_relevant_documents(self, query, *, run_manager):
        return self.by_group.get(group_of(query), self.fallback).invoke(query)


def learned_retriever(retrievers):
    """Fuse LangChain retrievers; `retrievers` maps each of RANKERS to one."""
    by_group = {name: module.learned_retriever(retrievers) for name, module in MODULES.items()}
    return GroupRetriever(by_group=by_group, fallback=FALLBACK.learned_retriever(retrievers))
'''
_LLAMAINDEX = '''"""A retriever that fuses by the weights of the query's group."""

from llama_index.core.retrievers import BaseRetriever
from query_groups import group_of

IMPORTS


class GroupRetriever(BaseRetriever):
    def __init__(self, by_group, fallback):
        self.by_group, self.fallback = by_group, fallback
        super().__init__()

    def _retrieve(self, query_bundle):
        chosen = self.by_group.get(group_of(query_bundle.query_str), self.fallback)
        return chosen.retrieve(query_bundle)


def learned_retriever(retrievers, **options):
    """Fuse LlamaIndex retrievers; `retrievers` maps each of RANKERS to one."""
    by_group = {name: module.learned_retriever(retrievers, **options) for name, module in MODULES.items()}
    return GroupRetriever(by_group, FALLBACK.learned_retriever(retrievers, **options))
'''
_HAYSTACK = '''"""A document joiner that fuses by the weights of the query's group."""

from haystack import Document, component
from query_groups import group_of

IMPORTS


@component
class LearnedJoiner:
    """Join lists of documents by the weights of the group of `query`; every retriever has an input of its own."""

    def __init__(self, **options):
        self.by_group = {name: module.LearnedJoiner(**options) for name, module in MODULES.items()}
        self.fallback = FALLBACK.LearnedJoiner(**options)
        component.set_input_types(self, **{name: list[Document] for name in FALLBACK.INPUTS})

    @component.output_types(documents=list[Document])
    def run(self, query: str, **lists):
        return self.by_group.get(group_of(query), self.fallback).run(**lists)
'''
COMPONENTS = {"langchain": _LANGCHAIN, "llamaindex": _LLAMAINDEX, "haystack": _HAYSTACK}
"""The frameworks whose component chooses the group by itself."""


def _component(target: str, fallback: str, names: Mapping[str, str]) -> str:
    modules = {group: name.removesuffix(".py") for group, name in names.items()}
    lines = [f"import {fallback.removesuffix('.py')} as FALLBACK"]
    lines += [f"import {module}" for module in modules.values()]
    table = ", ".join(f"{py_literal(group)}: {module}" for group, module in modules.items())
    return COMPONENTS[target].replace("IMPORTS", "\n".join([*lines, "", f"MODULES = {{{table}}}"]))
