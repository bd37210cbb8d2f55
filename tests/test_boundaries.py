"""The map of where the conclusion stops: measured, and what the derivations say."""

from __future__ import annotations

import csv
from collections import defaultdict

import numpy as np
import pytest
from making import random_case, rng

from verify_attention.boundaries import CLAIMS, TAG, Cell, Row, boundary_map
from verify_attention.cases import load_cases
from verify_attention.engine import run_case
from verify_attention.errors import UsageError
from verify_attention.model import Case, Tolerance, Trace
from verify_attention.pipeline import CORE
from verify_attention.plugins import features, invariants
from verify_attention.reports import boundaries as reports

CASES = load_cases(shipped="boundaries")
ROWS = {row.name: row for row in boundary_map(CASES, CORE, Tolerance())}
KEY, QUERY, VALUE = CLAIMS
H, B, D = "holds", "breaks", "depends"

# Derived one by one in the table of variants: K bias leaves weights, the Q law of score gaps, V bias passes through.
DERIVED = {
    "plain": (H, H, H),
    "scale": (H, H, H),
    "cross-attention": (H, H, H),
    "multi-head": (H, H, H),
    "MQA": (H, H, H),
    "GQA": (H, H, H),
    "MLA": (D, H, H),  # as partial rotation: it depends on where the bias lies
    "key_shifts": (B, H, H),
    "qk_norm": (
        D,
        D,
        H,
    ),  # behind the bias it breaks, but for LayerNorm with a bias of equal channels; before it, holds
    "rope": (D, H, H),  # the Q law has the rotated key in it
    "temperature": (H, H, H),
    "softcap": (B, B, H),
    "score_bias": (H, H, H),
    "alibi": (H, H, H),
    "mask": (H, H, H),
    "causal": (H, H, H),
    "window": (H, H, H),
    "fill": (B, H, H),
    "sink": (B, H, B),
    "softmax_plus_one": (B, H, B),
    "zero_key": (B, H, B),
    "appended_key": (B, H, B),
    "normaliser": (D, H, D),  # sigmoid breaks; sparsemax and top-k hold
}


@pytest.mark.parametrize("name", DERIVED)
def test_each_cell_is_as_derived(name: str) -> None:
    assert tuple(ROWS[name].cells[claim].verdict for claim in CLAIMS) == DERIVED[name]


def test_every_feature_has_a_row_and_every_row_a_derivation() -> None:
    assert set(features()) <= set(ROWS)
    assert set(ROWS) == set(DERIVED)


def test_every_cell_is_backed_by_a_case_that_was_really_checked() -> None:
    for row in ROWS.values():
        for claim, cell in row.cells.items():
            assert cell.held + len(cell.broke) > 0, (row.name, claim)
            assert cell.wrong == ()


def test_where_a_claim_breaks_it_does_so_by_a_thousandth_and_more() -> None:
    for row in ROWS.values():
        for claim, cell in row.cells.items():
            assert min(cell.broke, default=1.0) >= 1e-3, (row.name, claim)


def test_where_it_breaks_the_amount_is_predicted_too() -> None:
    """A wrong implementation must not pass by breaking anyhow."""
    predicted = ("weights-follow-the-formula", "output-follows-the-formula", "scores-follow-the-formula")
    chosen = [invariants()[name] for name in (*CLAIMS, *predicted)]
    for case in CASES:
        findings = {finding.invariant: finding for finding in run_case(case, CORE, chosen, Tolerance()).findings}
        breaks = any(findings[claim].observed == "breaks" for claim in CLAIMS)
        if breaks:
            assert all(findings[name].checked and findings[name].status == "pass" for name in predicted), case.id


def test_each_boundary_case_departs_in_one_way() -> None:
    helpers = {"fill": {"causal"}, "window": {"causal"}, "MLA": {"rope"}}
    for case in CASES:
        (row,) = [tag for tag in case.tags if tag != TAG]
        due = {row} & set(features())
        assert set(case.features) - helpers.get(row, set()) == due, case.id


