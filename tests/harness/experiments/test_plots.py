"""Plots: the figures stand in words, and no text breaks out of its place."""

from xml.etree import ElementTree as ET

from harness.experiments.plots import Bar, Interval, Strip, bars, intervals, strips

HOSTILE = '"><script>alert(1)</script>'


def test_every_plot_is_well_formed_and_says_its_figures():
    plots = [
        intervals([Interval(HOSTILE, 0.5, 0.2, 0.8, "3 of 6")], "right"),
        bars([Bar("a", (("prompt", HOSTILE, 3.0),), "3"), Bar("b", (), "unknown")], "tokens"),
        strips([Strip("a", (1.0, 2.0), 1.5, "median 1.5"), Strip("b", (), None, "none")], "turns"),
    ]
    for plot in plots:
        root = ET.fromstring(str(plot))
        assert "script" not in {element.tag for element in root.iter()}
        assert root.attrib["aria-label"]
    assert "3 of 6" in plots[0]
    assert "unknown" in plots[1]


def test_nothing_at_all_is_a_plot_too():
    assert ET.fromstring(str(bars([], "cost"))) is not None
