"""Published constants against the runs that their papers give away.

Gadre et al. 2024 (arXiv 2403.08540) fit L(C, M) by least squares to five runs of each data set; Muennighoff
et al. 2023 (arXiv 2305.16264) do not record which runs they fitted.
"""

from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import least_squares

from bayescale.laws import get
from bayescale.laws._published import CONSTANTS

TEXTS = {"C4": "gadre-2024-c4", "RedPajama": "gadre-2024-redpajama", "RefinedWeb": "gadre-2024-refinedweb"}


@pytest.fixture(scope="module")
def gadre(shared: Path) -> pd.DataFrame:
    return pd.read_csv(shared / "data/gadre-2024/runs.csv")


def fitted(runs: pd.DataFrame) -> pd.DataFrame:
    """Four sizes at 20 tokens per parameter, and the smallest at 320."""
    ratio, smallest = runs["token_multiplier_M"], runs["n_params"] == runs["n_params"].min()
    return runs[(ratio == 20) | (smallest & (ratio == 320))]


@pytest.mark.parametrize("text", TEXTS)
def test_gadres_small_runs_give_the_published_constants(text: str, gadre: pd.DataFrame) -> None:
    """By least squares on L, in the law's letters: as many digits as the paper prints."""
    law, wanted = get("chinchilla_tied"), CONSTANTS[TEXTS[text]].letters
    runs = fitted(gadre[gadre["group"] == text])
    assert len(runs) == 5
    columns = {name: runs[name].to_numpy(float) for name in law.inputs}

    def away(x: np.ndarray) -> np.ndarray:
        letters = {"E": x[0], "A": np.exp(x[1]), "B": np.exp(x[2]), "alpha": x[3]}
        return np.asarray(law.loss(letters, columns)) - runs["loss"].to_numpy()

    with jax.enable_x64(True):
        found = least_squares(away, [1.0, 6.0, 6.0, 0.3], x_scale="jac", ftol=1e-14, xtol=1e-14, gtol=1e-14)
    E, a, b, alpha = found.x
    assert pytest.approx(wanted["E"], abs=2e-4) == E
    assert alpha / 2 == pytest.approx(wanted["alpha"] / 2, abs=2e-5)
    assert np.exp([a, b]) == pytest.approx([wanted["A"], wanted["B"]], rel=5e-4)


@pytest.mark.parametrize("text", TEXTS)
def test_the_largest_of_gadres_fitted_runs(text: str, gadre: pd.DataFrame) -> None:
    """Beyond it a plan extrapolates."""
    runs = fitted(gadre[gadre["group"] == text])
    largest = {"n_params": runs["n_params"], "n_tokens": runs["n_tokens"], "flop": runs["flops"]}
    found = CONSTANTS[TEXTS[text]].largest
    assert found == pytest.approx({name: column.max() for name, column in largest.items()}, rel=1e-3)


def test_muennighoffs_law_is_low_on_the_runs_that_they_give(shared: Path) -> None:
    """By 6 to 9 %: it tells what repeats cost, not what a run loses. Its conventions say so."""
    runs = pd.read_csv(shared / "data/datablations/runs.csv")
    runs = runs[runs["in_published_fit_rule"].astype(bool) & (runs["n_params"] > 1e9)]
    law, record = get("data_constrained"), CONSTANTS["muennighoff-2023"]
    run = {"n_params": runs["n_params"], "n_tokens": runs["n_tokens"], "n_unique_tokens": runs["unique_tokens"]}
    with jax.enable_x64(True):
        loss = np.asarray(law.loss(record.letters, {name: x.to_numpy(float) for name, x in run.items()}))
    for size in (2.81e9, 8.67e9):
        here = np.isclose(runs["n_params"], size)
        assert here.any()
        assert -0.10 < np.median(np.log(loss / runs["loss"])[here]) < -0.05
    assert "below" in record.conventions["loss"]
    assert runs["n_params"].max() == record.largest["n_params"]
    assert runs["flops"].max() == pytest.approx(record.largest["flop"], rel=1e-3)
