"""The checker of docs/jepsen.md, run by Clojure against a stub of Jepsen that has its protocol."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import edn_format
import pytest
from paths import ROOT

# Where Debian has Clojure; another place is named by a class path.
JARS = [Path("/usr/share/java") / name for name in ("clojure.jar", "spec.alpha.jar", "core.specs.alpha.jar")]

STUBS = {
    "jepsen/checker.clj": "(ns jepsen.checker) (defprotocol Checker (check [checker test history opts]))",
    "jepsen/store.clj": """(ns jepsen.store (:require [clojure.java.io :as io]))
        (defn path! [test & parts]
          (let [file (apply io/file (:folder test) (remove nil? parts))] (io/make-parents file) file))""",
}

TEST = """
(ns test (:require [isocheck.checker :as isocheck] [jepsen.checker :as checker]))
(defrecord Op [index time type process f value])
(defn op [index type process f value] (Op. index (* 10 index) type process f value))
(defn tuple [k v] (clojure.lang.MapEntry. k v))
(defn check [opts levels & ops]
  (checker/check (apply isocheck/isocheck levels) {:folder (System/getenv "STORE")} ops opts))
(prn [(check {} ["SER" "SI"]
        (op 0 :invoke 0 :txn [[:append :x 1]]) (op 1 :ok 0 :txn [[:append :x 1]])
        (assoc (op 2 :info :nemesis :kill nil) :error (ex-info "a" {:b/c 1}) :d/e {:f/g #{1}})
        (op 3 :invoke 1 :txn [[:r :x nil]]) (op 4 :ok 1 :txn [[:r :x [1]]]))
      (check {:subdirectory "sub"} ["SER"]
        (op 0 :ok 0 :txn [[:append :x 1] [:r :y [1]]]) (op 1 :ok 1 :txn [[:append :x 2] [:append :y 1]])
        (op 2 :ok 2 :txn (list [:r :x (list 1 2)])))
      (check {} ["SER"]
        (op 0 :ok 0 :write (tuple 5 1)) (op 1 :ok 1 :read (tuple 5 nil))
        (op 2 :ok 1 :read (tuple 5 1)) (op 3 :ok 0 :read (tuple 5 nil)))
      (check {} ["SER"] (op 0 :ok 0 :transfer {:from 1}))
      (check {} ["TCC"] (op 0 :ok 0 :txn [[:r "} \\"\\u001b" :a/b] [:r 1.5 true]]))
      (check {} ["no such level"] (op 0 :ok 0 :txn []))
      (check {} ["SER"] (op 0 :ok 0 :txn []))])
(shutdown-agents)
"""


@pytest.fixture
def clojure():
    """The class path of Clojure, to be run by java."""
    if shutil.which("java") is None:
        pytest.skip("java is not installed")
    given = os.environ.get("CLOJURE_CLASSPATH")
    if given is None and not all(jar.exists() for jar in JARS):
        pytest.skip("Clojure is not installed (Debian's package, or CLOJURE_CLASSPATH)")
    return given or os.pathsep.join(map(str, JARS))


def test_the_checker_in_clojure(clojure, tmp_path):
    (source,) = re.findall(r"^```clojure\n(.*?)^```", (ROOT / "docs/jepsen.md").read_text(), re.MULTILINE | re.DOTALL)
    files = {**STUBS, "isocheck/checker.clj": source, "test.clj": TEST}
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    script = tmp_path / "bin/isocheck"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from plume_py.cli.main import run; run()" "$@"\n')
    script.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "STORE": str(tmp_path / "store"),
    }
    command = ["java", "-cp", f"{clojure}{os.pathsep}{tmp_path}", "clojure.main", str(tmp_path / "test.clj")]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    results = edn_format.loads(run.stdout)
    keyword = edn_format.Keyword
    assert [result[keyword("valid?")] for result in results] == [
        True, False, False, keyword("unknown"), False, keyword("unknown"), keyword("unknown")
    ]  # fmt: skip
    assert (tmp_path / "store/sub/isocheck.edn").exists()
    assert list(results[1][keyword("anomaly-types")]) == [keyword("G1c")]
    (case,) = results[1][keyword("anomalies")][keyword("G1c")]
    assert {op[keyword("index")] for op in case[keyword("cycle")]} == {0, 1}
    assert list(results[2][keyword("anomaly-types")]) == [keyword("G-single-item-process")]
    assert "its operations are :transfer" in results[3][keyword("error")]
    assert "unknown level" in results[5][keyword("error")]
    assert list(results[6][keyword("anomaly-types")]) == [keyword("empty-transaction-graph")]
