"""All mutations, by name."""

from collections.abc import Mapping
from typing import Final

from tests.mutants.mutation import Mutation
from tests.mutants.tables import archive, commands, core, faces, history, sharing, stores

TABLES: Final = (archive, stores, history, core, commands, sharing, faces)

MUTATIONS: Final[Mapping[str, Mutation]] = {each.name: each for table in TABLES for each in table.MUTATIONS}
