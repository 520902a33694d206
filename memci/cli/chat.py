"""``memci chat`` and ``memci mcp``: a model at a session."""

import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, Literal, assert_never

import attrs
import typer
from typer import Option

import memci
from memci.archive.catalogue.page_facts import PageFacts
from memci.chat.endpoint import Endpoint
from memci.chat.loop import Answer, Chat, CodeAnswered, Ending, Faded, Step, TextStreamed, ToolAnswered, WindowSent
from memci.cli import output
from memci.cli.bar import Bar
from memci.cli.exit_code import ExitCode, refuse, refuse_without
from memci.cli.output import Table, breakdown, count
from memci.cli.place import (
    STORE,
    TENANT,
    KeyOption,
    Place,
    StoreOption,
    TenantOption,
    command,
    encryption,
    page_argument,
)
from memci.engine.core.monitor import (
    Eviction,
    Fold,
    FoldFailed,
    PageRebuilt,
    Prefetch,
    PrefetchFailed,
    Recall,
    SummaryFailed,
    ZoneChange,
)
from memci.engine.history.state import SYSTEM
from memci.engine.settings.config import Budget, Config
from memci.errors import BudgetError, ConflictError, MemciError, ModelError
from memci.messages import codec

_SESSION, _KEY = "chat", "OPENAI_API_KEY"
_MOST_SHOWN = 160
_LISTED_PAGES = 20  # of /pages, the newest

_REMARKS = {
    Ending.CUT: "the reply was cut off by the endpoint's limit for replies",
    Ending.REFUSED: "the model refused, or a filter did",
    Ending.EMPTY: "the model said nothing",
    Ending.LIMIT: "the model called tools to the end of its rounds, and gave no answer",
}

Protocol = Literal["native", "attp"]


def chat(  # noqa: PLR0913 (the options of a command)
    *,
    base_url: Annotated[str, Option(metavar="URL", help="Where chat completions are, such as http://localhost:8080/v1.")],
    model: Annotated[str, Option(metavar="NAME", help="The model's name there.")],
    store: StoreOption = STORE,
    session: Annotated[str, Option(metavar="ID", help="Which session; made where it is not there.")] = _SESSION,
    tenant: TenantOption = TENANT,
    key: KeyOption = None,
    protocol: Annotated[
        Protocol | None, Option(help="How the model calls tools; without it as in force in the session, else native.")
    ] = None,
    budget: Annotated[int | None, Option(metavar="N", help="Tokens that a window may hold, the reply not among them.")] = None,
    config: Annotated[
        Path | None, Option(metavar="FILE", help="Settings, as `memci config` prints them; else those in force.")
    ] = None,
    system: Annotated[
        str | None, Option(metavar="FILE|TEXT", help="System prompt: the text of a file of this name, else this text.")
    ] = None,
    api_key_env: Annotated[str, Option(metavar="NAME", help="The environment variable that holds the API key.")] = _KEY,
    timeout: Annotated[float, Option(metavar="SECONDS", help="How long to wait for the endpoint, in each attempt.")] = 120.0,
    retries: Annotated[int, Option(metavar="N", min=0, help="Attempts after the first, where a request fails.")] = 2,
    option: Annotated[
        list[str] | None, Option(metavar="NAME=VALUE", help="One more key of the requests; the value is JSON, or text.")
    ] = None,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Write the replies alone.")] = False,
    json: Annotated[bool, Option("--json", help="Write every step as a JSON document on a line, for machines.")] = False,
) -> None:
    """Talk with a model (writes).

    Each line of standard input is a message of the user. Replies go to standard output as they come; what is sent, called,
    folded, recalled and faded to standard error. A turn that was interrupted is finished first. On a terminal, an empty line
    tries again after a failure, Ctrl-C stops an answer, and /pages, /undo and /why [page] look at the window; elsewhere a
    failure ends the command.
    """
    settings = _settings(config, Place(store, session, tenant, key), budget, protocol)
    api_key, options = os.environ.get(api_key_env), dict(map(_named, option or ()))
    with (
        Endpoint(base_url, model, api_key=api_key, timeout_s=timeout, max_retries=retries, options=options) as endpoint,
        memci.Engine(store, settings, tenant) as engine,
        engine.session(session) as opened,
    ):
        if system is not None:
            _set_system(opened, system)
        screen = _Screen(quiet=quiet, json=json)
        talk = Chat(opened, endpoint, observer=screen.hear)
        if sys.stdin.isatty() and sys.stdout.isatty():
            _converse(talk, opened, screen)
        else:
            _drive(talk, screen)


