"""The same equations in one test function a document: the fastest natural way to write them."""

from __future__ import annotations

import peer_test_equations
from peer_test_equations import each_document

EQUATIONS = [function for name, function in vars(peer_test_equations).items() if name.startswith("test_")]


@each_document
def test_all_equations(document):
    for equation in EQUATIONS:
        equation(document)
