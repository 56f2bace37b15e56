"""canopy-cli serve: what is refused, clients that mean harm or leave, and the options that say who may ask."""

import http.client
import json
import os
import signal
import socket
import tempfile
import time
import unittest

from cli import run
from served import CHAT, KEY, KEYS, MODEL, TOOLS, Case, Served, SeveralKeys, at_once, generated


class Refusals(Case):
    def test_fields_are_refused_by_name(self):
        chat = "/v1/chat/completions"
        self.refused(400, "temperature", "is -1", chat, {**CHAT, "temperature": -1})
        self.refused(400, "n", "from 1 to 8", chat, {**CHAT, "n": 9})
        self.refused(400, "best_of", "is 3", chat, {**CHAT, "best_of": 3})
        self.refused(400, "top_logprobs", "without", chat, {**CHAT, "top_logprobs": 3})
        self.refused(400, "logprobs", "from 0 to 20", "/v1/completions", {"prompt": "a", "logprobs": 21})
        self.refused(400, "max_tokens", "is 0", "/v1/completions", {"prompt": "a", "max_tokens": 0})
        self.refused(400, "tool_choice", "names none", chat, {**CHAT, "tool_choice": "required"})
        self.refused(400, "messages", "no place for tools", chat, {**CHAT, "tools": TOOLS, "tool_choice": "required"})
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

    def test_bodies_that_break_off_or_off_their_form_at_every_depth(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=60)
        self.addCleanup(connection.close)

        def status_of(body):
            connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                self.assertEqual(json.loads(text)["error"]["type"], "invalid_request_error", body[-40:])
            return answer.status

        call = {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}
        whole = json.dumps({"messages": [{"role": "user", "content": [{"type": "text", "text": "\u00e9\ud83d\ude00"}]}, call],
                            "logit_bias": {"5": 1}, "max_tokens": 1}).encode()
        for size in range(len(whole)):
            self.assertEqual(status_of(whole[:size]), 400, whole[:size])
        for depth in list(range(1, 40)) + [200, 1000, 20000]:
            for opening, inner, closing in ((b"[", b"", b"]"), (b"[", b"}", b"]"), (b'{"a":', b"1,", b"}"), (b'{"a":[', b"1 1", b"]}")):
                for body in (opening * depth + inner + closing * depth, opening * depth + inner):
                    self.assertEqual(status_of(b'{"messages": ' + body + b"}"), 400, depth)
        self.assertEqual(status_of(json.dumps(CHAT)), 200)

    def test_texts_that_are_no_utf_8(self):
        for bad in (b"\xff", b"\xc0\xaf", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\x80"):
            for body in (b'{"messages": [{"role": "user", "content": "a' + bad + b'"}]}', b'{"' + bad + b'": 1, "messages": []}',
                         b'{"messages": [{"role": "' + bad + b'", "content": "a"}]}', b'{"model": "' + bad + b'", "messages": []}'):
                status, answer = self.served.post("/v1/chat/completions", body)
                self.assertEqual((status, answer["error"]["type"]), (400, "invalid_request_error"), body)

    def test_a_body_that_is_too_large_is_refused_before_it_comes(self):
        answer = self.served.raw(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                 b"Content-Length: 67108864\r\n\r\n")
        self.assertTrue(answer.startswith(b"HTTP/1.1 413 "), answer)

    def test_heads_that_are_read_in_two_ways(self):
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
        for more, status in ((b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400), (b"Transfer-Encoding: chunked\r\n\r\n", 501),
                             (b"A : b\r\n\r\n", 400), (b" a: b\r\n\r\n", 400), (b"Host: b\r\n\r\n", 400)):
            self.assertTrue(self.served.raw(head + more).startswith(f"HTTP/1.1 {status} ".encode()), more)

    def test_what_is_hidden_in_a_request_is_not_answered(self):
        hidden = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        for more in (b"Content-Length: 67108864\r\n\r\n", b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                     b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", b"Content-Length: 0\nA: b\r\n\r\n",
                     b"Content-Length : 0\r\n\r\n", b"Content-Length: 0\r\n Content-Length: 9\r\n\r\n", b"Content-Length: 00x\r\n\r\n"):
            answer = self.served.raw(head + more + hidden)
            self.assertEqual(answer.count(b"HTTP/1.1 "), 1, answer)
            self.assertNotIn(b"HTTP/1.1 200", answer)

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


def stopped(pid):
    """Waits until no thread of a process that was told to stop runs; true."""
    states = "R"
    while set(states) - set("Tt"):
        states = ""
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/stat", encoding="ascii") as file:
                states += file.read().rsplit(")", 1)[1].split()[0]
    return True


class Leaving(SeveralKeys):
    def test_a_closed_socket_ends_the_reply(self):
        before = {name: self.served.metric(name) for name in ('replies_total{ended="cancelled"}', "passes_total", "reply_tokens_total")}
        # Of 8 replies of more than 400 passes each. The tokens that would end one are forbidden.
        body = json.dumps({**CHAT, "stream": True, "max_tokens": 440, "n": 8, "canopy": {"rounds": True},
                           "speculation": {"mode": "ar"}, "logit_bias": {"1000": -100, "1001": -100, "1002": -100}})
        process = self.served.process
        with socket.create_connection(("127.0.0.1", self.served.port), 60) as client:
            client.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEYS[0]}\r\n"
                           f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            told = b""
            while told.count(b"event: canopy.round") < 3:
                told += client.recv(65536)
            # While the server is held, nothing is written: what it has told is all that it told before the end.
            process.send_signal(signal.SIGSTOP)
            try:
                while stopped(process.pid):
                    client.settimeout(0.2)
                    try:
                        told += client.recv(65536)
                    except TimeoutError:
                        break
                client.close()
            finally:
                process.send_signal(signal.SIGCONT)
        end = time.monotonic() + 60
        while self.served.metric("replies_running") + self.served.metric("replies_waiting") > 0 and time.monotonic() < end:
            time.sleep(0.02)
        after = {name: self.served.metric(name) - value for name, value in before.items()}
        self.assertEqual(after['replies_total{ended="cancelled"}'], 1)
        # Beyond those that were told there is the pass that was running, and those of the time in which the thread of the
        # connection waited for a processor: how many is the system's to say, but a small part of the 8 replies' 3,520. That a reply
        # ends within a pass once that is wished is SchedulerTest.what_is_stopped_ends_within_a_pass.
        self.assertGreaterEqual(after["passes_total"], told.count(b"event: canopy.round"))
        self.assertLess(after["passes_total"], 440)
        self.assertEqual(self.streamed(CHAT)[0], generated("adaptive", "-p", "import os", "-n", "24")["text"])

    def test_clients_that_leave_while_they_wait_or_read_hold_nothing(self):
        body = json.dumps({**CHAT, "stream": True, "max_tokens": 480})
        head = (f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEYS[0]}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n")
        clients = []
        for i in range(24):
            client = socket.create_connection(("127.0.0.1", self.served.port), 60)
            client.sendall((head + body).encode())
            if i % 2 == 0:
                client.recv(1)
            if i % 3 == 0:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset instead of an end
            clients.append(client)
        for client in clients:
            client.close()
        end = time.monotonic() + 60
        while self.served.metric("replies_running") + self.served.metric("replies_waiting") > 0 and time.monotonic() < end:
            time.sleep(0.02)
        self.assertEqual(self.served.metric("replies_running") + self.served.metric("replies_waiting"), 0)
        self.assertEqual(self.streamed(CHAT)[0], generated("adaptive", "-p", "import os", "-n", "24")["text"])

    def test_slow_clients_hold_up_nobody(self):
        body = json.dumps({**CHAT, "stream": True, "max_tokens": 400, "canopy": {"rounds": True}})
        clients = []
        for i in range(24):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            client.settimeout(60)
            client.connect(("127.0.0.1", self.served.port))
            clients.append(client)
            if i < 4:  # that read a byte a second
                client.sendall((f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEYS[0]}\r\n"
                                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode())
            else:  # that never come to the end of their heads, or of their bodies
                client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: loc" if i % 2 else
                               f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEYS[0]}\r\n"
                               "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{".encode())
        try:
            for _ in range(2):
                for i, client in enumerate(clients):
                    if i < 4:
                        self.assertEqual(len(client.recv(1)), 1)
                    else:
                        try:
                            client.sendall(b"a")
                        except (BrokenPipeError, ConnectionResetError):
                            pass  # its time was over
                answers = at_once([lambda: self.streamed(CHAT)[0]] * 4)
                self.assertEqual(answers, [generated("adaptive", "-p", "import os", "-n", "24")["text"]] * 4)
                time.sleep(1)
        finally:
            for client in clients:
                client.close()


