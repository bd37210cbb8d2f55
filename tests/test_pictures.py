"""Pictures and bars: what is drawn is what the article prints, whatever the source, and the same bytes each time."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from verify_attention import resources
from verify_attention.cases import load_cases
from verify_attention.cli import explaining, main
from verify_attention.languages import ENGLISH, Language
from verify_attention.model import CONDITIONS, Fault, Finding, Trace
from verify_attention.pipeline import CORE
from verify_attention.reports import bars, pictures

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

CASES = resources.folder("cases")
EXAMPLE = str(CASES / "article" / "two-dimensions.yaml")
SUBJECTS = ("weights", "scores", "deviations", "map")

# The article's printed table.
SCORES = {
    "none": [0.707107, 0, -0.707107],
    "q": [0.707107, 0.707107, -0.707107],
    "k": [2.828427, 2.121320, 1.414214],
    "qk": [1.414214, 1.414214, 0],
}
WEIGHTS = {
    "none": [0.575975, 0.283995, 0.140029],
    "q": [0.445808, 0.445808, 0.108383],
    "k": [0.575975, 0.283995, 0.140029],
    "qk": [0.445808, 0.445808, 0.108383],
}


def call(*arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code


def drawn(capsysbinary, *arguments, code=0):
    """Return the SVG that is printed, and what is said beside it."""
    assert call("plot", *arguments, "-o", "-") == code
    out, err = capsysbinary.readouterr()
    return out.decode(), err.decode()


SPACE = "{http://www.w3.org/2000/svg}"


def parsed(svg):
    return ET.fromstring(svg)  # noqa: S314 - it is ours


def texts_of(svg):
    return [text.text for text in parsed(svg).iter(f"{SPACE}text")]


def figure_of(picture):
    figure = Figure(figsize=picture.size)
    picture.draw(figure)
    return figure


def heights(axes):
    """Return the heights of bars by condition: each kind of bars is a container with the condition's name."""
    return {container.get_label(): [bar.get_height() for bar in container] for container in axes.containers}


def example(quantity, numbers):
    arrays = {condition: np.array([[row]], dtype=float) for condition, row in numbers.items()}
    found, left_out = pictures.panels([("mine", arrays, False)])
    assert left_out == []
    return pictures.bars_picture(found, quantity, ENGLISH)


def random_case(heads, rows, keys, seed=3, **more):
    random = np.random.default_rng(seed)
    shapes = {"q": (heads, rows, 2), "keys": (heads, keys, 2), "bQ": (heads, 2), "bK": (heads, 2)}
    return {"d_k": 2, **{name: random.uniform(-1, 1, shape).tolist() for name, shape in shapes.items()}, **more}


@pytest.fixture
def written(tmp_path):
    def write(case, name="mine.yaml"):
        path = tmp_path / name
        path.write_text(json.dumps(case), encoding="utf-8")
        return path

    return write


# --- what is drawn


@pytest.mark.parametrize(("subject", "printed"), [("weights", WEIGHTS), ("scores", SCORES)])
def test_bars_are_as_high_as_the_article_s_numbers(subject, printed, monkeypatch, tmp_path):
    """From the command line on: the picture that is made of the case has the printed heights."""
    made = []
    monkeypatch.setattr(pictures, "rendered", lambda picture, form, lang: made.append(picture) or b"")
    assert call("plot", EXAMPLE, "--of", subject, "-o", tmp_path / "x.svg") == 0
    (axes,) = figure_of(made[0]).axes
    found = heights(axes)
    assert list(found) == ["none", "k", "q", "qk"]
    for condition in CONDITIONS:
        assert found[condition] == pytest.approx(printed[condition], abs=5.1e-7)


def test_k_only_looks_like_none_and_both_like_q_only():
    (axes,) = figure_of(example("weights", WEIGHTS)).axes
    found = heights(axes)
    assert found["k"] == found["none"] != found["q"] == found["qk"]
    colours = {one.get_label(): one.patches[0].get_edgecolor() for one in axes.containers}
    hatches = {one.get_label(): one.patches[0].get_hatch() for one in axes.containers}
    assert colours["none"] == colours["k"] != colours["q"] == colours["qk"]
    assert (hatches["none"], hatches["q"]) == (None, None)
    assert hatches["k"] == hatches["qk"] != ""
    texts = [text.get_text() for text in axes.texts]
    assert texts == ["0.576", "0.446", "0.284", "0.446", "0.140", "0.108", texts[-1]]  # once for each pair
    assert texts[-1] == "K bias moves no weight (0.0), Q bias up to 0.16"


