"""The Dask engine (scan/cluster.py) on a cluster of separate processes: the same results, also when workers die."""

import json
import socket

import pytest
from click.testing import CliRunner
from program import PATIENCE, PROGRAM, isocheck, lines_in, wait_until

pytest.importorskip("distributed")


from benchmarks import archive
from benchmarks.scan import _cluster
from plume_py.base.errors import IsocheckError
from plume_py.cli.main import cli
from plume_py.scan import cluster as cluster_module
from plume_py.scan.settings import Settings


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """An archive with a history that runs away, and the results of the local engine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ISOCHECK_COMPILE", "never")
        patch.setattr(archive, "SIZES", ((1.0, 3, 5, 4),))
        folder = tmp_path_factory.mktemp("cluster") / "archive"
        expected = archive.make(folder, 80, 7, limits=False)
        archive._write_members(
            folder / "endless.jsonl.gz", [b'{"session":0,"ops":[]}\n', *[b"\n" * (16 << 20)] * 1_000]
        )
        reference = folder.with_name("reference.jsonl")
        CliRunner().invoke(cli, [*arguments(folder), "--results", str(reference)])
        assert len(reference.read_text().splitlines()) == len(expected) + 1
        yield folder, reference


def arguments(folder):
    return ["scan", str(folder), "--level", "weak", "--no-times", "--timeout", "1", "--quiet"]


def start_scan(child, folder, target, address):
    return child([*PROGRAM, *arguments(folder), "--results", target, "--engine", "dask", "--scheduler", address])


def wait_for(target, lines, scan):
    wait_until(lambda: lines_in(target) >= lines, scan)


def same_lines(target, reference):
    return sorted(target.read_bytes().splitlines()) == sorted(reference.read_bytes().splitlines())


def test_a_lost_worker_loses_nothing(planted, tmp_path, child):
    folder, reference = planted
    with _cluster(2) as cluster:
        target = tmp_path / "dask.jsonl"
        scan = start_scan(child, folder, target, cluster.address)
        wait_for(target, 20, scan)
        cluster.kill_worker()
        assert scan.wait(timeout=PATIENCE) == 4
        assert same_lines(target, reference)
        done = CliRunner().invoke(
            cli,
            [*arguments(folder)[:-1], "--results", str(target), "--resume", "--format", "json",
             "--engine", "dask", "--scheduler", cluster.address],
        )  # fmt: skip
        assert json.loads(done.output)["run"]["checked"] == 0, "resume is the same, too"


@pytest.mark.full
def test_a_restarted_scheduler_loses_nothing(planted, tmp_path, child):
    folder, reference = planted
    with _cluster(2) as cluster:
        target = tmp_path / "dask.jsonl"
        scan = start_scan(child, folder, target, cluster.address)
        wait_for(target, 20, scan)
        cluster.restart()
        assert scan.wait(timeout=PATIENCE) == 4
        assert same_lines(target, reference)


def test_no_scheduler_is_one_line(monkeypatch):
    monkeypatch.setattr(cluster_module, "CONNECT_SECONDS", 0.5)
    with pytest.raises(IsocheckError, match=r"no Dask scheduler at tcp://127.0.0.1:1"):
        cluster_module.DaskEngine("tcp://127.0.0.1:1", Settings())
    with pytest.raises(IsocheckError, match=r"nonsense .* write tcp://HOST:PORT"):
        cluster_module.DaskEngine("nonsense", Settings())


@pytest.mark.parametrize(
    "address",
    [
        "nonsense", "", "tcp://", "tcp://:8786", "tcp://127.0.0.1", "tcp://127.0.0.1:", "tcp://127.0.0.1:port",
        "tcp://127.0.0.1:99999", "tcp://127.0.0.1:0", "tcp://127.0.0.1:-1", "tcp://[::1", "http://127.0.0.1:8786",
        "tcp://a b:1", "tcp:127.0.0.1:8786", "127.0.0.1:8786:8787", "inproc://1/2/3", "tcp://me:pw@127.0.0.1:8786",
    ],
)  # fmt: skip
def test_an_invalid_scheduler_address_is_rejected_at_once(address, tmp_path):
    """Nobody is asked: distributed would wait for ever for some of these."""
    done = isocheck("scan", tmp_path, "--engine", "dask", "--scheduler", address)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(" is not the address of a Dask scheduler; write tcp://HOST:PORT\n")
    assert done.stderr.count("\n") == 1 and "pw" not in done.stderr


@pytest.mark.parametrize("address", ["127.0.0.1:8786", "tcp://host:1", "tls://[::1]:8786", "tcp://10.0.0.1:65535/"])
def test_a_valid_scheduler_address_is_accepted(address):
    cluster_module.check_address(address)


def test_another_program_at_the_address_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(cluster_module, "CONNECT_SECONDS", 0.5)
    monkeypatch.setattr(cluster_module, "POLL_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(IsocheckError, match=f"no Dask scheduler at {address}"):
            cluster_module.DaskEngine(address, Settings())
