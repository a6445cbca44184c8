"""The private single servers of ``--managed``: PostgreSQL, MariaDB and SQLite.

They run the programs that Debian's packages install. Commits reach the operating system but not the disk: killing a
process loses nothing, but a power failure may.
"""

import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from plume_py.base.override import override
from plume_py.collect.server import ManagedServer

DATABASE = USER = "isocheck"
# Seconds for PostgreSQL to shut down immediately.
QUIT = 0.5


class ManagedPostgres(ManagedServer):
    """A PostgreSQL server."""

    title = "PostgreSQL"
    scheme = "postgresql"
    package = "postgresql"
    programs = ("initdb", "postgres")
    users = ("postgres",)

    @property
    @override
    def url(self) -> str:
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/postgres"

    @classmethod
    def program_folders(cls) -> Sequence[str]:
        """Return the folders of the installed versions, the newest first. Debian keeps them side by side."""
        found = Path("/usr/lib/postgresql").glob("*/bin")
        return [str(path) for path in sorted(found, key=lambda path: path.parent.name.zfill(4), reverse=True)]

    @override
    def prepare(self, programs: dict[str, str]) -> None:
        password = self.write("password", self.password)
        data = str(Path(self.folder, "data"))
        options = ["-U", USER, "-A", "scram-sha-256", f"--pwfile={password}", "-E", "UTF8", "--locale=C", "--no-sync"]
        self.run([programs["initdb"], "-D", data, *options])

    def command(self, programs: dict[str, str]) -> list[str]:
        options = [piece for name, value in self.settings().items() for piece in ("-c", f"{name}={value}")]
        return [programs["postgres"], "-D", str(Path(self.folder, "data")), *options]

    @override
    def quit(self, server: "subprocess.Popen[bytes]") -> None:
        """Shut down immediately (SIGQUIT), because SIGKILL would leave a segment of shared memory behind."""
        server.send_signal(signal.SIGQUIT)
        with suppress(subprocess.TimeoutExpired):
            server.wait(QUIT)

    def settings(self) -> dict[str, str]:
        """Return the settings of the command line."""
        return {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "fsync": "off",
            "max_connections": "300",
            "deadlock_timeout": "50ms",  # the default of 1 s would take most of a run
            "max_pred_locks_per_transaction": "256",
            "logging_collector": "off",
        }

    @override
    def answers(self) -> None:
        import psycopg

        psycopg.connect(self.url, connect_timeout=2).close()


class ManagedMariadb(ManagedServer):
    """A MariaDB server."""

    title = "MariaDB"
    scheme = "mariadb"
    package = "mariadb-server"
    programs: tuple[str, ...] = ("mariadb-install-db", "mariadbd")
    statements_before = ""  # run before all others at each start
    users = ("mysql",)

    @property
    @override
    def url(self) -> str:
        return f"mariadb://root:{self.password}@127.0.0.1:{self.port}/{DATABASE}"

    @override
    def prepare(self, programs: dict[str, str]) -> None:
        data = str(Path(self.folder, "data"))
        options = ["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]
        self.run([programs["mariadb-install-db"], *options, f"--datadir={data}", f"--tmpdir={self.folder}"])
        self.write_statements()

    def write_statements(self) -> None:
        """Write the statements that run at each start. They create the database and its only user."""
        self.write(
            "init.sql",
            f"{self.statements_before}"
            f"CREATE DATABASE IF NOT EXISTS {DATABASE};\n"
            f"ALTER USER 'root'@'localhost' IDENTIFIED BY '{self.password}';\n"
            f"CREATE OR REPLACE USER 'root'@'127.0.0.1' IDENTIFIED BY '{self.password}';\n"
            "GRANT ALL ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;\n"
            # Other accounts of a new server, whatever their host name, have no password.
            "DELETE FROM mysql.global_priv WHERE (User, Host) NOT IN"
            " (('root', '127.0.0.1'), ('root', 'localhost'), ('mariadb.sys', 'localhost'));\n"
            "FLUSH PRIVILEGES;\n",
        )

    def command(self, programs: dict[str, str]) -> list[str]:
        return [
            programs["mariadbd"],
            "--no-defaults",
            f"--datadir={Path(self.folder, 'data')}",
            f"--tmpdir={self.folder}",
            f"--socket={Path(self.folder, 'socket')}",
            f"--pid-file={Path(self.folder, 'mariadbd.pid')}",
            f"--init-file={Path(self.folder, 'init.sql')}",
            "--bind-address=127.0.0.1",
            f"--port={self.port}",
            "--skip-name-resolve",
            "--innodb-flush-log-at-trx-commit=2",
            "--innodb-buffer-pool-size=64M",
            "--max-connections=300",
            "--skip-log-bin",
            *self.more_options(),
        ]

    def more_options(self) -> list[str]:
        """Return further options; nodes of a cluster override this."""
        return []

    @override
    def answers(self) -> None:
        import pymysql

        where: dict[str, Any] = {"host": "127.0.0.1", "port": self.port, "database": DATABASE}
        # Another process that has taken the port may accept connections and never answer.
        limits: dict[str, Any] = {"connect_timeout": 2, "read_timeout": 2, "write_timeout": 2}
        pymysql.connect(user="root", password=self.password, **where, **limits).close()


class ManagedSqlite(ManagedServer):
    """SQLite: no server, only a file in a temporary folder."""

    title = "SQLite"
    scheme = "sqlite"

    @property
    @override
    def url(self) -> str:
        return f"sqlite:///{Path(self.folder, 'test.db')}"

    @override
    def prepare(self, programs: dict[str, str]) -> None:
        pass  # there is nothing to prepare

    @override
    def command(self, programs: dict[str, str]) -> list[str]:
        return []

    @override
    def answers(self) -> None:
        pass  # a file always answers

    def _start(self) -> None:
        return

    def _give_to_user(self, path: str | int) -> None:
        return


SERVERS: dict[str, type[ManagedServer]] = {
    "postgresql": ManagedPostgres,
    "mariadb": ManagedMariadb,
    "sqlite": ManagedSqlite,
}
