"""A table in another convention: sizes by shapes and by a family's rule, data in bytes."""

import numpy as np
import pandas as pd
import pytest

from bayescale.runs import Embeddings, FlopsRule, KaplanRule, Runs, Shape, in_bytes, read_runs, recount

# GPT-2 (Radford et al. 2019): layers, width; 50,257 tokens, 1,024 positions, head tied to the embedding.
GPT2 = {"small": (12, 768), "medium": (24, 1024), "large": (36, 1280), "xl": (48, 1600)}
BODY = {name: 12 * layers * width**2 for name, (layers, width) in GPT2.items()}
TOTAL = {name: BODY[name] + 50257 * width for name, (_, width) in GPT2.items()}
TOKENS = [1e10, 2e10, 4e10, 8e10]
SHAPES = {name: Shape(layers, width, 50257) for name, (layers, width) in GPT2.items()}


def runs(sizes=TOTAL, header="params_total", **extra) -> Runs:
    columns = {"run": list(sizes), header: list(sizes.values()), "tokens": TOKENS}
    return read_runs(pd.DataFrame({**columns, "loss": [3.3, 3.0, 2.8, 2.7], **extra}))


def test_by_shapes_sizes_are_those_of_the_formula_without_an_error():
    found = recount(runs(), "total", "non-embedding", SHAPES)
    assert found.table["n_params"].tolist() == list(BODY.values())
    assert found.table["n_params_before"].tolist() == list(TOTAL.values())
    assert found.table["n_params_error"].tolist() == [0] * 4
    assert found.table["flop"].tolist() == [6 * n * d for n, d in zip(BODY.values(), TOKENS, strict=True)]
    assert "parameters by the shapes of the models, which they give exactly" in found.notes[-1]


def test_what_a_shape_does_not_explain_stays_and_is_the_error():
    """Positions, norms and biases, 1,024 d and 13 d a layer, are in the total and in no matrix of the shape."""
    extra = {name: 1024 * width + 13 * layers * width for name, (layers, width) in GPT2.items()}
    found = recount(runs({k: v + extra[k] for k, v in TOTAL.items()}), "total", "non-embedding", SHAPES)
    wanted = np.array([BODY[k] + extra[k] for k in GPT2])
    np.testing.assert_allclose(found.table["n_params"], wanted)
    np.testing.assert_allclose(found.table["n_params_error"], list(extra.values()) / wanted)
    assert f"at most {max(np.array(list(extra.values())) / wanted):.2%}" in found.notes[-1]


def test_there_and_back_is_the_table_that_it_was():
    start = runs()
    back = recount(recount(start, "total", "non-embedding", SHAPES), "non-embedding", "total", SHAPES)
    np.testing.assert_allclose(back.table[["n_params", "flop"]], start.table[["n_params", "flop"]], rtol=1e-12)
    assert back.table_hash == start.table_hash


def test_by_a_family_s_rule_with_its_error():
    """Pearce and Song 2024 (arXiv 2406.12907): N_total = N + 47491 N^(1/3)."""
    rule = Embeddings(47491.0, error=0.02)
    sizes = {k: n + 47491 * n ** (1 / 3) for k, n in BODY.items()}
    found = recount(runs(sizes), "total", "non-embedding", rule)
    np.testing.assert_allclose(found.table["n_params"], list(BODY.values()), rtol=1e-9)
    # d log N / d log N_total = (N + g) / (N + g / 3) with g = gamma N^(1/3)
    n = np.array(list(BODY.values()), float)
    gap = 47491 * np.cbrt(n)
    np.testing.assert_allclose(found.table["n_params_error"], 0.02 * (n + gap) / (n + gap / 3), rtol=1e-9)
    back = recount(found, "non-embedding", "total", rule)
    np.testing.assert_allclose(back.table["n_params"], list(sizes.values()), rtol=1e-9)
    assert back.table["n_params_error"].tolist() == [0.02] * 4
    assert "an error that is not known" in recount(runs(sizes), "total", "non-embedding", Embeddings(47491.0)).notes[-1]


