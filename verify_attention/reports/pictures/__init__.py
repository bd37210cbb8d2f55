"""Pictures of what is in reports: bars of weights or scores, deviations against limits, the map.

Each is made of plain numbers and words, so that a run and a results file lead to the same picture. matplotlib, an
extra, is imported where something is drawn.
"""

from verify_attention.reports.pictures.bars import bars_picture
from verify_attention.reports.pictures.canvas import (
    FORMS,
    INSTALL,
    Picture,
    drawing_is_here,
    japanese_is_here,
    rendered,
)
from verify_attention.reports.pictures.deviations import deviations_picture, kind_of
from verify_attention.reports.pictures.map import MOST_ROWS, map_picture
from verify_attention.reports.pictures.panels import Panel, panels

__all__ = [
    "FORMS",
    "INSTALL",
    "MOST_ROWS",
    "Panel",
    "Picture",
    "bars_picture",
    "deviations_picture",
    "drawing_is_here",
    "japanese_is_here",
    "kind_of",
    "map_picture",
    "panels",
    "rendered",
]
