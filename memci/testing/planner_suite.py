"""What every planner has to do, as tests: it is a pure function, and plans what can fold.

To test one, inherit and say how it is made::

    class TestMyPlanner(PlannerSuite):
        @pytest.fixture
        def planner(self):
            return MyPlanner()
"""

from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.history import state_codec
from memci.engine.view.planner import FoldPlan, Planner, planned_by
from memci.messages import codec

TURNS, BUDGET = 60, 2_000


class PlannerSuite:
    """Tests of one planner, which the fixture ``planner`` makes."""

    def test_it_is_pure(self, planner: Planner) -> None:
        """Asked twice, it answers the same, whatever the state, and leaves that as it is."""

        class Twice:
            def __init__(self) -> None:
                self.asked = 0

            def plan(self, state, config) -> FoldPlan:  # type: ignore[no-untyped-def]  # noqa: ANN001
                self.asked += 1
                before = codec.encode(state_codec.to_mapping(state))
                found = planned_by(planner, state, config)
                assert found == planned_by(planner, state, config)
                assert before == codec.encode(state_codec.to_mapping(state))
                return found

        twice = Twice()
        _talk(twice)
        assert TURNS <= twice.asked

    def test_windows_keep_to_their_budget(self, planner: Planner) -> None:
        """Whatever it plans, every window fits, and every message is there."""
        _talk(planner)


def _talk(planner: Planner) -> None:
    config = {"budget": {"window": BUDGET, "reserve": 0}, "durability": "flush"}
    with Engine(MemoryStore(), config, planner=planner) as engine, engine.session("chat") as session:
        wrong: list[object] = []
        session.observe(lambda notice: wrong.append(notice) if type(notice).__name__ == "FoldFailed" else None)
        said = []
        for number in range(TURNS):
            words = " ".join(f"word{number}x{place}" for place in range(number % 40))
            said += [
                {"role": "user", "content": f"question {number} {words}"},
                {"role": "assistant", "content": f"answer {number}"},
            ]
            session.extend(said[-2:])
            assert session.window().tokens <= BUDGET
        assert said == list(session.messages())
        assert [] == wrong
