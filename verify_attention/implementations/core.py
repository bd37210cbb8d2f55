"""The float64 core: softmax attention after the formula, with the row's maximum subtracted."""

from verify_attention.model import Adapter
from verify_attention.pipeline import CORE

IMPLEMENTATION = Adapter(__name__, __doc__, load=lambda _dtype: CORE)
