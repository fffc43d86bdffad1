"""Claims: chains spread over the devices there are, and are the same wherever they run."""

import json
import subprocess
import sys

import pytest

from bayescale.inference import devices

PROGRAM = """
import json, sys, warnings
import jax, numpy as np
sys.path.insert(0, {tests!r})
from test_nuts import simulated
import bayescale as bs
posterior = bs.fit(simulated(), bs.laws.get("chinchilla"), drift=None, engine=bs.NUTS(chains=4, draws=200), seed=1)
print(json.dumps([len(jax.devices("cpu")), posterior.info["devices"], posterior.coefficients()["alpha"].tolist()]))
"""


def test_every_chain_has_one_lane_and_devices_take_turns() -> None:
    lanes = devices.plan(5)
    assert sorted(c for lane in lanes for c in lane.chains) == [0, 1, 2, 3, 4]
    assert all(len(lane.chains) == 1 for lane in lanes)
    assert 1 <= devices.workers(lanes) <= 5


@pytest.mark.slow
def test_two_devices_share_the_chains_and_give_the_same_posterior() -> None:
    import os
    from pathlib import Path

    program = PROGRAM.format(tests=str(Path(__file__).parent))
    found = []
    for count in (1, 2):
        flags = f"--xla_force_host_platform_device_count={count}"
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "XLA_FLAGS": flags},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(json.loads(done.stdout.splitlines()[-1]))
    assert [f[0] for f in found] == [1, 2]
    assert "on 2 cpu device(s)" in found[1][1]
    assert found[0][2] == pytest.approx(found[1][2], rel=1e-9)
