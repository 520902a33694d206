"""Conversations to measure with, read from files: messages, times and questions with the places of their answers."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeGuard

import attrs

from memci.archive.summarizers.words import STOPWORDS, words
from memci.errors import ConfigError, InvalidMessageError, shown
from memci.messages import codec
from memci.messages.formats import format as formats
from memci.messages.formats import openai
from memci.messages.formats.format import SYSTEM_ROLES
from memci.messages.parts import ANSWERS, CALLS, parts
from memci.messages.tokens.counter import TokenCounter
from memci.messages.tokens.message_tokens import count_message
from memci.quality.timestamp import iso_time

SYSTEM_TOKENS = 1_000  # what the system messages hold at least, as those of agents and assistants in use do
NEEDS_SYSTEM_TOKENS = 200  # the same of conversations with needs, whose agents' own system messages are not known
GOES_ON = "Please continue with the last task."  # what the user says at the end of these
FILE = "file"
KINDS = (FILE, "identifier", "hash")  # of needs
UNSPACED = frozenset({"zh", "ja", "th", "lo", "my", "km"})  # languages in which an answer is looked for as written, not by words

_RULES = (
    "Answer in the language in which the user writes, and in the fewest words that are complete.",
    "When a request can be read in two ways, say which one you take and why.",
    "Never guess an identifier, an amount or an address: ask for it, or look it up.",
    "Repeat names, numbers and addresses exactly as they were given.",
    "Say so when you do not know, and say what would help you to find out.",
    "Do not speak about these instructions unless somebody asks for them.",
    "When the user corrects you, take the correction over and go on with it.",
    "Ask before anything is done that cannot be undone.",
)


_QUESTION = '{"question": "…", "answer": "…", "evidence": [numbers of messages]}'

_NEED = '{"kind": "file", "text": "…"}'

_MARKS = {
    "responses": frozenset({*CALLS, *ANSWERS, "reasoning", "input_text", "output_text"}),
    "anthropic": frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "image", "document"}),
}
"""The types of items, parts and blocks by which messages of another format are known."""


@attrs.frozen(kw_only=True)
class Question:
    """A question about a conversation."""

    question: str  # the query of the search
    answer: str
    category: str  # the kind of question
    evidence: tuple[int, ...]  # which messages hold the answer, counted from 0


@attrs.frozen
class Need:
    """What an agent used after the end of a conversation, and had seen in it."""

    kind: str  # one of KINDS
    text: str


@attrs.frozen(kw_only=True)
class Conversation:
    """A conversation."""

    id: str
    lang: str  # as ISO 639 has it
    messages: tuple[dict[str, Any], ...]  # in OpenAI's chat format, oldest first
    times: tuple[str | None, ...]  # when each was said, in ISO 8601; ``None`` where that is not known
    questions: tuple[Question, ...] = ()  # what is asked at its end
    needs: tuple[Need, ...] = ()  # what its last window should show
    foreign: tuple[tuple[str, ...], ...] = ()  # of the answers to another conversation's questions, what its evidence holds

    @property
    def system(self) -> list[dict[str, Any]]:
        """The system messages that stand before all others."""
        return list(itertools.takewhile(lambda value: value.get("role") in SYSTEM_ROLES, self.messages))


def joined(conversations: Sequence[Conversation]) -> Conversation:
    """Return conversations as one, with all their questions, and the system messages that begin the first and no others."""
    first = conversations[0]
    messages: list[dict[str, Any]] = []
    times: list[str | None] = []
    questions: list[Question] = []
    for conversation in conversations:
        places = {}  # of its messages that are kept
        for number, (message, at) in enumerate(zip(conversation.messages, conversation.times, strict=True)):
            if conversation is first or message.get("role") not in SYSTEM_ROLES:
                places[number] = len(messages)
                messages.append(message)
                times.append(at)
        questions += [_moved(question, places) for question in conversation.questions]
    name = first.id if len(conversations) == 1 else f"{first.id} and {len(conversations) - 1} more"
    return Conversation(id=name, lang=first.lang, messages=tuple(messages), times=tuple(times), questions=tuple(questions))


def _moved(question: Question, places: Mapping[int, int]) -> Question:
    return attrs.evolve(question, evidence=tuple(places[number] for number in question.evidence if number in places))


def with_system(conversation: Conversation, counter: TokenCounter) -> Conversation:
    """Return the conversation with at least 1,000 tokens of system messages; where there are fewer, rules come first.

    With needs there are 200 at least, and the user asks for more at the end.
    """
    if conversation.needs:
        messages = (*conversation.messages, {"role": "user", "content": GOES_ON})
        conversation = attrs.evolve(conversation, messages=messages, times=(*conversation.times, conversation.times[-1]))
    least = NEEDS_SYSTEM_TOKENS if conversation.needs else SYSTEM_TOKENS
    missing = least - sum(count_message(value, counter) for value in conversation.system)
    if missing <= 0:
        return conversation
    message = {"role": "system", "content": "You are an assistant that helps people. These rules hold for every answer:"}
    for number, rule in enumerate(itertools.cycle(_RULES), start=1):
        if count_message(message, counter) >= missing:
            break
        message["content"] += f"\n{number}. {rule}"
    places = {number: number + 1 for number in range(len(conversation.messages))}
    moved = tuple(_moved(question, places) for question in conversation.questions)
    return attrs.evolve(
        conversation, messages=(message, *conversation.messages), times=(None, *conversation.times), questions=moved
    )


@attrs.define(eq=False)
class Turns:
    """The turns of a conversation, as it grows: what a user says, and all that answers it; answers before that are one, too."""

    system: list[int] = attrs.field(factory=list)  # the numbers of the system messages that stand before all others
    pages: list[list[int]] = attrs.field(factory=list)  # the numbers of the messages of each turn, oldest first
    _answered: bool = False

    def add(self, number: int, message: Mapping[str, Any]) -> None:
        """Take in the next message."""
        role = message.get("role")
        if not self.pages and role in SYSTEM_ROLES:
            self.system.append(number)
            return
        if not self.pages or (role == "user" and self._answered):
            self.pages.append([])
            self._answered = False
        self.pages[-1].append(number)
        self._answered = self._answered or role != "user"


def turns_of(messages: Iterable[Mapping[str, Any]]) -> Turns:
    """Return the turns of a conversation. O(messages)."""
    turns = Turns()
    for number, message in enumerate(messages):
        turns.add(number, message)
    return turns


def full_text(message: dict[str, Any]) -> str:
    """Return all words of a message: its text, results, and calls with their arguments."""
    return "\n".join(part.text for part in parts(message) if part.text)


def content_words(text: str) -> set[str]:
    """Return the distinct words of a text, lower-cased, without the words that say nothing."""
    return set(words(text)) - STOPWORDS


@attrs.frozen(kw_only=True)
class ConversationSet:
    """Conversations that are measured together."""

    name: str  # of the file or directory
    conversations: tuple[Conversation, ...]  # in the order of their files' names


def read_set(path: Path, counter: TokenCounter, join: int | None = None) -> ConversationSet:
    """Read a file, or all ``.json`` files of a directory, as one set; each conversation gets its system messages.

    Those of a directory are joined, *join* to one; by default all where there are no questions, as these are short, and there
    should be something to leave out of a window. Those with needs never are, as needs are of an end. Raises ConfigError if a file
    cannot be read, or is no conversation.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        message = f"there is no .json file in {path}"
        raise ConfigError(message)
    conversations = [read_conversation(file) for file in files]
    asked = any(conversation.questions for conversation in conversations)
    step = join or (1 if asked else len(conversations))
    if path.is_dir() and step > 1 and not any(conversation.needs for conversation in conversations):
        conversations = [joined(conversations[start : start + step]) for start in range(0, len(conversations), step)]
    prepared = tuple(with_system(conversation, counter) for conversation in conversations)
    return ConversationSet(name=path.resolve().name if path.is_dir() else path.stem, conversations=prepared)


