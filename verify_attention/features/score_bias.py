"""A number is added to every score.

Relative positions (T5, Swin, Graphormer), log-gates and soft masks are of this kind. It knows nothing of bK, so that
the K bias still adds one number to all scores of a row.
"""

from __future__ import annotations

import numpy as np

from verify_attention.model import Case, Estimate, Feature, OnScores, Shape


def formula(case: Case, scores: Estimate) -> Estimate:
    """Take the negative of the bias off.

    Besides the sum on either side, the bias may be rounded when it is turned to base two (twice), and when the score is
    turned back (twice), or the row's maximum taken off.
    """
    bias = -case.features["score_bias"]
    size = np.abs(scores.value) + np.abs(bias)
    error = scores.error + case.precision.lost(6, stored=2) * size
    return Estimate(scores.value - bias, np.where(size <= case.precision.largest, error, np.inf))


FEATURE = Feature(
    __name__,
    __doc__,
    act=OnScores(lambda case, scores: scores + case.features["score_bias"], formula),
    order=60,
    why="what is added to scores does not depend on the K bias",
    arrays={(): Shape(("H", "Tq", "Tk"), (1, 2, 3))},
)
