"""A server on this machine that behaves like Hugging Face's hub, and misbehaves as a test says.

Two servers run: the hub itself, and another host's storage that files in large storage are led to. What both were asked
for is kept in `requests`.
"""

import hashlib
import http.server
import json
import re
import threading
import time
import urllib.parse

COMMIT = "1" * 40
OTHER_COMMIT = "2" * 40


def git_digest(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Request:
    def __init__(self, server, method, path, headers):
        self.server, self.method, self.path = server, method, path
        self.headers = {name.lower(): value for name, value in headers.items()}


class FakeHub:
    """Attributes that begin a misbehaviour may be changed at any time."""

    def __init__(self, repo="some/Model-GGUF", files=None, small=(), certificate=None):
        self.repo = repo
        self.files = dict(files or {})  # path -> bytes
        self.small = set(small)  # paths that are no large storage
        self.requests = []
        self.lock = threading.Lock()
        self.commit = COMMIT
        self.tags = ["gguf", "license:apache-2.0"]
        self.api_failures = []  # (status, headers) for the next requests of the interface
        self.file_failures = []  # the same for the storage
        self.gate = None  # (status, error code) for the whole repository
        self.needs_token = None
        self.cuts = []  # bytes of the body after which the next answers of the storage end
        self.ranges = True
        self.etags = None  # an iterator of ETags of the storage; without it they follow from the content
        self.linked_etag = None  # what the hub says the content is
        self.length_error = 0  # bytes that the storage has more than the list says
        self.damage = False  # the storage sends other bytes of the same length
        self.drip = None  # seconds between single bytes of the storage
        self.pause = 0  # seconds before each answer of the storage
        self.chunk_pause = 0  # seconds between pieces of 64 KiB
        self.tree = None  # text in place of the list of files
        self.page = None  # entries of a page of the list
        self.leads_to = None  # where the hub leads to, in place of its storage
        self.search = []
        self.servers = [self.start("hub", certificate), self.start("storage", None)]

    def start(self, role, certificate):
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.path = re.sub(r"^http://[^/]*", "", self.path)  # as a proxy is asked
                with hub.lock:
                    hub.requests.append(Request(role, self.command, self.path, self.headers))
                try:
                    getattr(hub, role)(self)
                except OSError:
                    self.close_connection = True

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a client that refuses a certificate, or has gone

        server = Server(("127.0.0.1", 0), Handler)
        if certificate:
            import ssl
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def url(self, role="hub", scheme="http"):
        # Another name of this machine stands for another host.
        host = "127.0.0.1" if role == "hub" else "localhost"
        return f"{scheme}://{host}:{self.servers[0 if role == 'hub' else 1].server_address[1]}"

    def asked(self, server, part=""):
        with self.lock:
            return [r for r in self.requests if r.server == server and part in r.path]

    # Answers.

    @staticmethod
    def answer(handler, status, body=b"", headers=None):
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def entry(self, path):
        content = self.files[path]
        if path in self.small:
            return {"type": "file", "path": path, "size": len(content), "oid": git_digest(content)}
        digest = hashlib.sha256(content).hexdigest()
        return {"type": "file", "path": path, "size": len(content), "oid": git_digest(b"pointer"),
                "lfs": {"oid": digest, "size": len(content), "pointerSize": 134}}

    def hub(self, handler):
        path, _, query = handler.path.partition("?")
        path = urllib.parse.unquote(path)
        if path.startswith("/api/"):
            if self.api_failures:
                return self.answer(handler, *self.api_failures.pop(0))
            if path == "/api/models":
                return self.answer(handler, 200, json.dumps(self.search).encode())
        if self.gate:
            return self.answer(handler, self.gate[0], b"no", {"X-Error-Code": self.gate[1]})
        if self.needs_token and handler.headers.get("Authorization") != "Bearer " + self.needs_token:
            return self.answer(handler, 401, b"no", {"X-Error-Code": "RepoNotFound"})
        if path == f"/api/models/{self.repo}/revision/main":
            body = {"id": self.repo, "sha": self.commit, "tags": self.tags}
            return self.answer(handler, 200, json.dumps(body).encode())
        if path == f"/api/models/{self.repo}/tree/{self.commit}":
            return self.list_files(handler, query)
        start = f"/{self.repo}/resolve/{self.commit}/"
        if path.startswith(start) and path[len(start):] in self.files:
            name = path[len(start):]
            content = self.files[name]
            if name in self.small:
                return self.answer(handler, 200, content, {"ETag": '"%s"' % git_digest(content)})
            digest = self.linked_etag or hashlib.sha256(content).hexdigest()
            return self.answer(handler, 302, b"elsewhere", {
                "Location": self.leads_to or self.url("storage") + "/blob/" + urllib.parse.quote(name),
                "X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(content)), "X-Repo-Commit": self.commit})
        return self.answer(handler, 404, b"no", {"X-Error-Code": "RepoNotFound"})

    def list_files(self, handler, query):
        if self.tree is not None:
            return self.answer(handler, 200, self.tree.encode())
        entries = [{"type": "directory", "path": "x", "size": 0, "oid": "0" * 40}] + [self.entry(p) for p in sorted(self.files)]
        headers = {}
        if self.page:
            at = int(dict(urllib.parse.parse_qsl(query)).get("cursor", 0))
            if at + self.page < len(entries):
                headers["Link"] = (f'<{self.url()}/api/models/{self.repo}/tree/{self.commit}?recursive=true'
                                   f'&cursor={at + self.page}>; rel="next"')
            entries = entries[at:at + self.page]
        return self.answer(handler, 200, json.dumps(entries).encode(), headers)

    def storage(self, handler):
        if self.file_failures:
            return self.answer(handler, *self.file_failures.pop(0))
        time.sleep(self.pause)
        content = self.files[urllib.parse.unquote(handler.path[len("/blob/"):])]
        if self.damage:
            content = bytes(b ^ 1 for b in content)
        content += b"x" * self.length_error
        etag = '"%s"' % (next(self.etags) if self.etags else hashlib.md5(content).hexdigest())
        wanted = re.match(r"bytes=(\d+)-(\d*)$", handler.headers.get("Range", ""))
        if_range = handler.headers.get("If-Range")
        first, last, status = 0, len(content) - 1, 200
        if wanted and self.ranges and if_range in (None, etag):
            first, status = int(wanted.group(1)), 206
            last = min(last, int(wanted.group(2) or last))
        body = content[first:last + 1]
        handler.send_response(status)
        handler.send_header("ETag", etag)
        handler.send_header("Content-Length", str(len(body)))
        if status == 206:
            handler.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        handler.end_headers()
        if self.cuts:
            handler.wfile.write(body[:self.cuts.pop(0)])
            handler.close_connection = True
        elif self.drip is not None:
            for i in range(len(body)):
                handler.wfile.write(body[i:i + 1])
                handler.wfile.flush()
                time.sleep(self.drip)
        else:
            for at in range(0, len(body), 1 << 16):
                handler.wfile.write(body[at:at + (1 << 16)])
                time.sleep(self.chunk_pause)
