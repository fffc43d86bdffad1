"""Claims about a ledger: a forecast is written down as it was made, and what does not fit is refused."""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import strict
from written_ledgers import RUN, SIDES, text

from bayescale.inference.huber import Huber
from bayescale.inference.laplace import Laplace
from bayescale.inference.prior import FromPrior
from bayescale.laws.chinchilla import Chinchilla
from bayescale.model.pooling import NewGroup
from bayescale.parameter import LogNormal
from bayescale.posterior.entries import PROBABILITIES
from bayescale.posterior.fitting import fit
from bayescale.posterior.ledger import Ledger
from bayescale.posterior.posterior import Posterior
from bayescale.posterior.predict import predict
from bayescale.posterior.published import published
from bayescale.posterior.store import fingerprint, load, recipe
from bayescale.runs.table import Runs


def test_a_forecast_is_written_down_as_it_was_made(ledger: Ledger, laplace: Posterior) -> None:
    entry = ledger.write(laplace, "läuf 1", **RUN, seed=4)
    assert strict(text(ledger)) == entry
    assert ledger.entries() == [entry | {"landing": None}]
    assert (entry["run"], entry["n_params"], entry["n_tokens"], entry["group"]) == ("läuf 1", 3e9, 6e10, None)
    assert entry["flop"] == pytest.approx(6 * 3e9 * 6e10)
    assert entry["extrapolation_factor"] == pytest.approx(entry["flop"] / laplace.largest["flop"])
    assert (entry["loss_unit"], entry["diagnostics"], entry["beyond_data"]) == ("nats per token", "UNKNOWN", None)
    assert entry["checks"] == [c.to_dict() for c in laplace.checks]
    assert entry["written"].endswith("+00:00")


def test_its_quantiles_are_those_of_predict(ledger: Ledger, laplace: Posterior) -> None:
    quantiles = ledger.write(laplace, "a", **RUN, seed=4)["quantiles"]
    assert list(quantiles) == ["law alone"]
    at = dict(zip(PROBABILITIES, quantiles["law alone"], strict=True))
    for percent, (low, high) in SIDES.items():
        found = predict(laplace, RUN, level=percent / 100, seed=4).new_run[0]
        np.testing.assert_allclose([at[0.5], at[low], at[high]], found, rtol=1e-12)


def test_the_law_alone_stands_beside_a_drift(ledger: Ledger, drifting: Posterior) -> None:
    entry, found = ledger.write(drifting, "a", **RUN), predict(drifting, RUN)
    assert found.law_alone is not None
    for name, forecast in (("with drift", found), ("law alone", found.law_alone)):
        assert entry["quantiles"][name][4] == pytest.approx(forecast.new_run[0, 0], rel=1e-12)
    assert (entry["drift"], entry["beyond_data"]) == (True, "FAIL")
    assert [c["name"] for c in entry["gate"]] == ["span_decades"]


def test_a_bootstrap_is_called_one(ledger: Ledger, laplace: Posterior) -> None:
    posterior = dataclasses.replace(laplace, info={**laplace.info, "engine": Huber.name})
    assert list(ledger.write(posterior, "a", **RUN)["quantiles"]) == ["Huber bootstrap"]


@pytest.mark.parametrize(("group", "name"), [("C d", "C d"), (NewGroup(), "new group")])
def test_a_group_is_forecast_by_its_own_law(ledger: Ledger, partial_prior: Posterior, group: Any, name: str) -> None:
    entry = ledger.write(partial_prior, "a", **RUN, group=group)
    assert entry["group"] == name
    wanted = predict(partial_prior, RUN, group=group).new_run[0, 0]
    assert entry["quantiles"]["law alone"][4] == pytest.approx(wanted, rel=1e-12)


