"""Long conversations, the same in every run, and the sessions that hold them."""

import random
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from memci.archive.stores.file.store import FileStore
from memci.engine.engine import Engine

WINDOW_TOKENS = 8_000
CONFIG = {"budget": {"window": WINDOW_TOKENS, "reserve": 0}, "open_sessions": {"max_bytes": 0}}
SESSION_ID = "support"

_SEED = 20_261_121
_USER_SENTENCES = (2, 2, 3)
_ASSISTANT_SENTENCES = 10
_BATCH_TURNS = 50
_LAST_TURNS = 50
_START = datetime(2026, 1, 5, 9, tzinfo=UTC)

_THING_WORDS = """
account address agreement alarm album appointment archive article backup balance battery bill booking branch bridge budget
cable calendar camera cart charger client clock column contract coupon cupboard customer dashboard database deadline delivery
department deposit desk device discount document domain drawer driver engine envelope estimate export factory filter folder
forecast form garden gateway guide handle heater holiday hotel image import index invoice itinerary journey key keyboard
label ladder lamp laptop ledger letter licence list lock luggage machine manual map meeting member menu message meter mirror
model monitor network notebook number offer office order package page paint paragraph parcel password payment permit phone
photo picture pipeline plan platform policy portal printer profile project proposal query queue quote reader receipt recipe
record refund region register reminder report request reservation router route sample schedule screen sensor server shelf
shipment signature socket spreadsheet statement station stock storage subscription supplier switch system table tablet tariff
task template terminal ticket timetable token tool torch tray trip update valve vehicle visa voucher wallet warehouse
warranty window
"""
_QUALITY_WORDS = """
annual available blue broken cheap clean closed damaged daily different digital early empty English external final foreign
free full green heavy incomplete internal large late local main missing monthly narrow new northern old open original paper
pending personal postal previous private public quick red regional rejected remote second separate short signed slow small
southern spare special temporary third urgent valid weekly western wide wrong
"""
_ACTION_WORDS = """
accept arrange attach book call cancel change charge check close collect compare confirm copy correct count deliver divide
export extend file fill find fix forward import install issue label list measure merge move open order paint pay plan print
publish reach register reject remove rename renew repair replace reserve restart return review scan sell send sign split
start store test transfer translate update upload verify write
"""
_NAME_BEGINNINGS = """
An Bel Cor Dan El Fre Gor Han Il Jo Kas Lin Mar Nor Ol Pet Quin Ros Sel Tom Ul Vic Wal Xan Yar Zel
"""
_NAME_ENDINGS = """
a dal der elle essa for gard ian ina ira kov lan lo man mer na nick o ova ri son stein ton us ville wen wick ya
"""
_THINGS = _THING_WORDS.split()
_QUALITIES = _QUALITY_WORDS.split()
_ACTIONS = _ACTION_WORDS.split()
_BEGINNINGS = _NAME_BEGINNINGS.split()
_ENDINGS = _NAME_ENDINGS.split()
_ENDS = (
    "today",
    "tomorrow",
    "on Monday",
    "before Friday",
    "next week",
    "this month",
    "in March",
    "by hand",
    "without delay",
    "again",
)


def messages(turns: int, first_turn: int = 0) -> Iterator[dict[str, str]]:
    """Yield the messages of some turns, a user's and an assistant's each; about 211 tokens of o200k_base a turn.

    A turn depends on its number alone, so that a long history begins as a shorter one does.
    """
    for number in range(first_turn, first_turn + turns):
        chance = random.Random(_SEED + number)  # noqa: S311 (words, not secrets)
        yield {"role": "user", "content": _text(chance, chance.choice(_USER_SENTENCES))}
        yield {"role": "assistant", "content": _text(chance, _ASSISTANT_SENTENCES)}


def queries(count: int) -> list[str]:
    """Return questions in the words of the history: two common words and one rarer name each."""
    chance = random.Random(_SEED)  # noqa: S311 (words, not secrets)
    return [f"when did we {chance.choice(_ACTIONS)} the {_common(chance)} for {_name(chance)}?" for _ in range(count)]


def build(directory: Path, lengths: Sequence[int]) -> dict[int, Path]:
    """Make one session for each length, in turns, as far as they are not in *directory* yet; return their stores' roots.

    One session grows, and is copied at each length. Most of it comes in batches; the last turns of each length are taken as
    in a chat, with a window before each reply, so that what is open looks as it does in use.
    """
    wanted = {turns: directory / f"turns-{turns}" for turns in sorted(lengths)}
    missing = [turns for turns, root in wanted.items() if not root.exists()]
    if not missing:
        return wanted
    growing = directory / "growing"
    shutil.rmtree(growing, ignore_errors=True)
    done = 0
    for turns in missing:
        with Engine(FileStore(growing, "flush"), CONFIG) as engine, engine.session(SESSION_ID) as session:
            for count in _batches(turns - _LAST_TURNS - done):
                session.extend(list(messages(count, done)), at=_time(done))
                done += count
            for number in range(done, turns):
                user, assistant = messages(1, number)
                session.append(user, at=_time(number))
                session.window()
                session.append(assistant, at=_time(number))
            done = turns
            session.search("warm up")  # so that the index is up to date
        copy(growing, directory / "copying")
        (directory / "copying").rename(wanted[turns])
    shutil.rmtree(growing)
    return wanted


def copy(source: Path, target: Path) -> Path:
    """Copy a store's files; page files, which are never changed in place, become second names of the same file."""
    for path in sorted(source.rglob("*")):
        place = target / path.relative_to(source)
        if path.is_dir():
            place.mkdir(parents=True, exist_ok=True)
        elif path.parent.name == "pages":
            place.hardlink_to(path)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
    return target


def _batches(turns: int) -> Iterator[int]:
    for done in range(0, turns, _BATCH_TURNS):
        yield min(_BATCH_TURNS, turns - done)


def _time(turn: int) -> str:
    return (_START + timedelta(minutes=7 * turn)).isoformat()


def _text(chance: random.Random, sentences: int) -> str:
    return " ".join(islice(_sentences(chance), sentences))


def _sentences(chance: random.Random) -> Iterator[str]:
    while True:
        name, action, thing, other = _name(chance), chance.choice(_ACTIONS), _common(chance), _common(chance)
        quality, end, number = chance.choice(_QUALITIES), chance.choice(_ENDS), chance.randrange(10, 100_000)
        yield chance.choice(
            (
                f"{name} wants to {action} the {quality} {thing} {end}.",
                f"Please {action} the {thing} of {name} and send the {quality} {other} {end}.",
                f"The {quality} {thing} costs {number} euros, which {name} has to {action} {end}.",
                f"Does the {thing} number {number} belong to the {quality} {other}, or can {name} {action} it {end}?",
                f"You can {action} each {thing} under {other.capitalize()} › {thing.capitalize()}, then choose {quality} {end}.",
                f"We could not {action} the {other} because the {thing} was {quality}; {name} will try {end}.",
            )
        )


def _name(chance: random.Random) -> str:
    return f"{chance.choice(_BEGINNINGS)}{chance.choice(_ENDINGS)}"


def _common(chance: random.Random) -> str:
    """Return a thing; the first of them are named far more often than the last."""
    return _THINGS[int(len(_THINGS) * chance.random() ** 2)]
