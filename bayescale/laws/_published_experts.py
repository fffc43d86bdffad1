"""Published constants of laws with experts or bits: the fields of `Published`, in their order.

Where a law's size is not ``n_params``, the ``n_params`` of the largest run count what the law's N counts.
"""

from __future__ import annotations

from collections.abc import Mapping

Fields = tuple[str, Mapping[str, float], str, Mapping[str, str], Mapping[str, float]]

_CLARK = {
    "N": "parameters that a token uses (dense-equivalent), 15e6 to 1.3e9",
    "C": "not in the law; FLOPs of a run here are 6 N D",
    "D": "130e9 tokens in all runs: not in the law",
    "E": "experts of a routed layer, to 512, one used by a token",
    "loss": "held-out loss, nats per token; the law is of its log to base 10",
    "schedule": "one length for all runs",
    "rounding": "as printed; b and c too coarse for the printed N_cutoff = 10^(-b / c)",
}
_CLARK_RANGE = {"n_params": 1.3e9, "n_tokens": 1.3e11, "flop": 1e21}
_CLARK_SOURCE = "Clark et al. 2022 (arXiv 2202.01169), coefficients of the {} router with saturating experts"


def _clark(router: str, a: float, b: float, c: float, d: float, start: float, most: float) -> Fields:
    letters = {"a": a, "b": b, "c": c, "d": d, "E_start": start, "E_max": most}
    return "routed", letters, _CLARK_SOURCE.format(router), _CLARK, _CLARK_RANGE


FIELDS: dict[str, Fields] = {
    "clark-2022-s-base": _clark("S-BASE", -0.082, -0.108, 0.009, 1.104, 1.847, 314.478),
    "clark-2022-rl-r": _clark("RL-R", -0.083, -0.126, 0.012, 1.111, 1.880, 469.982),
    "clark-2022-hash": _clark("Hash", -0.087, -0.136, 0.012, 1.157, 4.175, 477.741),
    "krajewski-2024": (
        "fine_grained",
        {"a": 18.1, "alpha": 0.115, "b": 30.8, "beta": 0.147, "g": 2.1, "gamma": 0.58, "c": 0.47},
        "Krajewski et al. 2024 (arXiv 2402.07871), table 1, mixture of experts",
        {
            "N": "all parameters of all experts, without embeddings, 129e6 to 3.7e9",
            "C": "(72 d^2 + 14 d E G) D n_blocks, routing included, with d = 64 n_blocks",
            "D": "tokens seen, 16e9 to 130e9",
            "E": "expansion rate, 64 in all runs",
            "G": "granularity, 1 to 16",
            "loss": "nats per token",
            "schedule": "each run's own length",
            "rounding": "as printed: losses of the paper's table 2 come out .75 to 1 % low",
        },
        # The largest size uses 86e6 parameters a token; 6 times these and the most tokens, without routing.
        {"n_params": 3.7e9, "n_tokens": 1.3e11, "flop": 6.7e19},
    ),
    "kumar-2024": (
        "precision",
        {
            "A": 4299.0,
            "B": 18060.0,
            "E": 2.7648,
            "alpha": 0.4965,
            "beta": 0.4965,
            "gamma_w": 2.6745,
            "n_w": 0.3037,
            "gamma_a": 2.2102,
            "n_a": 1.4072,
            "gamma_kv": 0.9578,
            "n_kv": 2.4185,
        },
        "Kumar et al. 2024 (arXiv 2411.04330), appendix K, table 2, with the offsets n_x",
        {
            "N": "the paper's N",
            "C": "(6 / 16) N D P in its cost of P bits; FLOPs of a run here are 6 N D",
            "D": "tokens seen",
            "P": "integer bits of weights, activations and cache during training",
            "loss": "nats per token, without quantisation after training",
            "schedule": "each run's own length",
            "rounding": "as printed; alpha = beta tied; sign of n_x by the paper's P_a <= 3 and P* of 7 to 8",
            "scope": "465 runs of one setting; its authors warn against using the constants elsewhere",
        },
        # At most: the largest model on the most tokens need not have been run.
        {"n_params": 1.7e9, "n_tokens": 2.6e10, "flop": 2.7e20},
    ),
    "ludziejewski-2025": (
        "experts",
        {
            "a": 35.91,
            "delta": -0.2285,
            "alpha": -0.1889,
            "gamma": 0.0098,
            "b": 35.98,
            "omega": 0.5529,
            "beta": -0.1775,
            "zeta": -0.0259,
            "c": 1.3637,
            "E_start": 2.0732,
            "E_max": 290.4521,
        },
        "Ludziejewski et al. 2025 (arXiv 2502.05172), appendix B, table 3",
        {
            "N": "parameters that a token uses, both embeddings included, to 2.7e9 (5e9 in total)",
            "C": "6 N D, routing neglected",
            "D": "tokens seen, to 80e9",
            "E": "experts of a layer, 1 to 32, one used by a token",
            "loss": "nats per token, FineWeb-Edu, GPT-2 tokenizer",
            "schedule": "constant rate with a linear decay to 0 over the last 20 % of the tokens",
            "rounding": "as printed; exponents printed negative",
        },
        # The most compute: 1.1e9 parameters on 80e9 tokens.
        {"n_params": 2.7e9, "n_tokens": 8e10, "flop": 5.3e20},
    ),
}
