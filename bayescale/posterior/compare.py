"""Fits side by side: with and without some rows, under other priors, of other tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from bayescale.posterior.posterior import Group, Posterior


def compare(fits: Mapping[str, Posterior], *, group: Group = None, level: float = 0.9) -> pd.DataFrame:
    """Letters and parameters of several fits, one row a quantity and fit.

    Parameters
    ----------
    fits : mapping of str to Posterior
        Fits by a label of the caller's; the first is the one that the others are compared with.
    group : str, NewGroup, PopulationMean or None
        The group whose law is compared, when the fits have groups.
    level : float
        Probability in the equal-tailed interval.

    Returns
    -------
    DataFrame
        ``quantity``, ``fit``, ``median``, ``lower``, ``upper``, ``shift_sd`` (difference of the medians
        from the first fit, in the first fit's posterior standard deviations), ``n_runs``,
        ``diagnostics``.

    Raises
    ------
    ValueError
        With fewer than two fits, or fits of different laws or of losses in different units.
    """
    if len(fits) < 2:
        raise ValueError("compare takes at least two fits, as {'all rows': a, 'without flagged rows': b}.")
    laws = {type(p.law).__name__ for p in fits.values()}
    if len(laws) > 1:
        raise ValueError(f"Letters of different laws are not comparable: {', '.join(sorted(laws))}.")
    units = {p.loss_unit for p in fits.values()}
    if len(units) > 1:
        raise ValueError(f"Letters of losses in different units are not comparable: {', '.join(sorted(units))}.")
    q = [0.5, (1 - level) / 2, (1 + level) / 2]
    drawn = {label: {**p.values(group), **p.coefficients(group)} for label, p in fits.items()}
    first = next(iter(drawn.values()))
    rows = []
    for name in first:
        sd = first[name].std()
        for label, p in fits.items():
            if name not in drawn[label]:
                continue
            median, lower, upper = np.quantile(drawn[label][name], q)
            shift = (median - np.median(first[name])) / sd if sd > 0 else np.nan
            rows.append((name, label, median, lower, upper, shift, len(p.runs) if p.runs else 0, p.status))
    columns = ["quantity", "fit", "median", "lower", "upper", "shift_sd", "n_runs", "diagnostics"]
    return pd.DataFrame(rows, columns=columns)
