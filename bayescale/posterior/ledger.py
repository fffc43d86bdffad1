"""A ledger: forecasts written down before the runs, what the runs reached, and how well they were forecast."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pandas as pd

from bayescale import _show
from bayescale._files import append
from bayescale.posterior import landed
from bayescale.posterior.entries import (
    FORECAST,
    LANDING,
    PROBABILITIES,
    Entry,
    added,
    entries,
    headed,
    positive,
)
from bayescale.posterior.inputs import checked
from bayescale.posterior.posterior import Group, Posterior
from bayescale.posterior.predict import simulated
from bayescale.posterior.scorecard import ALONE, BOOTSTRAP, DRIFTS, records
from bayescale.posterior.store import fingerprint, recipe


@final
@dataclass(frozen=True, repr=False)
class Ledger:
    """A file of forecasts, each written before its run, and of what the runs reached.

    One JSON object a line, which is only ever added to, by several people at once if they like: a forecast
    holds all that it rests on, and a landing names the forecast's line by its hash. A run is forecast once.

    What the file proves: a run that landed had a forecast above, which was not changed since. What it does
    not: that nobody rewrote the whole of it, or set a clock; that the loss was not known to whoever forecast
    it; and that runs which stay open would have been forecast as well as those that landed. Keep it under
    version control, where others hold copies, and read its scores beside the number of open forecasts.

    Attributes
    ----------
    path : str or Path
        The file; it is made by the first forecast.
    """

    path: str | Path

    def write(
        self,
        posterior: Posterior,
        run: str,
        *,
        n_params: float,
        n_tokens: float,
        group: Group = None,
        seed: int = 0,
    ) -> dict[str, Any]:
        """Write down what a fit says of a run that is to be trained.

        Parameters
        ----------
        posterior : Posterior
            A fit of runs; if with drift, the law alone is written down beside it.
        run : str
            Name of the run: text on one line, new to this ledger.
        n_params, n_tokens : float
            Its parameters and tokens.
        group : str, NewGroup, PopulationMean or None
            Whose law; a fit with groups needs one.
        seed : int
            Seed of the scatter of new runs.

        Returns
        -------
        dict
            The entry as it stands in the file: configuration, quantiles of the loss of a new run, diagnostics
            and gate, and under ``fit`` the ``fingerprint``, which is the SHA-256 of the ``recipe`` beside it
            (`bayescale.posterior.store.fingerprint`): the table's hash, model with its priors, engine with its
            settings, seed and versions.

        Raises
        ------
        ValueError
            If the run has a forecast or a name that is none, for an unknown group, inputs outside the law's
            domain, a published law, or a file that is not a ledger; nothing is written then.
        """
        if not isinstance(run, str) or not run.strip() or not run.isprintable():
            raise ValueError(f"A run is named by text on one line, as 'a-17', not {run!r}.")
        fields = {"run": run, **_forecast(posterior, posterior.named(group), n_params, n_tokens, seed)}

        def new(found: dict[str, Entry]) -> dict[str, Any]:
            if run in found:
                raise ValueError(_again(found[run]))
            return headed(FORECAST, **fields)

        return self._add(new)

    def land(self, run: str, loss: float, *, loss_unit: str | None = None) -> dict[str, Any]:
        """Write down what a forecast run reached.

        Parameters
        ----------
        run : str
            Name of an open run.
        loss : float
            Its final loss, in the forecast's unit.
        loss_unit : str, optional
            Unit of the loss; it is checked against the forecast's.

        Returns
        -------
        dict
            The line that was added; the forecast's stays as it is.

        Raises
        ------
        ValueError
            For a run that is unknown or has landed, a loss that is no positive finite number, another unit,
            or a file that is not a ledger; nothing is written then.
        FileNotFoundError
            If there is no such file.
        """
        if not positive(loss):
            raise ValueError(f"A loss is a positive finite number, not {loss!r} ({run!r} has not landed).")
        if not Path(self.path).is_file():
            raise FileNotFoundError(f"There is no ledger {self.path}: nothing was forecast in it.")

        def reached(found: dict[str, Entry]) -> dict[str, Any]:
            unit = _open(run, found, loss_unit)
            return headed(LANDING, run=run, loss=float(loss), loss_unit=unit, forecast=found[run].digest)

        return self._add(reached)

    def entries(self) -> list[dict[str, Any]]:
        """Every forecast as its line says it, in the file's order, with ``landing``: what was reached, or None.

        Raises
        ------
        ValueError
            Naming every line that is no entry, or not where it stands. A last line that was cut off is passed
            over, and logged.
        """
        return [entry.to_dict() for entry in self._read().values()]

    def _read(self) -> dict[str, Entry]:
        path = Path(self.path)
        return entries(path.read_bytes() if path.exists() else b"", str(path))

    def _add(self, made: Callable[[dict[str, Entry]], dict[str, Any]]) -> dict[str, Any]:
        """Add one line to what is in the file by then, while nobody else does."""
        path, fields = Path(self.path), {}
        if not path.resolve().parent.is_dir():
            raise FileNotFoundError(f"The folder {path.parent} does not exist; {path.name} was not written.")

        def line(data: bytes) -> bytes:
            fields.update(made(entries(data, str(path))))
            return added(data, fields)

        append(path, line)
        return fields

    def to_dataframe(self) -> pd.DataFrame:
        """One row a run: configuration, the fit, the interval of each forecaster, and ``loss``, NaN where open."""
        return landed.table(self.entries())

    def scores(self) -> pd.DataFrame:
        """One row a forecaster and run that landed: columns as in `Backtest.predictions`.

        ``forecaster`` (with drift, law alone, Huber bootstrap), ``fit`` (fingerprint), and scores at 90 %;
        ``crps`` is approximate, from nine quantiles (`scores.crps_of_quantiles`). ``bin`` says how far the
        run lay beyond the largest of its fit, ``inside`` where it did not.
        """
        return landed.scored(self.entries())

    def summary(self) -> pd.DataFrame:
        """Means of the scores over runs, each counted once: rows and columns as in `Backtest.summary`."""
        return landed.summed(self.scores())

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe: ``entries``, and ``scores`` and their ``summary``, one object a row."""
        entries = self.entries()
        scored = landed.scored(entries)
        return {
            "ledger": str(self.path),
            "level": landed.LEVEL,
            "kind": "eti",
            "entries": entries,
            "summary": records(landed.summed(scored)),
            "scores": records(scored),
        }

    def __repr__(self) -> str:
        return _show.text(self)

    def _repr_html_(self) -> str:
        return _show.html(self)


