"""Takes in the rules that the user sets, and those that the application adds or takes out."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from memci.archive.rules.listing import Rule, address_of, line
from memci.archive.stores.names import check_identifier
from memci.engine.core.core import Core
from memci.engine.history.events import MessageAppended, RuleRemoved, RulesSet, from_record
from memci.errors import ArgumentError, ConflictError, shown
from memci.messages.parts import PartKind, parts

if TYPE_CHECKING:
    from memci.archive.rules.detection import FoundRule

ADDED = "added"  # the kind of a rule of the application's
_MOST_CHARACTERS = 2_000  # of a rule that is added
_MOST_KNOWN = 100  # rules that a message may replace or take back: the newest


def set_by(core: Core, rules: Sequence[Rule], event: MessageAppended, seq: int) -> RulesSet | None:
    """Return the event of the rules that a message sets or takes back; ``None`` for none. O(its size and the *rules* before)."""
    from memci.archive.rules.detection import read  # noqa: PLC0415 (compiles many patterns)
    from memci.archive.rules.superseding import replaced, taken_back  # noqa: PLC0415 (as above)

    value, address, at = event.message, f"{event.page}/{event.position}", event.at
    texts = (
        [value["content"]]
        if isinstance(value.get("content"), str)
        else [part.text for part in parts(value) if part.kind is PartKind.TEXT]
    )
    reading = read("\n\n".join(texts))  # a part may hand over the next one
    if reading is None:
        return None
    name = value.get("name")
    speaker = name if isinstance(name, str) and name.isprintable() else ""
    new = reading.rules
    known = _known(rules, speaker)
    superseded = dict.fromkeys(taken_back(reading.takes_back, known), address)
    for number, rule in enumerate(new, start=1):
        own = address_of(address, number)
        superseded |= dict.fromkeys(replaced(rule, known), own)
        superseded |= {old: own for old, each in known.items() if each.text == rule.text}
    if not new and not superseded:
        return None
    lines = (Rule(text=each.text, address=address, at=at, speaker=speaker, kind=each.kind) for each in new)
    sized = [[each.text, str(each.kind), core.counter.count(line(each))] for each in lines]
    return RulesSet(address=address, entry_seq=seq, at=at, speaker=speaker, rules=sized, superseded=superseded)


def add(core: Core, text: object, key: str | None = None) -> Rule:
    """Add a rule of the application's, and return it; for a *key* that was used, the rule that it added first."""
    said = " ".join(text.split()) if isinstance(text, str) else ""
    if not said or len(said) > _MOST_CHARACTERS or not said.isprintable():
        raise ArgumentError(
            argument="text", value=text, wanted=f"a rule of at most {_MOST_CHARACTERS:,} characters that can be printed"
        )
    known = None if key is None else _first_answer(core, said, key)
    if known is not None:
        return known
    core.configure()
    at = core.now()
    rule = Rule(text=said, address=f"rule-{core.state.next_rule}", at=at, kind=ADDED)
    core.commit([RulesSet(address=rule.address, at=at, rules=[[said, ADDED, core.counter.count(line(rule))]], key=key)])
    return core.state.rules[-1]


def _first_answer(core: Core, text: str, key: str) -> Rule | None:
    """Return the rule that an earlier command with this key added, as it was then; ``None`` where there was no such command.

    ``ConflictError`` where the key was used for another rule, or for messages.
    """
    check_identifier(key, "key")
    seqs = core.ask(lambda index: index.find_key(key))
    if not seqs:
        return None
    event = from_record(next(iter(core.store.journal.read(seqs[0] - 1, seqs[0]))))
    made = event.made() if isinstance(event, RulesSet) else []
    if [rule.text for rule in made] != [text]:
        message = f"the key {shown(key)} was used for something else: take a new key for a new rule"
        raise ConflictError(message, expected=core.state.seq, head=core.state.seq)
    return made[0]


def remove(core: Core, address: object) -> None:
    """Take a rule out: it is not found again."""
    if not any(rule.address == address for rule in core.state.rules):
        known = ", ".join(rule.address for rule in core.state.rules[-5:]) or "there is none"
        raise ArgumentError(
            argument="address", value=address, wanted=f"the address of a rule, as session.rules() has it: {known}"
        )
    core.commit([RuleRemoved(address=str(address), at=core.now())])


def _known(rules: Sequence[Rule], speaker: str) -> "Mapping[str, FoundRule]":
    """Return the rules that hold and that a speaker set, by address, oldest first: the newest hundred."""
    from memci.archive.rules.detection import FoundRule, RuleKind  # noqa: PLC0415 (compiles many patterns)

    holding = (rule for rule in reversed(rules) if rule.superseded_by is None and rule.speaker == speaker and rule.kind != ADDED)
    newest = list(islice(holding, _MOST_KNOWN))
    return {rule.address: FoundRule(rule.text, RuleKind(rule.kind)) for rule in reversed(newest)}
