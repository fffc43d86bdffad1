"""A decision as plain data: it says what Python says, its schema agrees, and every fault is named by its place."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import jsonschema
import numpy as np
import pytest
from scipy import stats

import bayescale as bs
from bayescale.decision.constraint import Ratio, Sizes, Spend, Tokens
from bayescale.decision.cost import Inference
from bayescale.decision.described import load_yaml
from bayescale.decision.fits import Memory, Speed
from bayescale.decision.memory import Family, InferenceMemory, TrainingMemory
from bayescale.decision.objective import Compute, Cost, Loss, Regret, Weighted
from bayescale.decision.risk import CVaR, Entropic, Mean, MeanDeviation, Quantile, Risk, Worst
from bayescale.decision.target import AtMost, Target
from bayescale.decision.uncertain import quantiles

GOAL = {"goal": 1e24}
H100 = bs.Hardware("H100 SXM", count=1024, utilisation=0.4, price_per_hour=2)
TOLD = {"accelerator": "H100 SXM", "count": 1024, "utilisation": "40%", "price_per_hour": 2}
SAID: list[tuple[str, Any, Any]] = [
    ("goal", 1e24, 1e24),
    ("goal", "1e24", 1e24),
    ("goal", {"target": {"loss": 2.1, "probability": 0.95}}, Target(2.1, 0.95)),
    ("goal", {"at_most": {"objective": {"cost": {"currency": "flop"}}, "amount": 1e24}}, AtMost(Cost("flop"), 1e24)),
    ("goal", {"spend": 1e24}, Spend(1e24)),
    ("risk", "mean", Mean()),
    ("risk", {"mean": None}, Mean()),
    ("risk", {"CVaR": 0.1}, CVaR(0.1)),
    ("risk", {"cvar": {"tail": 0.1}}, CVaR(0.1)),
    ("risk", {"quantile": "0.9"}, Quantile(0.9)),
    ("risk", {"mean-deviation": 2}, MeanDeviation(2)),
    ("risk", {"entropic": {"aversion": 3}}, Entropic(3)),
    ("risk", "worst", Worst()),
    ("objective", "loss", Loss()),
    ("objective", "regret", Regret()),
    ("objective", {"regret": {"of": "compute"}}, Regret(Compute())),
    ("objective", {"regret": {"cost": {"currency": "flop"}}}, Regret(Cost("flop"))),
    ("objective", {"cost": {"hardware": TOLD}}, Cost("dollars", H100)),
    (
        "objective",
        {"cost": {"currency": "flop", "inference": {"tokens_in": 1e12, "family": {"ratio": 100}}}},
        Cost("flop", inference=Inference(tokens_in=1e12, family=Family(100))),
    ),
    ("objective", {"weighted": [[1, "loss"], [2e-25, "compute"]]}, Weighted([(1.0, Loss()), (2e-25, Compute())])),
    ("constraints", [{"ratio": 200}, {"sizes": {"at_least": 1e9}}], [Ratio(200), Sizes(at_least=1e9)]),
    ("constraints", [{"tokens": {"available": 1e13, "epochs": 4}}], [Tokens(1e13, 4)]),
    (
        "constraints",
        [{"memory": {"of": {"training_memory": {"devices": 64, "context": 8192}}, "accelerator": "H200"}}],
        [Memory(TrainingMemory(64, 8192), "H200")],
    ),
    (
        "constraints",
        [
            {
                "speed": {
                    "tokens_per_second": 50,
                    "of": {"context": 8192},
                    "accelerator": {"name": "x", "peak": 1e15, "bandwidth": 1e12},
                }
            }
        ],
        [Speed(50, InferenceMemory(8192), bs.Accelerator("x", 1e15, bandwidth=1e12))],
    ),
    ("sizes", [7e9, "13e9"], [7e9, 13e9]),
    ("options", {"n_experts": [8, 16]}, {"n_experts": [8.0, 16.0]}),
    (
        "at",
        {"n_unique_tokens": {"normal": {"center": 5e12, "spread": 1e11}}},
        {"n_unique_tokens": bs.Normal(5e12, 1e11)},
    ),
    ("hardware", TOLD, H100),
    ("group", "c4", "c4"),
    ("group", {"new_group": None}, bs.NewGroup()),
    ("rule", {"flops_rule": 6.5}, bs.FlopsRule(6.5)),
    ("level", 0.8, 0.8),
    ("seed", 7, 7),
]


@pytest.mark.parametrize(("name", "said", "meant"), SAID, ids=[f"{n}={s}"[:50] for n, s, _ in SAID])
def test_plain_data_says_what_python_says(name: str, said: Any, meant: Any) -> None:
    assert bs.read_decision({**GOAL, name: said})[name] == meant


@pytest.mark.parametrize(
    ("name", "said"), [(n, s) for n, s, _ in SAID if "CVaR" not in str(s) and "-dev" not in str(s)]
)
def test_its_schema_allows_what_is_read(name: str, said: Any) -> None:
    jsonschema.validate({**GOAL, name: said}, bs.decision_schema())


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(bs.decision_schema())
    json.dumps(bs.decision_schema(), allow_nan=False)


FAULTS = [
    ({}, "goal: is missing"),
    ({"goal": {"bugdet": 1}}, "goal.bugdet: no such name; did you mean budget?"),
    ({"goal": {"budget": {"flop": 1e24, "dollars": 2}}}, "goal.budget: A budget is given in exactly one of"),
    ({"goal": {"budget": {"flop": [1]}}}, "goal.budget.flop: a number, not [1]"),
    ({**GOAL, "risk": {"cvar": {"tail": 2}}}, "risk.cvar: CVaR(tail) is the share of the draws"),
    ({**GOAL, "risk": {"cvar": {"tial": 0.1}}}, "risk.cvar.tial: no such field; did you mean tail?"),
    ({**GOAL, "risk": "meen"}, "risk: one of cvar, entropic, mean, mean_deviation, quantile, worst, not 'meen'"),
    ({**GOAL, "constraints": [{"ratio": 3}, {"tokens": {}}]}, "constraints[1].tokens.available: is missing"),
    ({**GOAL, "constraints": {"ratio": 3}}, "constraints: a list, not"),
    ({**GOAL, "constraints": [{"ratio": 3, "sizes": 4}]}, "constraints[0]: one of"),
    ({**GOAL, "hardware": {"accelerator": "H1000"}}, "hardware: No accelerator is called 'H1000'"),
    ({**GOAL, "hardware": {"accelerator": "H200", "utilisation": 40}}, "hardware: Hardware(utilisation)"),
    ({**GOAL, "at": {"a": {"log_normal": {"low": 3, "high": 2}}}}, "at.a.log_normal: the ends of a 90 % interval"),
    ({**GOAL, "at": {"a": {"scipy": {"distribution": "gama"}}}}, "at.a.scipy: distribution: a continuous one"),
    ({**GOAL, "seed": 1.5}, "seed: a whole number, not 1.5"),
    ({**GOAL, "level": True}, "level: a number, not True"),
    ({**GOAL, "sizes": [math.inf]}, "sizes[0]: a number, not inf"),
]


@pytest.mark.parametrize(("said", "fault"), FAULTS, ids=[fault[:40] for _, fault in FAULTS])
def test_a_fault_is_named_by_its_place(said: Any, fault: str) -> None:
    with pytest.raises(ValueError, match="The decision has") as problem:
        bs.read_decision(said)
    assert fault in str(problem.value)


def test_every_fault_is_named_at_once() -> None:
    with pytest.raises(ValueError, match="has 3 faults") as problem:
        bs.read_decision({**GOAL, "risk": "x", "levle": 1, "sizes": ["a"]})
    assert all(f"\n  {place}:" in str(problem.value) for place in ("risk", "levle", "sizes[0]"))


@pytest.mark.parametrize(
    ("said", "prior"), [({"low": 2, "high": 8}, "log_normal"), ({"low": 0.3, "high": 0.5}, "logit_normal")]
)
def test_a_distribution_by_its_interval(said: dict[str, float], prior: str) -> None:
    value = bs.read_decision({**GOAL, "at": {"a": {prior: said}}})["at"]["a"]
    assert quantiles(value, np.array([0.05, 0.95])) == pytest.approx([said["low"], said["high"]])


def test_a_distribution_of_scipy() -> None:
    said = {"scipy": {"distribution": "gamma", "a": 2, "scale": "1e6"}}
    value = bs.read_decision({**GOAL, "at": {"a": said}})["at"]["a"]
    assert value.ppf(0.3) == stats.gamma(2, scale=1e6).ppf(0.3)


def test_a_new_risk_is_known_at_once() -> None:
    @final
    @dataclass(frozen=True)
    class HalfWay(Risk):
        share: float = 0.5

        def of(self, outcomes: np.ndarray) -> np.ndarray:
            return self.share * outcomes.mean(axis=0) + (1 - self.share) * outcomes.max(axis=0)

        def __str__(self) -> str:
            return "half way"

    assert bs.read_decision({**GOAL, "risk": {"half_way": 0.3}})["risk"] == HalfWay(0.3)
    jsonschema.validate({**GOAL, "risk": "half_way"}, bs.decision_schema())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("goal: 1e24\ngoal: 1e25", "duplicate key"),
        ("goal: !!python/object/apply:os.system ['true']", "could not determine a constructor"),
        ("goal: {", "is no YAML"),
    ],
)
def test_a_file_that_is_not_plain_data_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "decision.yaml").write_text(text, "utf-8")
    with pytest.raises(ValueError, match=said):
        bs.read_decision(tmp_path / "decision.yaml")


def test_yaml_and_json_say_the_same(tmp_path: Path) -> None:
    said = {"goal": {"budget": {"flop": 1e24}}, "risk": {"cvar": 0.1}}
    (tmp_path / "a.json").write_text(json.dumps(said), "utf-8")
    (tmp_path / "a.yaml").write_text("goal: {budget: {flop: 1e24}}\nrisk: {cvar: 0.1}\n", "utf-8")
    assert load_yaml(tmp_path / "a.json") == load_yaml(tmp_path / "a.yaml")
    assert bs.read_decision(tmp_path / "a.yaml")["risk"] == CVaR(0.1)
