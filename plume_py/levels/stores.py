"""What more databases make of isolation levels, as far as ``collect`` and ``test`` ask: what is promised."""

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
            "the standard's rules out lost updates, and SI is the weakest of our levels that does",
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

# Everything there is a row for.
ALL: dict[str, Database] = {
    **DATABASES,
    **{database.name: database for database in (DUCKDB, ETCD, REDIS, SQLALCHEMY, FIREBIRD)},
}
