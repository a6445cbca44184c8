"""What more databases make of isolation levels, as far as ``collect`` and ``test`` ask, or ``allocate``."""

from plume_py.levels.databases import DATABASES, Database, Setting

DUCKDB = Database(
    "duckdb",
    "DuckDB",
    (
        Setting(
            "SNAPSHOT",
            "SI",
            None,
            None,
            "a transaction reads a snapshot, and fails if it updates a row that another one has updated since",
            "DuckDB documentation, Concurrency and Transaction Management",
        ),
    ),
)

_ETCD = "etcd documentation, KV API guarantees"
ETCD = Database(
    "etcd",
    "etcd",
    (
        Setting(
            "SERIALIZABLE",
            "SER",
            None,
            None,
            "reads are of one revision, asked of the majority, and writes depend on nothing of it having changed",
            _ETCD,
        ),
        Setting(
            "SERIALIZABLE READS",
            "SER",
            None,
            None,
            "reads are of one revision of the member at hand, which etcd calls serializable, and which may be old: a"
            " session need not see what it has written",
            _ETCD,
            surprising=True,
        ),
    ),
    default="SERIALIZABLE",
)

_REDIS = "Redis documentation, Transactions"
REDIS = Database(
    "redis",
    "Redis, Valkey",
    (
        Setting(
            "WATCH",
            "SER",
            None,
            None,
            "keys are watched before they are read, and EXEC runs all writes in one step, or none if one has changed",
            _REDIS,
        ),
        Setting(
            "MULTI",
            "RC",
            None,
            None,
            "EXEC runs all writes in one step, but what was read before may have changed meanwhile",
            _REDIS,
        ),
    ),
    default="WATCH",
)

_STANDARD = "SQL-92, 4.28 SQL-transactions, and SQLAlchemy's documentation of isolation_level"
SQLALCHEMY = Database(
    "sqlalchemy",
    "any database, by SQLAlchemy",
    (
        Setting("SERIALIZABLE", "SER", None, None, "what the standard says of the word", _STANDARD),
        Setting(
            "REPEATABLE READ",
            "SI",
            None,
            None,
            "the standard's rules out lost updates, and so does SI, which databases provide under this name",
            _STANDARD,
            surprising=True,
        ),
        Setting("SNAPSHOT", "SI", None, None, "where the database has it beside the standard's", _STANDARD),
        Setting("READ COMMITTED", "RC", None, None, "what the standard says of the word", _STANDARD),
        Setting(
            "READ UNCOMMITTED",
            None,
            None,
            None,
            "read uncommitted promises none of the levels; name one with --expect",
            _STANDARD,
            surprising=True,
        ),
    ),
    default="SERIALIZABLE",
)

_FIREBIRD = "Firebird Language Reference, Transaction Control"
FIREBIRD = Database(
    "firebird",
    "Firebird",
    (
        Setting(
            "SNAPSHOT",
            "SI",
            None,
            None,
            "a transaction reads the state at its beginning, and fails if it updates a row that changed since",
            _FIREBIRD,
        ),
        Setting(
            "SNAPSHOT TABLE STABILITY",
            "SER",
            None,
            None,
            "tables that were touched are locked against the writes of others, which is meant to be serializable",
            _FIREBIRD,
            surprising=True,
        ),
        Setting("READ COMMITTED", "RC", None, None, "each statement sees what was committed before it", _FIREBIRD),
    ),
    default="SNAPSHOT",
)

# The next three by their documentation alone: nothing here has been run on them.
_COCKROACHDB = "CockroachDB documentation, Transactions, Mixed isolation levels"
COCKROACHDB = Database(
    "cockroachdb",
    "CockroachDB",
    (
        Setting(
            "READ COMMITTED",
            "RC",
            "RC",
            None,
            "each statement sees what was committed before it, and one that meets a newer version is run again",
            _COCKROACHDB,
        ),
        Setting(
            "SERIALIZABLE",
            "SER",
            "SER",
            None,
            "transactions behave by their own level, whatever the levels of others are",
            _COCKROACHDB,
        ),
    ),
    default="SERIALIZABLE",
    note="SERIALIZABLE is so beside READ COMMITTED, too; there is nothing between them",
)

_YUGABYTEDB = "YugabyteDB documentation, Transaction isolation levels"
YUGABYTEDB = Database(
    "yugabytedb",
    "YugabyteDB (YSQL)",
    (
        Setting(
            "READ COMMITTED",
            "RC",
            "RC",
            None,
            "each statement sees what was committed before it; where yb_enable_read_committed_isolation is off, it is"
            " a snapshot for the whole transaction instead",
            f"{_YUGABYTEDB}, Read Committed",
        ),
        Setting(
            "REPEATABLE READ",
            "SI",
            "SI",
            None,
            "YugabyteDB calls it snapshot isolation: who updates what has changed since does not commit",
            _YUGABYTEDB,
        ),
        Setting(
            "SERIALIZABLE",
            "SER",
            "SER",
            None,
            "what is read is locked against the writes of all levels until the end",
            _YUGABYTEDB,
        ),
    ),
    default="READ COMMITTED",
    note="SERIALIZABLE locks what it reads, against everybody; READ COMMITTED must be switched on"
    " (yb_enable_read_committed_isolation)",
)

_TIDB = "TiDB documentation, Transaction Isolation Levels and Pessimistic Transaction Mode"
TIDB = Database(
    "tidb",
    "TiDB",
    (
        Setting(
            "READ COMMITTED",
            "RC",
            "RC",
            None,
            "each statement of a pessimistic transaction sees what was committed before it, and updates lock the newest"
            " version",
            _TIDB,
        ),
        Setting(
            "REPEATABLE READ",
            "SI",
            None,
            None,
            "it is called snapshot isolation, but in pessimistic transactions, which are usual, an UPDATE looks at the"
            " newest version and not at the snapshot",
            _TIDB,
        ),
        Setting(
            "REPEATABLE READ, BEGIN OPTIMISTIC",
            "SI",
            "SI",
            None,
            "a transaction reads the state at its beginning, and fails if it writes what has changed since",
            "TiDB documentation, Optimistic Transaction Model",
        ),
    ),
    default="REPEATABLE READ",
    note="there is no SERIALIZABLE; what needs more than snapshot isolation has to lock (SELECT … FOR UPDATE)",
)

# Everything there is a row for.
ALL: dict[str, Database] = {
    **DATABASES,
    **{
        database.name: database
        for database in (COCKROACHDB, YUGABYTEDB, TIDB, DUCKDB, ETCD, REDIS, SQLALCHEMY, FIREBIRD)
    },
}