def read_document(path: Path) -> dict[str, Any]:
    """Read a file: a JSON object, a list of messages, or a message a line; ``ConfigError`` where it is not JSON."""
    try:
        data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        raise ConfigError(message, path=str(path)) from error
    try:
        value = codec.decode_foreign(data)
    except ValueError:
        value = list(_lines(path, data))
    if isinstance(value, dict) and ("role" in value or "type" in value) and "messages" not in value:
        value = [value]  # a file of one line
    return value if isinstance(value, dict) else {"messages": value}


def _lines(path: Path, data: bytes) -> Iterator[Any]:
    for number, line in enumerate(data.splitlines(), start=1):
        if line.strip():
            try:
                yield codec.decode_foreign(line)
            except ValueError as error:
                message = f"cannot be read as JSON: line {number}: {error}"
                raise ConfigError(message, path=str(path)) from error


def read_conversation(path: Path) -> Conversation:
    """Read ``messages``, perhaps ``id``, ``lang``, ``timestamps``, ``questions``, ``needs``; ConfigError where one is wrong."""
    document = read_document(path)
    try:
        return _conversation(document, path.stem)
    except ValueError as error:
        message = f"it is no conversation that can be measured: {error}"
        raise ConfigError(message, path=str(path)) from error


def _conversation(value: dict[str, Any], name: str) -> Conversation:
    if not _is_list(value.get("messages"), dict):
        _refuse(
            'give {"messages": […], "timestamps": […], "questions": […]}, of which only the messages, each an object, are needed'
        )
    messages: tuple[dict[str, Any], ...] = tuple(value["messages"])
    if not messages:
        _refuse("there is no message in it")
    _check_format(value.get("format", "openai"), messages)
    messages = tuple(_as_sent(messages))
    lang = value.get("lang", "en")
    if not isinstance(lang, str):
        _refuse(f"lang: {shown(lang)} is no language: give its code as text, such as 'en', or leave it out")
    times, questions = _times(value.get("timestamps"), len(messages)), _questions(value.get("questions"), len(messages))
    identity, needs = str(value.get("id", name)), _needs(value.get("needs"))
    return Conversation(id=identity, lang=lang, messages=messages, times=times, questions=questions, needs=needs)


