"""Pages that are read from the package itself, so that they cannot fall behind it: what there is, and the API.

They are written to ``docs/generated``, which is not kept.
"""

import importlib
import importlib.util
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import bayescale as bs

REGISTRIES = {
    "Risk measures": ("decision.risk", "Risk", "`recommend(risk=...)`"),
    "Objectives": ("decision.objective", "Objective", "`recommend(objective=...)`"),
    "Constraints": ("decision", "Constraint", "`recommend(constraints=[...])`"),
    "Priors": ("parameter", "Prior", '`fit(priors={"alpha": LogNormal(0.35, 0.2)})`'),
    "Noise": ("model.noise", "Noise", "`fit(noise=...)`"),
    "Pooling": ("model.pooling", "Pooling", "`fit(pooling=...)`"),
    "Engines": ("inference", "Engine", "`fit(engine=...)`"),
    "What compute is": ("runs", "ComputeRule", "`read_runs(rule=...)`, `allocate(rule=...)`"),
}
ROOMS = {
    "runs": "Tables of runs",
    "laws": "Laws",
    "links": "Links",
    "parameter": "Priors",
    "model": "The model",
    "inference": "Engines",
    "posterior": "Fits, forecasts, checks",
    "frontier": "Where the optimum is",
    "decision": "Decisions",
    "report": "What people look at",
}


def modules(name: str) -> Iterator[Any]:
    """A module, and those below it where it is a room."""
    found = importlib.import_module(f"bayescale.{name}")
    yield found
    for below in pkgutil.iter_modules(getattr(found, "__path__", [])):
        yield importlib.import_module(f"{found.__name__}.{below.name}")


def public(name: str) -> Iterator[tuple[str, Any]]:
    """Classes and functions that a room defines for its users, in the order of its files."""
    for module in modules(name):
        for label, thing in vars(module).items():
            own = getattr(thing, "__module__", None) == module.__name__
            if own and not label.startswith("_") and (inspect.isclass(thing) or inspect.isfunction(thing)):
                yield label, thing


def kinds(room: str, base: str) -> list[type]:
    """Final classes of a room that are kinds of a base class."""
    classes = [thing for _, thing in public(room) if inspect.isclass(thing)]
    return [c for c in classes if base in [b.__name__ for b in inspect.getmro(c)[1:]] and not inspect.isabstract(c)]


def sentence(thing: Any) -> str:
    """First paragraph of a docstring, in one line that a cell of a table holds."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split()).replace("``", "`").replace("|", r"\|")


def folder(title: str, names: list[str], get: Any, command: str, page: str = "") -> list[str]:
    """A folder of laws, or of links: what each is, what it reads, where it is from, and its part of a page."""
    lines = [f"## {title}", "", command, "", "| name | formula | reads | source |", "|---|---|---|---|"]
    for name in names:
        one = get(name)
        module = importlib.import_module(type(one).__module__)
        reads = ", ".join(f"`{each}`" for each in getattr(one, "inputs", ()))
        label = f"[`{name}`](../{page}#{name})" if page else f"`{name}`"
        lines.append(f"| {label} | `{sentence(type(one))}` | {reads} | {sentence(module)} |")
    return [*lines, ""]


def registry() -> str:
    """The page of all that can be named in a call, or on the command line."""
    lines = [
        "# Laws, links, risks, priors",
        "",
        "Read from the package when these pages were built. Each is one value; another of its kind is one new file,",
        "or one new dataclass.",
        "",
        *folder("Laws", bs.laws.names(), bs.laws.get, "For `fit(runs, bs.laws.get(NAME))`, `--law NAME`.", "laws.md"),
    ]
    if hasattr(bs, "links"):
        lines += folder("Links", bs.links.names(), bs.links.get, "From a loss to a downstream score.")
    for title, (room, base, how) in REGISTRIES.items():
        lines += [f"## {title}", "", f"For {how}.", "", "| name | what it is | import |", "|---|---|---|"]
        for kind in kinds(room, base):
            where = "`bs`" if getattr(bs, kind.__name__, None) is kind else f"`{kind.__module__}`"
            lines.append(f"| `{kind.__name__}` | {sentence(kind)} | {where} |")
        lines.append("")
    return "\n".join(lines)


def reference(room: str, title: str) -> str:
    """A room's part of the API: what stands at the top level first, then what is imported from its files."""
    found = [(label, thing) for label, thing in public(room) if inspect.getdoc(thing)]
    at_top = [thing for label, thing in found if getattr(bs, label, None) is thing]
    told = {**REGISTRIES, "Law": (room, "Law", ""), "Link": (room, "Link", "")}
    also = {kind for _, (where, base, _) in told.items() if where.split(".")[0] == room for kind in kinds(where, base)}
    lines = [f"# {title}", "", "```{eval-rst}"]
    for label, thing in found:
        if thing not in at_top and thing not in also:
            continue
        path = f"bayescale.{label}" if thing in at_top else f"{thing.__module__}.{label}"
        lines += [f".. auto{'class' if inspect.isclass(thing) else 'function'}:: {path}"]
        lines += ["   :members:", ""] if inspect.isclass(thing) else [""]
    return "\n".join([*lines, "```", ""])


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx looks for pages."""
    there = Path(app.srcdir) / "docs/generated"
    there.mkdir(exist_ok=True)
    rooms = {room: title for room, title in ROOMS.items() if importlib.util.find_spec(f"bayescale.{room}")}
    pages = {"registry.md": registry()} | {f"api-{room}.md": reference(room, title) for room, title in rooms.items()}
    listed = "\n".join(f"api-{room}" for room in rooms)
    said = "By room, from the runs at the bottom to what people look at."
    pages["api.md"] = f"# API\n\n{said}\n\n```{{toctree}}\n:maxdepth: 2\n\n{listed}\n```\n"
    for name, text in pages.items():
        page = there / name
        if not page.is_file() or page.read_text("utf-8") != text:
            page.write_text(text, "utf-8")
    return {"parallel_read_safe": True}