@command
def mcp(
    place: Place,
    *,
    every: Annotated[bool, Option("--all", help="All sessions of the tenant: list, search and read them.")] = False,
    read_only: Annotated[bool, Option("--read-only", help="With --all, no page can be recalled: nothing is written.")] = False,
) -> None:
    """Serve a session's tools over MCP, or those of all sessions (recalls write).

    An MCP client starts this command and speaks with it on standard input and output. It ends with its input. Needs the extra
    memci[mcp].
    """
    try:
        from memci.mcp.conversation import Conversation  # noqa: PLC0415 (an extra, and 700 ms)
        from memci.mcp.library import Library  # noqa: PLC0415 (as above)
        from memci.mcp.server import serve  # noqa: PLC0415 (as above)
    except ModuleNotFoundError as error:
        refuse_without(error, "memci mcp", "mcp")
    if (read_only and not every) or (every and place.session is not None):
        refuse("--read-only goes with --all, and --all with no --session")
    if every:
        settings = attrs.evolve(Config(), encryption=encryption(place.key))
        found = serve(Library(place.store, place.tenant, settings, read_only=read_only))
    else:
        found = serve(Conversation(place.store, place.tenant, *place.known()))
    match found:
        case signal.SIGINT:
            raise typer.Exit(ExitCode.INTERRUPTED)
        case signal.SIGPIPE:
            raise typer.Exit(ExitCode.PIPE_CLOSED)


@attrs.define
class _Screen:
    """What is written of a conversation, and whether a line of it is to be ended."""

    quiet: bool
    json: bool
    is_within_line: bool = False
    is_told: bool = False  # whether the text of the last reply was written as it came

    def hear(self, step: Step) -> None:
        """Write of a step."""
        if isinstance(step, TextStreamed) and not self.json:
            self.is_within_line = self.is_told = True  # also where Ctrl-C comes before all of it is written
            output.write(output.safe(step.text), through=True)
            return
        self.end_line()
        if isinstance(step, WindowSent):
            self.is_told = False
        if self.json and not self.quiet:
            _document(step)
        elif not self.quiet:
            _note(step)

    def answer(self, answer: Answer | None) -> None:
        """Write an answer, as far as it did not come in pieces."""
        if answer is None:  # nothing was interrupted
            return
        if self.json:
            output.document({"step": "answer", **attrs.asdict(answer)})
        else:
            self.end_line() if self.is_told else output.show([answer.text])
            if answer.ending in _REMARKS:
                output.note(_REMARKS[answer.ending])
        output.write("", through=True)

    def end_line(self) -> None:
        """End the line of a reply that is not at its end, for what is written next."""
        if self.is_within_line:
            self.is_within_line = False
            output.write("\n", through=True)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Have a line ended, whatever ends the turn."""
        try:
            yield
        finally:
            self.end_line()


def _drive(talk: Chat, screen: _Screen) -> None:
    """Finish what was interrupted, then carry each line through; an error ends it."""
    with screen.turn():
        screen.answer(talk.resume())
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8", errors="replace")
        for line in sys.stdin:
            if line.strip():
                screen.answer(talk.say(line.rstrip("\r\n")))


def _converse(talk: Chat, session: memci.Session, screen: _Screen) -> None:
    """Do the same on a terminal, where whoever writes may try again after a failure, stop an answer, and look at the window."""
    line = ""
    while True:
        try:
            with screen.turn():
                if not _is_carried_out(line, session):
                    screen.answer(talk.say(line) if line.strip() else talk.resume())
        except (ModelError, BudgetError, ConflictError) as error:
            output.note("; ".join([f"memci: {error}", *getattr(error, "__notes__", ["an empty line tries again"])]))
        except KeyboardInterrupt:
            output.note("stopped: what came of the answer is kept; where nothing came, an empty line asks again")
        try:
            line = input("> ")
        except EOFError:
            output.write("\n")
            return


def _is_carried_out(line: str, session: memci.Session) -> bool:
    """Do what a line asks for where it is a command, and return whether it is one."""
    try:
        match line.split():
            case ["/pages"]:
                _show_pages(session.pages())
            case ["/undo"]:
                output.show([f"in view again: {', '.join(session.undo_fold().pages) or 'the contents page of before'}"])
            case ["/why"]:
                status = session.status()
                output.show([status.line(), Bar(tokens=status.tokens, budget=status.budget, breakdown=status.breakdown)])
            case ["/why", index]:
                output.show([str(session.explain(page_argument(index)))])
            case [word] if re.fullmatch("/[a-z]+", word):
                output.note(f"{word} is no command, and was not sent: there are /pages, /undo and /why [page]")
            case _:
                return False
    except MemciError as error:
        output.note(f"memci: {error}")
    return True


def _show_pages(facts: Sequence[PageFacts]) -> None:
    rows = ([page.index, page.state, *map(count, (page.turn, page.tokens)), page.title] for page in facts[-_LISTED_PAGES:])
    output.show([Table(("page", "state", "turn#", "tokens#", "title"), rows)])
    if len(facts) > _LISTED_PAGES:
        output.note(f"{count(len(facts) - _LISTED_PAGES)} older ones are left out: memci pages lists all")


def _settings(path: Path | None, place: Place, budget: int | None, protocol: Protocol | None) -> Config:
    """Return the settings of a file, or those in force in the session, with what the options change."""
    if path is not None:
        settings = Config.from_file(path)
    else:
        with place.engine() as engine, engine.session(place.session or _SESSION) as session:
            settings = session.config
    if place.key is not None:
        settings = attrs.evolve(settings, encryption=encryption(place.key))
    if budget is not None:
        settings = attrs.evolve(settings, budget=Budget(window=budget, reserve=0))
    if protocol is not None:
        settings = attrs.evolve(settings, recall=attrs.evolve(settings.recall, protocol=protocol))
    return settings


def _set_system(session: memci.Session, value: str) -> None:
    """Put a system prompt in force, where it is not."""
    wanted = [{"role": "system", "content": _system_text(value)}]
    pages = [facts.index for facts in session.pages() if facts.index.startswith(f"{SYSTEM}-")]
    if wanted != [message for index in pages for message in session.page(index).messages]:
        session.set_system(wanted)


def _system_text(value: str) -> str:
    try:
        return Path(value).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        refuse(f"{value}: not UTF-8: {error}")
    except (OSError, ValueError):  # no file has this name, or can have it
        return value


def _named(text: str) -> tuple[str, Any]:
    """Read an option of the request."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        refuse(f"--option {text}: give NAME=VALUE, such as temperature=0.2")
    try:
        return name, codec.decode_foreign(value.encode("utf-8", "surrogateescape"))
    except ValueError:
        return name, value


