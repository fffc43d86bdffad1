"""The contract of a scaling law."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from bayescale.parameter import Parameter, Quantity

Values = Mapping[str, Any]


def held_at(condition: str) -> str:
    """Name, among what is handed on with a law's letters, of the value at which a condition is held."""
    return f"at_{condition}"


class Law(ABC):
    """The mean loss of a finished training run, given what was spent on it.

    To write a law, add one file to this folder with one frozen dataclass in it:

    - ``inputs`` names the columns of a run that it reads: its ``size``, the tokens ``n_tokens`` (which
      a law may leave out), and its ``conditions``;
    - ``coefficients`` declares the paper's letters, and ``loss`` is the paper's equation in them;
    - ``parameters`` declares what is sampled instead, each with a prior in planners' units, and
      ``to_coefficients`` turns those into the letters. The letters of a power law are almost
      perfectly correlated (.999 for A and alpha); the loss that each term leaves at a reference
      run, the centre of the table, is not.

    ``size`` is what a compute budget buys against tokens: ``n_params``, or ``n_active_params`` or
    ``n_total_params`` where experts make these differ. ``conditions`` are inputs that no budget
    settles (distinct tokens, experts, bits), each with its standard value: that of an ordinary run, at
    which the parameters are defined, and which stands where a plan does not say.

    ``monotone`` names the inputs of which more never makes the mean loss worse, and ``domain`` the
    range of each input over which the contract holds. A law holds no data and no draws, and does
    not know what compute is. All methods broadcast over numpy and jax arrays and are
    differentiable; the contract tests check the rest over the domain (never rises in the inputs
    named, stays above its floor, finite, and ``to_parameters`` undoes ``to_coefficients``).
    """

    inputs: ClassVar[tuple[str, ...]]
    size: ClassVar[str] = "n_params"
    conditions: ClassVar[Mapping[str, float]] = MappingProxyType({})
    parameters: ClassVar[tuple[Parameter, ...]]
    coefficients: ClassVar[tuple[Quantity, ...]]
    monotone: ClassVar[tuple[str, ...]]
    domain: ClassVar[Mapping[str, tuple[float, float]]]

    @property
    def spent(self) -> tuple[str, ...]:
        """The inputs that compute pays for: the size, and the tokens where the law reads them."""
        return tuple(name for name in (self.size, "n_tokens") if name in self.inputs)

    @abstractmethod
    def loss(self, letters: Values, run: Values) -> Any:
        """Mean loss, in the unit of the table's loss.

        Parameters
        ----------
        letters : mapping of str to array
            One entry for each of ``coefficients``; shapes broadcast with those of ``run``.
        run : mapping of str to array
            One entry for each of ``inputs``, in its own unit (parameters, tokens).
        """

    @abstractmethod
    def floor(self, letters: Values) -> Any:
        """The loss that no run of this law goes below (0 where the law has no irreducible term)."""

    @abstractmethod
    def to_coefficients(self, values: Values, reference: Values) -> dict[str, Any]:
        """The paper's letters from the values of ``parameters`` at the reference run.

        ``values`` are in the parameters' own units (not on the unconstrained scale);
        ``reference`` has one entry for each of ``inputs``, conditions at their standard.
        """

    @abstractmethod
    def to_parameters(self, letters: Values, reference: Values) -> dict[str, Any]:
        """The inverse of ``to_coefficients``."""
