"""What is known of an invariant, a feature or an implementation, told in a language and broken into lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from verify_attention.languages import ENGLISH, Language
from verify_attention.reports.lines import WHOLE

if TYPE_CHECKING:
    from verify_attention.model import Case, Fault, Invariant
    from verify_attention.model.claims import Plugin


def claims(plugins: Mapping[str, Plugin], say: Language = ENGLISH) -> str:
    """Return every name with its claim."""
    return "".join(f"{name}\n    {say(plugin.claim)}\n" for name, plugin in plugins.items())


def explanation(name: str, say: Language = ENGLISH) -> str:
    """Return everything that is known of an invariant or a feature, as text."""
    from verify_attention.plugins import features, invariants  # noqa: PLC0415

    return "\n".join(_of_feature(name, say) if name in features() else _of_invariant(invariants()[name], say)) + "\n"


def _of_feature(name: str, say: Language) -> list[str]:
    from verify_attention.plugins import features, invariants  # noqa: PLC0415

    feature, place = features()[name], list(features()).index(name) + 1
    losers = [key for key, invariant in invariants().items() if invariant.needs & feature.takes]
    taken = _listed(sorted(feature.takes), say) or say("nothing")
    some = say(" (with some parameters)") if feature.takes and feature.takes_with is not None else ""
    return [
        name,
        f"  {say(feature.claim)}",
        "",
        say("acts on: {stage}, number {place} of {all}", stage=say(feature.stage), place=place, all=len(features())),
        say("a K bias: {why}", why=say(feature.why)),
        "",
        *_indented(feature.derivation, say),
        "",
        *_parameters(name, say),
        "",
        say("takes away: {traits}", traits=taken + some),
        *([say("so not claimed then:"), *_items(losers)] if losers else []),
    ]


def _of_invariant(invariant: Invariant, say: Language) -> list[str]:
    from verify_attention.plugins import features  # noqa: PLC0415

    breakers = [key for key, feature in features().items() if feature.takes & invariant.needs]
    needs = _listed(sorted(invariant.needs), say) or say("nothing beyond the formula")
    return [
        invariant.name,
        f"  {say(invariant.claim)}",
        "",
        say("formula: {formula}", formula=say(invariant.formula)),
        say("source: {source}", source=say(invariant.source)),
        *([say("the article's check: {check}", check=say(invariant.check))] if invariant.check else []),
        "",
        *_indented(invariant.derivation, say),
        "",
        say("needs: {traits}", traits=needs),
        *([say("taken away by: {features}", features=", ".join(breakers))] if breakers else []),
        say("asked of: {cases}", cases=_asked_of(invariant, say)),
        say("applies where: {cases}", cases=say(invariant.where or "always")),
        *([say("vacuous where: {cases}", cases=say(invariant.vacuous))] if invariant.vacuous else []),
        *_faults(invariant, say),
    ]


def _faults(invariant: Invariant, say: Language) -> list[str]:
    """Return each mistake that an invariant must catch, with the smallest case that shows it."""
    from verify_attention.search import in_a_line, smallest_cases  # noqa: PLC0415

    small = smallest_cases(invariant.name)
    lines = [say("catches, among others, each with a smallest case that shows it (a bias that is not named is 0):")]
    for index, fault in enumerate(invariant.faults):
        lines += _items([say(fault.mistake)])
        if fault.mistake in small:
            parts = in_a_line(small[fault.mistake]).split(" · ")
            lines.append("      " + " · ".join(part.replace(" ", WHOLE) for part in parts))
            lines += _bars(small[fault.mistake], fault, say) if index == 0 else []
    return lines


def _bars(case: Case, fault: Fault, say: Language) -> list[str]:
    """Return bars of a case as it should be and with a mistake; none where the mistake shows elsewhere."""
    import numpy as np  # noqa: PLC0415

    from verify_attention.model import CONDITIONS  # noqa: PLC0415
    from verify_attention.pipeline import CORE  # noqa: PLC0415
    from verify_attention.reports import bars  # noqa: PLC0415

    try:
        with np.errstate(all="ignore"):
            right, wrong = (
                {condition: attend(case.under(condition)) for condition in CONDITIONS}
                for attend in (CORE, fault.implementation)
            )
    except Exception:  # noqa: BLE001 - it may be the mistake to raise
        return []
    return bars.of_mistake(right, wrong, say).plain.replace(" ", WHOLE).splitlines()


def of_implementation(name: str, say: Language = ENGLISH) -> str:
    """Return everything that is known of an implementation, as text."""
    from verify_attention.loading import install_command, version_of  # noqa: PLC0415
    from verify_attention.plugins import implementations  # noqa: PLC0415

    adapter, version = implementations()[name], version_of(implementations()[name])
    inside = [(dtype, adapter.computes_in.get(dtype, dtype)) for dtype in adapter.dtypes]
    numbers = (
        dtype if dtype == other else say("{dtype} (computed in {other})", dtype=dtype, other=other)
        for dtype, other in inside
    )
    here = say("version {version}", version=version) if version else say("no: {how}", how=install_command(adapter))
    parts = [
        name,
        f"  {say(adapter.claim)}",
        "",
        *([*_indented(adapter.derivation, say), ""] if adapter.derivation else []),
        say("numbers: {numbers}", numbers=", ".join(numbers)),
        say("installed: {here}", here=here),
    ]
    if adapter.divergences:
        parts += [say("where the library has other conventions (each is asked for in every run):")]
        parts += _items(
            f"{say(each.what)}{say(': ')}{say(each.reason)}{say('; ')}{each.link}" for each in adapter.divergences
        )
    return "\n".join(parts) + "\n"


def _asked_of(invariant: Invariant, say: Language) -> str:
    all_of_them = (
        say("cases with features, and plain ones that expect it") if invariant.on_request else say("every case")
    )
    return (
        say("{cases}; not one so large that it is judged in blocks", cases=all_of_them)
        if invariant.whole
        else all_of_them
    )


def _parameters(name: str, say: Language) -> list[str]:
    """Return what the schema says of a feature's parameters."""
    import yaml  # noqa: PLC0415

    from verify_attention import resources  # noqa: PLC0415

    own = resources.schema("case")["properties"]["features"]["properties"][name]
    example = yaml.safe_dump({name: own.get("examples", own.get("enum"))[-1]}, default_flow_style=True, width=1000)
    head = [
        say("in a case: {what}", what=say(own["description"])),
        say("for example: {example}", example=f"features: {example.strip()}"),
    ]
    if "properties" not in own:
        return head
    required = {key: say(" (required)") if key in own.get("required", []) else "" for key in own["properties"]}
    said = [
        f"{key}{required[key]}{say(': ')}{say(one['title'])}{say('. ')}{say(one['description'])}"
        for key, one in own["properties"].items()
    ]
    return [*head, say("parameters:"), *_items(said)]


def _listed(texts: Iterable[str], say: Language) -> str:
    return say(", ").join(map(say, texts))


def _indented(text: str, say: Language) -> list[str]:
    """Return paragraphs, each one line, with empty lines between them."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in say(text).split("\n\n")]
    return "\n\n".join(f"  {paragraph}" for paragraph in paragraphs).split("\n")


def _items(texts: Iterable[str]) -> list[str]:
    return [f"  - {text}" for text in texts]
