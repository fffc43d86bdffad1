"""Figures: each ``plot_x(result, *, ax=None)`` draws what ``plot_x_data(result)`` returns as a table.

They draw into the axes given, or into a new figure; nothing is shown or saved for the caller, and the
colours can be told apart in any colour vision.
"""

from bayescale.report.plots.calibration import plot_calibration as plot_calibration
from bayescale.report.plots.calibration import plot_calibration_data as plot_calibration_data
from bayescale.report.plots.frontier import plot_frontier as plot_frontier
from bayescale.report.plots.frontier import plot_frontier_data as plot_frontier_data
from bayescale.report.plots.frontier import plot_tokens_per_parameter as plot_tokens_per_parameter
from bayescale.report.plots.frontier import plot_tokens_per_parameter_data as plot_tokens_per_parameter_data
from bayescale.report.plots.letters import plot_posterior as plot_posterior
from bayescale.report.plots.letters import plot_posterior_data as plot_posterior_data
from bayescale.report.plots.pilots import plot_pilots as plot_pilots
from bayescale.report.plots.pilots import plot_pilots_data as plot_pilots_data
from bayescale.report.plots.runs import plot_fit as plot_fit
from bayescale.report.plots.runs import plot_fit_data as plot_fit_data
from bayescale.report.plots.runs import plot_residuals as plot_residuals
from bayescale.report.plots.runs import plot_residuals_data as plot_residuals_data
