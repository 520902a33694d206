"""Full-text search over the pages of one session."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.archive.catalogue.page_index import PageIndex
from memci.archive.catalogue.page_search import PageSearch
from memci.archive.catalogue.search import Entry, ExtraPage, Filter
from memci.archive.summarizers.words import words


@pytest.fixture
def index() -> Iterator[PageIndex]:
    """An empty index in memory."""
    index = PageIndex(None)
    yield index
    index.close()


def add(index: PageIndex, pages: list[list[tuple[str, str]]], *, at: str = "", state: PageState = PageState.ARCHIVED) -> None:
    """Add pages of (role, text), numbered on from those that are there."""
    first = index.count_pages() + 1
    with index.write() as writer:
        seq = writer.seq
        for number, page in enumerate(pages, start=first):
            name = f"usr-{number}"
            last = seq + len(page)
            writer.put_page(
                PageFacts(index=name, state=state, turn=number, entries=len(page), tokens=1, first_seq=last, last_seq=last)
            )
            for position, (role, text) in enumerate(page, start=1):
                seq += 1
                writer.add_entry(seq=seq, page=name, position=position, role=role, text=text, at=at)
            writer.index_page(name)
        writer.set_seq(seq, "m")


def names(index: PageIndex, query: str, **options: object) -> list[str]:
    return [hit.index for hit in index.search(query, **{"limit": 10, **options})]  # type: ignore[arg-type]


def test_a_hit_says_where_it_is(index: PageIndex) -> None:
    """A hit has the page, the position of the best entry, and a passage of that entry with its neighbours."""
    add(index, [[("user", "hello")], [("user", "a question"), ("assistant", "The zebra lives in Kenya.")]])
    (hit,) = index.search("Where do zebras live?", limit=10)
    assert ("usr-2", 2, "a question\nThe zebra lives in Kenya.") == (hit.index, hit.entry.position, hit.snippet)
    assert hit.score > 0


def test_any_word_is_enough(index: PageIndex) -> None:
    """A page with one of the words is found, and one with all of them stands first."""
    add(index, [[("user", "red car")], [("user", "red fox")], [("user", "nothing")], [("user", "hello")], [("user", "good day")]])
    assert ["usr-2", "usr-1"] == names(index, "red fox on the moon")


@pytest.mark.parametrize("query", ["", "  ", "?!", '"', "*", "()", "^:-", "\x00", "\ud800"])
def test_a_query_without_words_finds_nothing(index: PageIndex, query: str) -> None:
    """Signs alone are no query."""
    add(index, [[("user", "a * zebra")]])
    assert [] == names(index, query)


@pytest.mark.parametrize(
    "query", ['zebra"', "NOT zebra", "page:zebra", "zebra*", "NEAR(zebra)", "zebra AND", "'zebra'; --", "-zebra"]
)
def test_a_query_has_no_syntax(index: PageIndex, query: str) -> None:
    """What is an operator to the database is a plain word, or nothing, in a query."""
    add(index, [[("user", "a zebra")]])
    assert ["usr-1"] == names(index, query)


@given(st.text(max_size=40))
def test_any_text_is_a_query(query: str) -> None:
    """No query is refused, and a page that says the same words is found whenever there are any."""
    index = PageIndex(None)
    add(index, [[("user", query)]])
    assert (["usr-1"] if words(query) else []) == names(index, query)
    index.close()


def test_chinese_is_found_by_its_words(index: PageIndex) -> None:
    """Words are found inside Chinese text, which has no spaces."""
    add(index, [[("user", "好吧，电话多少？")], [("assistant", "全聚德烤鸭店的营业时间是11:30")], [("user", "谢谢你")]])
    assert ["usr-2"] == names(index, "烤鸭店？")


def test_the_time_is_part_of_the_text(index: PageIndex) -> None:
    """A page is found by the day it was written on, in words or in figures."""
    add(index, [[("user", "hello")]], at="2023-05-08T13:56:00+00:00")
    add(index, [[("user", "hello")]], at="2023-06-01T09:00:00+00:00")
    assert ["usr-1"] == names(index, "8 May")
    assert "usr-2" == names(index, "2023-06-01")[0]


def test_the_contents_entry_is_searched_and_kept(index: PageIndex) -> None:
    """Words of the contents entry find the page, also after its text was indexed again without one."""
    add(index, [[("user", "a question")]])
    with index.write() as writer:
        writer.index_page("usr-1", entry="Billing matters")
        writer.index_page("usr-1")
    assert ["usr-1"] == names(index, "billing")


def test_a_page_is_searched_as_it_was_indexed_last(index: PageIndex) -> None:
    """Words that came into a page are found once it is indexed again, and pages are found once."""
    add(index, [[("user", "a question"), ("assistant", "an answer")]])
    with index.write() as writer:
        writer.add_entry(seq=9, page="usr-1", position=2, role="tool", text="zebra zebra", at="")
        writer.index_page("usr-1")
    (hit,) = index.search("zebra answer", limit=10)
    assert (2, "a question\nzebra zebra\nan answer") == (hit.entry.position, hit.snippet)


def test_limit_cuts_the_list(index: PageIndex) -> None:
    """No more pages are returned than asked for; none for a limit of 0."""
    add(index, [[("user", f"zebra {number}")] for number in range(200)])
    assert [0, 3, 150] == [len(names(index, "zebra", limit=limit)) for limit in (0, 3, 150)]


def test_only_pages_that_are_admitted(index: PageIndex) -> None:
    """Only pages that the caller admits are returned, also where most matches are others."""
    add(index, [[("user", "zebra zebra zebra")] for _ in range(300)])
    add(index, [[("user", "a zebra and much else besides")], [("user", "hello")]])
    assert ["usr-301"] == names(index, "zebra", only=Filter(where=lambda name: name in {"usr-301", "usr-302"}))
    assert [] == names(index, "zebra", only=Filter(where=lambda _: False))
    assert 10 == len(names(index, "zebra", only=Filter(where=lambda _: True)))


def test_excluded_pages_make_room_for_others(index: PageIndex) -> None:
    """Pages that are not wanted are left out, and as many others are returned."""
    add(index, [[("user", "zebra")] for _ in range(100)])
    unwanted = {f"usr-{number}" for number in range(1, 61)}
    assert [f"usr-{number}" for number in range(61, 101)] == sorted(
        names(index, "zebra", limit=50, only=Filter(exclude=frozenset(unwanted))), key=_number
    )


def test_extra_pages_are_searched_too(index: PageIndex) -> None:
    """A page that is not in the index yet is found like the others, and nothing is stored of it."""
    add(index, [[("user", "a lion")]])
    extra = ExtraPage(
        index="usr-2", turn=1, entries=[Entry(1, "user", "hello", ""), Entry(2, "assistant", "a zebra and a lion", "")]
    )
    (hit,) = index.search("zebra", limit=10, extra=[extra])
    assert ("usr-2", 2, "hello\na zebra and a lion") == (hit.index, hit.entry.position, hit.snippet)
    assert ["usr-1", "usr-2"] == sorted(names(index, "lion", extra=[extra]))
    assert [] == names(index, "zebra")
    assert [] == names(index, "zebra", extra=[extra], only=Filter(where=lambda name: name != "usr-2"))
    assert [] == names(index, "zebra", extra=[extra], only=Filter(exclude=frozenset({"usr-2"})))


def test_an_extra_page_replaces_its_older_self(index: PageIndex) -> None:
    """An extra page with the index of a stored page is searched instead of that."""
    add(index, [[("user", "a lion")], [("user", "hello")]])
    extra = ExtraPage(index="usr-1", turn=1, entries=[Entry(1, "user", "a zebra", ""), Entry(2, "user", "a lion", "")])
    (hit,) = index.search("lion zebra", limit=10, extra=[extra])
    assert ("usr-1", 1) == (hit.index, hit.entry.position)


def test_extra_pages_of_an_empty_index(index: PageIndex) -> None:
    """The first page of a session is found while it is open; an extra page without entries is no trouble."""
    extra = [
        ExtraPage(index="usr-1", turn=1, entries=[Entry(1, "user", "a zebra", "")]),
        ExtraPage(index="usr-2", turn=1, entries=[]),
    ]
    assert ["usr-1"] == names(index, "zebra", extra=extra)


def test_text_with_a_lone_surrogate(index: PageIndex) -> None:
    """Text that UTF-8 cannot encode is indexed all the same."""
    add(index, [[("user", "a zebra \ud83d here")]])
    assert ["usr-1"] == names(index, "zebra \ud83d")


def test_neighbours_bring_the_answer_up(index: PageIndex) -> None:
    """Of pages that say the same, the one beside the page that names the matter is best."""
    phone, filler = [("user", "its phone number?"), ("assistant", "It is 555.")], [("user", "thanks"), ("assistant", "welcome")]
    hotel = [("user", "find a hotel"), ("assistant", "Hotel Lotus")]
    add(index, [phone, filler, filler, filler, hotel, phone, filler, filler, filler, phone])
    found = names(index, "phone number of Hotel Lotus")
    assert {"usr-5", "usr-6"} == set(found[:2])


def test_a_page_beside_the_words_of_a_question_is_found(index: PageIndex) -> None:
    """A page with none of the words comes after the page that holds many of them; a short query finds only its words."""
    add(index, [[("user", "what colour was the first car of my aunt?")], [("user", "Blue, she said.")]])
    assert ["usr-1", "usr-2"] == names(index, "colour of my aunt's first car")
    assert ["usr-1"] == names(index, "aunt car")


def test_very_long_pages_are_found(index: PageIndex) -> None:
    """Pages of a size of which only the best are read in full are all found."""
    long = "filler text and more of it " * 20_000
    add(index, [[("user", f"zebra {number}"), ("tool", long)] for number in range(6)])
    assert 6 == len(names(index, "zebra", limit=6))


def test_common_words_do_not_hide_rare_ones(index: PageIndex) -> None:
    """In a long history a page with the rare word of a query is found among thousands with the common ones."""
    pages = [[("user", f"the order number {number} shipped")] for number in range(3_000)]
    pages[1_234] = [("user", "order a zebra")]
    add(index, pages)
    assert "usr-1235" == names(index, "order number shipped zebra")[0]


def _number(index: str) -> int:
    return int(index.partition("-")[2])


@pytest.mark.parametrize(
    "only",
    [
        Filter(),
        Filter(turns=(1, 50)),
        Filter(exclude=frozenset({"usr-1", "usr-2"})),
        Filter(where=lambda _: False),
        Filter(where=lambda name: name == "usr-7"),
        Filter(roles=frozenset({"user"})),
        Filter(roles=frozenset({"tool"})),
        Filter(roles=frozenset({"nobody"})),
    ],
)
def test_a_search_asks_the_database_a_fixed_number_of_times(index: PageIndex, only: Filter) -> None:
    """The number of statements of a search does not grow with the history, also where few pages are admitted or none."""

    def statements() -> int:
        asked: list[str] = []
        index._db().connection.set_trace_callback(asked.append)
        index.search("zebra lion", limit=5, only=only)
        index._db().connection.set_trace_callback(None)
        return sum(statement.startswith("SELECT") and "%_" not in statement for statement in asked)

    add(index, [[("user", "a zebra"), ("tool", "a lion")], *[[("user", "a zebra and a lion")]] * 99])
    few = statements()
    add(index, [[("user", "a zebra and a lion")] for _ in range(900)])
    assert few == statements()


@pytest.mark.parametrize("only", [Filter(), Filter(exclude=frozenset({"usr-1"})), Filter(roles=frozenset({"user"}))])
def test_what_a_search_asks_the_database(index: PageIndex, only: Filter) -> None:
    """Two statements for each word, and eight beside them, whatever is found."""
    add(index, [[("user", "a zebra and a lion")] for _ in range(100)])
    asked: list[str] = []
    index._db().connection.set_trace_callback(asked.append)
    assert 10 == len(index.search("zebra lion", limit=10, only=only))
    index._db().connection.set_trace_callback(None)
    assert 2 * 2 + 8 >= sum(not statement.startswith("-- ") for statement in asked)


def test_pages_with_one_common_word_are_not_scored(index: PageIndex) -> None:
    """Where enough pages hold a rare word, or two common ones, the others are passed over; what is found is the same."""
    chance = random.Random(20_261_123)  # noqa: S311 (words, not secrets)
    texts = [" ".join(chance.choices(("parcel", "invoice", "zebra"), k=1) + ["fox"] * chance.randrange(9)) for _ in range(2_400)]
    for number in range(0, 2_400, 40):
        texts[number] += chance.choice((" quince", " parcel invoice zebra"))
    add(index, [[("user", text)] for text in texts])
    search = PageSearch(index._db(), "quince parcel invoice zebra", (), None)

    def found() -> tuple[list[int], int]:
        asked: list[str] = []
        index._db().connection.set_trace_callback(asked.append)
        places = search._matching(30, Filter())
        index._db().connection.set_trace_callback(None)
        return places, sum("_docsize" in statement for statement in asked)

    quick, few = found()
    search._pages = 10**9  # so that a word weighs more than any page scores, and nothing can be passed over
    whole, all_of_them = found()
    assert quick == whole
    assert few <= 100
    assert all_of_them >= 2_400


def test_the_answer_stands_beside_the_question(index: PageIndex) -> None:
    """Where the question fits best, the passage goes on into its answer, with the ends of entries only that are beside it."""
    question = "What is the phone number of hotel {} at the Hooigracht?"
    add(index, [[("user", question.format(number)), ("assistant", f"071 5{number}2 34{number}6")] for number in range(12)])
    (hit,) = index.search(question.format(7), limit=1)
    assert ("usr-8", 1, f"{question.format(7)}\n071 572 3476") == (hit.index, hit.entry.position, hit.snippet)


def test_a_passage_goes_on_within_its_page_only(index: PageIndex) -> None:
    """Three entries on each side are looked at, in their order, and none of the next page."""
    page = [("user", f"entry {number}") for number in range(9)]
    add(index, [[*page[:4], ("user", "a zebra"), *page[4:]], [("user", "next page")]])
    (hit,) = index.search("zebra", limit=1)
    assert "entry 1\nentry 2\nentry 3\na zebra\nentry 4\nentry 5\nentry 6" == hit.snippet


def test_few_texts_are_read_where_few_pages_are_admitted(index: PageIndex) -> None:
    """Of a thousand pages with the words, those that the filter does not admit are looked up, not read."""
    add(index, [[("user", "a zebra and a lion")] for _ in range(1_000)])
    read: list[str] = []

    def admits(name: str) -> bool:
        return name in {"usr-500", "usr-900"}

    index._db().connection.set_trace_callback(read.append)
    assert ["usr-500", "usr-900"] == sorted(names(index, "zebra lion", only=Filter(where=admits)))
    index._db().connection.set_trace_callback(None)
    places = sum(statement.count(",") for statement in read if statement.startswith("SELECT id, lines"))
    assert places < 500


def test_only_pages_of_some_turns(index: PageIndex) -> None:
    """Pages of other turns do not answer, however many of them match better."""
    add(index, [*[[("user", "zebra zebra")]] * 300, [("user", "a zebra in a long story of other things")]])
    assert ["usr-301"] == names(index, "zebra", only=Filter(turns=(301, 400)))
    assert [] == names(index, "zebra", only=Filter(turns=(302, 400)))
    assert ["usr-3", "usr-4"] == sorted(names(index, "zebra", only=Filter(turns=(3, 4))))


def test_only_pages_of_some_days(index: PageIndex) -> None:
    """Pages that were said at other times do not answer, however many of them match better."""
    add(index, [[("user", "zebra zebra")]] * 300, at="2026-03-01T10:00:00+00:00")
    add(index, [[("user", "a zebra in a long story of other things")]], at="2026-03-02T10:00:00+00:00")
    assert ["usr-301"] == names(index, "zebra", only=Filter(times=("2026-03-02", "2026-03-03")))
    assert [] == names(index, "zebra", only=Filter(times=("2026-03-03", "2026-03-04")))


def test_other_forms_of_a_long_word_are_found(index: PageIndex) -> None:
    """A word that begins as a long one of the query is found, behind the word itself; a short word finds itself only."""
    add(index, [[("user", "a photographic memory")], [("user", "a photographer came")], [("user", "the hall")]])
    assert ["usr-2", "usr-1"] == names(index, "photographer")
    assert [] == names(index, "halls of hal")[1:]


def test_a_hit_says_why(index: PageIndex) -> None:
    """It names the words of the query that the page holds, and where it holds none, those that stand beside it."""
    add(index, [[("user", said)] for said in ("hello", "red fox jumps over wall", "yes", "no", "so")])
    found = {hit.index: hit.why for hit in index.search("Does a red fox jump over a wall?", limit=10)}
    assert "red fox jump, wall" == found["usr-2"]
    assert "beside: red fox jump, wall" == found["usr-3"]


def test_only_what_a_role_said(index: PageIndex) -> None:
    """Words of other roles do not count, and the entry that is named is one of the role's."""
    add(index, [[("user", "a zebra"), ("tool", "a lion")], [("user", "hello"), ("assistant", "well"), ("tool", "one zebra")]])
    (hit,) = index.search("zebra", limit=10, only=Filter(roles=frozenset({"tool"})))
    assert ("usr-2", 3, "one zebra") == (hit.index, hit.entry.position, hit.snippet)
    assert ["usr-1"] == names(index, "zebra lion", only=Filter(roles=frozenset({"user"})))
    assert [] == names(index, "zebra", only=Filter(roles=frozenset({"assistant"})))
    assert [] == names(index, "zebra", only=Filter(roles=frozenset()))


