"""The page of a plan: what to train, how sure that is, what it costs, and what others would train instead."""

from __future__ import annotations

from math import log, sqrt
from typing import Any

from bayescale.decision.budget import UNITS
from bayescale.decision.plan import Plan
from bayescale.report.plans import largest, notes, short
from bayescale.report.tables import Notes, Page, Table
from bayescale.report.words import count, interval, kind, number, printable, reach, status

MOVERS = 5  # unknowns of the tornado that are shown
SMALL = 0.01  # move of log N that is none
FIFTH = 5  # times the variance that a fifth of the draws has


def plan_page(plan: Plan) -> Page:
    """The recommendation first, then its figures, its rivals, and what it rests on."""
    found = plan.to_dict()
    return Page(
        status(plan.diagnostics, warning=plan.warning),
        f"Train {count(plan.n_params)} parameters on {count(plan.n_tokens)} tokens "
        f"({number(plan.tokens_per_parameter)} tokens per parameter, {number(plan.flop)} FLOP), "
        f"diagnostics {plan.diagnostics}",
        tuple(about_plan(plan, found)),
        [part for parts in plan_parts(plan, found).values() for part in parts],
    )


def plan_parts(plan: Plan, found: dict[str, Any]) -> dict[str, list[Table | Notes]]:
    """What is said of a plan, by what it is about; ``found`` is its `to_dict`."""
    return {
        "choice": [_choices(plan, found)],
        "scores": [*_scores(plan, found)],
        "rivals": [_rivals(plan, found)],
        "costs": [*_costs(found)],
        "sensitivity": [_tornado(found)],
        "caution": [*notes("Price of caution", _caution(found))],
        "binding": [*notes("Constraints that bind", [_binding(each, found) for each in found["binding"]])],
        "options": [*notes("Other options", [_alternative(each) for each in found["alternatives"]])],
        "mind": [*notes("Mind", _mind(plan, found))],
        "assumptions": [Notes("It rests on", (*found["assumptions"], largest(plan.posterior.largest)))],
    }


def about_plan(plan: Plan, found: dict[str, Any]) -> list[str]:
    """What was asked, and how flat the answer is."""
    goal, risk = _goal(plan), found["objective"]["risk"]
    held = ", ".join(f"{k} {number(v) if isinstance(v, float | int) else v}" for k, v in plan.conditions.items())
    wasted, mean = found["compute_wasted"], found["compute_wasted_mean"]
    lines = [f"{goal}; {found['objective']['name']} as small as possible, by its {risk}"]
    lines += [f"with {held}"] if held else []
    lines += [f"intervals are {kind(plan.level)}; loss in {found['loss_unit']}"]
    if wasted["median"] is not None:
        lines += [
            f"wastes {_share(mean)} of its compute on average ({_share(wasted['lower'])} to {_share(wasted['upper'])}) "
            "against the best size, were the law known"
        ]
    return [*lines, _band(plan, found["n_wasting_under_1_percent_params"])]


def _scores(plan: Plan, found: dict[str, Any]) -> list[Table]:
    """What the run scores, where a link is read."""
    rows = [
        (printable(task), *(interval(*(of[end] for end in ("median", "lower", "upper"))) for of in score.values()))
        for task, score in found.get("scores", {}).items()
    ]
    caption = f"Scores, shares of 1, median and {kind(plan.level)} interval"
    return [Table(caption, ("task", "mean", "of the run"), tuple(rows))] if rows else []


def _goal(plan: Plan) -> str:
    from bayescale.decision.budget import Budget

    return f"for {plan.goal.describe()}" if isinstance(plan.goal, Budget) else f"for {plan.goal}"


def _band(plan: Plan, band: dict[str, float] | None) -> str:
    sure = f"with {100 * plan.level:g} % probability"
    if band is None:
        return f"no size wastes under 1 % of the compute {sure}: these runs do not tell the best size that well"
    return f"any size of {count(band['lower'])} to {count(band['upper'])} wastes under 1 % of the compute {sure}"


def _choices(plan: Plan, found: dict[str, Any]) -> Table:
    """The choice, each draw's own optimum, and the same without drift."""
    header = ("", "N\nparameters", "D\ntokens", "mean loss\n" + short(found["loss_unit"]), "loss of the\nrun")
    rows = [_choice("recommended", found), _optimum("best size, were\nthe law known", found)]
    if found["law_alone"]:
        rows += [_choice("law alone", found["law_alone"]), _optimum("its best size", found["law_alone"])]
    if found["flop_needed"]:
        needed = interval(*(found["flop_needed"][end] for end in ("median", "lower", "upper")))
        caption = f"The choice and what it reaches; the target takes {needed} FLOP, were the law known"
    else:
        caption = "The choice and what it reaches"
    return Table(f"{caption}, median and {kind(plan.level)} interval", header, tuple(rows))


def _choice(name: str, found: dict[str, Any]) -> tuple[str, ...]:
    chosen, loss = found["choice"], found["reach"]["loss"]
    ends = (interval(*(loss[of][k] for k in ("median", "lower", "upper")), between="\n") for of in ("mean", "new_run"))
    return (name, count(chosen["n_params"]), count(chosen["n_tokens"]), *ends)


def _optimum(name: str, found: dict[str, Any]) -> tuple[str, ...]:
    each = (found["optima"][of] for of in ("n_opt_params", "d_opt_tokens"))
    return (name, *(interval(e["median"], e["lower"], e["upper"], count, "\n") for e in each), "-", "-")


