"""Each key gets a vector of its own besides the common K bias.

The K side is k_j + bK + δ_j under the conditions k and qk. Score gaps change by s·q·(δ_a − δ_b), which depends on the
keys: it is not a common shift, so softmax sees it.
"""

from verify_attention.model import Feature, Shape

FEATURE = Feature(
    __name__,
    __doc__,
    act=None,  # it comes with the biases
    order=10,
    why="a vector for each key is no common shift",
    takes=frozenset({"common key shift"}),
    arrays={(): Shape(("G", "Tk", "d_k"), (2, 3))},
)
