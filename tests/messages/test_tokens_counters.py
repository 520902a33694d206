"""Counters: exact counts offline, the estimate and its margin, and the names in the configuration."""

import hashlib
import subprocess
import sys
import time
from binascii import a2b_base64
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from memci.errors import ConfigError
from memci.messages.tokens import encodings
from memci.messages.tokens.counter import ApproximateCounter, PartsCount, TokenCounter, get_counter
from memci.messages.tokens.encodings import CHUNK_CHARACTERS, ENCODINGS, Ranks, TiktokenCounter, Vocabulary
from tests.messages.vocabularies import packed, published
from tests.python_calls import python_calls
from tests.word_counter import WordCounter

ADDRESSES = {name: f"https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken" for name in ENCODINGS}

SAMPLES = {
    "english": "Where is my order? It should have arrived yesterday, and I'd like to know why it hasn't.",
    "chinese": "请问我的订单在哪里。昨天就应该送到了、我想知道为什么还没有到。",
    "russian": "Добрый день! Подскажите, пожалуйста, где находится мой заказ?",
    "json": '{"order_id": "#W2378156", "items": [{"name": "Mug", "price": 12.5, "available": true}], "status": "pending"}',
    "code": "def total(items: list[float]) -> float:\n    return sum(item for item in items if item > 0)\n",
    "emoji": "Thanks so much 🎉🎉 see you 👋",
}


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tiktoken.Encoding]]:
    """Load tiktoken's own encodings, from a cache directory such as a download would leave."""
    folder = tmp_path_factory.mktemp("tiktoken")
    for name, address in ADDRESSES.items():
        cached = folder / hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()
        cached.write_bytes(published(name))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        yield {name: tiktoken.get_encoding(name) for name in ADDRESSES}


@pytest.fixture(scope="module")
def o200k() -> TokenCounter:
    """Load the default encoding once."""
    return get_counter("o200k_base")


@pytest.mark.parametrize("name", sorted(ENCODINGS))
def test_counts_are_tiktokens(name: str, originals: dict[str, tiktoken.Encoding]) -> None:
    """A count is the number of tokens that tiktoken's own encoding gives, whatever the text."""
    original = originals[name]
    counter = get_counter(name)

    @given(st.text())
    def same(text: str) -> None:
        assert len(original.encode_ordinary(text)) == counter.count(text)

    same()
    for text in SAMPLES.values():
        assert len(original.encode_ordinary(text)) == counter.count(text)


@pytest.mark.parametrize("name", sorted(ENCODINGS))
def test_first_counts_are_tiktokens(name: str, originals: dict[str, tiktoken.Encoding]) -> None:
    """What is counted before tiktoken is loaded has the same count, whichever pieces it is made of."""
    original = originals[name]
    vocabulary = Vocabulary.read(name)
    words = st.sampled_from(
        [*" \t\n\r'/.,!-_{}\"，。“”…", "\r\n", "don't", "HTML5Parser", "I'LL", "1234567", "naïve", "Straße", "订单", "的"]
    )
    plain = st.text(st.characters(codec="latin-1"), max_size=20)
    first = [*SAMPLES.values(), "qzx", "unmergeable zqxjkvbp"]

    @given(st.lists(words | plain, max_size=20).map("".join))
    def same(text: str) -> None:
        assert vocabulary.count(text) in {None, len(original.encode_ordinary(text))}

    assert [len(original.encode_ordinary(text)) for text in first[:2]] == [
        Vocabulary.read(name).count(text) for text in first[:2]
    ]
    for text in first:
        assert vocabulary.count(text) in {None, len(original.encode_ordinary(text))}
    same()


def test_few_counts_do_without_tiktoken() -> None:
    """A process that counts a little text never loads tiktoken; one that counts much, or rarer scripts, does."""
    code = (
        "import sys; from memci.messages.tokens.counter import get_counter; count = get_counter('o200k_base').count; "
        "count('Where is my order? ' * 500); print('tiktoken' in sys.modules); count({}); print('tiktoken' in sys.modules)"
    )
    for text in ("'Where is my order? ' * 9_000", "'Где мой заказ?'"):
        done = subprocess.run([sys.executable, "-c", code.format(text)], capture_output=True, text=True, check=True)  # noqa: S603 (our own Python)
        assert done.stdout == "False\nTrue\n"


