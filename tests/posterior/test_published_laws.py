"""Claims: a published law is a posterior of one point that says what it is."""

import json

import pytest

from bayescale.laws._published import CONSTANTS
from bayescale.posterior.published import names, published


@pytest.mark.parametrize("name", names())
def test_a_point_with_its_source_and_conventions(name: str) -> None:
    law = published(name)
    assert law.tree["posterior"].sizes == {"chain": 1, "draw": 1}
    assert {k: v.tolist() for k, v in law.coefficients().items()} == {
        k: [v] for k, v in CONSTANTS[name].letters.items()
    }
    assert law.values().keys() <= law.coefficients().keys()  # no noise was published
    assert (law.runs, law.groups, law.status) == (None, (), "UNKNOWN")
    assert "arXiv" in law.info["source"]
    assert {"N", "C", "D", "loss", "schedule", "rounding"} <= law.info["conventions"].keys()
    assert law.largest.keys() == {"n_params", "n_tokens", "flop"}
    assert json.loads(json.dumps(law.to_dict(), allow_nan=False))["metadata"] == {"name": name}


def test_an_unknown_name_lists_the_known_ones_with_a_hint() -> None:
    with pytest.raises(ValueError, match=r"'hofmann-2022'; known: .*besiroglu-2024.* Did you mean 'hoffmann-2022'\?"):
        published("hofmann-2022")
    with pytest.raises(ValueError, match="known:") as caught:
        published("zzz")
    assert "Did you mean" not in str(caught.value)
