"""The same equations as a pytest file that somebody at home in numpy would write; the benchmark's peer.

`DOCUMENTS` names the YAML file. One test function an equation, parametrised over the documents.
"""

from __future__ import annotations

import functools
import math
import operator
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml

CONDITIONS = "none", "q", "k", "qk"


@dataclass(frozen=True, eq=False)
class Document:
    name: str
    q: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    bQ: np.ndarray
    bK: np.ndarray
    scale: float

    def biases(self, condition):
        bQ = self.bQ if "q" in condition else np.zeros_like(self.bQ)
        bK = self.bK if "k" in condition else np.zeros_like(self.bK)
        return bQ, bK


@dataclass(frozen=True)
class Trace:
    scores: np.ndarray
    weights: np.ndarray
    lse: np.ndarray
    output: np.ndarray


def read(document):
    keys = np.array(document["keys"], dtype=float)
    return Document(
        name=document["name"],
        q=np.array(document["q"], dtype=float),
        keys=keys,
        values=np.array(document["values"], dtype=float) if "values" in document else np.eye(len(keys)),
        bQ=np.array(document["bQ"], dtype=float),
        bK=np.array(document["bK"], dtype=float),
        scale=document.get("scale", 1 / math.sqrt(document["d_k"])),
    )


with Path(os.environ["DOCUMENTS"]).open(encoding="utf-8") as file:
    DOCUMENTS = [read(document) for document in yaml.load_all(file, Loader=yaml.CSafeLoader)]

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=operator.attrgetter("name"))
close = functools.partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-12)


def softmax(scores):
    peak = scores.max(axis=-1, keepdims=True)
    powers = np.exp(scores - peak)
    total = powers.sum(axis=-1, keepdims=True)
    return powers / total, (peak + np.log(total))[:, 0]


@functools.cache
def attend(document, condition):
    """The code under test: one head of attention under one of the four conditions."""
    bQ, bK = document.biases(condition)
    scores = (document.q + bQ) @ (document.keys + bK).T * document.scale
    weights, lse = softmax(scores)
    return Trace(scores, weights, lse, weights @ document.values)


def product(a, b):
    return math.fsum(map(operator.mul, a, b))


def formula(document, condition):
    """The scores by the four terms, each row and key summed without rounding in between."""
    bQ, bK = (bias.tolist() for bias in document.biases(condition))
    keys = document.keys.tolist()
    both = product(bQ, bK)
    return document.scale * np.array(
        [[math.fsum((product(q, k), product(bQ, k), product(q, bK), both)) for k in keys] for q in document.q.tolist()]
    )


def row_shift(document, condition="k"):
    """s·(q_i + bQ)·bK for each row."""
    bQ, bK = (bias.tolist() for bias in document.biases(condition))
    both = product(bQ, bK)
    return document.scale * np.array([product(q, bK) + both for q in document.q.tolist()])


@each_document
def test_scores_follow_the_formula(document):
    for condition in CONDITIONS:
        close(attend(document, condition).scores, formula(document, condition))


@each_document
def test_key_bias_shifts_scores_alike(document):
    for before, after in ("none", "k"), ("q", "qk"):
        change = attend(document, after).scores - attend(document, before).scores
        close(change, np.broadcast_to(row_shift(document, after)[:, None], change.shape))


@each_document
def test_key_bias_leaves_weights(document):
    close(attend(document, "k").weights, attend(document, "none").weights)


@each_document
def test_key_bias_leaves_output(document):
    close(attend(document, "k").output, attend(document, "none").output)


@each_document
def test_both_biases_weigh_like_query_bias(document):
    close(attend(document, "qk").weights, attend(document, "q").weights)


@each_document
def test_each_row_shifts_by_its_own_constant(document):
    shifts = row_shift(document)
    assert abs(shifts[0] - shifts[1]) > 1e-12
    close((attend(document, "k").scores - attend(document, "none").scores).mean(axis=1), shifts)


@each_document
def test_query_bias_moves_score_gaps(document):
    bQ = document.bQ.tolist()
    products = document.scale * np.array([product(bQ, k) for k in document.keys.tolist()])
    for before, after in ("none", "q"), ("k", "qk"):
        change = attend(document, after).scores - attend(document, before).scores
        gaps = change - change[:, :1]
        close(gaps, np.broadcast_to(products - products[0], gaps.shape))


@each_document
def test_score_product_has_four_terms(document):
    none, query, key, both = (attend(document, condition).scores for condition in CONDITIONS)
    last = document.scale * product(document.bQ.tolist(), document.bK.tolist())
    close(both, none + (query - none) + (key - none) + last)


@each_document
def test_weight_ratios_follow_score_gaps(document):
    for condition in CONDITIONS:
        trace = attend(document, condition)
        logs = np.log(trace.weights)
        close(logs[:, :, None] - logs[:, None, :], trace.scores[:, :, None] - trace.scores[:, None, :])


@each_document
def test_weights_follow_scores_and_lse(document):
    for condition in CONDITIONS:
        trace = attend(document, condition)
        close(np.log(trace.weights), trace.scores - trace.lse[:, None])


@each_document
def test_weights_sum_to_one(document):
    for condition in CONDITIONS:
        weights = attend(document, condition).weights
        close(weights.sum(axis=1), np.ones(len(weights)))
        assert (weights >= 0).all()
        assert (weights <= 1 + 1e-12).all()


@each_document
def test_softmax_ignores_a_row_shift(document):
    trace = attend(document, "qk")
    shifts = 1.0 + np.arange(len(trace.scores))
    close(softmax(trace.scores + shifts[:, None])[0], trace.weights)


@each_document
def test_lse_moves_with_the_key_bias(document):
    close(attend(document, "k").lse - attend(document, "none").lse, row_shift(document))


@each_document
def test_output_mixes_values_by_weight(document):
    for condition in CONDITIONS:
        trace = attend(document, condition)
        close(trace.output, (trace.weights[:, :, None] * document.values).sum(axis=1))