def _rivals(plan: Plan, found: dict[str, Any]) -> Table:
    from bayescale.decision.entries import rival, unit

    rows = [rival(plan, "recommended", plan.choice), *found["rivals"]]
    of = f"\n{short(unit(plan))}"
    header = ("", "N\nparameters", "D\ntokens", f"mean{of}", *((f"risk{of}",) if found["caution"] else ()))
    header += ("wasted\ncompute", *(("reaches\nit with",) if plan.target else ()), "keeps\nlimits")

    def cells(row: dict[str, Any]) -> tuple[str, ...]:
        risk = (number(row["outcome_risk"], 5),) if found["caution"] else ()
        wasted = row["compute_wasted"]
        share = "-" if wasted["median"] is None else f"{_share(wasted['median'])}\nto {_share(wasted['upper'])}"
        chance = (f"{100 * row['probability_of_target']:.0f} %",) if plan.target else ()
        name = "given size" if row["rule"].startswith("given size") else row["rule"].replace(" per ", "\nper ")
        sizes = count(row["n_params"]), count(row["n_tokens"])
        return (name, *sizes, number(row["outcome_mean"], 5), *risk, share, *chance, _yes(row["keeps_constraints"]))

    caption = f"Beside other rules; compute wasted: median, and the upper end of the {kind(plan.level)} interval"
    return Table(caption, header, tuple(map(cells, rows)))


def _costs(found: dict[str, Any]) -> list[Table]:
    rows = tuple(
        (UNITS[name], interval(*(ends[k] for k in ("median", "lower", "upper"))))
        for name, ends in found["costs"].items()
    )
    caption = f"What the training run costs, overhead included, median and {kind(found['level'])} interval"
    return [Table(caption, ("", "cost"), rows)] if rows else []


def _tornado(found: dict[str, Any]) -> Table | Notes:
    caption = "What moves the size most: the choice, were it known that an unknown is in its lowest or highest fifth"
    chance = 2 * sqrt(2 * FIFTH) * (found["n_params_monte_carlo_error_share"] or 0.0)
    least = max(SMALL, chance)
    movers = [e for e in found["tornado"][:MOVERS] if abs(log(e["n_params_high"] / e["n_params_low"])) > least]
    if not movers:
        return Notes(
            caption,
            (f"nothing moves it by {_share(least)}" + (", more than chance in the draws" if chance > SMALL else ""),),
        )
    header = ("unknown", "low", "high", "N if low\nparameters", "N if high\nparameters")
    return Table(caption, header, tuple((e["input"], number(e["low"]), number(e["high"]), *_ends(e)) for e in movers))


def _ends(each: dict[str, Any]) -> tuple[str, str]:
    return count(each["n_params_low"]), count(each["n_params_high"])


def _caution(found: dict[str, Any]) -> list[str]:
    price = found["caution"]
    if price is None:
        return []
    unit = found["objective"]["unit"]
    if not price["mean_given_up"]:
        return ["nothing: within the limits, the choice is the best on average too"]
    return [
        f"on average best would be {count(price['neutral_n_params'])} parameters on {count(price['neutral_n_tokens'])} "
        f"tokens; the choice gives up {number(price['mean_given_up'])} {unit} in the mean, and saves "
        f"{number(price['risk_saved'])} {unit} of the {found['objective']['risk']}"
    ]


def _binding(each: dict[str, Any], found: dict[str, Any]) -> str:
    free = each["without"]
    if free is None:
        return f"{each['constraint']}: without it nothing else limits the choice"
    return (
        f"{each['constraint']}: it costs {number(each['price'])} {found['objective']['unit']}; without it, "
        f"{count(free['n_params'])} parameters on {count(free['n_tokens'])} tokens"
    )


def _alternative(each: dict[str, Any]) -> str:
    names = ", ".join(f"{k} {number(v)}" for k, v in each.items() if k not in ("n_params", "n_tokens", "risk"))
    return (
        f"{names}: {count(each['n_params'])} parameters on {count(each['n_tokens'])} tokens, risk "
        f"{number(each['risk'], 5)}"
    )


def _mind(plan: Plan, found: dict[str, Any]) -> list[str]:
    lines = []
    if found["extrapolation_factor"] > 1:
        beyond = [
            f"{name} is {number(found[key])} times the largest"
            for name, key in (("N", "n_params_extrapolation_factor"), ("D", "n_tokens_extrapolation_factor"))
            if found[key] > 1
        ]
        lines.append("; ".join([f"extrapolation: compute is {reach(found['extrapolation_factor'])}", *beyond]))
    error = found["n_params_monte_carlo_error_share"]
    if error is not None:
        lines.append(f"another set of as many draws moves the size by {_share(error)} (one standard error)")
    if plan.posterior.law_alone is not None and found["law_alone"] is None:
        lines.append("were the law exact, no choice would keep all constraints")
    spare = plan.problem.outlook.spending
    if spare is not None and plan.flop < 0.999 * spare:
        lines.append(
            f"only {_share(plan.flop / spare)} of the budget is spent: the constraints leave no use for the rest"
        )
    return lines


def _share(value: float | None) -> str:
    return "-" if value is None else f"{number(100 * value, 2)} %"


def _yes(kept: bool) -> str:
    return "yes" if kept else "no"