def hollow(entry: dict[str, Any]) -> bool:
    """Whether a run lay beyond runs that failed the gate: its intervals were not calibrated."""
    return entry["beyond_data"] == "FAIL" and entry["extrapolation_factor"] > 1


def standing(entry: dict[str, Any]) -> str:
    """PASS, FAIL or UNKNOWN: whether a forecast could be relied on when it was written; see `Forecast.standing`."""
    return "FAIL" if hollow(entry) else entry["diagnostics"]


def _again(entry: Entry) -> str:
    run, landing = entry.forecast["run"], entry.landing
    since = f"and landed on {landing['written']}" if landing else "and is open"
    return (
        f"{run!r} was forecast on {entry.forecast['written']} {since}. A forecast is not rewritten, and none is made "
        "of a run that landed: land it, or give another run another name."
    )


def _open(run: str, found: dict[str, Entry], loss_unit: str | None) -> str:
    """The unit of an open forecast; ValueError for a run that cannot land in ``loss_unit``."""
    if run not in found:
        waiting = [name for name, entry in found.items() if entry.landing is None]
        raise ValueError(f"No forecast of {run!r} was written; open are: {', '.join(waiting[:10]) or 'none'}.")
    landing, unit = found[run].landing, found[run].forecast["loss_unit"]
    if landing is not None:
        raise ValueError(f"{run!r} landed on {landing['written']} at {landing['loss']:g}; what it reached stays.")
    if loss_unit not in (None, unit):
        raise ValueError(f"{run!r} was forecast in {unit}, not in {loss_unit}: give its loss in {unit}.")
    return unit


def _forecast(posterior: Posterior, group: Group, n_params: float, n_tokens: float, seed: int) -> dict[str, Any]:
    """All that an entry says of a fit and of the run that it forecasts."""
    inputs = checked(posterior.law, {posterior.law.size: n_params, "n_tokens": n_tokens})
    if any(len(v) != 1 for v in inputs.values()):
        raise ValueError("An entry of a ledger is one run: n_params and n_tokens are single numbers.")
    made, name = recipe(posterior), ALONE if posterior.info["engine"] != "huber" else BOOTSTRAP
    fits = {DRIFTS if posterior.model.drift else name: posterior}
    fits |= {ALONE: posterior.law_alone} if posterior.law_alone else {}
    flop = float(posterior.rule.flop(inputs[posterior.law.size], inputs["n_tokens"])[0])
    return {
        "n_params": n_params,
        **{k: float(v[0]) for k, v in inputs.items()},
        "flop": flop,
        "group": None if group is None else str(group),
        "extrapolation_factor": flop / posterior.largest["flop"],
        "loss_unit": posterior.loss_unit,
        "probabilities": list(PROBABILITIES),
        "quantiles": {name: _quantiles(each, group, inputs, seed) for name, each in fits.items()},
        "seed": seed,
        "drift": posterior.model.drift is not None,
        "diagnostics": posterior.status,
        "checks": [check.to_dict() for check in posterior.checks],
        "beyond_data": posterior.beyond,
        "gate": [check.to_dict() for check in posterior.gate],
        "fit": {"fingerprint": fingerprint(made), "recipe": made},
    }


def _quantiles(posterior: Posterior, group: Group, inputs: dict[str, np.ndarray], seed: int) -> list[float]:
    """Of the loss of one new run."""
    ((_, _, log_loss),) = simulated(posterior, group, inputs, np.random.default_rng(seed))
    if log_loss is None:
        raise ValueError("This fit has no scatter of runs: it forecasts no new run.")
    with np.errstate(over="ignore"):
        found = np.exp(np.quantile(log_loss[:, 0], PROBABILITIES))
    if not all(map(positive, found)):
        raise ValueError(f"The fit's quantiles of this run's loss are no numbers to write down: {found.tolist()}.")
    return found.tolist()
