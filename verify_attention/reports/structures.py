"""The table of structures: what MHA, MQA, GQA and MLA keep of each token, from the shapes of cases.

A layer stores keys and values of each token, G·(d_k + d_v) numbers; with latent attention the latent and the position
part of the key, d_c + d_r. Over a case that is as often as it has keys: for equal widths 2·T·g·Dh, with one sequence.
Values that a case does not give are the identity, and as wide as there are keys.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from verify_attention.languages import Language
from verify_attention.model import Case
from verify_attention.reports import article
from verify_attention.reports.article import ArticleTable
from verify_attention.reports.figures import counted

ORDER = ("MHA", "MQA", "GQA", "MLA")
HEADINGS = (
    "structure",
    "query heads",
    "K/V representation",
    "cached numbers per token per layer",
    "cached numbers for the whole case",
)
TITLE = "MHA, MQA, GQA and MLA"
REPRESENTATIONS = {
    "MQA": "1 shared pair",
    "GQA": "{g} shared pairs (1 <= g <= h)",
    "MLA": "compressed latent and a position part",
    "MLA without positions": "compressed latent",
}


@dataclass(frozen=True)
class Structure:
    """One case as a structure: its name, the heads, how many numbers are stored of each token, and in which words."""

    name: str
    query_heads: int
    kv_heads: int
    per_token: int
    tokens: int
    words: str

    @property
    def in_all(self) -> int:
        """How many numbers a layer stores of the whole case."""
        return self.per_token * self.tokens


def structure_of(case: Case) -> Structure:
    """Return what a case is, judged by its shapes: g = h is MHA, g = 1 MQA, a latent MLA, anything else GQA."""
    heads, kv_heads, tokens = len(case.q), len(case.keys), case.keys.shape[1]
    if case.latent is not None:
        positions = case.d_k - case.latent.W_UK.shape[-1]
        words = "MLA" if positions else "MLA without positions"
        return Structure("MLA", heads, kv_heads, case.latent.c.shape[-1] + positions, tokens, words)
    name = "MHA" if kv_heads == heads else "MQA" if kv_heads == 1 else "GQA"
    return Structure(name, heads, kv_heads, kv_heads * (case.d_k + case.d_v), tokens, name)


def table(cases: Sequence[Case], say: Language) -> ArticleTable:
    """Return the table with a row for each case, in the source's order of structures.

    Cases of one structure are told apart by their ids.
    """
    found = sorted(((structure_of(case), case) for case in cases), key=lambda pair: ORDER.index(pair[0].name))
    counts = Counter(each.name for each, _ in found)
    rows = []
    for each, case in found:
        name = each.name if counts[each.name] == 1 else f"{each.name}, {case.id}"
        own = counted(each.kv_heads, "independent head", say)
        words = own if each.words == "MHA" else say(REPRESENTATIONS[each.words], g=each.kv_heads)
        rows.append((name, str(each.query_heads), words, str(each.per_token), str(each.in_all)))
    return ArticleTable(say(TITLE), tuple(map(say, HEADINGS)), tuple(rows))


def csv_text(made: ArticleTable) -> str:
    """Return the table as CSV."""
    sink = io.StringIO()
    csv.writer(sink, lineterminator="\n").writerows((made.headings, *made.rows))
    return sink.getvalue()


def latex(made: ArticleTable) -> str:
    """Return the table as a LaTeX `tabular` environment; a Japanese one needs a class that sets Japanese."""
    return article.latex([made]).replace("<=", r"$\le$").replace("≤", r"$\le$")


def markdown(made: ArticleTable) -> str:
    """Return the table in Markdown."""
    return article.markdown([made])
