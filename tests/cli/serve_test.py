"""canopy-cli serve: what clients of OpenAI's interface send and get, and what is refused. Raw HTTP, with Python's standard
library alone, against a tiny model on the processor."""

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
CHAT = {"messages": [{"role": "user", "content": "import os"}], "temperature": 0, "max_tokens": 24}


class Served:
    """A running server; its address is read from what it says."""

    def __init__(self, *arguments, key=None):
        env = environment(NO_DRIVER)
        env.pop("CANOPY_API_KEY", None)
        if key:
            env["CANOPY_API_KEY"] = key
        # No file of costs and of what was learnt is read or left.
        self.cache = tempfile.TemporaryDirectory()
        env["CANOPY_CACHE_DIR"] = self.cache.name
        self.process = subprocess.Popen(
            [CLI, "serve", "--model", MODEL, "--device", "cpu", "--context", "512", "--port", "0", "--drafter", "none",
             *arguments], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = ""
        for line in self.process.stderr:
            said += line
            found = re.search(r" at http://(.*):(\d+)/v1,", line)
            if found:
                self.host, self.port = found.group(1).strip("[]"), int(found.group(2))
                break
        else:
            raise AssertionError(said)
        self.log = []
        self.reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True)
        self.reader.start()

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(60)
        self.reader.join(10)
        self.process.stderr.close()
        self.cache.cleanup()
        return code

    def ask(self, method, path, body=None, headers=None, timeout=60):
        """Status, headers and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            given = dict(headers or {})
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


class Endpoints(Case):
    def test_models(self):
        for path in ("/v1/models", "/models"):
            status, _, text = self.served.ask("GET", path)
            self.assertEqual(status, 200)
            models = json.loads(text)
            self.assertEqual(models["object"], "list")
            self.assertEqual(models["data"][0]["id"], "tiny")
            self.assertNotIn(GOLDEN, text.decode())
        self.assertEqual(json.loads(self.served.ask("GET", "/v1/models/tiny")[2])["id"], "tiny")
        status, _, text = self.served.ask("GET", "/v1/models/other")
        self.assertEqual((status, json.loads(text)["error"]["code"]), (404, "model_not_found"))

    def test_health_and_metrics(self):
        self.assertEqual(json.loads(self.served.ask("GET", "/health")[2]), {"status": "ok"})
        before = self.served.metric("reply_tokens_total")
        self.served.post("/v1/chat/completions", CHAT)
        self.assertEqual(self.served.metric("reply_tokens_total") - before, 24)
        text = self.served.ask("GET", "/v1/metrics")[2].decode()
        for line in text.splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) canopy_\w+ .+|canopy_\w+(\{\w+="\w+"\})? \S+)$')

    def test_what_is_not_there(self):
        self.assertEqual(self.served.ask("GET", "/v1/nothing")[0], 404)
        self.assertEqual(self.served.ask("GET", "/v1/chat/completions")[0], 405)
        self.assertEqual(self.served.ask("POST", "/v1/models", {})[0], 405)
        self.refused(501, None, "no embeddings", "/v1/embeddings", {"input": "a"})


class Replies(Case):
    def generated(self, mode, *arguments):
        """The text that the command line writes for the same."""
        with tempfile.TemporaryDirectory() as cache:
            env = dict(environment(NO_DRIVER), CANOPY_CACHE_DIR=cache)
            result = subprocess.run([CLI, "generate", "--model", MODEL, "--device", "cpu", "--context", "512", "--drafter",
                                     "none", "--json", "--mode", mode, *arguments], env=env, capture_output=True, text=True,
                                    check=False, stdin=subprocess.DEVNULL, timeout=300)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_a_chat_is_the_text_of_generate_in_every_mode(self):
        for mode in ("ar", "chain", "tree", "adaptive"):
            wanted = self.generated(mode, "-p", "import os", "-n", "24")
            status, answer = self.served.post("/v1/chat/completions", {**CHAT, "model": "tiny", "speculation": {"mode": mode}})
            self.assertEqual(status, 200, answer)
            choice = answer["choices"][0]
            self.assertEqual(choice["message"]["content"], wanted["text"])
            self.assertEqual(choice["finish_reason"], {"max_tokens": "length", "stop_token": "stop"}[wanted["finish_reason"]])
            self.assertEqual(answer["usage"]["prompt_tokens"], len(wanted["prompt_ids"]))
            self.assertEqual(answer["usage"]["completion_tokens"], len(wanted["output_ids"]))

    def test_a_seed_gives_the_text_of_generate(self):
        wanted = self.generated("adaptive", "-p", "import os", "-n", "24", "-t", "1.5", "--seed", "7")
        answer = self.served.post("/v1/chat/completions", {**CHAT, "temperature": 1.5, "seed": 7})[1]
        self.assertEqual(answer["choices"][0]["message"]["content"], wanted["text"])

    def test_a_completion_is_the_text_of_raw_prompts(self):
        wanted = self.generated("adaptive", "--raw", "-p", "import os", "-n", "16")
        for prompt in ("import os", wanted["prompt_ids"]):
            answer = self.served.post("/v1/completions", {"prompt": prompt, "temperature": 0})[1]
            self.assertEqual(answer["object"], "text_completion")
            self.assertEqual(answer["choices"][0]["text"], wanted["text"])
        several = self.served.post("/v1/completions", {"prompt": ["import os", "def f"], "temperature": 0, "echo": True})[1]
        self.assertEqual([choice["index"] for choice in several["choices"]], [0, 1])
        self.assertEqual(several["choices"][0]["text"], "import os" + wanted["text"])
        self.assertTrue(several["choices"][1]["text"].startswith("def f"))

    def test_a_stream_has_the_events_in_their_order(self):
        whole = self.served.post("/v1/chat/completions", CHAT)[1]
        status, headers, body = self.served.ask("POST", "/v1/chat/completions",
                                                {**CHAT, "stream": True, "stream_options": {"include_usage": True}})
        self.assertEqual(status, 200)
        self.assertTrue(headers["Content-Type"].startswith("text/event-stream"))
        stream = [data for _, data in events(body)]
        self.assertEqual(stream[-1], "[DONE]")
        self.assertEqual(stream[-2]["choices"], [])
        self.assertEqual(stream[-2]["usage"]["completion_tokens"], 24)
        chunks = stream[:-2]
        self.assertEqual(len({chunk["id"] for chunk in stream[:-1]}), 1)
        self.assertEqual(chunks[0]["choices"][0]["delta"], {"role": "assistant", "content": ""})
        self.assertEqual("".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks),
                         whole["choices"][0]["message"]["content"])
        self.assertEqual([chunk["choices"][0]["finish_reason"] for chunk in chunks if chunk["choices"][0]["finish_reason"]],
                         [whole["choices"][0]["finish_reason"]])
        self.assertEqual(chunks[-1]["choices"][0]["finish_reason"], whole["choices"][0]["finish_reason"])

    def test_a_stop_ends_the_text(self):
        text = self.served.post("/v1/chat/completions", CHAT)[1]["choices"][0]["message"]["content"]
        stop = re.search(r"[!-~]{2}", text[2:]).group()
        answer = self.served.post("/v1/chat/completions", {**CHAT, "stop": [stop]})[1]["choices"][0]
        self.assertEqual(answer["message"]["content"], text[:text.index(stop)])
        self.assertEqual(answer["finish_reason"], "stop")

    def test_rounds_come_as_events_of_their_own(self):
        body = self.served.ask("POST", "/v1/chat/completions",
                               {**CHAT, "stream": True, "canopy": {"rounds": True}, "speculation": {"mode": "tree"}})[2]
        rounds = [data for name, data in events(body) if name == "canopy.round"]
        self.assertEqual([each["round"] for each in rounds], list(range(len(rounds))))
        self.assertEqual(sum(len(each["emitted"]) for each in rounds), 23)
        self.assertEqual(list(rounds[0]), ["round", "context", "mode", "shape", "width", "accepted", "match", "emitted",
                                           "emitted_texts", "ms", "device_ms", "predicted_ms", "choice", "nodes"])

    def test_several_at_once_get_their_own_texts(self):
        prompts = ["import os", "def f", "class A", "return", "for i in", "while True"]
        bodies = [{**CHAT, "messages": [{"role": "user", "content": prompt}]} for prompt in prompts]
        alone = [self.served.post("/v1/chat/completions", body)[1]["choices"][0]["message"]["content"] for body in bodies]
        together = [None] * len(bodies)

        def one(i):
            together[i] = self.served.post("/v1/chat/completions", bodies[i])[1]["choices"][0]["message"]["content"]

        threads = [threading.Thread(target=one, args=(i,)) for i in range(len(bodies))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(together, alone)

    def test_a_closed_socket_ends_the_reply(self):
        before = self.served.metric('replies_total{ended="cancelled"}')
        # Tokens of a bias hold the reply from ending by itself.
        body = json.dumps({**CHAT, "stream": True, "max_tokens": 480, "logit_bias": {"1000": -100, "1001": -100, "1002": -100}})
        with socket.create_connection(("127.0.0.1", self.served.port), 60) as client:
            client.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                           f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
            client.recv(1)
        end = time.monotonic() + 60
        while self.served.metric("replies_running") and time.monotonic() < end:
            time.sleep(0.02)
        # It may have been written whole before the socket was seen to be closed, where the machine is fast.
        self.assertLessEqual(self.served.metric('replies_total{ended="cancelled"}') - before, 1)
        self.assertEqual(self.served.post("/v1/chat/completions", CHAT)[0], 200)


class Refusals(Case):
    def test_fields_are_refused_by_name(self):
        chat = "/v1/chat/completions"
        self.refused(400, "temperature", "is -1", chat, {**CHAT, "temperature": -1})
        self.refused(400, "n", "is 2", chat, {**CHAT, "n": 2})
        self.refused(400, "response_format", "json_object", chat, {**CHAT, "response_format": {"type": "json_object"}})
        self.refused(400, "logit_bias", "'999999'", chat, {**CHAT, "logit_bias": {"999999": 1}})
        self.refused(400, "messages", "image_url", chat,
                     {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a"}}]}]})
        self.refused(404, "model", "'tiny' is", chat, {**CHAT, "model": "other"})
        self.refused(400, "messages", "the context holds 512", chat,
                     {"messages": [{"role": "user", "content": "word " * 5000}]})
        self.refused(400, "prompt", "missing", "/v1/completions", {})

    def test_bodies_that_are_no_json(self):
        for body in (b"", b"{", b"[1]", b"null", b'{"messages": "\xff"}', b"[" * 100000, b'{"a": 1e999}', b'{"a": 1} x'):
            status, answer = self.served.post("/v1/chat/completions", body)
            self.assertEqual((status, answer["error"]["type"]), (400, "invalid_request_error"), body[:20])
        status, answer = self.served.post("/v1/chat/completions", json.dumps(CHAT), headers={"Content-Type": "text/plain"})
        self.assertEqual(status, 415)

    def test_a_body_that_is_too_large_is_refused_before_it_comes(self):
        answer = self.served.raw(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                 b"Content-Length: 67108864\r\n\r\n")
        self.assertTrue(answer.startswith(b"HTTP/1.1 413 "), answer)

    def test_heads_that_are_read_in_two_ways(self):
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
        for more, status in ((b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400), (b"Transfer-Encoding: chunked\r\n\r\n", 501),
                             (b"A : b\r\n\r\n", 400), (b" a: b\r\n\r\n", 400), (b"Host: b\r\n\r\n", 400)):
            self.assertTrue(self.served.raw(head + more).startswith(f"HTTP/1.1 {status} ".encode()), more)

    def test_other_hosts_and_origins(self):
        for host, status in (("localhost", 200), ("127.0.0.1:1", 200), ("[::1]:1", 200), ("box.lan", 200), ("evil.example", 403),
                             ("localhost.evil.example", 403)):
            self.assertEqual(self.served.ask("GET", "/v1/models", headers={"Host": host})[0], status, host)
        for origin, status in (("https://chat.example", 200), ("https://evil.example", 403), ("null", 403),
                               ("https://chat.example.evil", 403)):
            got, headers, _ = self.served.ask("GET", "/v1/models", headers={"Origin": origin})
            self.assertEqual(got, status, origin)
            self.assertEqual(headers["Access-Control-Allow-Origin"], origin if status == 200 else None)
        status, headers, _ = self.served.ask("OPTIONS", "/v1/chat/completions",
                                             headers={"Origin": "https://chat.example", "Access-Control-Request-Method": "POST"})
        self.assertEqual(status, 204)
        self.assertIn("content-type", headers["Access-Control-Allow-Headers"])

    def test_sockets_that_close_at_every_stage_leave_the_server_alive(self):
        body = json.dumps(CHAT).encode()
        whole = (b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
                 + str(len(body)).encode() + b"\r\n\r\n" + body)
        for size in range(0, len(whole), 16):
            with socket.create_connection(("127.0.0.1", self.served.port), 60) as client:
                client.sendall(whole[:size])
        self.assertEqual(self.served.ask("GET", "/health")[0], 200)


class Start(unittest.TestCase):
    def test_an_open_address_needs_a_key(self):
        result = run("serve", "--model", MODEL, "--host", "0.0.0.0")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("give a key", result.stderr)

    def test_options_that_cannot_work(self):
        for words, *arguments in (("at least 8", "--api-key", "short"), ("is empty", "--api-key", ""),
                                  ("origin", "--cors", "*"), ("--port", "--port", "65536"),
                                  ("not with both", "--api-key", KEY, "--api-key-file", "x")):
            result = run("serve", "--model", MODEL, *arguments)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(words, result.stderr)
        with tempfile.NamedTemporaryFile("w", suffix=".key") as empty:
            result = run("serve", "--model", MODEL, "--api-key-file", empty.name)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("no key", result.stderr)

    def test_a_key_is_asked_for(self):
        with tempfile.NamedTemporaryFile("w", suffix=".key") as file:
            file.write(KEY + "\n")
            file.flush()
            for arguments, key in ((("--api-key-file", file.name), None), ((), KEY)):
                served = Served(*arguments, key=key)
                try:
                    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": KEY}, {"x-api-key": KEY + "x"}):
                        status, given, text = served.ask("GET", "/v1/models", headers=headers)
                        self.assertEqual((status, given["WWW-Authenticate"]), (401, "Bearer"))
                        self.assertEqual(json.loads(text)["error"]["code"], "invalid_api_key")
                    for headers in ({"Authorization": "Bearer " + KEY}, {"x-api-key": KEY}):
                        self.assertEqual(served.ask("GET", "/v1/models", headers=headers)[0], 200)
                    self.assertEqual(served.ask("GET", "/health")[0], 200)
                    self.assertEqual(served.ask("GET", "/metrics")[0], 401)
                finally:
                    self.assertEqual(served.stop(), 0)


if __name__ == "__main__":
    unittest.main()
