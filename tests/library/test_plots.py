"""The shapes that figures share."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from bertlib import plots


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


def test_simplex_is_an_equilateral_triangle_of_unit_sides():
    corners = plots.simplex_xy(np.eye(3))
    sides = np.linalg.norm(corners - np.roll(corners, 1, axis=0), axis=1)
    np.testing.assert_allclose(sides, 1, rtol=1e-15)
    centre = plots.simplex_xy(np.full(3, 1 / 3))
    np.testing.assert_allclose(np.linalg.norm(corners - centre, axis=1), 1 / np.sqrt(3), rtol=1e-15)
    with pytest.raises(ValueError, match="three probabilities"):
        plots.simplex_xy([0.5, 0.5])


def test_heatmap_writes_each_entry_where_it_stands(ax):
    plots.heatmap(ax, [[0.0, 1.0], [0.25, 0.5]], rows=["a", "b"], columns=["c", "d"])
    written = {text.get_position(): text.get_text() for text in ax.texts}
    assert written == {(0, 0): "0.00", (1, 0): "1.00", (0, 1): "0.25", (1, 1): "0.50"}
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]


def test_heatmap_says_what_does_not_fit(ax):
    with pytest.raises(ValueError, match="two dimensions, not 1"):
        plots.heatmap(ax, [1.0, 2.0])
    with pytest.raises(ValueError, match="columns must have 2 labels"):
        plots.heatmap(ax, np.eye(2), columns=["only one"])


def test_style_is_readable_and_colour_blind_safe():
    with plt.style.context(plots.STYLE):
        colours = plt.rcParams["axes.prop_cycle"].by_key()["color"]
        assert [f"#{colour}".replace("##", "#") for colour in colours[:4]] == [
            plots.BLUE,
            plots.VERMILION,
            plots.GREEN,
            plots.PURPLE,
        ]
        assert plt.rcParams["font.size"] >= 12
        assert plt.rcParams["figure.figsize"][0] <= 6


def test_simplex_labels_are_drawn_outside_the_axes(ax):
    plots.draw_simplex(ax, labels=("a", "b", "c"))
    renderer = ax.figure.canvas.get_renderer()
    assert [text.get_text() for text in ax.texts] == ["a", "b", "c"]
    assert all(text._check_xy(renderer) for text in ax.texts), "a label that lies outside is left out"