def test_a_thread_counts_on_after_the_main_thread() -> None:
    """A thread can load tiktoken still when the main thread has ended."""
    code = (
        "import threading; from memci.messages.tokens.counter import get_counter; counter = get_counter('o200k_base')\n"
        "def work(): threading.main_thread().join(); print(counter.count('Где мой заказ?'))\n"
        "threading.Thread(target=work).start()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 (our own Python)
    assert get_counter("o200k_base").count("Где мой заказ?") == int(done.stdout)


@pytest.mark.parametrize("name", sorted(ENCODINGS))
def test_parts_count_as_their_text_does(name: str) -> None:
    """Parts that begin with a bracket, each on lines of its own, have as many tokens as the text that they make."""
    counter, count = get_counter(name), PartsCount()
    part = st.one_of(st.text(), st.text("aÉ1 .,:/\n\r中'")).map("[".__add__)

    @given(st.lists(part, min_size=1))
    def same(parts: list[str]) -> None:
        for some in (parts, parts[:2]):
            assert counter.count("\n".join(some)) == count.count(some, counter)

    same()


def test_parts_are_counted_once() -> None:
    """What a text shares with the last one is not counted again, whatever its length; an estimate is of the whole text."""
    counter, count, parts = WordCounter(), PartsCount(), [f"[{number}] word" for number in range(50)]
    assert 100 == count.count(parts, counter)
    assert 50 == counter.calls
    assert 102 == count.count([*parts[:20], "[new] word", *parts[20:]], counter)
    assert 52 == counter.calls  # what is new, and the last part
    assert ApproximateCounter().count("\n".join(parts)) == count.count(parts, ApproximateCounter())


@pytest.mark.parametrize("name", sorted(ENCODINGS))
def test_vocabularies_are_the_published_ones(name: str) -> None:
    """The files of memci are made of those that tiktoken publishes, and give its ranks."""
    file = Path(encodings.__file__).with_name(f"{name}.vocabulary").read_bytes()
    assert packed(published(name)) == file
    words = published(name).split()
    known = dict(zip(map(a2b_base64, words[::2]), map(int, words[1::2]), strict=True))
    assert known == Ranks(file).all()
    ranks, some = Ranks(file), list(known)[::997]
    assert [known[token] for token in some] == [ranks[token] for token in some]


def test_a_missing_or_damaged_vocabulary_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file is not as it was installed, the first count says what to do."""
    file = Path(encodings.__file__).with_name("o200k_base.vocabulary").read_bytes()
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda _path: file[:-1] + b"?")
    with pytest.raises(ConfigError, match="is damaged: install memci again"):
        TiktokenCounter("o200k_base").count("hello")
    monkeypatch.undo()
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda path: path.with_name("missing").open("rb").read())
    with pytest.raises(ConfigError, match=r"cannot be read .*: install memci again"):
        TiktokenCounter("o200k_base").count("hello")


def test_first_counts_look_up_few_tokens() -> None:
    """Counting a first text looks up its own pieces, and the pairs in those that are no tokens, each once."""
    calls = python_calls(
        lambda: TiktokenCounter("o200k_base").count("Where is my order? And where is the other order of Quinton?")
    )
    looked_up = sum(count for code, count in calls.items() if code is Ranks.__missing__.__code__)
    assert 11 <= looked_up < 30
    assert 0 == sum(count for code, count in calls.items() if code is Ranks.all.__code__)


def test_loading_ahead_changes_no_count() -> None:
    """A counter that loads tiktoken before its first count gives the same counts."""
    ready, fresh = TiktokenCounter("o200k_base"), TiktokenCounter("o200k_base")
    ready.load()
    assert [ready.count(text) for text in SAMPLES.values()] == [fresh.count(text) for text in SAMPLES.values()]


def test_special_tokens_are_ordinary_text(o200k: TokenCounter) -> None:
    """A user who writes a special token's name neither fails nor gets it cheaper."""
    assert o200k.count("<|endoftext|>") > 1


def test_lone_surrogates_count(o200k: TokenCounter) -> None:
    """Text that UTF-8 cannot encode is counted all the same."""
    assert o200k.count("a\ud800b") == o200k.count("a\ufffdb")
    assert ApproximateCounter().count("a\ud800b") > 0


def test_empty_text_has_no_tokens(o200k: TokenCounter) -> None:
    """No text, no tokens, with either counter."""
    assert o200k.count("") == 0
    assert ApproximateCounter().count("") == 0


@pytest.mark.parametrize("character", ["a", " ", "\n", "=", "7", "中"])
def test_a_million_times_one_character_is_counted(o200k: TokenCounter, character: str) -> None:
    """Runs on which tiktoken alone overflows or slows down come out as the sum of their chunks."""
    chunk = o200k.count(character * CHUNK_CHARACTERS)
    assert 50 * chunk == o200k.count(character * 50 * CHUNK_CHARACTERS)


@pytest.mark.parametrize("sample", ["english", "russian", "json", "code"])
def test_chunks_do_not_change_the_count_of_words(
    o200k: TokenCounter, originals: dict[str, tiktoken.Encoding], sample: str
) -> None:
    """A long text with spaces or lines is cut where the encoding cuts it, so that its count is exact."""
    text = "\n".join([SAMPLES[sample]] * (3 * CHUNK_CHARACTERS // len(SAMPLES[sample])))
    whole = originals["o200k_base"].encode_ordinary(text)
    assert len(whole) == o200k.count(text)


def test_chunks_without_a_boundary_cost_few_tokens(o200k: TokenCounter, originals: dict[str, tiktoken.Encoding]) -> None:
    """Where a long text has no place to cut, the count is at most a few tokens a chunk above the exact one."""
    text = (SAMPLES["chinese"] * CHUNK_CHARACTERS)[: 5 * CHUNK_CHARACTERS]
    exact = len(originals["o200k_base"].encode_ordinary(text))
    assert exact <= o200k.count(text) <= exact + 10


def test_a_long_text_takes_time_in_proportion(o200k: TokenCounter) -> None:
    """Ten times the letters take at most about ten times as long."""

    def seconds(characters: int) -> float:
        text = "a" * characters
        started = time.perf_counter()
        o200k.count(text)
        return time.perf_counter() - started

    ratios = sorted(seconds(1_000_000) / seconds(100_000) for _ in range(5))
    assert ratios[0] < 20


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("o200k_base", "o200k_base"),
        ("cl100k_base", "cl100k_base"),
        ("gpt-4o", "o200k_base"),
        ("gpt-4o-mini-2024-07-18", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("gpt-oss-120b", "o200k_base"),
        ("o200k_harmony", "o200k_base"),
    ],
)
def test_names_of_one_encoding_give_one_counter(name: str, encoding: str) -> None:
    """A model's name gives the counter of its encoding, under the encoding's name."""
    counter = get_counter(name)
    assert encoding == counter.name
    assert counter is get_counter(encoding)
    assert (True, 1.0) == (counter.exact, counter.margin)


def test_approximate_is_an_estimate_with_a_margin() -> None:
    """The estimate says that it is one."""
    counter = get_counter("approximate")
    assert counter.name == "approximate"
    assert not counter.exact
    assert counter.margin > 1


@pytest.mark.parametrize(
    ("name", "near"), [("o200k", "o200k_base"), ("gtp-4o", "gpt-4o"), ("aproximate", "approximate"), ("p50k_base", "o200k_base")]
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, near: str) -> None:
    """A name without a tokeniser names what is like it, and the way out."""
    with pytest.raises(ConfigError, match=near) as caught:
        get_counter(name)
    assert caught.value.path == "counter"
    assert "approximate" in str(caught.value)


@pytest.mark.parametrize("name", ["claude-opus-4", "text-davinci-003", "", "no such thing"])
def test_a_model_without_a_tokeniser_is_advised_to_approximate(name: str) -> None:
    """Models whose vocabulary is not here are refused before anything is counted."""
    with pytest.raises(ConfigError, match="approximate"):
        get_counter(name)


@pytest.mark.parametrize("sample", sorted(SAMPLES))
def test_the_estimate_with_its_margin_covers_ordinary_text(o200k: TokenCounter, sample: str) -> None:
    """With its margin the estimate is not below the exact count, and not twice as high."""
    counter = ApproximateCounter()
    exact = o200k.count(SAMPLES[sample])
    assert exact <= counter.count(SAMPLES[sample]) * counter.margin <= 2 * exact


@given(st.text(), st.text())
def test_the_estimate_does_not_shrink_when_lines_are_added(first: str, second: str) -> None:
    """A text and another line are estimated at no less than the text alone."""
    counter = ApproximateCounter()
    assert counter.count(first) <= counter.count(f"{first}\nx{second}")


OFFLINE = """
import sys
def watch(event, args):
    if event.startswith("socket.") or event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
        raise RuntimeError(f"{event} {args}")
import os
from memci.messages.tokens.counter import get_counter
before = dict(os.environ)
counter = get_counter("o200k_base")
assert "tiktoken" not in sys.modules
sys.addaudithook(watch)
print(counter.count("hello world"))
assert before == dict(os.environ)
"""


def test_counting_needs_no_network_no_home_and_writes_nothing(tmp_path: Path) -> None:
    """A process without network, home and environment counts, and leaves files and environment alone."""
    python = [sys.executable, "-B", "-c", OFFLINE]
    environment = {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(python, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 (our own Python)
    assert done.stderr == ""
    assert done.stdout == "2\n"
    assert list(tmp_path.iterdir()) == []


def test_the_word_counter_counts_words_and_its_calls() -> None:
    """The fake for tests is what it says."""
    counter = WordCounter()
    assert counter.count("three little words") == 3
    assert counter.count("") == 0
    assert counter.calls == 2