def test_the_fingerprint_is_the_hash_of_the_recipe_beside_it(
    ledger: Ledger, laplace: Posterior, tmp_path: Path
) -> None:
    told = ledger.write(laplace, "a", **RUN)["fit"]
    plain = json.dumps(told["recipe"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert told["fingerprint"] == hashlib.sha256(plain.encode()).hexdigest()
    assert fingerprint(recipe(load(laplace.save(tmp_path / "fit.nc")))) == told["fingerprint"]


def test_fits_differ_in_fingerprint_if_in_anything_that_was_given(one_table: Runs, grouped_runs: Runs) -> None:
    def of(runs: Runs = one_table, draws: int = 20, seed: int = 1, **settings: Any) -> str:
        engine = settings.pop("engine", FromPrior(draws=draws))
        return fingerprint(recipe(fit(runs, Chinchilla(), drift=None, engine=engine, seed=seed, **settings)))

    first = of()
    assert of() == first
    t = one_table.table.assign(loss=one_table.table["loss"] * (1 + 1e-12))
    others = [
        of(seed=2),
        of(draws=21),
        of(engine=Laplace(draws=20)),
        of(priors={"alpha": LogNormal(0.3, 0.1)}),
        of(dataclasses.replace(one_table, table=t)),
        of(grouped_runs),
    ]
    assert len({first, *others}) == 7


def test_fits_differ_in_fingerprint_if_runs_are_grouped_otherwise(grouped_runs: Runs, partial_prior: Posterior) -> None:
    """Two runs change places: every group has as many as before, and the table's numbers are the same."""
    label = grouped_runs.table["corpus"].to_numpy().copy()
    label[[0, 1]] = label[[1, 0]]
    other = dataclasses.replace(grouped_runs, table=grouped_runs.table.assign(corpus=label))
    assert other.table_hash == grouped_runs.table_hash
    assert fingerprint(recipe(dataclasses.replace(partial_prior, runs=other))) != fingerprint(recipe(partial_prior))


def test_what_a_run_reached_is_added_and_the_forecast_stays(ledger: Ledger, laplace: Posterior) -> None:
    ledger.write(laplace, "a", **RUN)
    before = text(ledger)
    line = ledger.land("a", np.float64(2.25), loss_unit="nats per token")
    assert text(ledger) == before + json.dumps(line).encode() + b"\n"
    assert line["forecast"] == hashlib.sha256(before.strip()).hexdigest()
    (entry,) = ledger.entries()
    assert entry["landing"] == line
    assert line["loss"] == 2.25


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x00", 7, None])
def test_a_run_needs_a_name(ledger: Ledger, laplace: Posterior, name: Any) -> None:
    with pytest.raises(ValueError, match="named by text on one line"):
        ledger.write(laplace, name, **RUN)
    assert not Path(ledger.path).exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_params": -1.0}, r"n_params\[0\] = -1"),
        ({"n_tokens": float("nan")}, r"n_tokens\[0\] = nan"),
        ({"n_params": "large"}, "must be numbers"),
        ({"n_params": [1e9, 2e9]}, "one run"),
        ({"n_params": []}, "one run"),
        ({"group": "A"}, "Unknown group 'A'"),
    ],
)
def test_what_is_no_run_of_the_fit_is_not_written(ledger: Ledger, laplace: Posterior, given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ledger.write(laplace, "a", **(RUN | given))
    assert not Path(ledger.path).exists()


def test_what_forecasts_no_new_run_is_refused(ledger: Ledger, partial_prior: Posterior) -> None:
    with pytest.raises(ValueError, match="published law"):
        ledger.write(published("besiroglu-2024"), "a", **RUN)
    with pytest.raises(ValueError, match="This fit has groups"):
        ledger.write(partial_prior, "a", **RUN)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        Ledger(Path(ledger.path).parent / "none" / "l.jsonl").write(partial_prior, "a", **RUN, group="A")
    assert not Path(ledger.path).exists()


def test_a_run_is_forecast_once_and_never_after_it_landed(ledger: Ledger, laplace: Posterior) -> None:
    ledger.write(laplace, "a", **RUN)
    for since in ("is open", "and landed on"):
        before = text(ledger)
        with pytest.raises(ValueError, match=rf"'a' was forecast on .*{since}"):
            ledger.write(laplace, "a", **RUN)
        assert text(ledger) == before
        if since == "is open":
            ledger.land("a", 2.3)


@pytest.mark.parametrize("loss", [0, -2.3, float("nan"), float("inf"), True, "2.3", None, [2.3], 10**400])
def test_only_a_positive_number_is_a_loss(ledger: Ledger, laplace: Posterior, loss: Any) -> None:
    ledger.write(laplace, "a", **RUN)
    before = text(ledger)
    with pytest.raises(ValueError, match="A loss is a positive finite number"):
        ledger.land("a", loss)
    assert text(ledger) == before


def test_what_cannot_land_is_refused(ledger: Ledger, laplace: Posterior) -> None:
    with pytest.raises(FileNotFoundError, match="There is no ledger"):
        ledger.land("a", 2.3)
    assert not Path(ledger.path).exists()
    ledger.write(laplace, "a", **RUN)
    with pytest.raises(ValueError, match="No forecast of 'b' was written; open are: a"):
        ledger.land("b", 2.3)
    with pytest.raises(ValueError, match="forecast in nats per token, not in bits per byte"):
        ledger.land("a", 2.3, loss_unit="bits per byte")
    ledger.land("a", 2.3)
    before = text(ledger)
    with pytest.raises(ValueError, match=r"'a' landed on .* at 2\.3"):
        ledger.land("a", 2.2)
    assert text(ledger) == before