def test_bars_that_differ_have_a_number_each():
    moved = {**WEIGHTS, "k": [0.6, 0.3, 0.1]}
    (axes,) = figure_of(example("weights", moved)).axes
    texts = [text.get_text() for text in axes.texts]
    assert texts[:3] == ["0.576", "0.600", "0.446"]
    assert texts[-1] == "K bias moves weights up to 0.04, Q bias up to 0.16"


def test_scores_say_what_the_k_bias_adds():
    """3/√2 to every score, and 1/√2 beside the Q bias: s·q·bK and s·(q + bQ)·bK."""
    by_hand = {"none": [1, 0, -1], "q": [1, 1, -1], "k": [4, 3, 2], "qk": [2, 2, 0]}
    exact = {condition: [one / 2**0.5 for one in row] for condition, row in by_hand.items()}
    assert "mine: K bias adds +2.121, beside Q +0.707." in example("scores", exact).description
    apart = {**exact, "k": [4 / 2**0.5, 3 / 2**0.5, 3]}
    assert "mine: K bias adds +2.121 … +3.707, beside Q +0.707" in example("scores", apart).description


def test_a_hidden_key_is_marked_and_has_no_bar():
    for gone in (-np.inf, np.nan):
        found, _ = pictures.panels(
            [("mine", {condition: np.array([[[1.0, gone, -2.0]]]) for condition in CONDITIONS}, False)]
        )
        figure = figure_of(pictures.bars_picture(found, "scores", ENGLISH))
        assert heights(figure.axes[0])["none"] == [1.0, 0.0, -2.0]
        crosses = [line for line in figure.axes[0].lines if line.get_marker() == "x"]
        assert [list(np.round(line.get_xdata(), 1)) for line in crosses] == [[0.7], [0.9], [1.1], [1.3]]
        names = [text.get_text() for text in figure.legends[0].get_texts()]
        assert names[-1] == "no score: a hidden key, or an overflow"
        assert "no bias (1.000, –, -2.000)" in pictures.bars_picture(found, "scores", ENGLISH).description


def test_numbers_beyond_any_scale_are_drawn_as_none():
    huge = {condition: np.array([[[1e305, 1.0]]]) for condition in CONDITIONS}
    found, _ = pictures.panels([("mine", huge, False)])
    assert pictures.rendered(pictures.bars_picture(found, "scores", ENGLISH), ".svg", "en").startswith(b"<?xml")


FINDINGS = [
    Finding("a", "pass", "holds", "holds", 0.0, 1e-12),
    Finding("a", "pass", "holds", "holds", 5e-14, 1e-12),
    Finding("b", "pass", "breaks", "breaks", 0.3, 1e-12),
    Finding("b", "pass", "within-rounding", "within-rounding", 3e-12, 1e-12),
    Finding("c", "fail", "holds", "breaks", np.inf, 1e-12),
    Finding("c", "inconclusive", "holds", "within-rounding", 2e-12, 1e-12),
    Finding("d", "skipped", "holds"),
    Finding("e", "crashed", "holds"),
]


def test_deviations_stand_where_their_limits_put_them():
    figure = figure_of(pictures.deviations_picture(FINDINGS, ENGLISH))
    (axes,) = figure.axes
    found = {line.get_label(): list(map(tuple, line.get_xydata())) for line in axes.lines if "(" in line.get_label()}
    ticks = dict(zip((t.get_text() for t in axes.get_xticklabels()), axes.get_xticks(), strict=True))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c"]  # nothing was measured of d and e
    assert found == {
        "holds, as expected (2)": [(ticks["exactly 0"], 0), (0.05, 0)],
        "breaks, as expected (1)": [(3e11, 1)],
        "within rounding, as expected (1)": [(3.0, 1)],
        "inconclusive (1)": [(2.0, 2)],
        "fails (1)": [(ticks["not finite"], 2)],
    }
    assert ticks["1"] == 1
    assert ticks["exactly 0"] < 1e-3
    assert ticks["not finite"] > 3e11
    assert len({line.get_marker() for line in axes.lines if "(" in line.get_label()}) == 5  # a form for each
    assert "not drawn: 2 findings" in figure.texts[-1].get_text()


