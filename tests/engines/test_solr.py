"""Solr from its jars, with the Learning to Rank module: a model over two analyses of the text."""

import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from engines.conftest import HERE
from engines.differential import DOCS, cases, check
from engines.downloads import Unavailable, artefacts, java
from engines.proof import Proof
from engines.servers import call, free_port, serving

CANDIDATES = 50
CONFIG = """<config>
  <luceneMatchVersion>8.11.4</luceneMatchVersion>
  <schemaFactory class="ManagedIndexSchemaFactory"/>
  <updateHandler class="solr.DirectUpdateHandler2"/>
  <requestHandler name="/select" class="solr.SearchHandler"/>
  <queryParser name="ltr" class="org.apache.solr.ltr.search.LTRQParserPlugin"/>
  <transformer name="features" class="org.apache.solr.ltr.response.transform.LTRFeatureLoggerTransformerFactory">
    <str name="fvCacheName">QUERY_DOC_FV</str>
  </transformer>
  <query><cache name="QUERY_DOC_FV" class="solr.CaffeineCache" size="4096" autowarmCount="0"/></query>
</config>"""
SCHEMA = """<schema name="articles" version="1.6">
  <fieldType name="string" class="solr.StrField"/>
  <fieldType name="double" class="solr.DoublePointField" docValues="true"/>
  <fieldType name="long" class="solr.LongPointField" docValues="true"/>
  <fieldType name="words" class="solr.TextField">
    <analyzer><tokenizer class="solr.StandardTokenizerFactory"/><filter class="solr.LowerCaseFilterFactory"/>
      </analyzer>
  </fieldType>
  <fieldType name="stems" class="solr.TextField">
    <analyzer><tokenizer class="solr.StandardTokenizerFactory"/><filter class="solr.LowerCaseFilterFactory"/>
      <filter class="solr.PorterStemFilterFactory"/></analyzer>
  </fieldType>
  <field name="id" type="string" indexed="true" stored="true"/>
  <field name="_version_" type="long" indexed="false" stored="false"/>
  <field name="text" type="words" indexed="true" stored="false"/>
  <field name="stemmed" type="stems" indexed="true" stored="false"/>
  <copyField source="text" dest="stemmed"/>
  <dynamicField name="score_*" type="double" indexed="false" stored="true"/>
  <uniqueKey>id</uniqueKey>
</schema>"""


