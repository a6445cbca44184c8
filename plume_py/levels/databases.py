"""The table of databases and their isolation settings: one row for each setting.

A row has separate columns for three commands, because their answers differ. For InnoDB's REPEATABLE READ:

- ``promises`` (collect, test): the level that the vendor promises; no update is lost.
- ``safe_as`` (allocate): the level that is safe to assume; only for readers.
- ``model`` (infer): how statements run; an UPDATE reads newer rows than a SELECT.

Some rows describe a theory or the SQL standard instead of a database.
"""

from dataclasses import dataclass

from plume_py.levels.table import LEVELS


@dataclass(frozen=True)
class Model:
    """How statements run while other transactions commit between them. A transaction always reads its own writes.

    - ``select``, ``write``: the state that a statement reads, "current" or "snapshot". The snapshot is taken at the
      first statement, or with ``late_snapshot`` at the first SELECT without FOR UPDATE.
    - A locking statement locks the rows that match when it runs. With ``find_then_lock`` it first finds rows, then
      locks each found row that still matches and was not deleted. With ``row_by_row`` it takes one row at a time.
    """

    title: str
    select: str = "current"
    write: str = "current"
    locks_writes: bool = True
    locks_reads: bool = False
    first_committer_wins: bool = False
    is_serial: bool = False
    find_then_lock: bool = False
    row_by_row: bool = False
    late_snapshot: bool = False


READ_COMMITTED = Model("read committed, with write locks")
READ_COMMITTED_POSTGRESQL = Model(
    "read committed as in PostgreSQL: UPDATE finds rows, then locks those", find_then_lock=True
)
READ_COMMITTED_INNODB = Model("read committed as in InnoDB: UPDATE takes one row after the other", row_by_row=True)
REPEATABLE_READ_INNODB = Model(
    "repeatable read as in InnoDB: SELECT sees a snapshot, UPDATE the present", select="snapshot", late_snapshot=True
)
REPEATABLE_READ_ANSI = Model(
    "repeatable read as in ANSI SQL: what was read is locked, phantoms happen", locks_reads=True
)
SNAPSHOT = Model("snapshot isolation", select="snapshot", write="snapshot", first_committer_wins=True)
SERIAL = Model("serializable", is_serial=True)

# Without write locks, an UPDATE writes whole rows that were computed earlier.
READ_COMMITTED_PRINTED = Model("read committed as printed: (true, true)", locks_writes=False)
REPEATABLE_READ_PRINTED = Model(
    "repeatable read as printed: (snapshot, true)", select="snapshot", write="snapshot", locks_writes=False
)


@dataclass(frozen=True)
class Setting:
    """One isolation setting of a database."""

    name: str  # as in SET TRANSACTION ISOLATION LEVEL
    promises: str | None  # the level that ``collect`` and ``test`` check; None if isocheck decides none of them
    safe_as: str | None  # the level that ``allocate`` may assume; None if it does not offer the setting
    model: Model | None  # how ``infer`` runs statements; None if it does not offer the setting
    why: str  # one sentence
    source: str
    surprising: bool = False  # if so, ``test`` prints ``why`` next to the verdict
    readers_only: bool = False  # safe_as holds only for transactions that neither write nor lock
    beside_weaker: str = ""  # the setting that it is equal to if other transactions run at weaker ones

    def allows(self, level: str) -> bool:
        """Return whether this setting may allow every history that ``level`` allows: ``level`` implies ``safe_as``."""
        return self.safe_as is not None and LEVELS[level].implies(LEVELS[self.safe_as])


@dataclass(frozen=True)
class Database:
    """A database, a theory or the standard, with its settings in order of preference."""

    name: str
    title: str
    settings: tuple[Setting, ...]
    default: str = ""  # the setting that the database uses by default
    mixture: str = ""  # the note of ``test`` on transactions at different settings
    note: str = ""  # the note of ``allocate``; empty if it does not offer the database

    def __getitem__(self, name: str) -> Setting:
        return next(setting for setting in self.settings if setting.name == name)

    def setting_named(self, name: str) -> Setting | None:
        """Return the setting of this name, ignoring case, or None."""
        return next((setting for setting in self.settings if setting.name.lower() == name.lower()), None)

    def runs(self, level: str) -> Setting | None:
        """Return the strongest setting that may allow every history that ``level`` allows, or None."""
        allowed = [setting for setting in self.settings if setting.allows(level)]
        return max(allowed, key=lambda s: LEVELS[str(s.safe_as)].visibility or 0, default=None)


