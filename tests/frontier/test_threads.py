"""Claim: results may be read from several threads, and float64 is switched on in each of them."""

from concurrent.futures import ThreadPoolExecutor

import bayescale as bs


def test_threads_find_what_one_finds() -> None:
    law = bs.published("besiroglu-2024")

    def optimum(budget: float) -> float:
        return bs.allocate(law, budget).to_dict()["results"][0]["n_opt_params"]["median"]

    budgets = [1e20, 1e21, 1e22, 1e23, 1e24, 1e25]
    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(optimum, budgets))
    assert found == [optimum(budget) for budget in budgets]