@pytest.fixture(scope="module")
def solr(proof: Proof, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with a core that holds the texts and another for given scores."""
    try:
        jars, home, port = artefacts("solr", "solr"), tmp_path_factory.mktemp("solr"), free_port()
        (home / "solr.xml").write_text("<solr/>")
        for core in ("articles", "scores"):
            _core(home / core)
        command = [java(11), "-Xmx512m", "-cp", ":".join(map(str, jars)), HERE / "SolrServer.java", home, str(port)]
        address = f"http://127.0.0.1:{port}/solr"
        with serving(command, home / "log", f"{address}/articles/select?q=id:none"):
            rows = [{"id": doc, "text": text} for doc, text in proof.texts.docs.items()]
            call(f"{address}/articles/update?commit=true", "POST", rows)
            yield address
    except Unavailable as error:
        pytest.skip(str(error))


def _core(folder: Path) -> None:
    (folder / "conf").mkdir(parents=True)
    (folder / "core.properties").write_text(f"name={folder.name}\n")
    (folder / "conf" / "solrconfig.xml").write_text(CONFIG)
    (folder / "conf" / "managed-schema").write_text(SCHEMA)


def _select(address: str, **words: object) -> list[dict[str, Any]]:
    asked = urllib.parse.urlencode({"wt": "json", **words})
    found = call(f"{address}/select", "POST", asked, "application/x-www-form-urlencoded")
    return list(found["response"]["docs"])


def _feature(name: str, query: str) -> dict[str, Any]:
    kind = "org.apache.solr.ltr.feature.SolrFeature"
    return {"store": "articles", "name": name, "class": kind, "params": {"q": query}}


def _upload(address: str, model: str) -> None:
    """Put the model in the place of the one before; Solr refuses a second one of the same name."""
    if "genm" in [held["name"] for held in call(f"{address}/schema/model-store")["models"]]:
        call(f"{address}/schema/model-store/genm", "DELETE")
    call(f"{address}/schema/model-store", "PUT", model)


@pytest.fixture(scope="module")
def runs(solr: str, proof: Proof) -> dict[str, dict[str, dict[str, float]]]:
    """Both features of every candidate, as the page says."""
    features = [
        _feature("words", "{!dismax qf=text mm=1}${words}"),
        _feature("stems", "{!dismax qf=stemmed mm=1}${words}"),
    ]
    call(f"{solr}/articles/schema/feature-store", "PUT", features)
    pulled: dict[str, dict[str, dict[str, float]]] = {"words": {}, "stems": {}}
    for query, text in proof.texts.queries.items():
        shown = f"id,[features store=articles efi.words={quoted(text)}]"
        for row in _select(f"{solr}/articles", q=candidates(text), rows=CANDIDATES, fl=shown):
            for part in row["[features]"].split(","):
                name, _, value = part.partition("=")
                pulled[name].setdefault(query, {})[row["id"]] = float(value)
    return pulled


def plain(text: str) -> str:
    return "".join(c if c.isalnum() else " " for c in text)


def quoted(text: str) -> str:
    return f"'{plain(text)}'"


def candidates(text: str) -> str:
    return f"{{!dismax qf=text mm=1}}{plain(text)}"


@pytest.mark.parametrize("technique", ["MinMaxNormalizer", "none"])
def test_the_exported_model_ranks_as_the_model(solr: str, runs: Any, proof: Proof, technique: str) -> None:
    sent: list[str] = []

    def ask(exported: str, query: str) -> list[str]:
        if exported not in sent:
            _upload(f"{solr}/articles", exported)
            sent.append(exported)
        text = proof.texts.queries[query]
        rerank = f"{{!ltr model=genm reRankDocs={CANDIDATES} efi.words={quoted(text)}}}"
        rows = _select(f"{solr}/articles", q=candidates(text), rq=rerank, rows=10, fl="id,score")
        return [row["id"] for row in rows]

    differing = proof.compare(
        ("Solr", "8.11.4"),
        "solr",
        runs,
        ask,
        options=("--technique", technique),
        settings=lambda query: {"store": "articles"},
        single=True,
    )
    assert not differing


@pytest.mark.parametrize(
    ("technique", "change"),
    [
        ("none", {}),
        ("MinMaxNormalizer", {"lower": 0.0, "upper": 9.0}),
        ("MinMaxNormalizer", {"lower": -2.0, "upper": 2.0, "missing": 0.5}),
    ],
)
def test_the_simulator_is_the_engine(solr: str, technique: str, change: dict[str, Any]) -> None:
    def settings(lists: Sequence[Mapping[str, float]]) -> dict[str, str]:
        return {f"{ranker}.feature": f"score_{ranker}" for ranker, _ in zip("abc", lists, strict=False)}

    kind, core = "org.apache.solr.ltr.feature.FieldValueFeature", f"{solr}/scores"
    features = [{"name": f"score_{r}", "class": kind, "params": {"field": f"score_{r}"}} for r in "abc"]
    if not call(f"{core}/schema/feature-store/_DEFAULT_").get("features"):
        call(f"{core}/schema/feature-store", "PUT", features)
    every = {"rankers": ("a", "b", "c"), "negative": True, "windows": (None,), "change": change}
    for case in cases("solr", technique, settings, **every):
        rows = [
            {"id": doc, **{f"score_{r}": s[doc] for r, s in zip("abc", case.lists, strict=True) if doc in s}}
            for doc in DOCS
        ]
        call(f"{core}/update?commit=true", "POST", rows)
        _upload(core, case.exported.text)
        found = _select(core, q="*:*", rq="{!ltr model=genm reRankDocs=50}", rows=50, fl="id,score")
        check(case, {row["id"]: row["score"] for row in found if row["id"] in case.simulated})
