"""Each row may attend to some keys only: true means may attend.

A hidden key has the score −∞, and c + (−∞) = −∞: a K bias adds its number to all visible scores of a row alike, and
changes no weight. A row that sees one key has the weight 1 in any event.
"""

from verify_attention.model import Feature, Hides, Shape

FEATURE = Feature(
    __name__,
    __doc__,
    act=Hides(lambda case: case.features["mask"], lambda case: case.features["mask"]),
    order=70,
    why="hidden scores are −∞ with the bias and without; the visible ones move alike",
    arrays={(): Shape(("H", "Tq", "Tk"), (1, 2, 3), flags=True)},
)
