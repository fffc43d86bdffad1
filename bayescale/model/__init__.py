import warnings

with warnings.catch_warnings():
    # Its progress bars, which are not used here, warn in notebooks that lack ipywidgets.
    warnings.filterwarnings("ignore", message="IProgress not found")
    import numpyro  # noqa: F401
