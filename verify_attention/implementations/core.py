"""The float64 core: softmax attention after the formula, with the row's maximum subtracted."""

from verify_attention.pipeline import CORE

IMPLEMENTATION = CORE
