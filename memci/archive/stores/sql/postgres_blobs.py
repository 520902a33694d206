"""Large data in PostgreSQL: each statement is a transaction of its own, and none takes a blob that another one has just put."""

from collections.abc import Collection, Mapping, Sequence

import attrs

from memci.archive import refusal
from memci.archive.stores.sql.postgres_pool import PostgresPool
from memci.archive.stores.sql.rows import Key

# What writes takes hold of the session's row, so that a deletion comes before or after it; no row means that it was deleted.
HERE = "WITH here AS (SELECT id FROM memci_session WHERE id = %s FOR KEY SHARE)"
# Each putting changes the row of the blob, so that a sweep which began before leaves it alone: it compares the row as it was.
_PUT_BLOBS = f"""{HERE},
new AS (SELECT name, body FROM unnest(%s::text[], %s::bytea[]) AS new (name, body)),
put AS (
    INSERT INTO memci_blob AS blob (tenant, name, body, puts) SELECT %s, new.name, new.body, 1 FROM here, new ORDER BY new.name
    ON CONFLICT (tenant, name) DO UPDATE
    SET puts = blob.puts + 1, body = CASE WHEN blob.body = excluded.body THEN blob.body ELSE excluded.body END
)
INSERT INTO memci_blob_use AS used (session, name, seq) SELECT here.id, new.name, %s FROM here, new ORDER BY new.name
ON CONFLICT (session, name) DO UPDATE SET seq = greatest(used.seq, excluded.seq) RETURNING session
"""  # noqa: S608 (fixed words)
_DROP_BLOBS = f"""{HERE},
gone AS (DELETE FROM memci_blob_use USING here WHERE session = here.id AND name = ANY (%s::text[]) AND seq <= %s)
SELECT id FROM here
"""  # noqa: S608 (fixed words)
_SWEEP_BLOBS = """
DELETE FROM memci_blob AS blob USING memci_blob AS seen
WHERE blob.tenant = %s AND seen.tenant = blob.tenant AND seen.name = blob.name AND seen.puts = blob.puts AND NOT EXISTS (
    SELECT FROM memci_blob_use AS used JOIN memci_session AS session ON session.id = used.session
    WHERE used.name = seen.name AND session.tenant = seen.tenant
)
"""


@attrs.frozen
class PostgresBlobs:
    """Implements ``BlobRows``."""

    pool: PostgresPool

    def put(self, key: Key, row: int, blobs: Mapping[str, bytes], seq: int) -> None:
        """See ``BlobRows``."""
        check_there(key, self.pool.run(_PUT_BLOBS, (row, list(blobs), list(blobs.values()), key.tenant, seq), key.session_id))

    def find(self, key: Key, name: str) -> bytes | None:
        """See ``BlobRows``."""
        found = self.pool.run("SELECT body FROM memci_blob WHERE tenant = %s AND name = %s", (key.tenant, name))
        return found[0][0] if found else None

    def names(self, row: int) -> Sequence[str]:
        """See ``BlobRows``."""
        return [name for (name,) in self.pool.run("SELECT name FROM memci_blob_use WHERE session = %s", (row,))]

    def drop(self, key: Key, row: int, names: Collection[str], seq: int) -> None:
        """See ``BlobRows``."""
        check_there(key, self.pool.run(_DROP_BLOBS, (row, list(names), seq), key.session_id))
        self.sweep(key.tenant)

    def sweep(self, tenant: str) -> None:
        """Delete what no session refers to. O(blobs of the tenant)."""
        self.pool.run(_SWEEP_BLOBS, (tenant,))


def check_there(key: Key, found: Sequence[object]) -> None:
    """Refuse to go on where a statement found no session to write to.

    Raises:
        UnavailableError: The session was deleted.
    """
    if not found:
        raise refusal.deleted(key.session_id)