def _note(step: Step) -> None:
    for line in map(output.one_line, _told(step)[1:]):
        output.note(line if len(line) <= _MOST_SHOWN else f"{line[:_MOST_SHOWN]}…")


def _document(step: Step) -> None:
    match step:
        case WindowSent(window=window):
            facts = {"tokens": window.tokens, "budget": window.budget, "seq": window.seq, "breakdown": window.breakdown}
        case FoldFailed(error=error) | SummaryFailed(error=error) | PrefetchFailed(error=error):
            facts = {"error": str(error)}
        case _:
            facts = attrs.asdict(step)
    output.document({"step": _told(step)[0], **facts})


def _told(step: Step) -> tuple[str, ...]:  # noqa: C901, PLR0911, PLR0912 (a case a step)
    """Return the name of a step, for machines, and its lines, for people."""
    match step:
        case WindowSent(window=sent):
            size = f"{count(sent.tokens)} of {count(sent.budget)} tokens ({breakdown(sent.breakdown)})"
            return "window", f"window {size}"
        case TextStreamed():
            return ("text",)
        case ToolAnswered():
            return "tool", f"call   {step.name} {step.arguments}", f"result {step.answer}"
        case CodeAnswered():
            return "code", f"call   {step.reply}", f"result {step.answer}"
        case Faded(pages=pages):
            return "fade", f"fade   {', '.join(pages)}"
        case Fold(pages=pages):
            folded = f"{pages[0]} to {pages[-1]}, {len(pages)} pages" if pages else "the contents page alone"
            went = f"from {count(step.tokens_before)} to {count(step.tokens_after)} tokens"
            if step.reason == "undo":
                return "undo", f"undo   {folded} back: the window goes {went}"
            return "fold", f"fold   {folded}: the window goes {went}"
        case FoldFailed(error=error):
            return "fold_failed", f"fold   failed, and is tried again later: {error}"
        case Eviction(pages=evicted):
            return "evict", f"evict  {', '.join(index for index, _ in evicted)}"
        case SummaryFailed(page=page, error=error):
            return "summary_failed", f"page   {page} could not be summarised, extracts are shown: {error}"
        case Recall(page=page, refused=refused):
            return "recall", f"recall {page}{': too large to be attached' if refused else ''}"
        case Prefetch(pages=pages):
            return "prefetch", f"prefetch {', '.join(pages)}: {count(step.tokens)} tokens"
        case PrefetchFailed(error=error):
            return "prefetch_failed", f"prefetch failed: {error}"
        case PageRebuilt(page=page):
            return "page_rebuilt", f"page   {page} was made again from the journal"
        case ZoneChange():
            return ("zone",)  # the line of the window tells
        case _:
            assert_never(step)
