"""Accelerators by name, and hardware whose inputs are refused before anything is computed."""

import json

import pytest
from scipy.stats import norm

from bayescale.decision.hardware import Accelerator, Hardware, accelerator, accelerators
from bayescale.parameter import LogitNormal, LogNormal

# Dense bf16 TFLOP/s, GB, TB/s, W as collected from vendors and others; None where the table has none.
TABLE = {
    "A100-80GB": (312, 80, 2.039, 400),
    "A100-40GB": (312, 40, None, 400),
    "H100 SXM": (989.4, 80, 3.35, 700),
    "H100 PCIe": (756, 80, 2.0, 350),
    "H200": (989, 141, 4.8, 700),
    "B200": (2250, 180, 8, 1000),
    "GB200": (2500, None, None, 1200),
    "TPU v4": (275, 32, 1.2, None),
    "TPU v5e": (197, 16, 0.82, None),
    "TPU v5p": (459, 95, 2.765, None),
    "TPU v6e": (918, 32, 1.6, None),
}


@pytest.mark.parametrize("name", TABLE)
def test_figures_are_those_of_the_table(name):
    chip = accelerator(name)
    units = zip((chip.peak, chip.memory, chip.bandwidth, chip.power), TABLE[name], (1e12, 1e9, 1e12, 1), strict=True)
    for figure, wanted, unit in units:
        assert wanted is None or figure == pytest.approx(wanted * unit, rel=2e-3)


@pytest.mark.parametrize("name", accelerators())
def test_peaks_are_of_dense_matrices_and_each_figure_has_a_source(name):
    """A chip doubles its rate in 8 bits at most; the sparse 16-bit rate in place of the dense one would show."""
    chip = accelerator(name.upper())
    assert chip.name == name
    assert chip.source
    assert chip.peak_8bit / chip.peak == pytest.approx(2.0, rel=3e-3) or name == "TPU v4"
    assert chip.peak_8bit in (624e12, 1978.9e12) or chip.peak != 1979e12
    # Compute per byte of memory traffic of today's chips.
    assert 100 < chip.peak / chip.bandwidth < 700


def test_an_unknown_accelerator_is_refused_with_the_names():
    with pytest.raises(ValueError, match=r"No accelerator is called 'H100'; known: A100-40GB.*TPU v6e.*peak"):
        Hardware("H100")
    with pytest.raises(ValueError, match="No accelerator is called 7"):
        Hardware(7)


def test_an_own_accelerator_needs_its_peak_only():
    hardware = Hardware(Accelerator("own", 1e15), 8, 0.4, 2.0)
    assert hardware.chip.peak == 1e15
    with pytest.raises(ValueError, match=r"energy needs Accelerator\(power=...\) of own"):
        hardware.require("energy", "utilisation", "power")
    with pytest.raises(ValueError, match="positive") as refused:
        Accelerator("own", -1.0, memory=0)
    assert "(peak)" in str(refused.value)
    assert "(memory)" in str(refused.value)
    for peak in (None, True, "1e15", float("inf")):
        with pytest.raises(ValueError, match=r"Accelerator\(peak\)"):
            Accelerator("own", peak)


@pytest.mark.parametrize(("written", "share"), [(0.4, 0.4), ("40%", 0.4), (1, 1.0)])
def test_utilisation_is_a_share_of_the_peak(written, share):
    assert Hardware("H200", 8, written).utilisation == share


@pytest.mark.parametrize("wrong", [40, 1.2, 0, -0.4, "40", "abc", True, norm(0.4, 0.2), LogNormal(0.5, 1.0)])
def test_a_utilisation_that_is_no_share_is_refused(wrong):
    with pytest.raises(ValueError, match=r"Hardware\(utilisation\): share of the dense 16-bit peak.*'40%'"):
        Hardware("H200", 8, wrong)


def test_all_wrong_inputs_come_in_one_message():
    with pytest.raises(ValueError, match="Hardware") as refused:
        Hardware("H200", 0, 40, -2.0, pue=0.9, carbon=-1, overhead="-10%")
    named = [line[len("Hardware(") :].split(")")[0] for line in str(refused.value).splitlines()]
    assert named == ["count", "utilisation", "price_per_hour", "pue", "carbon", "overhead"]


def test_what_is_not_known_is_asked_for_where_it_is_needed():
    hardware = Hardware("TPU v5e")
    assert hardware.inputs() == {"pue": 1.0, "overhead": 0.0}
    with pytest.raises(ValueError, match="dollars needs") as refused:
        hardware.require("dollars", "utilisation", "price_per_hour", "power")
    for word in ("Hardware(utilisation=...)", "Hardware(price_per_hour=...)", "Accelerator(power=...) of TPU v5e"):
        assert word in str(refused.value)


def test_hardware_in_words_and_as_json():
    hardware = Hardware("H100 SXM", 1024, LogitNormal(0.4, 0.1), 2, overhead="10%")
    assert hardware.describe() == {
        "count": "1024 accelerators",
        "utilisation": "logitnormal, median 0.4, 90 % 0.3612 to 0.44",
        "price_per_hour": "2 dollars per hour",
        "pue": "1",
        "overhead": "0.1",
    }
    saved = json.loads(json.dumps(hardware.to_dict()))
    assert saved["accelerator"]["peak"] == 989.4e12
    assert saved["price_per_hour"] == 2.0
    assert saved["utilisation"] == "logitnormal, median 0.4, 90 % 0.3612 to 0.44"