def test_compute_that_is_given_stays():
    given = [7e18, 4e19, 2e20, 8e20]
    found = recount(runs(flops=given), "total", "non-embedding", SHAPES)
    assert found.table["flop"].tolist() == given


def test_what_sizes_count_is_known_afterwards_and_not_recounted_twice():
    found = recount(runs(), "total", "non-embedding", SHAPES)
    unit = found.recognised.set_index("column")["unit"]["params_total"]
    assert unit == "parameters (non-embedding), from total"
    with pytest.raises(ValueError, match="count non-embedding parameters, by their column, and not 'total'"):
        recount(found, "total", "non-embedding", SHAPES)


def test_a_declared_convention_is_known_too():
    table = pd.DataFrame({"params": list(BODY.values()), "tokens": 1e10, "loss": [3.3, 3.0, 2.8, 2.7]})
    declared = read_runs(table, counts="non-embedding")
    with pytest.raises(ValueError, match="count non-embedding parameters"):
        recount(declared, "total", "non-embedding", Embeddings(47491.0))
    assert recount(declared, "non-embedding", "total", Embeddings(47491.0)).table["n_params"].gt(table["params"]).all()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (("total", "all", SHAPES), "A size counts one of 'total', 'non-embedding'"),
        (("total", "active", Embeddings(4e4)), "give the shape of each run"),
        (("total", "non-embedding", {"small": SHAPES["small"]}), "3 of 4 runs have no shape: medium, large, xl"),
        (
            ("total", "non-embedding", {**SHAPES, "xl": SHAPES["large"]}),
            r"1 of 4 sizes are more than 10% off the total parameters of their shape \(xl: 1\.555e\+09, by its shape",
        ),
    ],
)
def test_what_cannot_be_recounted_is_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        recount(runs(), *settings)


# Data in bytes


def per_byte(ratio) -> Runs:
    table = pd.DataFrame({"params": [1e8, 3e8, 1e9], "tokens": [2e9, 6e9, 2e10], "loss": [3.2, 2.9, 2.6], "bpt": ratio})
    return read_runs(table, bytes_per_token="bpt")


def test_tokens_of_several_tokenizers_become_bytes_and_cost_what_they_did():
    start = per_byte([4.0, 2.0, 4.0])
    found = in_bytes(start, "bpt")
    assert found.table["n_tokens"].tolist() == [8e9, 1.2e10, 8e10]
    assert found.table["n_tokens_before"].tolist() == [2e9, 6e9, 2e10]
    assert found.table["flop"].tolist() == start.table["flop"].tolist()
    assert isinstance(found.rule, FlopsRule)
    assert found.rule.k == pytest.approx(6 / 32 ** (1 / 3))  # the geometric mean of 4, 2 and 4


def test_of_one_tokenizer_the_rule_is_exact():
    found = in_bytes(per_byte(4.0), 4)
    assert found.rule == FlopsRule(1.5)
    np.testing.assert_allclose(found.rule.flop(found.table["n_params"], found.table["n_tokens"]), found.table["flop"])


@pytest.mark.parametrize(
    ("start", "ratio", "said"),
    [
        (runs(), 4.0, "The loss is in nats per token: read the table with bytes_per_token="),
        (per_byte(4.0), "gone", "no column 'gone'"),
        (per_byte(4.0), -1.0, "a positive number for every run"),
        (
            read_runs(
                pd.DataFrame({"params": [1e8, 3e8], "tokens": [2e9, 6e9], "loss": [3.2, 2.9]}),
                bytes_per_token=4.0,
                rule=KaplanRule(768),
            ),
            4.0,
            "need the rule C = k N D",
        ),
    ],
)
def test_what_cannot_be_counted_in_bytes_is_refused(start, ratio, said):
    with pytest.raises(ValueError, match=said):
        in_bytes(start, ratio)