def test_a_wrong_implementation_is_not_as_expected() -> None:
    """One that adds the K bias behind the rotation keeps weights where they must not stay."""

    def bias_behind(case: Case) -> Trace:
        own = case.features.get("rope")
        return CORE(case if own is None else case.but(features={"rope": {**own, "bias": "after"}}))

    rows = {row.name: row for row in boundary_map(CASES, bias_behind, Tolerance())}
    assert rows["rope"].cells[KEY].wrong
    assert reports.told(rows["rope"].cells[KEY]) == "not as expected"
    assert not rows["sink"].cells[KEY].wrong


def test_the_amounts_are_those_of_plain_numpy() -> None:
    """Softcap by hand: the largest change of a weight when bK comes."""
    case = next(case for case in CASES if "softcap" in case.features)
    largest = 0.0
    for head, queries in enumerate(case.q):
        weights = []
        for bias in (np.zeros(4), case.bK[0]):
            scores = 3 * np.tanh(queries @ (case.keys[0] + bias).T / np.sqrt(4) / 3)
            powers = np.exp(scores)
            weights.append(powers / powers.sum(axis=1, keepdims=True))
        largest = max(largest, np.abs(weights[1] - weights[0]).max())
        assert head < 2
    assert ROWS["softcap"].cells[KEY].broke == (pytest.approx(largest, abs=1e-12),)


def test_any_case_is_asked_what_becomes_of_the_claims_there() -> None:
    rows = {row.name: row for row in boundary_map(load_cases(), CORE, Tolerance())}
    example = rows["article/two-dimensions"]
    assert [reports.told(example.cells[claim]) for claim in CLAIMS] == ["holds", "holds", "–"]  # it has no bV
    shifted = rows["article/different-shift-for-each-key"]
    assert shifted.cells[KEY].verdict == "breaks"
    assert shifted.why == 'key_shifts takes away "common key shift"'


def test_any_case_is_asked_whatever_it_expects() -> None:
    """A bias in channels that do not turn changes nothing, though a rotation takes away what the claim needs."""
    case = next(case for case in CASES if case.id.endswith("a-bias-that-does-not-turn"))
    (row,) = boundary_map([case.but(tags=(), expect={KEY: "breaks"})], CORE, Tolerance())
    assert row.cells[KEY].verdict == "holds"
    assert not row.cells[KEY].wrong
    assert row.why == 'rope takes away "common key shift", but this K bias moves no weight'


def test_of_several_features_those_are_the_reason_that_break_it_by_themselves() -> None:
    """A bias in the two channels that do not turn is no matter of the rotation, but of what takes a share."""
    case = next(case for case in CASES if case.id.endswith("a-bias-that-does-not-turn"))
    turned = next(case for case in CASES if case.id.endswith("partial-and-a-bias-that-turns"))
    both = [one.but(tags=(), features={**one.features, "sink": np.full(len(one.q), 0.5)}) for one in (case, turned)]
    sink, rope = 'sink takes away "shift-invariant softmax"', 'rope takes away "common key shift"'
    rows = boundary_map(both, CORE, Tolerance())
    assert [row.cells[KEY].verdict for row in rows] == ["breaks", "breaks"]
    assert [row.why for row in rows] == [sink, f"{rope}, {sink}"]


def test_a_bias_that_moves_weights_only_beside_the_q_bias_is_told() -> None:
    """Queries are 0, so that a K bias alone has nothing to meet; with bQ it meets that, turned with each key."""
    case = random_case(rng(90), H=1, G=1, Tq=2, Tk=3, d_k=2)
    rope = {"base": 100.0, "layout": "half", "rotary_dims": 2, "bias": "before"}
    places = {"q_positions": np.array([0.0, 0.0]), "k_positions": np.array([0.0, 1.0, 2.0])}
    given = case.but(q=np.zeros((1, 2, 2)), features={"rope": {**rope, **places}})
    (row,) = boundary_map([given], CORE, Tolerance())
    angles = np.arange(3.0)
    turned = np.stack([np.cos(angles), np.sin(angles)]), np.stack([-np.sin(angles), np.cos(angles)])
    added = [case.keys[0] + bias for bias in (np.zeros(2), case.bK[0])]
    powers = [
        np.exp(case.scale * ((keys[:, :1] * turned[0].T + keys[:, 1:] * turned[1].T) @ case.bQ[0])) for keys in added
    ]
    weights = [row / row.sum() for row in powers]
    assert row.cells[KEY].broke == (pytest.approx(np.abs(weights[1] - weights[0]).max(), abs=1e-12),)
    assert row.why == 'rope takes away "common key shift"'
    shifted = given.but(features={**given.features, "key_shifts": np.zeros(case.keys.shape)})
    (row,) = boundary_map([shifted], CORE, Tolerance())
    assert row.why == 'rope takes away "common key shift"'  # shifts of 0 move nothing, alone or beside the Q bias


