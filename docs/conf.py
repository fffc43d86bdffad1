"""How the documentation is built: ``uv run --group docs sphinx-build -W --keep-going -c docs . build/docs``.

The source folder is the repository, so that a link between pages, notebooks and the README is the same on a
code host and in the built pages. Notebooks are stored executed and shown as they are.
"""

import sys
from pathlib import Path

import bayescale

sys.path.insert(0, str(Path(__file__).parent))

project, author, version = "bayescale", "the bayescale authors", bayescale.__version__
project_copyright = "the bayescale authors, Apache-2.0"
release = version

extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "generated"]
root_doc = "docs/index"
include_patterns = ["docs/**", "notebooks/*.ipynb"]
exclude_patterns = [".*", ".*/**", "bayescale", "build", "tests", "**/_templates"]

default_role = "code"
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say shapes and units
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"
nb_merge_streams = True

html_theme = "pydata_sphinx_theme"
html_title = "bayescale"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_sourcelink = False
html_sidebars = {"docs/index": []}
html_theme_options = {
    "navigation_with_keys": True,
    "show_prev_next": False,
    "show_toc_level": 2,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