def test_the_map_has_a_word_in_every_cell(capsysbinary):
    svg, _ = drawn(capsysbinary, "--of", "map")
    texts = texts_of(svg)
    for word in ("plain", "softcap", "normaliser", "K bias leaves weights", "depends (0.18)", "breaks (0.4)"):
        assert word in texts
    words = [text for text in texts if re.match(r"(holds|breaks|depends|rounding|–)( \(|$)", text)]
    assert sum(text.startswith(("holds", "breaks", "depends")) for text in words) == 3 * 23


def test_a_control_that_does_not_break_stands_out_in_the_map(capsysbinary, written):
    case = random_case(1, 1, 3, tags=["boundaries", "plain"], expect={"key-bias-leaves-weights": "breaks"})
    assert "not as expected" in drawn(capsysbinary, written(case), "--of", "map")[0]


def test_long_names_and_large_numbers_stay_in_their_panels(written, capsysbinary):
    name = "a-case-" + "that-has-a-long-name-" * 4 + "and-an-end"
    case = random_case(2, 1, 3, name=name)
    case["q"] = [[[1e6, 0]], [[0, 1e7]]]
    path = written(case)
    for subject in ("weights", "scores"):
        svg, _ = drawn(capsysbinary, path, "--of", subject)
        titles = [text for text in texts_of(svg) if text.endswith("and-an-end, head 1")]
        assert [(len(title), title[0]) for title in titles] == [(52, "…")]
        assert name in parsed(svg)[1].text
        assert max(len(text) for text in texts_of(svg) if re.match(r"[−-]?\d", text)) <= 8
    svg, _ = drawn(capsysbinary, path, "--of", "map")
    assert [len(text) for text in texts_of(svg) if text.endswith("and-an-end")] == [55]


# --- both sources


def test_a_results_file_gives_the_same_picture_as_its_cases(tmp_path, capsysbinary):
    assert call("run", CASES / "boundaries", CASES / "article", "-o", tmp_path / "r.json", "-q") == 0
    for subject in ("weights", "scores", "deviations"):
        capsysbinary.readouterr()
        by_cases = drawn(capsysbinary, CASES / "boundaries", CASES / "article", "--of", subject)
        assert drawn(capsysbinary, tmp_path / "r.json", "--of", subject) == by_cases
        chosen = drawn(capsysbinary, tmp_path / "r.json", "--of", subject, "-k", "SOFTCAP")
        assert chosen == drawn(capsysbinary, CASES / "boundaries", CASES / "article", "--of", subject, "-k", "softcap")
        assert chosen != by_cases
    assert call("plot", tmp_path / "r.json", "-k", "nothing-has-this", "-o", "-") == 2
    assert call("plot", tmp_path / "r.json", "--of", "map", "-o", "-") == 2
    assert b"the map is measured on cases, not read from results" in capsysbinary.readouterr().err


def test_per_key_shifts_are_named_from_both_sources(tmp_path, capsysbinary):
    case = CASES / "article" / "different-shift-for-each-key.yaml"
    assert call("run", case, "-o", tmp_path / "r.json", "-q") == 0
    capsysbinary.readouterr()
    for source in (case, tmp_path / "r.json"):
        assert "K bias with shifts moves weights up to 0.19" in drawn(capsysbinary, source)[0]


# --- what is left out


def test_what_is_left_out_is_said_in_a_line(written, capsysbinary):
    many = [random_case(3, 9, 3, name="many"), random_case(1, 1, 70, name="wide"), random_case(1, 70, 70, name="large")]
    path = written(many[0], "a.yaml")
    path.write_text("\n---\n".join(map(json.dumps, many)), encoding="utf-8")
    svg, said = drawn(capsysbinary, path)
    assert said == "left out: a::large: too large to be stored whole; 4 of 28 query rows\n"
    assert sum(text.startswith("a::many, head") for text in texts_of(svg)) == 24
    assert "a::wide" not in svg
    _, said = drawn(capsysbinary, f"{path}::wide")
    assert said == "left out: keys behind the first 64 of a::wide\n"


def test_all_that_can_be_left_out_is_an_error_in_a_line(written, capsys):
    assert call("plot", written(random_case(1, 70, 70)), "-o", "-") == 2
    assert capsys.readouterr() == ("", "error: there are no weights to draw: mine: too large to be stored whole\n")


