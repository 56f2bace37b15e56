"""canopy-cli serve over 10,000 requests, and bodies of 64 MB: all are answered, and memory stays flat."""

import http.client
import json
import random
import socket
import tempfile
import threading
import unittest

from served import CHAT, KEYS, Served, everything

REQUESTS = 10000
THREADS = 8
MIB = 1 << 20


class Soak(unittest.TestCase):
    def setUp(self):
        with tempfile.NamedTemporaryFile("w", suffix=".keys") as file:
            file.write("\n".join(KEYS))
            file.flush()
            self.served = Served("--queue", "100", "--api-key-file", file.name)
        self.served.headers = {"Authorization": "Bearer " + KEYS[0]}
        self.addCleanup(lambda: self.assertEqual(self.served.stop(), 0))

    def resident(self):
        """Bytes of the server in memory."""
        with open(f"/proc/{self.served.process.pid}/status", encoding="ascii") as file:
            line = next(line for line in file if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024

    def ask(self, number, count, wrong):
        """So many requests of a client, of all kinds, every tenth of them left halfway."""
        draw = random.Random(number)
        connection = http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=60)
        for i in range(count):
            # Few prompts come again: caches and stores are as full as they get.
            body = {"messages": [{"role": "user", "content": f"{draw.randrange(1 << 30)} and {'more ' * draw.randrange(60)}"}],
                    "max_tokens": draw.randrange(1, 9), "temperature": draw.choice([0, 1]), "stream": draw.random() < 0.5,
                    "speculation": {"mode": draw.choice(["ar", "chain", "tree", "adaptive"]),
                                    "sources": draw.choice([["suffix"], ["recycling", "earlier"], ["suffix", "recycling", "earlier"]])}}
            if draw.random() < 0.1:
                body["temperature"] = -1
            if draw.random() < 0.1:
                body["canopy"] = {"rounds": True}
            headers = {"Content-Type": "application/json", "Authorization": "Bearer " + draw.choice(KEYS)}
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            if draw.random() < 0.1:
                connection.close()  # the next request opens it again
                continue
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != (400 if body["temperature"] < 0 else 200):
                wrong.append((answer.status, text[:500]))
        connection.close()

    def ask_all(self, count):
        wrong = []
        threads = [threading.Thread(target=self.ask, args=(count + i, count // THREADS, wrong)) for i in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_memory_is_flat_over_10000_requests(self):
        text = self.served.post("/v1/chat/completions", CHAT)[1]["choices"][0]["message"]["content"]
        self.ask_all(REQUESTS * 4 // 10)
        before = self.resident()
        self.ask_all(REQUESTS * 6 // 10)
        # What the two keys' replies may add to their stores, some 170 bytes a token, and a little for the allocator.
        self.assertLess(self.resident() - before, 24 * MIB)
        self.assertEqual(self.served.post("/v1/chat/completions", CHAT)[1]["choices"][0]["message"]["content"], text)
        self.assertEqual(self.served.metric("replies_running") + self.served.metric("replies_waiting"), 0)
        self.assertEqual(self.served.metric('replies_total{ended="failed"}'), 0)

    def test_bodies_of_64_mb(self):
        head = (f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEYS[0]}\r\n"
                "Content-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n")
        opening, closing = b'{"user": "', b'", ' + json.dumps(CHAT).encode()[1:]

        def send(size, answers):
            with socket.create_connection(("127.0.0.1", self.served.port), 120) as client:
                try:
                    client.sendall((head % size).encode() + opening)
                    client.sendall(b"a" * (size - len(opening) - len(closing)))
                    client.sendall(closing)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # refused before all had come
                answers.append(everything(client)[:12])

        def send_all(size, clients):
            answers = []
            threads = [threading.Thread(target=send, args=(size, answers)) for _ in range(clients)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return answers

        before = self.resident()
        answers = send_all(64 * MIB, 16)
        # A refusal may be lost where the client goes on sending; it is never anything else.
        self.assertLessEqual(set(answers), {b"HTTP/1.1 413", b""})
        self.assertIn(b"HTTP/1.1 413", answers)
        self.assertLess(self.resident() - before, 64 * MIB, "they are not kept")
        for _ in range(2):
            self.assertEqual(send_all(31 * MIB, 4), [b"HTTP/1.1 200"] * 4)
        before = self.resident()  # with what the allocator keeps for the next ones
        for _ in range(5):
            self.assertEqual(send_all(31 * MIB, 4), [b"HTTP/1.1 200"] * 4)
        self.assertLess(self.resident() - before, 64 * MIB)


if __name__ == "__main__":
    unittest.main()
