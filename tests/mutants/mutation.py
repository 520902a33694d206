"""A mutation: a small wrong change of the source, which some test has to notice."""

from pathlib import Path

import attrs

ROOT = Path(__file__).parents[2]


@attrs.frozen(kw_only=True)
class Mutation:
    """A wrong change of one module.

    Attributes:
        name: Unique in the table.
        what: The wrong behaviour, in one line.
        module: The module that is changed, such as ``memci.http.guard``.
        right: The text that is replaced; the module contains it exactly once.
        wrong: The replacement.
        from_source: Whether the mutation was written from the source alone, before the tests of its room were read.
    """

    name: str
    what: str
    module: str
    right: str
    wrong: str
    from_source: bool = False

    @property
    def path(self) -> Path:
        """File of the module."""
        return ROOT / f"{self.module.replace('.', '/')}.py"


def find_problem(mutation: Mutation) -> str:
    """Return why a mutation cannot be applied; empty if it can."""
    if not mutation.path.is_file():
        return f"{mutation.name}: there is no module {mutation.module}"
    source = mutation.path.read_text(encoding="utf-8")
    if (count := source.count(mutation.right)) != 1:
        return f"{mutation.name}: {mutation.module} contains the text {count} times, not once: {mutation.right!r}"
    try:
        compile(source.replace(mutation.right, mutation.wrong), str(mutation.path), "exec")
    except SyntaxError as error:
        return f"{mutation.name}: the changed module does not compile: {error}"
    return ""