class Start(unittest.TestCase):
    def test_an_open_address_needs_a_key(self):
        result = run("serve", "--model", MODEL, "--host", "0.0.0.0")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("give a key", result.stderr)

    def test_options_that_cannot_work(self):
        for words, *arguments in (("at least 8", "--api-key", "short"), ("is empty", "--api-key", ""),
                                  ("origin", "--cors", "*"), ("--port", "--port", "65536"),
                                  ("not with both", "--api-key", KEY, "--api-key-file", "x"),
                                  ("is empty", "--api-key", KEY, "--api-key", ""),
                                  ("Key 2 is the same as key 1", "--api-key", KEY, "--api-key", KEY),
                                  ("--parallel", "--parallel", "0"), ("--parallel", "--parallel", "17")):
            result = run("serve", "--model", MODEL, *arguments)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(words, result.stderr)
        with tempfile.NamedTemporaryFile("w", suffix=".key") as empty:
            result = run("serve", "--model", MODEL, "--api-key-file", empty.name)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("no key", result.stderr)

    def test_several_keys_of_options(self):
        served = Served("--api-key", KEYS[0], "--api-key", KEYS[1])
        try:
            for key, status in ((KEYS[0], 200), (KEYS[1], 200), (KEY, 401)):
                self.assertEqual(served.ask("GET", "/v1/models", headers={"x-api-key": key})[0], status)
        finally:
            self.assertEqual(served.stop(), 0)

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
                    status, answer = served.post("/v1/messages", CHAT)
                    self.assertEqual((status, answer["error"]["type"]), (401, "authentication_error"))
                    self.assertEqual(served.post("/v1/messages", CHAT, headers={"x-api-key": KEY})[0], 200)
                finally:
                    self.assertEqual(served.stop(), 0)


if __name__ == "__main__":
    unittest.main()
