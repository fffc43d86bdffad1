"""What a page says is printed, as examples of doctest: Python sessions, and commands with what they print.

Numbers may differ by a tenth: draws repeat on one machine, and nearly on another.
"""

import doctest
import itertools
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

BLOCK = re.compile(r"^```(pycon|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
TOLERANCE = 0.1


def examples(page: Path) -> list[doctest.Example]:
    """All examples of a page, in its order."""
    parser = doctest.DocTestParser()
    found = []
    for block in BLOCK.finditer(page.read_text("utf-8")):
        line = page.read_text("utf-8")[: block.start()].count("\n") + 1
        own = parser.get_examples(block[2]) if block[1] == "pycon" else list(_commands(block[2]))
        for example in own:
            example.lineno += line
            found.append(example)
    return found


def _commands(block: str) -> Iterator[doctest.Example]:
    """Each line that starts with ``$`` is a command, what follows is what it prints."""
    lines = block.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("$ ")] + [len(lines)]
    for start, end in itertools.pairwise(starts):
        want = "".join(f"{line}\n" for line in lines[start + 1 : end])
        yield doctest.Example(f"printed({lines[start][2:]!r})\n", want, lineno=start)


def printed(command: str) -> None:
    """Print what a command prints on standard output, whatever its exit code."""
    program, *words = shlex.split(command)
    path = Path(sys.executable).with_name(program)
    done = subprocess.run([path, *words], capture_output=True, text=True, timeout=600, check=False)
    if done.returncode not in (0, 3):
        raise RuntimeError(done.stderr)
    print(done.stdout)


class Near(doctest.OutputChecker):
    """Same words, numbers within a tenth; ``...`` on a line of its own stands for any lines."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        place, words = 0, got.split()
        cut = re.split(r"^\.\.\.$", want, flags=re.MULTILINE)
        for number, part in enumerate(part.split() for part in cut):
            found = next((i for i in range(place, len(words) + 1) if alike(part, words[i : i + len(part)])), None)
            if found is None or (number == 0 and found):
                return False
            place = found + len(part)
        return len(cut) > 1 or place == len(words)


def alike(want: list[str], got: list[str]) -> bool:
    return len(want) == len(got) and all(map(near, want, got))


def near(want: str, got: str) -> bool:
    """Whether two words are alike but for a tenth of their numbers; rules of a table may have any length."""
    if set(want) == set(got) == {"-"}:
        return True
    if NUMBER.sub("#", want) != NUMBER.sub("#", got):
        return False
    pairs = zip(NUMBER.findall(want), NUMBER.findall(got), strict=True)
    numbers = [(float(a.replace(",", "")), float(b.replace(",", ""))) for a, b in pairs]
    return all(abs(a - b) <= TOLERANCE * max(abs(a), abs(b)) for a, b in numbers)


def failures(page: Path) -> str:
    """Run a page's examples one after the other in one session; what differs, or nothing."""
    test = doctest.DocTest(examples(page), {"printed": printed}, page.name, str(page), 0, None)
    said: list[str] = []
    doctest.DocTestRunner(Near(), verbose=False).run(test, out=said.append)
    return "".join(said)
