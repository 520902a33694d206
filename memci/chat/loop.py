"""The loop that carries a user's turn through: window, reply, tool calls and their answers, until the model answers."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Any, Protocol, TypeAlias, runtime_checkable

import attrs

from memci.archive.catalogue.page_facts import PageState
from memci.attp.runtime import USED_UP
from memci.engine.commands.window import Window
from memci.engine.core.monitor import Notice, Recall
from memci.engine.session import Session
from memci.errors import ArgumentError, ConfigError, InvalidMessageError, ModelError, shown
from memci.messages import codec
from memci.messages.headline import HeadlineFilter, parted

MAX_ROUNDS = 8  # replies of one turn that may call tools, unless told otherwise
MAX_CALLS = 64  # calls that one reply may make

_PASSED_OVER = ("tool", "system", "developer")  # after the message that tells who is to speak next, these may come


@attrs.frozen(kw_only=True)
class Reply:
    """The assistant message with which a model answered a call, as it came.

    It ended for the *finish_reason*, in the provider's words: ``stop``, ``tool_calls``, ``length`` or ``content_filter``. The
    *prompt_tokens* are what the provider counted for the window, *usage* all that it counted, whole numbers by its names, and
    ``cached_tokens``: those of the prompt that it had in its cache.
    """

    message: Mapping[str, Any]
    finish_reason: str = "stop"
    prompt_tokens: int | None = None
    usage: Mapping[str, int] = attrs.field(factory=dict)


class Model(Protocol):
    """A model: ``memci.chat.Endpoint`` is one, and so is any object with this method."""

    def complete(self, messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]], *, may_call: bool) -> Reply:
        """Return the model's reply to the messages of a window, in OpenAI's chat format; ``ModelError`` where there is none.

        The callee may change the messages. *tools* are the schemas of those that are offered; where the model may not call
        them now, they stay offered, so that the prompt begins alike.
        """
        ...


@runtime_checkable
class StreamingModel(Model, Protocol):
    """A model whose replies can be read as they come; ``memci.chat.Endpoint`` is one."""

    def stream(
        self,
        messages: list[dict[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        *,
        may_call: bool,
        take: Callable[[Mapping[str, Any]], None],
    ) -> Reply:
        """Do as ``complete``, and call *take* for each piece of the reply, a chunk of OpenAI's stream; what that raises goes on.

        The message of the reply is empty where *take* had it in pieces, and whole where it had none. ``ModelError`` too where
        the reply breaks off.
        """
        ...


class Ending(StrEnum):
    """How a turn ended."""

    ANSWERED = "answered"
    CUT = "cut"
    REFUSED = "refused"
    EMPTY = "empty"
    LIMIT = "limit"


@attrs.frozen(kw_only=True)
class Answer:
    """What came of a turn: the text that the model says to the user, which may be empty, without a headline.

    *ending* is ``answered``; ``cut``: the provider's limit for replies ended it, and the text is its beginning; ``refused``: the
    model or a filter refused, and the text is what there is of an answer, else the reason; ``empty``: the reply holds no text;
    ``limit``: the model called tools to the end of its rounds and beyond. The turn took so many *calls* of the model, since it
    was begun or resumed.
    """

    text: str
    ending: Ending
    calls: int


@attrs.frozen(kw_only=True)
class WindowSent:
    """A window is about to be sent."""

    window: Window


@attrs.frozen(kw_only=True)
class TextStreamed:
    """Some more of what the reply that is coming says to the user: the texts together are its text, without a headline.

    Told while the reply comes, of a ``StreamingModel``, text beside calls too, and not where the protocol is ATTP, whose replies
    may be code. Where the reply breaks off after it, the session keeps at least what was told.
    """

    text: str


@attrs.frozen(kw_only=True)
class ToolAnswered:
    """A native tool call was carried out, or refused; the text of the tool's message, the answer, is in the session.

    The name is empty where the call has none; the arguments are as the model wrote them, JSON if all is well.
    """

    name: str
    arguments: str
    answer: str


@attrs.frozen(kw_only=True)
class CodeAnswered:
    """A reply in ATTP that is no answer to the user was answered; the answer, a ``[tool_result]``, is in the session."""

    reply: str
    answer: str


@attrs.frozen(kw_only=True)
class Faded:
    """Recalled pages left the window: their indexes, in the order in which they were recalled."""

    pages: tuple[str, ...]


Step: TypeAlias = WindowSent | TextStreamed | ToolAnswered | CodeAnswered | Faded | Notice


class Chat:
    """Drives a session against a model, one turn of the user at a time.

    The session's ``recall.protocol`` decides how the model calls the session's tools: natively, in ATTP, or not at all. Every
    message is in the session before the next step is taken, replies as they came, and every tool call gets a result.
    Whatever interrupts a turn, ``resume`` goes on where it stopped, in another process too. One thread at a time.

    A turn may hold *max_rounds* replies that call tools. After these the model is asked once more, with its tools switched
    off; if it calls one even so, the call is answered with an error and the turn ends with ``Ending.LIMIT``. A reply of more
    than 64 calls, or one that is too large for a message, is a ``ModelError``: nothing of it is kept, and the session goes on.

    The *observer* is told of each step, in order; of folds, recalls and the like within the session's lock. What it raises
    there is logged, and elsewhere reaches the caller. With an observer, this reads the facts of all pages. O(pages). Raises
    ``ConfigError`` if the number of rounds is none, or the session's messages are not in the format ``openai``.
    """

    def __init__(
        self, session: Session, model: Model, *, observer: Callable[[Step], None] | None = None, max_rounds: int = MAX_ROUNDS
    ) -> None:
        if type(max_rounds) is not int or max_rounds < 1:
            message = f"{shown(max_rounds)} is no number of rounds: give a whole number from 1"
            raise ConfigError(message, path="max_rounds")
        if session.config.format != "openai":
            message = f"the session's messages are in the format {session.config.format}, and this loop speaks openai only"
            raise ConfigError(message, path="format")
        if observer is not None and not callable(observer):
            raise ArgumentError(argument="observer", value=observer, wanted="a function of one argument")
        self._session, self._model = session, model
        self._max_rounds, self._observer = max_rounds, observer
        self._recalled = [] if observer is None else [facts.index for facts in session.pages(PageState.ATTACHED)]
        if observer is not None:
            session.observe(self._hear)

    def say(self, message: str | Mapping[str, Any]) -> Answer:
        """Append what the user says, a text or a message of role ``user``, and return what the model answers.

        The user's message is safe before the model is asked. After an error that came later, ``resume`` goes on with it. Raises
        ``InvalidMessageError`` if the message was refused and nothing stored, ``BudgetError`` if no window fits, and
        ``ModelError`` if the model gave no reply, or one that cannot be kept.
        """
        said: Any = {"role": "user", "content": message} if isinstance(message, str) else message
        if isinstance(said, Mapping) and said.get("role") != "user":
            text = f"the user's message has the role 'user', not {shown(said.get('role'))}"
            raise InvalidMessageError(text, path="role")
        self._session.append(said, on_conflict="retry")
        return self._go_on()

    def resume(self) -> Answer | None:
        """Finish the newest turn, and return what the model answers; ``None`` where it was finished already. O(pages).

        Calls that have no result are carried out first. Raises what ``say`` does.
        """
        self._session.refresh()
        opened = self._session.pages(PageState.OPEN)
        messages = list(self._session.page(opened[0].index).messages) if opened else []
        done = set()
        while messages and messages[-1]["role"] in _PASSED_OVER:
            done.add(messages.pop().get("tool_call_id"))
        if not messages:
            return None
        last = messages[-1]
        if last["role"] == "assistant" and self._answered(last, left=self._max_rounds + 1, done=done) is not None:
            return None
        return self._go_on()

    def _go_on(self) -> Answer:
        for left in range(self._max_rounds, -1, -1):
            reply = self._ask(may_call=left > 0)
            text = self._answered(reply.message, left=left)
            if text is not None:
                return _answer(reply, text, self._max_rounds - left + 1)
        said = parted(_text(reply.message))[0] if _calls(reply.message) else ""
        return Answer(text=said, ending=Ending.LIMIT, calls=self._max_rounds + 1)

    def _ask(self, *, may_call: bool) -> Reply:
        session = self._session
        session.refresh()
        while True:
            protocol = session.config.recall.protocol
            tools = session.toolbox.openai() if protocol == "native" else []
            window = session.window(tools=tools)
            if session.config.recall.protocol == protocol:  # an engine's first command puts its own settings in force
                break
        self._tell_faded()
        self._tell(WindowSent(window=window))
        try:
            if isinstance(self._model, StreamingModel):
                reply = self._streamed(self._model, window.messages, tools, may_call=may_call, is_told=protocol != "attp")
            else:
                reply = self._kept(self._model.complete(window.messages, tools, may_call=may_call))
        except InvalidMessageError as error:
            message = f"the reply cannot be kept ({error}); nothing of it was: ask again, or another model"
            raise ModelError(message) from error
        if reply.prompt_tokens is not None and reply.prompt_tokens > 0:
            with suppress(ConfigError):  # what cannot be the window's size is no reason to leave the reply's calls unanswered
                session.report_usage(prompt_tokens=reply.prompt_tokens)
        return reply

    def _kept(self, reply: Reply) -> Reply:
        """Append a whole reply, and return it."""
        _raise(_problem(reply.message))
        self._session.append(reply.message, on_conflict="retry")
        return reply

    def _streamed(
        self,
        model: StreamingModel,
        messages: list[dict[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        *,
        may_call: bool,
        is_told: bool,
    ) -> Reply:
        """Append a reply as it comes, or as far as it came, and return it."""
        text, problem = HeadlineFilter(), ""

        def tell(more: str) -> None:
            if more and is_told:
                self._tell(TextStreamed(text=more))

        try:
            with self._session.stream() as stream:
                try:
                    reply = model.stream(messages, tools, may_call=may_call, take=lambda piece: tell(text.add(stream.add(piece))))
                finally:
                    problem = next(filter(None, map(_problem, stream.messages)), "")
                    if problem:
                        stream.discard()
                tell(text.rest())
        except ModelError as error:
            if stream.entries:
                error.add_note("what came of it is kept")
            raise
        _raise(problem)
        return attrs.evolve(reply, message=stream.entries[0].message) if stream.entries else self._kept(reply)

    def _answered(self, message: Mapping[str, Any], *, left: int, done: Collection[object] = ()) -> str | None:
        """Answer the calls that a reply makes, but for those *done*, and return ``None``; or return what it tells the user."""
        calls = _calls(message)
        for call in calls:
            if call["id"] not in done:
                self._answer_call(call, left=left)
        if calls or self._session.config.recall.protocol != "attp":
            return None if calls else _text(message)
        text = _text(message)
        result = self._session.attp(text, calls_left=left)
        if result.answer is None:
            answer = result.message()
            self._session.append(answer, on_conflict="retry")
            self._tell(CodeAnswered(reply=text, answer=answer["content"]))
        return result.answer

    def _answer_call(self, call: Mapping[str, Any], *, left: int) -> None:
        if not left:
            answer = _refusal(call, USED_UP.kind, f"{USED_UP.message}: {USED_UP.hint}")
        else:
            try:
                answer = self._session.handle_tool_call(call)
            except InvalidMessageError as error:  # such as a custom tool, which takes no JSON
                answer = _refusal(call, type(error).__name__, "call one of the functions that are offered")
        self._session.append(answer, on_conflict="retry")
        function = call.get("function")
        called = function if isinstance(function, Mapping) else {}
        name, arguments = str(called.get("name", "")), str(called.get("arguments", ""))
        self._tell(ToolAnswered(name=name, arguments=arguments, answer=answer["content"]))

    def _hear(self, notice: Notice) -> None:
        if isinstance(notice, Recall) and notice.page not in self._recalled:
            self._recalled.append(notice.page)
        self._tell(notice)

    def _tell(self, step: Step) -> None:
        if self._observer is not None:
            self._observer(step)

    def _tell_faded(self) -> None:
        faded = tuple(index for index in self._recalled if self._session.facts(index).state is not PageState.ATTACHED)
        self._recalled = [index for index in self._recalled if index not in faded]
        if faded:
            self._tell(Faded(pages=faded))


def _problem(message: Mapping[str, Any]) -> str:
    """Return why nothing of a reply is to be kept, empty where it can be."""
    role, calls = message.get("role"), message.get("tool_calls")
    if role != "assistant":
        return f"has the role {shown(role)}, not 'assistant'"
    if isinstance(calls, list) and len(calls) > MAX_CALLS:
        return f"makes {len(calls)} calls, and {MAX_CALLS} are the most"
    return ""


def _raise(problem: str) -> None:
    if problem:
        message = f"the reply {problem}; nothing of it was kept: ask again"
        raise ModelError(message)


def _calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(message.get("tool_calls") or ())


def _text(message: Mapping[str, Any]) -> str:
    """Return what a reply says, without the thoughts that some providers write into its content."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if part["type"] in ("text", "output_text"))
    return content or ""


def _refusal(call: Mapping[str, Any], kind: str, message: str) -> dict[str, Any]:
    text = codec.encode({"error": {"kind": kind, "message": message}}).decode()
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


def _answer(reply: Reply, text: str, calls: int) -> Answer:
    refusal, text = str(reply.message.get("refusal") or ""), parted(text)[0]
    if refusal or reply.finish_reason == "content_filter":
        return Answer(text=text or refusal, ending=Ending.REFUSED, calls=calls)
    full = Ending.ANSWERED if text.strip() else Ending.EMPTY
    return Answer(text=text, ending=Ending.CUT if reply.finish_reason == "length" else full, calls=calls)
