"""Claims: fits are compared quantity by quantity, in the first one's standard deviations."""

import dataclasses

import numpy as np
import pytest
from simulated_fits import B24, Outside

from bayescale.inference.laplace import Laplace
from bayescale.laws.chinchilla import Chinchilla
from bayescale.model.joint import Model
from bayescale.model.pooling import PopulationMean
from bayescale.posterior.compare import compare
from bayescale.posterior.fitting import fit
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.published import published
from bayescale.runs.table import Runs


@pytest.fixture(scope="module")
def fewer(one_table: Runs) -> Posterior:
    """The same table without four of its runs."""
    return fit(
        one_table.without([f"run-{i}" for i in (1, 2, 3, 4)]),
        Chinchilla(),
        drift=None,
        engine=Laplace(draws=300),
        seed=2,
    )


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_rows_are_quantiles_and_shifts_in_sd(laplace: Posterior, fewer: Posterior, level: float) -> None:
    found = compare({"all": laplace, "fewer": fewer}, level=level).set_index(["quantity", "fit"])
    names = {*(q.name for q in laplace.law.coefficients), *(p.name for p in laplace.model.parameters)}
    assert set(found.index) == {(name, label) for name in names for label in ("all", "fewer")}
    for name in ("A", "E", "alpha", "floor_share", "noise"):
        a, b = ({**p.values(), **p.coefficients()}[name] for p in (laplace, fewer))
        for label, x in (("all", a), ("fewer", b)):
            ends = np.quantile(x, [0.5, 0.5 - level / 2, 0.5 + level / 2])
            assert list(found.loc[(name, label), ["median", "lower", "upper"]]) == pytest.approx(list(ends))
        shift = (np.median(b) - np.median(a)) / np.std(a)
        assert found.loc[(name, "fewer"), "shift_sd"] == pytest.approx(shift)
        assert found.loc[(name, "all"), "shift_sd"] == 0
    assert set(found.xs("all", level="fit")["n_runs"]) == {24}
    assert set(found.xs("fewer", level="fit")["n_runs"]) == {20}
    assert set(found["diagnostics"]) == {"UNKNOWN"}


def test_a_fit_is_compared_with_the_law_that_made_its_table(laplace: Posterior) -> None:
    """Which has no scatter, and lies within four standard deviations."""
    found = compare({"fit": laplace, "paper": published("besiroglu-2024")}).set_index(["quantity", "fit"])
    assert ("noise", "paper") not in found.index
    for name, value in B24.items():
        row = found.loc[(name, "paper")]
        assert (row["median"], row["lower"], row["upper"], row["n_runs"]) == (value, value, value, 0)
        assert abs(row["shift_sd"]) < 4


def test_a_point_has_no_standard_deviation_to_shift_by(laplace: Posterior) -> None:
    found = compare({"paper": published("besiroglu-2024"), "fit": laplace})
    assert found["shift_sd"].isna().all()


def test_groups_are_compared_by_name(partial: Posterior, partial_prior: Posterior) -> None:
    for group in ("C d", PopulationMean()):
        found = compare({"before": partial_prior, "after": partial}, group=group).set_index(["quantity", "fit"])
        assert found.loc[("E", "after"), "median"] == pytest.approx(np.median(partial.coefficients(group)["E"]))
    with pytest.raises(ValueError, match="This fit has groups; name one of A"):
        compare({"before": partial_prior, "after": partial})


def test_what_is_not_comparable_is_refused(laplace: Posterior) -> None:
    with pytest.raises(ValueError, match="at least two fits"):
        compare({"all": laplace})
    other = dataclasses.replace(laplace, model=Model(Outside(), drift=None))
    with pytest.raises(ValueError, match="Letters of different laws are not comparable: Chinchilla, Outside"):
        compare({"a": laplace, "b": other})
    bits = dataclasses.replace(laplace, info={**laplace.info, "loss_unit": "bits per byte"})
    with pytest.raises(ValueError, match="different units are not comparable: bits per byte, nats"):
        compare({"a": laplace, "b": bits})
