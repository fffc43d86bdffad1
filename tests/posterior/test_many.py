"""Many tables fitted: each as by itself, in order, here and on a cluster that loses a worker."""

import os
import signal

import numpy as np
import pytest
from simulated_fits import table

from bayescale.inference.many import seeds, spread
from bayescale.inference.nuts import NUTS
from bayescale.inference.prior import FromPrior
from bayescale.laws.chinchilla import Chinchilla
from bayescale.model.joint import Model
from bayescale.posterior.fitting import fit
from bayescale.posterior.many import fit_many
from bayescale.runs.table import Runs

ALONE = Model(Chinchilla(), drift=None)


def tables(n: int) -> list[Runs]:
    """Tables of as many rows as none of the others."""
    return [Runs(table(20 + i)) for i in range(n)]


def test_each_table_is_fitted_as_by_itself_with_a_seed_of_its_own() -> None:
    found = fit_many(tables(3), ALONE, engine=FromPrior(draws=20), seed=5)
    assert [len(p.runs) for p in found if p.runs] == [20, 21, 22]
    assert len({p.info["seed"] for p in found}) == 3
    for posterior, own in zip(found, tables(3), strict=True):
        again = fit(own, ALONE, engine=FromPrior(draws=20), seed=posterior.info["seed"])
        np.testing.assert_array_equal(again.coefficients()["alpha"], posterior.coefficients()["alpha"])


def test_a_tables_seed_does_not_depend_on_how_many_follow() -> None:
    assert seeds(5, 2) == seeds(5, 9)[:2]
    assert all(0 <= s < 2**63 for s in seeds(5, 50))
    assert seeds(6, 2) != seeds(5, 2)


def test_progress_counts_tables() -> None:
    told: list[tuple[int, int]] = []
    fit_many(tables(2), ALONE, engine=FromPrior(draws=20), seed=1, progress=lambda *counts: told.append(counts))
    assert told == [(1, 2), (2, 2)]


def test_an_error_of_one_table_is_the_callers() -> None:
    with pytest.raises(ZeroDivisionError):
        list(spread(lambda x: 1 / x, [1, 0]))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the cluster's own, when a worker is killed
def test_a_cluster_that_loses_a_worker_gives_the_same_fits() -> None:
    from dask.distributed import Client, LocalCluster

    own, engine = tables(8), NUTS(chains=2, draws=50)
    here = fit_many(own, ALONE, engine=engine, seed=3)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        told: list[int] = []
        worker = min(client.run(os.getpid).values())

        def kill_one(done: int, total: int) -> None:
            told.append(done)
            if done == 3:
                os.kill(worker, signal.SIGKILL)

        there = fit_many(own, ALONE, engine=engine, seed=3, client=client, progress=kill_one)
    assert told == list(range(1, 9))
    for a, b in zip(here, there, strict=True):
        np.testing.assert_array_equal(a.coefficients()["alpha"], b.coefficients()["alpha"])
