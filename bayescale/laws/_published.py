"""Published constants, each with the conventions without which they mean nothing.

The package's own names; figures as their sources print them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final


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

CONSTANTS: dict[str, Published] = {
    "besiroglu-2024": Published(
        "chinchilla",
        {"A": 482.01, "B": 2085.43, "E": 1.8172, "alpha": 0.3478, "beta": 0.3658},
        "Besiroglu, Erdil, Barnett & You 2024 (arXiv 2404.10102), refit of 240 runs read off Hoffmann et al., figure 4",
        _MASSIVETEXT | {"D": "imputed as C / (6 N)", "rounding": "as printed"},
        {"n_params": 1.62e10, "n_tokens": 3.18e11, "flop": 1.3e22},
    ),
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
}