def test_what_a_role_said_is_found_behind_any_number_of_others(index: PageIndex) -> None:
    """Pages in which somebody else said the words, and said them better, do not hide the one that is asked for."""
    add(index, [*[[("user", "zebra zebra")]] * 700, [("user", "hello"), ("tool", "a zebra in a long story of other things")]])
    assert ["usr-701"] == names(index, "zebra", limit=1, only=Filter(roles=frozenset({"tool"})))


def test_what_a_role_said_is_found_where_it_speaks_in_each_page(index: PageIndex) -> None:
    """Among pages in which both speak, those are found where the one that is asked for says the words."""
    add(index, [[("user", "zebra zebra"), ("assistant", "well")]] * 700)
    add(index, [[("user", "hello"), ("assistant", "a zebra in a long story of other things")]])
    add(index, [[("user", "hello"), ("assistant", "a lion")]] * 700)
    add(index, [[("user", "one lion in a long story of other things"), ("assistant", "lion lion")]])
    assert ["usr-701"] == names(index, "zebra", only=Filter(roles=frozenset({"assistant"})))
    assert ["usr-1402"] == names(index, "lion", only=Filter(roles=frozenset({"user"})))


def test_what_a_role_said_is_found_by_its_day(index: PageIndex) -> None:
    """The time of a page counts for whatever role speaks in it."""
    add(index, [[("user", "hello"), ("assistant", "well")]], at="2023-05-08T13:56:00+00:00")
    for role in ("user", "assistant"):
        assert ["usr-1"] == names(index, "8 May", only=Filter(roles=frozenset({role})))
    assert [] == names(index, "8 May", only=Filter(roles=frozenset({"tool"})))