_MIXISO = "Xiong et al., On Mixing Database Isolation Levels"
MIXISO = Database(
    "mixiso",
    "in theory, any mix of levels",
    (
        Setting("RC", "RC", None, READ_COMMITTED, "what can be counted on at RC is up to the engine", _MIXISO),
        Setting("RA", "RA", "RA", None, "each transaction keeps the level that it asks for", _MIXISO),
        Setting(
            "TCC",
            "TCC",
            "TCC",
            None,
            "each transaction keeps the level that it asks for; allocate offers RA instead, which its rules do not tell"
            " from TCC",
            _MIXISO,
        ),
        Setting("PC", "PC", "PC", None, "each transaction keeps the level that it asks for", _MIXISO),
        Setting("PSI", "PSI", "PSI", None, "each transaction keeps the level that it asks for", _MIXISO),
        Setting("SI", "SI", "SI", SNAPSHOT, "each transaction keeps the level that it asks for", _MIXISO),
        Setting("SER", "SER", "SER", SERIAL, "each transaction keeps the level that it asks for", _MIXISO),
    ),
    note="any mix of levels, each kept by the transaction that asks for it",
)

_POSTGRESQL = "PostgreSQL documentation, Transaction Isolation"
POSTGRESQL = Database(
    "postgresql",
    "PostgreSQL",
    (
        Setting(
            "READ COMMITTED",
            "RC",
            "RC",
            READ_COMMITTED_POSTGRESQL,
            "each statement sees what was committed before it, and an UPDATE that had to wait looks at its row again",
            f"{_POSTGRESQL}, Read Committed",
        ),
        Setting(
            "REPEATABLE READ",
            "SI",
            "SI",
            SNAPSHOT,
            "PostgreSQL's repeatable read is documented as snapshot isolation",
            f"{_POSTGRESQL}, Repeatable Read",
            surprising=True,
        ),
        Setting(
            "SERIALIZABLE",
            "SER",
            "SER",
            SERIAL,
            "snapshots, and dangerous pairs of dependencies are broken up, but only among serializable transactions",
            f"{_POSTGRESQL}, Serializable",
            beside_weaker="REPEATABLE READ",
        ),
        Setting(
            "READ UNCOMMITTED",
            "RC",
            None,
            None,
            "PostgreSQL treats read uncommitted as read committed",
            _POSTGRESQL,
            surprising=True,
        ),
    ),
    default="READ COMMITTED",
    mixture=(
        "PostgreSQL promises nothing for a mixture: its serializable transactions are so among themselves only, so a"
        " violation of the declared levels need not be a defect"
    ),
    note="SERIALIZABLE only tracks SERIALIZABLE transactions, so the partners of a pivot are raised, too",
)

_MYSQL = "MySQL Reference Manual, Transaction Isolation Levels"
MYSQL = Database(
    "mysql",
    "MySQL, MariaDB (InnoDB)",
    (
        Setting(
            "READ COMMITTED",
            "RC",
            "RC",
            READ_COMMITTED_INNODB,
            "each statement reads from a snapshot of its own, and updates lock the newest version of one row after the"
            " other",
            _MYSQL,
        ),
        Setting(
            "REPEATABLE READ",
            "SI",
            "PC",
            REPEATABLE_READ_INNODB,
            "InnoDB reads from a snapshot but updates the newest version; the standard's repeatable read rules out the"
            " lost updates which that allows, and so does SI, which is checked here; --expect PC asks for the snapshots"
            " alone",
            "MySQL Reference Manual, Consistent Nonlocking Reads",
            surprising=True,
            readers_only=True,
        ),
        Setting("SERIALIZABLE", "SER", "SER", SERIAL, "every SELECT locks what it reads, against everybody", _MYSQL),
        Setting(
            "READ UNCOMMITTED",
            None,
            None,
            None,
            "read uncommitted promises none of the levels; name one with --expect",
            _MYSQL,
            surprising=True,
        ),
    ),
    default="REPEATABLE READ",
    note="InnoDB: SERIALIZABLE locks what it reads, against everybody; REPEATABLE READ is used for readers only",
)

