"""The command `recommend`: a decision in words of a shell or in a file, and the plan that answers it.

Options become the plain data that a file holds, so that both say the same and are refused alike.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import bayescale as bs
from bayescale import _cli_options as options
from bayescale._cli_options import RULE, Csv, Fit, Json, OfGroup, OfMean, OfNew
from bayescale._cli_run import show, to_write, write

AMOUNTS = ("flop", "accelerator_hours", "dollars", "kwh", "days")
NO_COST = (None, "loss", "regret", "compute")
RANGE = "NUMBER|LOW..HIGH"
ROUGHLY = " LOW..HIGH are the ends of a 90 % interval."


def recommend(
    source: Fit,
    decision: Annotated[
        Path | None, typer.Option(metavar="FILE.yaml", help="A decision as a file; options say more, or otherwise.")
    ] = None,
    budget: Annotated[float | None, typer.Option(metavar="FLOP", help="Training compute to spend, FLOPs.")] = None,
    accelerator_hours: Annotated[float | None, typer.Option(metavar="HOURS", help="Or accelerator-hours.")] = None,
    dollars: Annotated[float | None, typer.Option(metavar="USD", help="Or dollars.")] = None,
    kwh: Annotated[float | None, typer.Option(metavar="KWH", help="Or energy.")] = None,
    days: Annotated[float | None, typer.Option(metavar="DAYS", help="Or days of all accelerators.")] = None,
    certainty: Annotated[float | None, typer.Option(metavar="P", help="Probability of affording its compute.")] = None,
    lifetime: Annotated[bool, typer.Option("--lifetime", help="The budget pays for inference too.")] = False,
    target: Annotated[float | None, typer.Option(metavar="LOSS", help="Loss to reach, instead of a budget.")] = None,
    probability: Annotated[float | None, typer.Option(metavar="P", help="Of reaching it, 0.9 unless given.")] = None,
    accelerator: Annotated[str | None, typer.Option(metavar="NAME", help="What trains: 'H100 SXM'.")] = None,
    count: Annotated[str | None, typer.Option(metavar=RANGE, help="How many at once.")] = None,
    utilisation: Annotated[str | None, typer.Option(metavar=RANGE, help="Share of their dense 16-bit peak.")] = None,
    price: Annotated[str | None, typer.Option(metavar=RANGE, help=f"Dollars an hour of one.{ROUGHLY}")] = None,
    pue: Annotated[float | None, typer.Option(metavar="NUMBER", help="Energy of the site over theirs.")] = None,
    carbon: Annotated[str | None, typer.Option(metavar=RANGE, help="kg CO2 per kWh.")] = None,
    overhead: Annotated[str | None, typer.Option(metavar=RANGE, help="Extra compute: crashes, pilots (0.1).")] = None,
    tokens_in: Annotated[str | None, typer.Option(metavar=RANGE, help="Tokens that inference will read.")] = None,
    tokens_out: Annotated[str | None, typer.Option(metavar=RANGE, help="Tokens that it will write.")] = None,
    prefill_utilisation: Annotated[str | None, typer.Option(metavar=RANGE, help="Of inference, reading.")] = None,
    decode_utilisation: Annotated[str | None, typer.Option(metavar=RANGE, help="Of inference, writing.")] = None,
    objective: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="loss, regret, compute, flop, dollars, accelerator_hours, kwh, carbon_kg."),
    ] = None,
    risk: Annotated[
        str | None, typer.Option(metavar="NAME[:LEVEL]", help="mean, cvar:0.1, quantile:0.9, worst, entropic:1.")
    ] = None,
    max_tokens: Annotated[str | None, typer.Option(metavar=RANGE, help=f"Distinct tokens that exist.{ROUGHLY}")] = None,
    epochs: Annotated[float | None, typer.Option(metavar="NUMBER", help="How often each may be seen.")] = None,
    min_size: Annotated[float | None, typer.Option(metavar="N", help="Parameters at least.")] = None,
    max_size: Annotated[float | None, typer.Option(metavar="N", help="Parameters at most.")] = None,
    min_ratio: Annotated[float | None, typer.Option(metavar="R", help="Tokens per parameter at least.")] = None,
    max_ratio: Annotated[float | None, typer.Option(metavar="R", help="Tokens per parameter at most.")] = None,
    size: Annotated[list[float], typer.Option(metavar="N", help="A size to choose from; may be given again.")] = [],
    option: Annotated[
        list[str], typer.Option(metavar="NAME=V,V", help="Values of a condition to choose from: n_experts=8,16.")
    ] = [],
    compare: Annotated[
        list[float], typer.Option(metavar="N", help="A size to set beside it; may be given again.")
    ] = [],
    at: Annotated[list[str], typer.Option(metavar=f"NAME={RANGE}", help="Condition of the law that is settled.")] = [],
    group: OfGroup = None,
    new_group: OfNew = False,
    population_mean: OfMean = False,
    flops_per_param_token: Annotated[
        float | None, typer.Option(metavar="K", help=f"{RULE} [default: the fit's]")
    ] = None,
    level: Annotated[
        float | None, typer.Option(help="Probability inside the equal-tailed intervals, 0.9 unless given.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of uncertain inputs and of the run's scatter; 0.")] = None,
    as_json: Json = False,
    csv: Csv = None,
) -> str:
    """What to train: the best run for a budget, or the cheapest for a target; with risk, cost, limits and rivals."""
    chosen = options.group(group, new_group, population_mean)
    hardware = _given(
        accelerator=accelerator,
        count=_roughly("--count", count),
        utilisation=_roughly("--utilisation", utilisation, is_share=True),
        price_per_hour=_roughly("--price", price),
        pue=pue,
        carbon=_roughly("--carbon", carbon),
        overhead=_roughly("--overhead", overhead),
    )
    inference = _given(
        tokens_in=_roughly("--tokens-in", tokens_in),
        tokens_out=_roughly("--tokens-out", tokens_out),
        prefill_utilisation=_roughly("--prefill-utilisation", prefill_utilisation, is_share=True),
        decode_utilisation=_roughly("--decode-utilisation", decode_utilisation, is_share=True),
    )
    if bool(inference) != (lifetime or objective not in NO_COST) and (lifetime or inference):
        raise typer.BadParameter(
            "Inference is paid for by --lifetime out of the budget, or made cheap by --objective dollars and the like; "
            "--tokens-in and --tokens-out say how much of it there is."
        )
    amounts = dict(zip(AMOUNTS, (budget, accelerator_hours, dollars, kwh, days), strict=True))
    said = _given(
        goal=_goal(
            _given(**amounts), certainty, lifetime, _given(loss=target, probability=probability), hardware, inference
        ),
        objective=_objective(objective, hardware, inference),
        constraints=[
            *_limit("tokens", _given(available=_roughly("--max-tokens", max_tokens), epochs=epochs)),
            *_limit("sizes", _given(at_least=min_size, at_most=max_size)),
            *_limit("ratio", _given(at_least=min_ratio, at_most=max_ratio)),
        ]
        or None,
        risk=_risk(risk),
        sizes=size or None,
        options=_options(option),
        at={name: _roughly("--at", text) for name, text in options.pairs("--at", at, f"NAME={RANGE}")} or None,
        hardware=hardware or None,
        compare=compare or None,
        rule=None if flops_per_param_token is None else {"flops_rule": {"k": flops_per_param_token}},
        level=level,
        seed=seed,
    )
    if csv:
        to_write(csv)
    plan = decide(source, decision, said, chosen)
    if csv:
        write(csv, lambda part: plan.to_dataframe().to_csv(part, index=False))
    show(plan.to_dict(), [plan], as_json)
    return plan.standing


def decide(source: Path, file: Path | None, said: Mapping[str, Any], group: Any) -> bs.Plan:
    """The plan of a decision in a file, with what the options say more or otherwise."""
    from bayescale.decision.described import load_yaml, read_decision

    written = load_yaml(file) if file else {}
    if not isinstance(written, Mapping):
        raise ValueError(
            f"{file} holds a decision, a mapping such as {{goal: {{budget: {{flop: 1e24}}}}}}, not a list."
        )
    arguments: dict[str, Any] = {**read_decision({**written, **said})}
    if group is not None:
        arguments["group"] = group
    posterior = bs.load(source)
    bs.use_compile_cache()
    return bs.recommend(posterior, **arguments)


def schema() -> None:
    """Print the JSON schema of the file that `recommend --decision` reads."""
    from bayescale.decision.schema import decision_schema

    typer.echo(json.dumps(decision_schema(), indent=2))


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _roughly(option: str, text: str | None, *, is_share: bool = False) -> Any:
    """A number as it was written, or a distribution by the ends of its 90 % interval."""
    if text is None or ".." not in text:
        return text
    low, _, high = text.partition("..")
    ends = options.numbers(option, f"{low},{high}", 2, f"NUMBER or LOW..HIGH, as 1.6..2.5; not {text!r}")
    return {"logit_normal" if is_share else "log_normal": {"low": ends[0], "high": ends[1]}}


def _goal(
    amounts: dict[str, Any],
    certainty: float | None,
    lifetime: bool,
    target: dict[str, Any],
    hardware: dict[str, Any],
    inference: dict[str, Any],
) -> Any:
    if amounts and target:
        raise typer.BadParameter(
            "A budget and --target are two goals; give one, and the other in a file's constraints."
        )
    if not amounts:
        return {"target": target} if target else None
    ((currency, amount), *more) = amounts.items()
    if more:
        raise typer.BadParameter("A budget is given in one currency.")
    own = {} if currency == "flop" else _given(hardware=hardware or None)
    if lifetime:
        cost = {"currency": currency, **own, "inference": inference}
        return {"at_most": {"objective": {"cost": cost}, "amount": amount, **_given(certainty=certainty)}}
    return {"budget": {currency: amount, **own, **_given(certainty=certainty)}}


def _objective(name: str | None, hardware: dict[str, Any], inference: dict[str, Any]) -> Any:
    if name in NO_COST:
        return name
    own = {} if name == "flop" else _given(hardware=hardware or None)
    return {"cost": {"currency": name, **own, **_given(inference=inference or None)}}


def _limit(name: str, settings: dict[str, Any]) -> Sequence[Any]:
    return [{name: settings}] if settings else []


def _risk(text: str | None) -> Any:
    name, colon, level = (text or "").partition(":")
    return {name: level} if colon else (name or None)


def _options(given: Sequence[str]) -> dict[str, list[str]] | None:
    return {name: text.split(",") for name, text in options.pairs("--option", given, "NAME=V,V")} or None
