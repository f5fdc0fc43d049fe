"""The sentence that answers: who is fastest where, by how much, how sure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from ..cases.conditions import MODES
from ..cases.names import in_words, listed
from ..config.catalog import model_title
from ..statistics.verdicts import NO_DIFFERENCE
from .declared.fastest import OPEN, ORDER_SURE, SURE
from .measured import NO_FRAMEWORK
from .setting_answers import SettingAnswer, precision_words

#: Most clauses of the sentence.
_MOST_CLAUSES = 3


def answer_sentence(settings: Sequence[SettingAnswer], machines: Sequence[str]) -> str:
    """Return the sentence that answers: who is fastest where, by how much, how sure."""
    compared = [setting for setting in settings if setting.leader]
    if not compared:
        return _without_comparison(settings)
    here = "On these machines " if len(machines) > 1 else "On this machine " * len(machines)
    leaders = _by_leader(compared)
    if len(leaders) == 1:
        (leader, some), *_ = leaders.items()
        several = f"{len(some)} of {len(settings)} settings"
        if len(some) == len(settings):
            several = f"all {len(some)} settings"
        where = some[0].name if len(settings) == 1 else several
        return f"{here}{_leads(leader, some)} in {where}, {_sizes(some)} ({_certainty(some)})."
    open_settings = [setting for setting in settings if not setting.leader]
    for words in (_precision_kind, _mode, _model, lambda setting: setting.title):
        if {*map(words, compared)} & {*map(words, open_settings)}:
            continue  # the words would also claim a lead where there is none
        places = {leader: [*dict.fromkeys(map(words, some))] for leader, some in leaders.items()}
        named = [place for some in places.values() for place in some]
        if len(named) == len({*named}) and all(named) and len(leaders) <= _MOST_CLAUSES:
            clauses = [
                f"{_leads(leader, some)} in {listed(places[leader])}, {_sizes(some)} "
                f"({_certainty(some)})"
                for leader, some in leaders.items()
            ]
            return f"{here}{'; '.join(clauses)}."
    counts = [f"{_leads(leader, some)} in {len(some)}" for leader, some in leaders.items()]
    counts[0] += f" of {len(settings)} settings"
    return f"{here}{listed(counts)} ({_certainty(compared)})."


def _by_leader(compared: Sequence[SettingAnswer]) -> dict[str, list[SettingAnswer]]:
    """Return the settings by leader, the leader of most settings first."""
    leaders: dict[str, list[SettingAnswer]] = defaultdict(list)
    for setting in compared:
        even = setting.row["verdict"] == NO_DIFFERENCE
        names = [entrant.label for entrant in setting.entrants[:2]]
        leaders[listed(names) if even else setting.leader].append(setting)
    return dict(sorted(leaders.items(), key=lambda pair: -len(pair[1])))


def _leads(leader: str, some: Sequence[SettingAnswer]) -> str:
    if all(setting.row["verdict"] == NO_DIFFERENCE for setting in some):
        return f"{leader} are equally fast"
    is_settled = all(setting.state in (SURE, ORDER_SURE) for setting in some)
    return f"{leader} is fastest" if is_settled else f"{leader} leads"


def _sizes(some: Sequence[SettingAnswer]) -> str:
    """Return the leads over the runner-up as text, such as ``9 to 55 % ahead``."""
    leads = sorted(setting.row["lead"] or 1.0 for setting in some)
    low, high = lead_size(leads[0]), lead_size(leads[-1])
    if low == high:
        return f"{low} the next" if leads[0] >= 2 else f"{low} ahead"
    if leads[-1] < 2:
        return f"{low.removesuffix(' %')} to {high} ahead"
    return f"{leads[0]:.2g} to {leads[-1]:.2g} times the next"


def _certainty(some: Sequence[SettingAnswer]) -> str:
    """Return how sure the leads are: ``sure``, or ``order sure in 1, open in 2``."""
    states = Counter(setting.state for setting in some)
    if len(states) == 1:
        return some[0].state
    return ", ".join(
        f"{state} in {states[state]}" for state in (SURE, ORDER_SURE, OPEN) if states[state]
    )


def _precision_kind(setting: SettingAnswer) -> str:
    """Return the precision in words; "" if there is none."""
    if not setting.is_each_fastest:
        return precision_words(setting.row["precision"])
    leading = precision_words(setting.entrants[0].axes["precision"])
    is_mixed = leading == precision_words("amp")
    return leading if is_mixed else f"the fastest precision of each ({leading})"


def _mode(setting: SettingAnswer) -> str:
    mode = setting.row["mode"]
    return in_words(mode) if mode in MODES else ""


def _model(setting: SettingAnswer) -> str:
    return model_title(setting.row["model"]) if setting.row["model"] else ""


def _without_comparison(settings: Sequence[SettingAnswer]) -> str:
    names = dict.fromkeys(entrant.label for some in settings for entrant in some.entrants)
    if waiting := [some for some in settings if some.state == OPEN]:
        return f"No answer yet: {waiting[0].between}."
    if not names:
        return "Nothing was measured: no run has a figure."
    only = [name for name in names if name != NO_FRAMEWORK]
    return (
        f"Only {listed(only)} was measured, so there is nothing to compare."
        if len(only) == 1
        else "There is nothing to compare: no two frameworks have a figure at the same setting."
    )


def ahead(lead: float) -> str:
    """Return a lead as text: ``6 % ahead of``, ``2.3 times as fast as``."""
    return f"{lead_size(lead)} as fast as" if lead >= 2 else f"{lead_size(lead)} ahead of"


def lead_size(lead: float) -> str:
    if lead >= 2:
        return f"{lead:.2g} times"
    return f"{100 * (lead - 1):.0f} %" if lead >= 1.01 else "less than 1 %"


def interval_of_lead(low: float, high: float) -> str:
    """Return the interval of a lead as text."""
    if high >= 2:
        return f"between {low:.2f} and {high:.2f} times"
    if low < 1:
        return f"between {100 * (1 - low):.0f} % behind and {100 * (high - 1):.0f} % ahead"
    return f"between {100 * (low - 1):.0f} and {100 * (high - 1):.0f} %"