_SQLSERVER = "Microsoft, SET TRANSACTION ISOLATION LEVEL (Transact-SQL)"
SQLSERVER = Database(
    "sqlserver",
    "SQL Server",
    (
        Setting("READ COMMITTED", "RC", "RC", None, "a statement never reads what is not committed", _SQLSERVER),
        Setting(
            "SNAPSHOT",
            "SI",
            "SI",
            None,
            "a transaction reads the state at its beginning, and fails if it updates a row that changed since",
            _SQLSERVER,
        ),
        Setting("SERIALIZABLE", "SER", "SER", None, "ranges that were read are locked until the end", _SQLSERVER),
    ),
    default="READ COMMITTED",
    note="SERIALIZABLE locks what it reads, against everybody",
)

_ORACLE = "Oracle Database Concepts, Data Concurrency and Consistency"
ORACLE = Database(
    "oracle",
    "Oracle",
    (
        Setting("READ COMMITTED", "RC", "RC", None, "each statement reads a snapshot of its own", _ORACLE),
        Setting(
            "SERIALIZABLE",
            "SER",
            "SI",
            None,
            "it is called serializable, but a transaction reads the state at its beginning and only its writes are"
            " looked at, so two of them may skew what they read",
            _ORACLE,
        ),
    ),
    default="READ COMMITTED",
    note="Oracle's SERIALIZABLE is snapshot isolation; what needs more has to lock (SELECT … FOR UPDATE)",
)

SQLITE = Database(
    "sqlite",
    "SQLite",
    (
        Setting(
            "SERIALIZABLE",
            "SER",
            "SER",
            None,
            "SQLite runs every transaction serializable",
            "SQLite, Isolation In SQLite",
            surprising=True,
        ),
        Setting(
            "IMMEDIATE",
            "SER",
            None,
            None,
            "BEGIN IMMEDIATE takes the lock of the only writer at once, so nobody has to give up half way",
            "SQLite, Transaction",
        ),
    ),
    default="SERIALIZABLE",
)

BROKEN = Database(
    "broken",
    "a store in memory with a bug",
    (
        Setting(
            "SERIALIZABLE",
            "SER",
            None,
            None,
            "serial but for its bug, so that breaking the promise shows the bug",
            "plume_py.collect.adapters.broken",
        ),
    ),
)

_ANSI = "Berenson et al., A Critique of ANSI SQL Isolation Levels, 1995: the locking levels"
ANSI = Database(
    "ansi",
    "SQL as in the standard, by locks",
    (
        Setting("READ COMMITTED", "RC", "RC", READ_COMMITTED, "written rows are locked until the end", _ANSI),
        Setting(
            "REPEATABLE READ",
            None,
            None,
            REPEATABLE_READ_ANSI,
            "rows that were read stay as they are, but others may appear, and none of our levels tells rows from"
            " conditions",
            _ANSI,
        ),
        Setting("SERIALIZABLE", "SER", "SER", SERIAL, "conditions are locked until the end, too", _ANSI),
    ),
)

_PRINTED = "Kaki et al., Alone Together: Compositional Reasoning and Inference for Weak Isolation, 2018"
PRINTED = Database(
    "literal",
    "in theory, as printed and with locks",
    (
        Setting("RC0", None, None, READ_COMMITTED_PRINTED, "as printed: without write locks", _PRINTED),
        Setting("RC", "RC", None, READ_COMMITTED, "with the write locks that stores have", _PRINTED),
        Setting("RRf", None, None, REPEATABLE_READ_PRINTED, "as printed: all from a snapshot, without locks", _PRINTED),
        Setting("RRi", None, None, REPEATABLE_READ_INNODB, "as InnoDB does it", _PRINTED),
        Setting("SI", "SI", None, SNAPSHOT, "the first committer wins", _PRINTED),
        Setting("SER", "SER", None, SERIAL, "one transaction after the other", _PRINTED),
    ),
)

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

# The next three follow the documentation only; nothing was run on them.
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

DATABASES: dict[str, Database] = {
    database.name: database
    for database in (
        *(MIXISO, POSTGRESQL, MYSQL, SQLSERVER, ORACLE, SQLITE, BROKEN, ANSI, PRINTED),
        *(COCKROACHDB, YUGABYTEDB, TIDB, DUCKDB, ETCD, REDIS, SQLALCHEMY, FIREBIRD),
    )
}

# By the name in the banner of a server.
_ENGINES = {"PostgreSQL": POSTGRESQL, "MySQL": MYSQL, "MariaDB": MYSQL, "SQLite": SQLITE}


def engine(name: str) -> Database | None:
    """Return the database of a server that reports this name, or None."""
    return _ENGINES.get(name)
