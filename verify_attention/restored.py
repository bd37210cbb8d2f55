"""From the document that results.json holds back to the report, so that a stored run is shown as a fresh one is.

Nothing is judged here: a report says what the file says. What JSON does not have comes back as far as it is known: a
null score of a hidden key is −∞, any other null among numbers NaN; a deviation or a bound that is null is infinite.
Of an array that is stored as a summary the inputs have NaNs in its shape, and traces the summary. Texts have nothing in
them that a terminal would obey.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from verify_attention import departures
from verify_attention.errors import ResultsError
from verify_attention.model import (
    CONDITIONS,
    Array,
    Case,
    CaseReport,
    Condition,
    Finding,
    Latent,
    Opinion,
    Published,
    Report,
    Tolerance,
    UnderTest,
    Worst,
    precision,
)
from verify_attention.resources import SHIPPED
from verify_attention.sealing import Document
from verify_attention.summary import Summary
from verify_attention.wording import printable


def restored(made: Document) -> Report:
    """Return the report that a document tells of, which satisfies the schema of results.

    Raises:
        ResultsError: the shapes of a case's arrays do not go together.

    """
    under_test, reports = UnderTest(*(printable(made["implementation"][name]) for name in UnderTest._fields)), []
    for entry in made["cases"]:
        try:
            reports.append(_case_report(entry, under_test))
        except (ValueError, TypeError, LookupError):
            raise ResultsError(f"{entry['id']}: its arrays do not go together; `gate` says what is wrong") from None
    tolerance = Tolerance(**made["tolerance"])
    return Report(
        under_test,
        tolerance,
        tuple(reports),
        printable(made["tool"]["version"]),
        {name: printable(text) for name, text in made["environment"].items()},
    )


def _case_report(entry: Document, under_test: UnderTest) -> CaseReport:
    case = _case(entry, under_test)
    seen = departures.visible(case) if isinstance(entry["conditions"]["none"]["scores"], list) else None
    traces: dict[Condition, dict[str, Array | Summary]] = {}
    for condition in CONDITIONS:
        shown = entry["conditions"][condition]
        traces[condition] = {name: _array(value) for name, value in shown.items() if value is not None}
        scores = traces[condition].get("scores")
        if seen is not None and isinstance(scores, np.ndarray):
            traces[condition]["scores"] = np.where(~seen & np.isnan(scores), -np.inf, scores)
    _check(case, traces)
    return CaseReport(case, traces, tuple(map(_finding, entry["findings"])))


def _check(case: Case, traces: Mapping[Condition, Mapping[str, Array | Summary]]) -> None:
    """Refuse a case whose arrays, or traces, have not the shapes that its queries and keys give them."""
    heads, rows, keys = case.scores_shape
    shapes = {"scores": (heads, rows, keys), "weights": (heads, rows, keys), "lse": (heads, rows)}
    sound = case.q.shape[2:] == case.keys.shape[2:] == case.bQ.shape[1:] == case.bK.shape[1:]
    sound = sound and case.q.ndim == case.keys.ndim == 3 and (case.values is None or case.values.ndim == 3)
    found = (
        (array.shape, shapes.get(name, (heads, rows, case.d_v)))
        for one in traces.values()
        for name, array in one.items()
    )
    if not sound or any(shape != due for shape, due in found):
        raise ValueError


def _case(entry: Document, under_test: UnderTest) -> Case:
    given = entry["inputs"]
    arrays: dict[str, Any] = {
        name: _whole(given[name]) for name in ("q", "keys", "bQ", "bK", "values", "bV", "W_O") if given.get(name)
    }
    latent, file = given.get("latent"), printable(entry["file"])
    return Case(
        **arrays,
        id=printable(entry["id"]),
        file=file,
        path="" if file.startswith(SHIPPED) else file,
        line=entry["line"],
        sha256=entry["sha256"],
        title=given["title"] and printable(given["title"]),
        source=given["source"] and printable(given["source"]),
        tags=tuple(map(printable, given["tags"])),
        scale=given["scale"],
        latent=latent and Latent(**{name: _whole(value) for name, value in latent.items()}),
        features=_parameters(given["features"]),
        expect=given["expect"],
        published=_published(given["published"]),
        precision=precision(under_test.dtype, under_test.computes_in),
    )


def _parameters(value: Any) -> Any:
    """Return a feature's parameters with their arrays; whole numbers beside each other, or nothing, are a window."""
    if isinstance(value, dict) and "sha256" not in value:
        return {name: _parameters(part) for name, part in value.items()}
    if isinstance(value, list) and all(part is None or type(part) is int for part in value):
        return tuple(value)
    return _whole(value) if isinstance(value, dict | list) else value


def _published(stored: Document | None) -> Published | None:
    if stored is None:
        return None
    numbers: dict[str, dict[Condition, Array]] = {
        quantity: {condition: _whole(value) for condition, value in by_condition.items()}
        for quantity, by_condition in stored.items()
        if quantity != "decimals"
    }
    return Published(stored["decimals"], numbers)


def _whole(stored: Any) -> Array:
    array = _array(stored)
    return np.broadcast_to(np.nan, array.shape) if isinstance(array, Summary) else array


def _array(stored: Any) -> Array | Summary:
    if isinstance(stored, dict):
        smallest, largest, mean = (_number(stored[name]) for name in ("smallest", "largest", "mean"))
        return Summary(tuple(stored["shape"]), smallest, largest, mean, stored["sha256"])
    array = np.array(stored)
    return array if array.dtype == bool else array.astype(np.float64)  # null is NaN


def _number(stored: float | None) -> float:
    return float("nan") if stored is None else stored


def _finding(stored: Document) -> Finding:
    worst, deviation, bound = _worst(stored["worst"]), stored["deviation"], stored["rounding_bound"]
    if stored["observed"] is not None:
        bound = np.inf if bound is None else bound
        deviation = np.inf if deviation is None else deviation
    changed = {"worst": worst, "deviation": deviation, "rounding_bound": bound, "opinion": _opinion(stored)}
    reason = stored["reason"] and printable(stored["reason"])
    return Finding(**{**stored, **changed, "invariant": printable(stored["invariant"]), "reason": reason})


def _opinion(finding: Document) -> Opinion | None:
    stored = finding.get("opinion")
    if stored is None:
        return None
    worst = _worst(stored["worst"])  # the cause follows from the finding
    return Opinion(stored["verdict"], stored["difference"], stored["limit"], worst, printable(stored["reason"]))


def _worst(stored: Document | None) -> Worst | None:
    if stored is None:
        return None
    place = printable(stored["of"]), stored["head"], stored["row"], stored["axis"], stored["index"]
    return Worst(*place, _number(stored["left"]), _number(stored["right"]))
