"""From a picture to bytes: the same ones on every call, whatever the user's settings of matplotlib are."""

from __future__ import annotations

import html
import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import verify_attention
from verify_attention.wording import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INSTALL = "pip install 'verify-attention[plot]'"
FORMS = (".svg", ".png")
RESOLUTION = 150  # of a PNG, in dots per inch
WESTERN = ["DejaVu Sans"]  # which matplotlib brings along
JAPANESE = [
    "Noto Sans CJK JP",
    "Noto Sans JP",
    "IPAexGothic",
    "IPAGothic",
    "TakaoPGothic",
    "Hiragino Sans",
    "Yu Gothic",
    "Meiryo",
    "MS Gothic",
]
STYLE = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
    "font.size": 8,
    "hatch.linewidth": 0.8,
    "svg.fonttype": "none",  # text stays text: it can be searched, copied and read aloud
    "svg.hashsalt": "verify-attention",
    "text.parse_math": False,  # a dollar sign in somebody's name is a dollar sign
}


@dataclass(frozen=True)
class Picture:
    """What is drawn on a sheet of so many inches; its title, and in words what can be seen."""

    title: str
    description: str
    size: tuple[float, float]
    draw: Callable[[Figure], None]


def drawing_is_here() -> bool:
    """Say whether the library that draws is installed."""
    return find_spec("matplotlib") is not None


def japanese_is_here() -> bool:
    """Say whether a font with Japanese letters is installed, which pixels need, and text does not."""
    from matplotlib.font_manager import fontManager  # noqa: PLC0415 - an extra

    return not {font.name for font in fontManager.ttflist}.isdisjoint(JAPANESE)


def rendered(picture: Picture, form: str, lang: str) -> bytes:
    """Return a picture as SVG or PNG."""
    sink = io.BytesIO()
    title, description = printable(picture.title), printable(picture.description, longest=20_000)
    maker = f"verify-attention {verify_attention.__version__}"
    metadata: dict[str, Any] = {"Title": title, "Description": description}
    metadata |= {"Creator": maker, "Date": None} if form == ".svg" else {"Software": maker}
    with _styled(lang):
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra

        figure = Figure(figsize=picture.size)
        picture.draw(figure)
        figure.savefig(sink, format=form[1:], dpi=RESOLUTION, metadata=metadata)
    made = sink.getvalue()
    return _described(made.decode(), description).encode() if form == ".svg" else made


def _described(svg: str, description: str) -> str:
    """Give an SVG the description that is read aloud; matplotlib writes its title only."""
    return svg.replace("</title>\n", f"</title>\n <desc>{html.escape(description, quote=False)}</desc>\n", 1)


@contextmanager
def _styled(lang: str) -> Iterator[None]:
    """Draw in our own style: no user's settings, and fonts by fixed names, one of which is at hand."""
    import logging  # noqa: PLC0415 - only where something is drawn

    import matplotlib as mpl  # noqa: PLC0415 - an extra

    fonts = [*JAPANESE, *WESTERN] if lang == "ja" else [*WESTERN, *JAPANESE]
    logger = logging.getLogger("matplotlib.font_manager")  # it tells of each name that is not at hand
    before = logger.level
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # a letter of some case's name
        mpl.rcdefaults()
        mpl.rcParams.update({**STYLE, "font.family": [*fonts, "sans-serif"], "font.sans-serif": WESTERN})
        logger.setLevel(logging.ERROR + 1)
        try:
            yield
        finally:
            logger.setLevel(before)