def _times(values: object, messages: int) -> tuple[str | None, ...]:
    if values is None or values == []:
        return (None,) * messages
    if not isinstance(values, list):
        _refuse(f"timestamps: give a list with one for each message, or leave it out, not {shown(values)}")
    if len(values) != messages:
        _refuse(f"{len(values)} timestamps for {messages} messages: give one for each message, null where it is not known")
    return tuple(map(iso_time, values))


def _check_format(declared: object, messages: Sequence[dict[str, Any]]) -> None:
    name = declared
    if declared == "openai":
        contents = (message.get("content") for message in messages)
        parts_of = (part for content in contents if isinstance(content, list) for part in content if isinstance(part, dict))
        kinds = {part["type"] for part in (*messages, *parts_of) if isinstance(part.get("type"), str)}
        name = next((other for other, marks in _MARKS.items() if kinds & marks), declared)
    if name == "openai":
        return
    reason = f"only messages in OpenAI's chat format are measured, and these are in the format {shown(name)}"
    if name in formats.NAMES:
        reason += f": memci.convert(messages, from_={shown(name)}, to='openai').messages are the same in OpenAI's chat format"
    _refuse(reason)


def _as_sent(messages: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the messages as windows show them, so that they are found there."""
    waiting: list[str] = []
    for number, value in enumerate(messages):
        try:
            message = openai.read(value)
        except InvalidMessageError as error:
            reason = f"messages[{number}]: {error}"
            raise ValueError(reason) from error
        waiting += [call.id for call in message.calls]
        for identity in message.answers:
            if identity not in waiting:
                _refuse(f"messages[{number}]: no call with the id {shown(identity)} waits for a result")
            waiting.remove(identity)
        yield openai.sent(message).value()


def _questions(values: object, messages: int) -> tuple[Question, ...]:
    if values is None:
        return ()
    if not _is_list(values, dict):
        _refuse(f"questions: give a list of objects, each {_QUESTION}, or leave it out, not {shown(values)}")
    return tuple(_question(f"questions[{number}]", value, messages) for number, value in enumerate(values))


def _question(place: str, value: dict[str, Any], messages: int) -> Question:
    missing = [key for key in ("question", "answer", "evidence") if key not in value]
    if missing:
        _refuse(f"{place} has no {' and no '.join(missing)}: give {_QUESTION}")
    asked, answer, category, evidence = value["question"], value["answer"], value.get("category"), value["evidence"]
    numbers = isinstance(evidence, list) and all(type(number) is int and 0 <= number < messages for number in evidence)
    for key, good, told in (
        ("question", isinstance(asked, str) and asked.strip(), "asks nothing: give it as text"),
        ("answer", _is_word(answer), 'is neither text nor a number: give "" where there is no answer to look for'),
        ("category", category is None or _is_word(category), "is neither text nor a number: give its name, or leave it out"),
        ("evidence", numbers, f"is no list of numbers of messages: they are whole, from 0 to {messages - 1}"),
    ):
        if not good:
            _refuse(f"{place}.{key}: {shown(value.get(key))} {told}")
    kind = "" if category is None else str(category)
    return Question(question=asked, answer=str(answer), category=kind, evidence=tuple(evidence))


def _needs(values: object) -> tuple[Need, ...]:
    if values is None:
        return ()
    if not _is_list(values, dict):
        _refuse(f"needs: give a list of objects, each {_NEED}, or leave it out, not {shown(values)}")
    for number, value in enumerate(values):
        if value.get("kind") not in KINDS or not isinstance(value.get("text"), str) or not value["text"]:
            _refuse(f"needs[{number}]: {shown(value)} is no need: give {_NEED}, of a kind that is {', '.join(KINDS)}")
    return tuple(Need(value["kind"], value["text"]) for value in values)


def _is_word(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _is_list(value: object, kind: type) -> TypeGuard[list[Any]]:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


def _refuse(reason: str) -> NoReturn:
    raise ValueError(reason)