def test_what_cannot_be_said_of_a_case_is_no_matter_of_what_it_expects() -> None:
    (case,) = load_cases(["cases/bias/no-key-bias.yaml"])
    (row,) = boundary_map([case.but(expect={KEY: "breaks"})], CORE, Tolerance())
    assert reports.told(row.cells[KEY]) == "–"
    assert row.why == "vacuous: s·q_i·bK is 0 in every row"


def test_what_rounding_alone_may_do_is_not_said_to_break() -> None:
    """A K bias of 1e10 costs the products 10 of their 16 digits, whoever computes them."""
    (row,) = boundary_map(load_cases(["cases/bias/key-bias-of-1e10.yaml"]), CORE, Tolerance())
    assert row.cells[KEY].verdict == "rounding"
    assert 1e-9 < row.cells[KEY].rounded[0] < 1e-4


@pytest.mark.parametrize(
    ("held", "broke", "rounded", "words"),
    [
        (0, (), (), "–"),
        (2, (), (), "holds"),
        (0, (0.25, 0.5, 0.125), (), "breaks (0.5)"),
        (1, (0.25,), (1.0,), "depends (0.25)"),
        (1, (), (2e-9, 3e-9), "rounding (3e-09)"),
        (0, (0.25,), (1.0,), "breaks (0.25)"),
    ],
)
def test_a_cell_in_words(held: int, broke: tuple[float, ...], rounded: tuple[float, ...], words: str) -> None:
    assert reports.told(Cell(held, broke, rounded)) == words
    assert reports.told(Cell(held, broke, rounded, ("something",))) == "not as expected"


def test_long_names_are_folded_and_no_figure_is_cut() -> None:
    name = "key-shifts-and-other-biases-of-many-heads::small-and-large"
    row = Row(name, "vectors", dict.fromkeys(CLAIMS, Cell(0, (), (4.1e-06,))), "why")
    for width in (60, 80):
        text = reports.rich([row], width, color=False)
        assert text.count("rounding (4.1e-06)") == 3
        assert max(map(len, text.splitlines())) <= width


def test_a_case_among_boundary_cases_has_its_own_row() -> None:
    (own,) = load_cases(["cases/bias/key-bias-of-1e5.yaml"])
    softcap = [case for case in CASES if "softcap" in case.tags]
    assert [row.name for row in boundary_map([own, *softcap], CORE, Tolerance())] == ["softcap", own.id]


def test_a_boundary_case_names_its_row() -> None:
    with pytest.raises(UsageError, match="beside 'boundaries' must be one"):
        boundary_map([CASES[0].but(tags=(TAG, "one", "two"))], CORE, Tolerance())


def test_every_form_has_every_row() -> None:
    rows = list(ROWS.values())
    assert [line[0] for line in list(csv.reader(reports.csv_text(rows).splitlines()))[1:]] == list(ROWS)
    assert reports.markdown(rows).count("\n") == len(rows) + 2
    for width in (80, 200):
        text = reports.rich(rows, width, color=False)
        assert all(name in text for name in ROWS)
        assert max(map(len, text.splitlines())) <= width
        assert "…" not in text


def test_each_case_can_have_its_own_row() -> None:
    rows = boundary_map(CASES, CORE, Tolerance(), each_case=True)
    assert len(rows) == len(CASES)
    names = [row.name for row in rows]
    assert len(set(names)) == len(names)
    by_file = defaultdict(list)
    for row in rows:
        by_file[row.name.partition("::")[0]].append(row.cells[KEY].verdict)
    assert by_file["rope"].count(B) == 3
