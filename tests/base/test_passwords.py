"""Tests of base/passwords: no password of an address is shown, however the address is written or quoted."""

import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from program import PATIENCE

from plume_py.base import passwords
from plume_py.base.passwords import keep_secret, redacted, without_password
from plume_py.base.text import one_line

ROOT = Path(__file__).parent.parent.parent
PROGRAM = [sys.executable, "-c", "from plume_py.cli.main import main; main()"]
PASSWORD = "S3cr3tPw"
ADDRESSES = [
    "postgresql://u:{}@127.0.0.1:1/db",
    "postgresql://u:{}%zz@127.0.0.1:1/db",
    "postgresql://u:{}%@127.0.0.1:1/db",
    "postgresql://u:{}@[::1/db",
    "postgresql://u:{}@[::1]:x/db",
    "postgresql://u:{}/x@127.0.0.1:1/db",
    "postgresql://127.0.0.1:1/db?password={}",
    "postgresql://127.0.0.1:1/db?password={}%zz",
    "postgresql://127.0.0.1:1/db?x=1&pass%77ord={}&bogus=1",
    "postgresql:host=127.0.0.1 port=1 password={} dbname=x",
    "postgresql:host=127.0.0.1 port=1 password='{} and more' dbname=x",
    "host=127.0.0.1 password={}",
    "u:{}@127.0.0.1/db",
    "u:{}@127.0.0.1:x/db",
    "postgres:u:{}@h/db",
    "mysql:u:{}@127.0.0.1:1/db",
    "mysql://127.0.0.1:1/db?passwd={}",
    "mysql://127.0.0.1:1/db?pwd={}",
    "mysql://u:{}@[::1/db",
    "mysql://u:{}@127.0.0.1:port/db",
    "mariadb://u:{}@127.0.0.1:1",
    "oracle://u:{}@127.0.0.1/db",
    "file.py:{}@h",
    "module:u:{}@h",
]


@pytest.fixture(autouse=True)
def _forgotten_afterwards(monkeypatch):
    monkeypatch.setattr(passwords, "_kept", {})


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("password", [PASSWORD, "p@ss:w/rd?", "täst 99", "%41bcd", "a'b\"cd", "abc"])
def test_passwords_are_removed_from_messages_of_drivers(address, password):
    if not password.isalnum():  # one of several words or with odd ends is quoted as a whole
        address = address.replace("%zz", "").replace(" and more", "")
    for spelled in (password, quote(password, safe="")):
        url = address.format(spelled)
        keep_secret(url)
        for quoted in (password, repr(password)[1:-1], quote(password), spelled, url):
            said = one_line(f'invalid token "{quoted}" in connection string')
            assert password not in said and spelled not in said
        assert redacted("nothing to see").count("see") == 1


@pytest.mark.parametrize("address", ADDRESSES)
def test_addresses_without_their_password(address):
    assert PASSWORD not in without_password(address.format(PASSWORD))


def test_text_without_passwords_is_unchanged():
    for address in (
        "sqlite:///t.db",
        "file.py:Class?x=a@b",
        "postgresql://h:5/db?sslmode=require",
        "broken:?bug=x",
        "mysql://u@h/db",
    ):
        assert without_password(address) == address


@pytest.mark.parametrize("address", ADDRESSES)
def test_the_command_line_prints_no_password(address, tmp_path):
    url = address.format(PASSWORD)
    for command in (["collect", url, "--out", "x.jsonl", "--transactions", "1"], ["check", url, "--format", "json"]):
        done = subprocess.run(
            [*PROGRAM, *command],
            env={"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=PATIENCE,
        )
        assert done.returncode in (2, 3, 4)
        assert PASSWORD not in done.stdout + done.stderr
        assert done.stderr.count("\n") <= 6, "and no traceback"


@pytest.mark.parametrize(
    "command",
    [
        ["check", "URL", "--format", "github"],
        ["check", "URL", "--format", "sarif"],
        ["check", "URL", "--format", "junit"],
        ["stats", "URL", "--format", "json"],
        ["convert", "URL", "x.json"],
        ["verify", "URL", "URL"],
        ["watch", "URL"],
        ["infer", "URL"],
        ["allocate", "URL"],
        ["predict", "URL"],
        ["scan", "URL"],
        ["collect", "URL", "URL"],
        ["collect", "URL", "--isolation=URL", "--out", "x"],
        ["test", "--managed", "URL"],
        ["URL"],
        ["--url=URL"],
    ],
)
def test_other_commands_print_no_password(command, tmp_path):
    url = f"mysql://u:{PASSWORD}@h/db"
    done = subprocess.run(
        [*PROGRAM, *(word.replace("URL", url) for word in command)],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=PATIENCE,
    )
    assert done.returncode in (2, 3, 4)
    assert PASSWORD not in done.stdout + done.stderr
