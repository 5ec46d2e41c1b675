"""The readable normalisers against the kernels."""

from dataclasses import replace
from typing import get_args

import pytest
from export.cases import model, own_fusion
from hypothesis import given, settings
from hypothesis import strategies as st

from genm.export.normalizer_match import canonical
from genm.export.stepwise import filled, normalized
from genm.records import Normalizer, NormalizerKind

LIST = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-40, 300).map(lambda x: x / 8), min_size=1)


@st.composite
def normalizers(draw: st.DrawFn) -> Normalizer:
    kind = draw(st.sampled_from(get_args(NormalizerKind)))
    ends = {"lower": 1.5, "upper": 7.0} if kind == "affine" else {}
    if kind == "minmax":
        ends = {"lower": draw(st.sampled_from([None, -2.0, 3.0])), "upper": draw(st.sampled_from([None, 5.0, 9.0]))}
    modes = st.sampled_from(["apply", "clip"] if kind == "affine" else ["apply", "clip", "within", "ignore"])
    return canonical(
        replace(
            Normalizer(kind, **ends),
            lower_mode=draw(modes),
            upper_mode=draw(modes),
            constant=draw(st.sampled_from([1.0, "raw"])),
            ddof=draw(st.sampled_from([0.0, 1.0])),
            at_mean=draw(st.sampled_from([None, "max", 0.25])),
            floor=draw(st.sampled_from([None, 0.125])),
            scale=draw(st.sampled_from([1.0, -0.5])),
            missing=draw(st.sampled_from([0.0, "minimum"])),
        )
    )


@settings(max_examples=60, deadline=None)
@given(normalizers(), LIST)
def test_both_ways_give_the_same(normalizer: Normalizer, scores: dict[str, float]) -> None:
    made = model([normalizer, Normalizer("none")], weights=(1.0, 0.0), depth=None)
    everyone = dict.fromkeys("abcdefgh", 0.0)
    ours = own_fusion(made, [[scores, everyone]])[0]
    assert filled(normalized(scores, normalizer), everyone, normalizer) == pytest.approx(ours, abs=1e-12)
