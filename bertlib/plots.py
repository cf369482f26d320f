"""One look for every figure of the book: `use_book_style()` in the first cell, and a few shapes drawn often.

The style itself is `book.mplstyle` beside this file.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap

STYLE = Path(__file__).with_name("book.mplstyle")

# The palette of Okabe and Ito (2008) by name, for a figure in which a colour means something.
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK = "#E69F00", "#56B4E9", "#000000"
GREY = "#777777"


def use_book_style() -> None:
    """Make the book's style matplotlib's default for this session."""
    plt.style.use(STYLE)


def heatmap(
    ax: Axes,
    matrix,
    rows=None,
    columns=None,
    fmt: str = ".2f",
    cmap: str | Colormap = "Blues",
    vmin: float | None = None,
    vmax: float | None = None,
) -> None:
    """Draw a small matrix (rows, columns) with each entry written in its cell.

    Args:
        ax: where to draw.
        matrix: (rows, columns) of finite numbers, an array or a tensor on the CPU.
        rows, columns: labels of the two sides, or None for none.
        fmt: format of an entry; "" writes none.
        cmap, vmin, vmax: colours, as for `Axes.imshow`.

    Raises:
        ValueError: when the matrix is not two-dimensional or a label is missing.
    """
    matrix = np.asarray(matrix, dtype=float)
    if matrix.ndim != 2:
        raise ValueError(f"matrix must have two dimensions, not {matrix.ndim}")
    for name, labels, size in (("rows", rows, matrix.shape[0]), ("columns", columns, matrix.shape[1])):
        if labels is not None and len(labels) != size:
            raise ValueError(f"{name} must have {size} labels, one for each, not {len(labels)}")
    image = ax.imshow(matrix, cmap=cmap, vmin=vmin, vmax=vmax, aspect="auto")
    ax.grid(False)
    ax.set_xticks(range(matrix.shape[1]), columns if columns is not None else [""] * matrix.shape[1])
    ax.set_yticks(range(matrix.shape[0]), rows if rows is not None else [""] * matrix.shape[0])
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if not fmt:
        return
    for (i, j), entry in np.ndenumerate(matrix):
        red, green, blue, _ = image.cmap(image.norm(entry))
        dark = 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.5
        ax.text(j, i, format(entry, fmt), ha="center", va="center", color="white" if dark else "black")


SIMPLEX_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])


def simplex_xy(p) -> np.ndarray:
    """Where a distribution over three outcomes, (..., 3), lies in the drawn triangle, (..., 2).

    Corner i is the distribution that is sure of outcome i; the triangle has unit sides.

    Raises:
        ValueError: when the last dimension is not 3.
    """
    p = np.asarray(p, dtype=float)
    if p.shape[-1] != 3:
        raise ValueError(f"p must have three probabilities in its last dimension, not {p.shape[-1]}")
    return p @ SIMPLEX_CORNERS


def draw_simplex(ax: Axes, labels=("1", "2", "3")) -> None:
    """Draw the triangle of all distributions over three outcomes, its corners labelled."""
    outline = np.vstack([SIMPLEX_CORNERS, SIMPLEX_CORNERS[:1]])
    ax.plot(*outline.T, color=GREY, linestyle="-", linewidth=1.2)
    centre = SIMPLEX_CORNERS.mean(axis=0)
    for corner, label in zip(SIMPLEX_CORNERS, labels, strict=True):
        place = centre + 1.13 * (corner - centre)
        ax.annotate(label, place, ha="center", va="center", annotation_clip=False)  # it lies outside the axes
    ax.set_aspect("equal")
    ax.axis("off")
