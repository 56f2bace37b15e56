"""A server of the tests of canopy-cli serve, raw HTTP to it, and what the command line writes. With Python's standard library alone, against
a tiny model on the processor."""

import array
import functools
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from cli import CLI, GOLDEN, NO_DRIVER, environment, run

MODEL = os.path.join(GOLDEN, "tiny-qwen3")
KEY = "a-key-for-tests"
KEYS = ("first-key-for-tests", "second-key-for-tests")
CHAT = {"messages": [{"role": "user", "content": "import os"}], "temperature": 0, "max_tokens": 24}
RESPONSE = {"input": "import os", "temperature": 0, "max_output_tokens": 24}
MODES = ("ar", "chain", "tree", "adaptive")
CODE = "import os\nimport sys\nimport os\nimport sys\n"
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}}]


# Costs are measured once, for all servers and for all runs of the command line.
COSTS = {name: tempfile.TemporaryDirectory() for name in ("serve", "generate")}


class Served:
    """A running server; its address is read from what it says."""

    headers = {}  # of all requests that name none of their own

    def __init__(self, *arguments, key=None, model=MODEL, context=512):
        env = environment(NO_DRIVER)
        env.pop("CANOPY_API_KEY", None)
        if key:
            env["CANOPY_API_KEY"] = key
        env["CANOPY_CACHE_DIR"] = COSTS["serve"].name
        self.process = subprocess.Popen(
            [CLI, "serve", "--model", model, "--device", "cpu", "--context", str(context), "--port", "0", "--drafter", "none",
             *arguments], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = ""
        for line in self.process.stderr:
            said += line
            found = re.search(r" at http://(.*):(\d+)/v1,", line)
            if found:
                self.host, self.port = found.group(1).strip("[]"), int(found.group(2))
                break
        else:
            raise AssertionError(f"serve ended with {self.process.wait(60)} and said: {said}")  # a signal is negative
        self.log = []
        self.reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True)
        self.reader.start()

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(60)
        self.reader.join(10)
        self.process.stderr.close()
        # What requests taught is nobody else's: but for the costs of passes no file is left.
        left = [name for _, _, names in os.walk(COSTS["serve"].name) for name in names]
        assert not [name for name in left if name.endswith((".learnt", ".suffixes"))], left
        return code

    def ask(self, method, path, body=None, headers=None, timeout=60):
        """Status, headers and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            given = dict(self.headers if headers is None else headers)
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            if body is not None:
                given.setdefault("Content-Type", "application/json")
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def post(self, path, body, **options):
        status, _, text = self.ask("POST", path, body, **options)
        return status, json.loads(text)

    def raw(self, data, timeout=60):
        """What comes back for these bytes, up to the end of the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout) as client:
            client.sendall(data)
            return everything(client)

    def metric(self, name):
        text = self.ask("GET", "/metrics")[2].decode()
        return float(re.search(rf"^canopy_{re.escape(name)} (\S+)$", text, re.MULTILINE).group(1))


def everything(client):
    data = b""
    while True:
        try:
            got = client.recv(65536)
        except ConnectionResetError:
            return data
        if not got:
            return data
        data += got


@functools.cache
def generated(mode, *arguments):
    """What the command line writes."""
    env = dict(environment(NO_DRIVER), CANOPY_CACHE_DIR=COSTS["generate"].name)
    result = subprocess.run([CLI, "generate", "--model", MODEL, "--device", "cpu", "--context", "512", "--drafter", "none",
                             "--json", "--mode", mode, *arguments], env=env, capture_output=True, text=True, check=False,
                            stdin=subprocess.DEVNULL, timeout=300)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def logits(text, count):
    """Ids of a text's first tokens, so many, and the rows of logits after each, of the command line."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("text", "rows")]
        with open(paths[0], "w", encoding="utf-8") as file:
            file.write(text)
        result = run("logits", "--model", MODEL, "--device", "cpu", "--context", "512", "--drafter", "none", "-f", paths[0],
                     "--positions", str(count), "--window", str(count), "--rows", paths[1])
        assert result.returncode == 0, result.stderr
        rows = array.array("f")
        with open(paths[1], "rb") as file:
            rows.frombytes(file.read())
    vocab = len(rows) // count
    return json.loads(result.stdout)["ids"], [rows[i * vocab : (i + 1) * vocab] for i in range(count)]


def at_once(tasks):
    """What each of them returns, or throws, all running at a time."""
    results = [None] * len(tasks)

    def one(i):
        try:
            results[i] = tasks[i]()
        except Exception as problem:  # told by the assertion that compares it
            results[i] = problem

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(tasks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def events(body):
    """(name, data) of each event of a stream; comments are left out."""
    found = []
    for event in body.decode().split("\n\n"):
        lines = [line for line in event.split("\n") if line and not line.startswith(":")]
        if not lines:
            continue
        fields = dict(line.split(": ", 1) for line in lines)
        data = fields["data"]
        found.append((fields.get("event"), data if data == "[DONE]" else json.loads(data)))
    return found


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.served = Served("--model-name", "tiny", "--queue", "8", "--cors", "https://chat.example", "--allow-host", "box.lan")

    @classmethod
    def tearDownClass(cls):
        code = cls.served.stop()
        assert code == 0, (code, cls.served.log)

    def refused(self, status, param, words, path, body, **options):
        got, answer = self.served.post(path, body, **options)
        self.assertEqual(got, status, answer)
        self.assertEqual(list(answer["error"]), ["message", "type", "param", "code"])
        self.assertEqual(answer["error"]["param"], param)
        self.assertIn(words, answer["error"]["message"])
        self.assertNotIn(GOLDEN, json.dumps(answer))


class SeveralKeys(Case):
    """Several at once, with two keys."""

    @classmethod
    def setUpClass(cls):
        with tempfile.NamedTemporaryFile("w", suffix=".keys") as file:
            file.write(f"# of two clients\nan editor {KEYS[0]}\n\n{KEYS[1]}\n")
            file.flush()
            cls.served = Served("--parallel", "3", "--queue", "100", "--api-key-file", file.name)
        cls.served.headers = {"Authorization": "Bearer " + KEYS[0]}

    def streamed(self, body, path="/v1/chat/completions", key=KEYS[0]):
        """Text and events of a stream."""
        status, _, text = self.served.ask("POST", path, {**body, "stream": True, "stream_options": {"include_usage": True}},
                                          {"Authorization": "Bearer " + key})
        self.assertEqual(status, 200, text)
        found = events(text)
        chunks = [data for name, data in found if name is None and data != "[DONE]"]
        parts = [choice.get("text") or choice.get("delta", {}).get("content") or "" for chunk in chunks
                 for choice in chunk["choices"]]
        return "".join(parts), found