def test_an_implementation_that_shows_no_scores_has_none_to_draw(tmp_path, capsys):
    kernel = Path(__file__).parent / "example" / "kernel.py"
    call("run", EXAMPLE, "--implementation", f"{kernel}:attention", "-o", tmp_path / "r.json", "-q")
    capsys.readouterr()
    assert call("plot", tmp_path / "r.json", "--of", "scores", "-o", "-") == 2
    assert "two-dimensions: not shown by the implementation" in capsys.readouterr().err
    for subject in ("weights", "deviations"):
        assert call("plot", tmp_path / "r.json", "--of", subject, "-o", "-") == 0
        assert "kernel.py:attention, float64" in parsed(capsys.readouterr().out)[0].text


def test_where_nothing_was_measured_there_are_no_deviations(tmp_path, capsys):
    (tmp_path / "broken.py").write_text("def attention(q, k, v):\n    raise ValueError('no')\n", encoding="utf-8")
    made = tmp_path / "r.json"
    assert call("run", EXAMPLE, "--implementation", f"{tmp_path}/broken.py:attention", "-o", made, "-q") == 4
    capsys.readouterr()
    assert call("plot", made, "--of", "deviations", "-o", "-") == 2
    message = "error: no finding here was judged by a measurement: there is nothing to draw\n"
    assert capsys.readouterr() == ("", message)


def test_places_without_a_panel_stay_empty_and_a_row_without_scores_says_so():
    arrays = {condition: np.array([[[1.0]], [[2.0]], [[3.0]], [[-np.inf]]]) for condition in CONDITIONS}
    found, _ = pictures.panels([("mine", arrays, False)])
    picture = pictures.bars_picture(found, "scores", ENGLISH)
    assert [axes.axison for axes in figure_of(picture).axes] == [True] * 4 + [False] * 2
    assert "mine, head 3: K bias adds –, beside Q –. no bias (–)" in picture.description


# --- bytes


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_same_bytes_each_time(subject, tmp_path):
    """Whatever the order of hashes is, and whatever the user's own settings of matplotlib are."""
    (tmp_path / "matplotlibrc").write_text("font.size: 20\nsvg.fonttype: path\naxes.facecolor: red\n", encoding="utf-8")
    (tmp_path / "other").mkdir()
    made = []
    for seed, folder in (("1", tmp_path), ("2", tmp_path / "other")):
        command = [sys.executable, "-m", "verify_attention", "plot", "--of", subject, "-o", "-"]
        done = subprocess.run(
            command, capture_output=True, check=True, cwd=folder, env={**os.environ, "PYTHONHASHSEED": seed}
        )
        made.append(done.stdout)
    assert made[0] == made[1]
    assert made[0].startswith(b"<?xml")


def test_an_svg_has_a_title_and_a_description_and_its_text_is_text(capsysbinary):
    svg, said = drawn(capsysbinary, EXAMPLE)
    title, description = parsed(svg)[:2]
    assert said == ""
    assert [title.tag, description.tag] == [f"{SPACE}title", f"{SPACE}desc"]
    assert title.text == "Softmax weights of each key under four conditions"
    assert "Q bias only (0.446, 0.446, 0.108)" in description.text
    assert {"no bias", "common K bias only", "Q bias only", "Q and K biases", "p₁", "0.576"} <= set(texts_of(svg))
    assert not re.search(r"<dc:date>", svg)


def test_a_png_is_one_and_the_old_file_is_replaced(tmp_path, capsys):
    target = tmp_path / "article.PNG"
    target.write_bytes(b"old")
    assert call("plot", EXAMPLE, "-o", target) == 0
    assert target.read_bytes().startswith(b"\x89PNG\r\n")
    assert [path.name for path in tmp_path.iterdir()] == ["article.PNG"]
    assert capsys.readouterr() == ("", "")


def test_names_are_no_markup(written, capsysbinary):
    svg, _ = drawn(capsysbinary, written(random_case(1, 1, 2, name="$x_1$<b>&amp;")))
    assert "mine::$x_1$<b>&amp;" in texts_of(svg)


def test_japanese_words(capsysbinary, monkeypatch):
    svg, _ = drawn(capsysbinary, EXAMPLE, "--lang", "ja")
    assert {"biasなし", "共通K biasのみ追加", "Q biasのみ追加", "Q・K biasすべて追加"} <= set(texts_of(svg))
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert drawn(capsysbinary, EXAMPLE)[0] == svg


