"""Published constants, each with the conventions without which they mean nothing.

The package's own names; figures as their sources print them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from bayescale.laws import _published_experts


@final
@dataclass(frozen=True)
class Published:
    """One published fit.

    Attributes
    ----------
    law : str
        Name of the law in this folder.
    letters : mapping of str to float
        The law's coefficients.
    source : str
        Paper and place in it.
    conventions : mapping of str to str
        What N, C, D and the loss count, the schedule, and the rounding of the constants.
    largest : mapping of str to float
        Largest n_params (parameters), n_tokens (tokens) and flop (FLOPs) of the runs behind it.
    """

    law: str
    letters: Mapping[str, float]
    source: str
    conventions: Mapping[str, str]
    largest: Mapping[str, float]


_MASSIVETEXT = {
    "N": "all parameters, embeddings included",
    "C": "6 N D",
    "D": "tokens seen",
    "loss": "training loss, smoothed, nats per token, MassiveText, SentencePiece 32k",
    "schedule": "cosine matched to D",
}
_HOFFMANN_RANGE = {"n_params": 1.6e10, "n_tokens": 5e11, "flop": 3e21}


def _over_trained(E: float, a: float, b: float, eta: float) -> dict[str, float]:
    """Letters of E + A / N^alpha + B / D^alpha from L(C, M) = E + (a M^eta + b M^-eta) C^-eta, where C = 6 N D."""
    return {"A": a / 6**eta, "B": b / 6**eta, "E": E, "alpha": 2 * eta}


def _gadre(text: str, E: float, a: float, b: float, eta: float) -> Published:
    """Fits to N of .011, .079, .154 and .411e9 at 20 tokens per parameter, and of .011e9 at 320.

    Their larger runs, up to 6.9e9 parameters and 640 tokens per parameter, were predicted and not fitted.
    """
    return Published(
        "chinchilla_tied",
        _over_trained(E, a, b, eta),
        f"Gadre et al. 2024 (arXiv 2403.08540), {text}; a, b and eta as L(C, M) has them",
        {
            "N": "all parameters, embeddings included",
            "C": "6 N D",
            "D": "tokens seen",
            "loss": f"held-out loss on C4, nats per token, trained on {text}, GPT-NeoX tokenizer",
            "schedule": "cosine matched to D",
            "rounding": "unrounded: E, a, b and eta to three digits move losses by .017",
            "range": "all but one run at 20 tokens per parameter, so the best ratio is not identified",
        },
        {"n_params": 4.116e8, "n_tokens": 8.232e9, "flop": 2.033e19},
    )


CONSTANTS: dict[str, Published] = {
    "besiroglu-2024": Published(
        "chinchilla",
        {"A": 482.01, "B": 2085.43, "E": 1.8172, "alpha": 0.3478, "beta": 0.3658},
        "Besiroglu, Erdil, Barnett & You 2024 (arXiv 2404.10102), refit of 240 runs read off Hoffmann et al., figure 4",
        _MASSIVETEXT | {"D": "imputed as C / (6 N)", "rounding": "as printed"},
        {"n_params": 1.62e10, "n_tokens": 3.18e11, "flop": 1.3e22},
    ),
    "gadre-2024-c4": _gadre("C4", 1.5083, 141.277, 189.516, 0.12124),
    "gadre-2024-redpajama": _gadre("RedPajama", 1.8366, 212.236, 366.687, 0.13643),
    "gadre-2024-refinedweb": _gadre("RefinedWeb", 1.7345, 157.116, 246.207, 0.12720),
    "hoffmann-2022": Published(
        "chinchilla",
        {"A": 406.4, "B": 410.7, "E": 1.69, "alpha": 0.34, "beta": 0.28},
        "Hoffmann et al. 2022 (arXiv 2203.15556), approach 3, as printed",
        _MASSIVETEXT | {"rounding": "rounded: beta .2849 to .28 moves N_opt at 5.76e23 FLOP from 40.4e9 to 32.2e9"},
        _HOFFMANN_RANGE,
    ),
    "hoffmann-2022-unrounded": Published(
        "chinchilla",
        {
            "A": math.exp(6.0073404),
            "B": math.exp(6.0179186),
            "E": math.exp(0.5267228),
            "alpha": 0.33917084,
            "beta": 0.2849083,
        },
        "Hoffmann et al. 2022 (arXiv 2203.15556), approach 3, from the paper's TeX source",
        _MASSIVETEXT | {"rounding": "unrounded"},
        _HOFFMANN_RANGE,
    ),
    "kaplan-2020": Published(
        "kaplan",
        {"N_c": 6.4e13, "D_c": 1.8e13, "alpha_N": 0.076, "alpha_D": 0.103},
        "Kaplan et al. 2020 (arXiv 2001.08361), table 2: the joint law, a fit of its own beside those of L(N) and L(D)",
        {
            "N": "parameters without embeddings",
            "C": "6 N times tokens seen, repeats included; the law itself reads none",
            "D": "tokens of the training set, seen as often as helps",
            "loss": "held-out loss, nats per token, WebText2, BPE of 50257, context 1024",
            "schedule": "cosine of a fixed length; stopped early where the held-out loss is lowest",
            "rounding": "as printed, two or three digits",
        },
        # The largest model and the whole text; its FLOPs for one pass, since those to the early stop are not printed.
        {"n_params": 1.5e9, "n_tokens": 2.29e10, "flop": 2.06e20},
    ),
    "muennighoff-2023": Published(
        "data_constrained",
        {
            "A": math.exp(6.255414),
            "B": math.exp(7.3049974),
            "E": math.exp(0.6254804),
            "alpha": 0.3526596,
            "beta": 0.3526596,
            "R_D": 15.387756,
            "R_N": 5.309743,
        },
        "Muennighoff et al. 2023 (arXiv 2305.16264), section 6.1, with the digits of the authors' repository",
        {
            "N": "all parameters, embeddings included",
            "C": "6 N D",
            "D": "tokens seen, repeats included; distinct tokens apart",
            "loss": "held-out loss, nats per token, C4; 6 to 9 % below the losses that the authors give",
            "schedule": "cosine matched to D",
            "rounding": "unrounded; alpha and beta were fitted as one",
        },
        # 8.67e9 parameters on 178e9 tokens, 6.34e9 on 242e9; which 182 of their runs were fitted is not recorded.
        {"n_params": 8.67e9, "n_tokens": 2.42e11, "flop": 9.26e21},
    ),
}
CONSTANTS |= {name: Published(*fields) for name, fields in _published_experts.FIELDS.items()}
