"""The article's table: scores and weights of every condition, as it prints them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from verify_attention.languages import Language
from verify_attention.model import Array, Condition
from verify_attention.reports.markdown import table

HEADINGS = ("condition", "scores before softmax ({symbols})", "softmax weights ({symbols})")
CONDITION_NAMES: dict[Condition, str] = {
    "none": "no bias",
    "q": "Q bias only",
    "k": "common K bias only",
    "qk": "Q and K biases",
}
SHIFTED_NAMES: dict[Condition, str] = {"k": "K bias and per-key shifts", "qk": "Q bias, K bias and per-key shifts"}
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True)
class ArticleTable:
    """One query row of one case: its title, its headings and its four rows of text."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def printed(number: float, decimals: int) -> str:
    """Return a number as the article prints it: with fixed decimals, an exact zero as 0."""
    if number == 0:
        return "0"
    text = f"{number:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def short(number: float, decimals: int = 3, room: int = 8) -> str:
    """Return a number as the article prints it, or by its power of ten where that needs more room."""
    text = printed(number, decimals)
    return text if len(text) <= room else f"{number:.1e}"


def triple(numbers: Iterable[float], decimals: int) -> str:
    """Return a row of numbers as the article prints it: `(0.707107, 0, -0.707107)`."""
    return f"({', '.join(printed(number, decimals) for number in numbers)})"


def article_tables(
    case_id: str, traces: dict[Condition, tuple[Array, Array]], shifted: bool, say: Language, decimals: int
) -> Iterator[ArticleTable]:
    """Yield a table for each query row, from each condition's scores and weights `[H, Tq, Tk]`."""
    heads, rows, keys = traces["none"][0].shape
    names = CONDITION_NAMES | (SHIFTED_NAMES if shifted else {})
    symbols = [", ".join(f"{letter}{str(key + 1).translate(SUBSCRIPTS)}" for key in range(keys)) for letter in "sp"]
    first, *others = HEADINGS
    numbered = zip(others, symbols, strict=True)
    headings = (say(first), *(say(heading, symbols=symbol) for heading, symbol in numbered))
    for head in range(heads):
        for row in range(rows):
            place = [say("head {index}", index=head)] if heads > 1 else []
            place += [say("row {index}", index=row)] if rows > 1 else []
            yield ArticleTable(
                ", ".join([case_id, *place]),
                headings,
                tuple(
                    (say(names[condition]), *(triple(array[head, row].tolist(), decimals) for array in arrays))
                    for condition, arrays in traces.items()
                ),
            )


def markdown(tables: Iterable[ArticleTable]) -> str:
    """Return tables in Markdown."""
    return "\n".join(f"**{made.title}**\n\n{table(made.headings, made.rows)}" for made in tables)


def csv_text(tables: Iterable[ArticleTable]) -> str:
    """Return tables as one CSV, the case in the first column."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    for index, made in enumerate(tables):
        if index == 0:
            writer.writerow(("case", *(heading.partition(" (")[0] for heading in made.headings)))
        writer.writerows((made.title, *row) for row in made.rows)
    return sink.getvalue()


def latex(tables: Iterable[ArticleTable]) -> str:
    """Return tables as LaTeX `tabular` environments; Japanese ones need a class that sets Japanese."""
    return "\n".join(_latex(table) for table in tables)


def _latex(table: ArticleTable) -> str:
    body = "".join(f"{' & '.join(map(_escaped, row))} \\\\\n" for row in table.rows)
    head = " & ".join(map(_escaped, table.headings))
    rows = f"\\hline\n{head} \\\\\n\\hline\n{body}\\hline\n"
    return f"% {table.title}\n\\begin{{tabular}}{{{'l' * len(table.headings)}}}\n{rows}\\end{{tabular}}\n"


def _escaped(text: str) -> str:
    for character in "&%#_":
        text = text.replace(character, f"\\{character}")
    for digit, subscript in zip("0123456789", "₀₁₂₃₄₅₆₇₈₉", strict=True):
        text = text.replace(subscript, f"$_{digit}$")
    return text
