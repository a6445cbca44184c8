"""Passwords in the URLs of a scan open the histories, and are in no result, page or message (scan/storage.py)."""

import json
import os

import pytest
from paths import HISTORIES
from program import isocheck

from plume_py.base.passwords import without_credentials
from plume_py.scan.find import find
from plume_py.scan.settings import Settings
from plume_py.scan.worker import check_one

fsspec = pytest.importorskip("fsspec")

PASSWORD, TOKEN = "S3cr3tPw", "T0k3nT0k3n"

# A file system that needs a password, and repeats it in every error message.
VAULT = f"""
import os
from urllib.parse import urlsplit
from fsspec.implementations.local import LocalFileSystem

class Vault(LocalFileSystem):
    protocol = "vault"
    cachable = False

    def __init__(self, user=None, password=None, query="", **options):
        super().__init__(**options)
        self.user, self.password, self.query = user, password, query

    @staticmethod
    def _get_kwargs_from_urls(url):
        parts = urlsplit(url)
        return {{"user": parts.username, "password": parts.password, "query": parts.query}}

    @classmethod
    def _strip_protocol(cls, path):
        return os.environ["VAULT"] + urlsplit(path).path if "://" in path else path

    def unstrip_protocol(self, name):
        query = f"?{{self.query}}" if self.query else ""
        return f"vault://{{self.user}}:{{self.password}}@host" + name.removeprefix(os.environ["VAULT"]) + query

    def get(self, path, *arguments, **options):
        if self.password != {PASSWORD!r} or "broken" in path:
            who = self.user.ljust(272, ".")  # where the message is cut off, half of the password would be left
            raise PermissionError(f"{{who}} with {{self.password}} and {{self.query}} may not read {{path}}")
        return super().get(path, *arguments, **options)
"""


@pytest.fixture
def vault(tmp_path, monkeypatch):
    """The file system, for every process that is started from here; what is in it."""
    site, inside = tmp_path / "site", tmp_path / "vault"
    (site / "vault-1.dist-info").mkdir(parents=True)
    (site / "vault_fs.py").write_text(VAULT)
    (site / "vault-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: vault\nVersion: 1\n")
    (site / "vault-1.dist-info" / "entry_points.txt").write_text("[fsspec.specs]\nvault = vault_fs.Vault\n")
    (inside / "archive").mkdir(parents=True)
    for name in ("SI/write-skew.json", "TCC/serial.json"):
        target = inside / "archive" / f"run@{name.rpartition('/')[2]}"
        target.write_bytes((HISTORIES / name).read_bytes())
    (inside / "archive" / "notes.txt").write_text("hello\n")
    (inside / "archive" / "broken.json").write_text("{}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("VAULT", str(inside))
    return inside


def everything(folder):
    return "\n".join(
        f"{path}\n{path.read_bytes().decode('utf-8', 'replace')}" for path in folder.rglob("*") if path.is_file()
    )


@pytest.mark.parametrize("listed", [False, True], ids=["argument", "list"])
@pytest.mark.parametrize("output", ["text", "json"])
def test_no_output_contains_a_password(vault, tmp_path, listed, output):
    url = f"vault://me:{PASSWORD}@host/archive?x=1&token={TOKEN}"
    wrong = f"vault://me:{TOKEN}/{TOKEN}@{TOKEN}@host/archive/none.json"
    out = tmp_path / "out"
    out.mkdir()
    paths = [url, wrong]
    if listed:
        (tmp_path / "list").write_text("\n".join(paths))
        paths = [f"@{tmp_path / 'list'}"]
    results = out / "results.jsonl"
    more = ["--results", results, "--out", out, "--format", output, "--jobs", "1"]
    done = isocheck("scan", *paths, *more)
    assert done.returncode == 4, done.stderr
    lines = {line["history"]: line for line in map(json.loads, results.read_text().splitlines())}
    base = "vault://me@host/archive/"
    assert {name.partition("?")[0].removeprefix(base): line["outcome"] for name, line in lines.items()} == {
        "run@write-skew.json": "violated",
        "run@serial.json": "holds",
        "broken.json": "unreadable",
        "vault://me@host/archive/none.json".removeprefix(base): "unreadable",
    }
    assert list(out.glob("*.svg")) or list(out.glob("*.dot")), "the password is still known where it is needed"
    for text in (everything(out), done.stdout, done.stderr):
        assert PASSWORD[:4] not in text and TOKEN[:4] not in text
    again = isocheck("scan", *paths, *more, "--resume")
    assert PASSWORD not in again.stdout + again.stderr
    if output == "json":
        assert json.loads(again.stdout)["run"]["same"] == 2, "known by the name without the password"


@pytest.mark.parametrize(
    "url", [f"vault://me:{PASSWORD}@host/archive", f"nosuch://me:{PASSWORD}@host/x", f"nosuch://h/x?token={PASSWORD}"]
)
def test_errors_for_urls_that_cannot_be_opened_contain_no_password(url, tmp_path):
    (tmp_path / "list").write_text(url)
    for path in (url, f"@{tmp_path / 'list'}"):
        done = isocheck("scan", path)
        assert done.returncode in (2, 4)
        assert PASSWORD not in done.stdout + done.stderr
        assert done.stderr.count("\n") <= 2


def test_histories_differ_by_their_urls_without_the_password():
    memory = fsspec.filesystem("memory")
    for name in ("u:pw@bucket/a@1.json", "u:pw@bucket/b@1.json", "host:80/a@1.json", "host:80/b@1.json"):
        memory.pipe(f"/{name}", (HISTORIES / "TCC/serial.json").read_bytes())
    tasks = find(["memory://u:pw@bucket", "memory://host:80"])
    assert len(tasks) == 4
    paths = [f"memory://{task.path.removeprefix('memory:///')}" for task in tasks]
    assert {without_credentials(path) for path in paths} == {
        f"memory://{name}"
        for name in ("u@bucket/a@1.json", "u@bucket/b@1.json", "host:80/a@1.json", "host:80/b@1.json")
    }
    assert {check_one(task, Settings()).outcome for task in tasks} == {"holds"}


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("s3://user:pw@bucket/a@b.json", "s3://user@bucket/a@b.json"),
        ("s3://user:p@w:x@bucket/a.json", "s3://user@bucket/a.json"),
        ("s3://user:p/w+x@bucket/a.json", "s3://user@bucket/a.json"),
        ("simplecache::s3://user:pw@bucket/a.json", "simplecache::s3://user@bucket/a.json"),
        ("zip://a.json::https://user:pw@host/b.zip", "zip://a.json::https://user@host/b.zip"),
        ("https://host:8080/a@b.json", "https://host:8080/a@b.json"),
        ("https://u:pw@[::1]:80/a.json", "https://u@[::1]:80/a.json"),
        ("https://[::1]:80/a@b.json", "https://[::1]:80/a@b.json"),
        ("https://h/a.json?token=pw&x=1", "https://h/a.json?token=***&x=1"),
        ("https://h/a.json?x=1&X-Amz-Signature=pw", "https://h/a.json?x=1&X-Amz-Signature=***"),
        ("https://h/a.json?sv=1&sig=pw#access_token=pw", "https://h/a.json?sv=1&sig=***#access_token=***"),
        ("https://h/a.json?author=me&design=1", "https://h/a.json?author=me&design=1"),
        ("s3://bucket/pass=1/token=2/h?.json", "s3://bucket/pass=1/token=2/h?.json"),
        ("abfs://container@account/a.json", "abfs://container@account/a.json"),
    ],
)
def test_urls_without_credentials(url, told):
    assert without_credentials(url) == told