def test_pixels_of_japanese_need_a_font(tmp_path, capsys, monkeypatch):
    assert call("plot", EXAMPLE, "-o", tmp_path / "en.png", "--lang", "en") == 0
    monkeypatch.setattr(pictures, "japanese_is_here", lambda: False)
    assert call("plot", EXAMPLE, "-o", tmp_path / "ja.png", "--lang", "ja") == 0
    assert capsys.readouterr().err.startswith("note: no font with Japanese letters is installed")
    assert (tmp_path / "ja.png").read_bytes() == (tmp_path / "en.png").read_bytes()


@pytest.mark.parametrize(("fonts", "there"), [(["DejaVu Sans", "IPAexGothic"], True), (["DejaVu Sans"], False)])
def test_a_font_with_japanese_letters_is_known_by_its_name(fonts, there, monkeypatch):
    from matplotlib import font_manager

    known = SimpleNamespace(ttflist=[SimpleNamespace(name=name) for name in fonts])
    monkeypatch.setattr(font_manager, "fontManager", known)
    assert pictures.japanese_is_here() is there


# --- wrong input


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([EXAMPLE, "-o", "picture.pdf"], 2, "picture.pdf: a picture's name ends in .svg or .png"),
        ([EXAMPLE, "-o", "picture"], 2, "picture: a picture's name ends in .svg or .png"),
        ([EXAMPLE, "-o", ""], 2, ": a picture's name ends in .svg or .png"),
        ([EXAMPLE, "-o", "no/such/x.svg"], 2, "no/such/x.svg: the folder no/such does not exist"),
        (["no.yaml", "-o", "x.svg"], 2, "no.yaml"),
        (["no.json", "-o", "x.svg"], 2, "no.json: no such file"),
        ([EXAMPLE, "r.json", "-o", "x.svg"], 2, "r.json: a results file is drawn alone, without other paths"),
        (["bad.json", "-o", "x.svg"], 4, "bad.json:1:1: not JSON"),
        (["bad.yaml", "-o", "x.svg"], 3, "bad.yaml:1:"),
        ([EXAMPLE, "-k", "nobody", "-o", "x.svg"], 2, "the one case does not have 'nobody'"),
    ],
)
def test_what_is_wrong_is_said_in_a_line_and_nothing_is_written(
    arguments, code, message, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for name in ("bad.json", "bad.yaml"):
        (tmp_path / name).write_text("nonsense", encoding="utf-8")
    assert call("plot", *arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert message in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "x.svg").exists()


def test_without_matplotlib_a_line_says_how_to_install_it(monkeypatch, capsys):
    there = importlib.util.find_spec
    monkeypatch.setattr(
        "verify_attention.reports.pictures.canvas.find_spec",
        lambda name: None if name == "matplotlib" else there(name),
    )
    assert call("plot", EXAMPLE, "-o", "x.svg") == 2
    message = "error: plot needs matplotlib, which is not installed: pip install 'verify-attention[plot]'\n"
    assert capsys.readouterr() == ("", message)


def test_other_commands_do_not_load_it():
    code = "import sys; from verify_attention.cli import group; group.main(['explain', 'rope'], standalone_mode=False)"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; print('matplotlib' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.endswith("False\n")


# --- bars of characters


def line_of(text, label):
    (line,) = [line for line in text.splitlines() if line.split()[:1] == [label]]
    return line


def test_bars_of_characters_show_the_article_s_numbers():
    """The largest has all seven columns; the least of none has 7·0.140029/0.575975 = 1.70 of them: 1 and 6 eighths."""
    text = bars.of_rows({"": {name: np.array(row) for name, row in WEIGHTS.items()}}, "weights").plain
    assert text == (
        "            no bias          K bias only      Q bias only      Q and K\n"
        "    p₁     0.576 ███████    0.576 ███████    0.446 █████▍     0.446 █████▍\n"
        "    p₂     0.284 ███▌       0.284 ███▌       0.446 █████▍     0.446 █████▍\n"
        "    p₃     0.140 █▊         0.140 █▊         0.108 █▍         0.108 █▍\n"
    )


def test_bars_of_characters_go_to_both_sides_of_zero():
    """Of seven columns two stand left of zero, so that −1 fits, on a scale where 2 has four."""
    row = {condition: np.array([2.0, -1.0, -0.5, 0.0, -np.inf]) for condition in CONDITIONS}
    heading, title, *lines = bars.of_rows({"a row": row}, "scores").plain.splitlines()
    assert heading.split("  ")[-1] == "Q and K"
    assert title == "    a row"
    assert [line[8:24].rstrip() for line in lines] == [
        "   2.000   ████",
        "  -1.000 ██",
        "  -0.500  █",
        "       0",
        "      −∞",
    ]
    assert {len(set(line[4:].split()[1::2])) for line in lines[:3]} == {1}


@pytest.mark.parametrize("numbers", [[1e308, -1e308], [5e-324, 0.0], [-5e-324, 1.0], [0.0, 0.0], [-123456.789, 1e-9]])
def test_bars_of_characters_fit_whatever_the_numbers_are(numbers):
    row = {condition: np.array(numbers) for condition in CONDITIONS}
    for lang in ("en", "ja"):
        text = bars.of_rows({"": row}, "scores", Language(lang))
        assert all(line.cell_len <= 76 for line in text.split("\n"))


def test_verbose_shows_bars_of_small_cases_only(tmp_path, written, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        call("run", EXAMPLE, "-v", "--no-output", "--select", "weights-sum-to-one")
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert line_of(out, "p₁").split()[1::2] == ["0.576", "0.576", "0.446", "0.446"]
        assert line_of(out, "s₁").split()[1::2] == ["0.707", "2.828", "0.707", "1.414"]
    for case in (random_case(1, 5, 2), random_case(1, 1, 9), random_case(5, 1, 2)):
        call("run", written(case), "-v", "--no-output", "--select", "weights-sum-to-one")
        assert "p₁" not in capsys.readouterr().out
    call("run", written(random_case(2, 2, 8)), "-v", "--no-output", "--select", "weights-sum-to-one")
    assert capsys.readouterr().out.count("p₈") == 4
    call("run", EXAMPLE, "--no-output")
    assert "p₁" not in capsys.readouterr().out


def test_explain_shows_what_a_mistake_makes_of_its_smallest_case(capsys, monkeypatch):
    """Two equal keys share the weight; a bias of 1 on the first alone gives it e/(e + 1) = 0.731."""
    monkeypatch.setenv("COLUMNS", "80")
    assert call("explain", "key-bias-leaves-weights") == 0
    out = capsys.readouterr().out
    right, wrong = [line.split()[1::2] for line in out.splitlines() if line.split()[:1] == ["p₁"]]
    assert right == ["0.500", "0.500", "0.500", "0.500"]
    assert wrong == ["0.500", "0.731", "0.500", "0.731"]
    assert out.index("as it should be") < out.index("with the mistake")
    assert max(map(len, out.splitlines())) <= 80


def test_of_a_mistake_the_first_quantity_that_differs_is_shown_where_it_differs_most():
    """NaN is far from every number; what is not shown, or has too many numbers, is passed over."""
    due = {"weights": np.full((2, 1, 2), 0.5), "scores": np.zeros((2, 1, 2))}
    right = Trace(np.zeros((2, 1, 9)), due)
    wrong = Trace(np.ones((2, 1, 9)), {**due, "scores": np.array([[[0.25, 0]], [[0, np.nan]]])})

    def told(one, other):
        return bars.of_mistake(dict.fromkeys(CONDITIONS, one), dict.fromkeys(CONDITIONS, other)).plain

    shown = told(right, wrong)
    assert [line.split()[-1] for line in shown.splitlines()[2:]] == ["0", "0", "mistake", "0", "NaN"]
    assert told(right, Trace(wrong.output)) == told(right, right) == ""
    assert told(Trace(right.output[..., :2]), Trace(wrong.output[..., :2])).count("o₂") == 2


def test_a_mistake_that_raises_or_shows_elsewhere_has_no_bars(capsys):
    def raises(case):
        raise ValueError(case.id)

    (case,) = load_cases([EXAMPLE])
    assert explaining._bars(case, Fault("it raises", raises), ENGLISH) == []
    assert explaining._bars(case, Fault("it is none", CORE), ENGLISH) == []
    assert call("explain", "two-calls-agree-bitwise") == 0
    assert "with the mistake" not in capsys.readouterr().out