@pytest.mark.parametrize("role", ["tool", "tool-result", "Tool", "工具", "", "§", 'a"b'])
def test_any_role_is_told_from_others(index: PageIndex, role: str) -> None:
    """A role is told by its exact name, whatever it is made of, and no query finds a page by the name of a role."""
    add(index, [[("user", "hello"), ("toolresult", "a zebra")], [(role, "a zebra")]])
    assert ["usr-2"] == names(index, "zebra", only=Filter(roles=frozenset({role})))
    assert [] == names(index, f"user §user {role}")


def test_what_is_open_is_filtered_too(index: PageIndex) -> None:
    """A page that is not in the index yet answers by its turn and roles like the others."""
    extra = ExtraPage(index="usr-1", turn=7, entries=[Entry(1, "user", "a lion", ""), Entry(2, "tool", "a zebra", "")])
    for only in (Filter(turns=(7, 7)), Filter(roles=frozenset({"tool"}))):
        (hit,) = index.search("zebra", limit=10, only=only, extra=[extra])
        assert ("usr-1", 2) == (hit.index, hit.entry.position)
    for only in (Filter(turns=(1, 6)), Filter(roles=frozenset({"user"})), Filter(where=lambda _: False)):
        assert [] == names(index, "zebra", only=only, extra=[extra])


def test_what_is_open_is_filtered_by_day(index: PageIndex) -> None:
    """A page that is not in the index yet answers where one of its entries was said in time."""
    days = ["2026-03-01T10:00:00+00:00", "2026-03-02T10:00:00+00:00"]
    extra = ExtraPage(index="usr-1", turn=7, entries=[Entry(1, "user", "a lion", days[0]), Entry(2, "tool", "a zebra", days[1])])
    assert ["usr-1"] == names(index, "zebra", only=Filter(times=("2026-03-02", "2026-03-03")), extra=[extra])
    assert [] == names(index, "zebra", only=Filter(times=("2026-03-03", "2026-03-04")), extra=[extra])
