def draws(name, value, n, seed):
    import numpy as np
    return np.full(n, float(value))
def describe(value, unit):
    return f"{value:.4g} {unit}"
