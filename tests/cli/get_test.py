"""canopy-cli get and models, against a hub on this machine that behaves, and misbehaves, and no network."""

import hashlib
import itertools
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from cli import CLI, GOLDEN, NO_DRIVER, ROOT
from fake_hub import FakeHub, git_digest

REPO = "some/Model-GGUF"
PART = 8 << 20  # that a connection fetches at a time
MODEL = random.Random(1).randbytes(2 * PART + 123456)
SMALL = random.Random(2).randbytes(100_000)
TOKEN = "hf_secret"


class Hub(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = folder.name
        self.cache = os.path.join(self.home, "hub")

    def hub(self, files=None, **options):
        hub = FakeHub(repo=REPO, files=files or {"Model-Q4_K_M.gguf": MODEL}, **options)
        self.addCleanup(hub.close)
        return hub

    def environment(self, hub, **more):
        kept = {k: v for k, v in os.environ.items() if "proxy" not in k.lower() and not k.startswith(("HF_", "XDG_"))}
        kept.update(HF_ENDPOINT=hub.url() if hub else "http://127.0.0.1:9", HF_HUB_CACHE=self.cache, HF_TOKEN=TOKEN,
                    HOME=self.home, VK_ICD_FILENAMES=NO_DRIVER, VK_DRIVER_FILES=NO_DRIVER)
        kept.update(more)
        return {k: v for k, v in kept.items() if v is not None}

    def start(self, hub, *arguments, more=None, **options):
        return subprocess.Popen([CLI, *arguments], env=self.environment(hub, **(more or {})), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def run_cli(self, hub, *arguments, **options):
        process = self.start(hub, *arguments, **options)
        out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def fetched(self, hub, name=REPO, *arguments, **options):
        result = self.run_cli(hub, "get", name, *arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def refused(self, words, hub, *arguments, code=1, **options):
        result = self.run_cli(hub, *arguments, **options)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn(words, result.stderr)
        return result.stderr

    def repo_folder(self, *parts):
        return os.path.join(self.cache, "models--some--Model-GGUF", *parts)

    def snapshot(self, hub, path):
        return self.repo_folder("snapshots", hub.commit, path)

    def incomplete(self, content=MODEL):
        return self.repo_folder("blobs", hashlib.sha256(content).hexdigest() + ".incomplete")

    def assert_whole(self, hub, path="Model-Q4_K_M.gguf", content=MODEL):
        with open(self.snapshot(hub, path), "rb") as file:
            self.assertTrue(file.read() == content, path)
        self.assertFalse(os.path.exists(self.incomplete(content)))

    def assert_a_beginning(self):
        with open(self.incomplete(), "rb") as file:
            there = file.read()
        self.assertTrue(MODEL.startswith(there))
        return len(there)


class Layout(Hub):
    def test_files_lie_where_other_tools_look_for_them(self):
        hub = self.hub({"a/Model-Q4_K_M.gguf": MODEL, "README.md": b"# x"}, small=["README.md"])
        self.fetched(hub, REPO + ":q4_k_m")
        digest = hashlib.sha256(MODEL).hexdigest()
        place = self.snapshot(hub, "a/Model-Q4_K_M.gguf")
        self.assertEqual(os.readlink(place), "../../../blobs/" + digest)
        self.assertEqual(sorted(os.listdir(self.repo_folder("blobs"))), [digest])
        with open(self.repo_folder("refs", "main"), encoding="utf-8") as file:
            self.assertEqual(file.read(), hub.commit)
        self.assert_whole(hub, "a/Model-Q4_K_M.gguf")
        before = len(hub.asked("storage"))
        self.fetched(hub)
        self.assertEqual(len(hub.asked("storage")), before, "what is there is not fetched again")

    def test_a_new_commit_shares_what_did_not_change(self):
        hub = self.hub({"Model-Q4_K_M.gguf": MODEL, "Model-Q8_0.gguf": SMALL})
        self.fetched(hub, REPO + ":Q4_K_M")
        hub.commit = "2" * 40
        before = len(hub.asked("storage"))
        self.fetched(hub, REPO + ":Q4_K_M")
        self.assertEqual(len(hub.asked("storage")), before)
        self.assert_whole(hub)

    def test_all_parts_of_a_split_model_and_a_folder_with_its_tokenizer(self):
        parts = {f"Q4_K_M/m-0000{n}-of-00003.gguf": SMALL[n:] for n in (1, 2, 3)}
        hub = self.hub({**parts, "mmproj-F16.gguf": b"p", "mtp-m.gguf": b"head"})
        result = self.fetched(hub)
        for path, content in parts.items():
            self.assert_whole(hub, path, content)
        self.assertFalse(os.path.exists(self.snapshot(hub, "mmproj-F16.gguf")))
        self.assertFalse(os.path.exists(self.snapshot(hub, "mtp-m.gguf")))
        self.assertIn(f"canopy-cli get {REPO}:mtp-m.gguf", result.stderr)
        hub.commit = "2" * 40
        hub.files = {"config.json": b"{}", "tokenizer.json": b"[1]", "chat_template.jinja": b"t", "x/other.json": b"0",
                     "model-00001-of-00002.safetensors": SMALL, "model-00002-of-00002.safetensors": SMALL[1:],
                     "consolidated.safetensors": MODEL, "pytorch_model.bin": MODEL, "empty.json": b""}
        hub.small = {"config.json", "tokenizer.json", "chat_template.jinja", "empty.json"}
        listed = json.loads(self.fetched(hub, REPO, "--json").stdout)
        self.assertEqual(sorted(listed["files"]), sorted([
            "config.json", "tokenizer.json", "chat_template.jinja", "empty.json", "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors"]))
        self.assert_whole(hub, "model-00002-of-00002.safetensors", SMALL[1:])
        self.assertEqual(os.path.basename(os.readlink(self.snapshot(hub, "config.json"))), git_digest(b"{}"))

    def test_a_list_of_several_pages_is_read_to_its_end(self):
        hub = self.hub({f"m-{n}-Q4_0.gguf": SMALL[n:] for n in range(7)})
        hub.page = 3
        self.fetched(hub, REPO + ":m-6-Q4_0.gguf")
        self.assert_whole(hub, "m-6-Q4_0.gguf", SMALL[6:])


class Choice(Hub):
    FILES = {"m-Q4_K_M.gguf": b"4" * 40, "m-Q8_0.gguf": b"8" * 80, "m-BF16.gguf": b"1" * 160}

    def test_what_is_not_clear_is_refused_with_a_list(self):
        hub = self.hub({"a-Q8_0.gguf": b"8" * 80, "b-Q8_0.gguf": b"9" * 90})
        said = self.refused("'q8_0' names several files", hub, "get", REPO + ":q8_0")
        self.assertIn("a-Q8_0.gguf", said)
        self.assertIn("has nothing of the name 'Q2_K'", self.refused("b-Q8_0.gguf", hub, "get", REPO + ":Q2_K"))
        self.fetched(hub, REPO + ":B-Q8_0.gguf")
        self.assert_whole(hub, "b-Q8_0.gguf", b"9" * 90)

    def test_where_the_device_is_not_known_q4_k_m_is_taken(self):
        hub = self.hub(self.FILES)  # whose heads say nothing
        result = self.fetched(hub, REPO, "--device", "cpu")
        self.assertIn("Q4_K_M is taken", result.stderr)
        self.assert_whole(hub, "m-Q4_K_M.gguf", b"4" * 40)

    def test_the_largest_of_8_bits_or_less_that_fits_is_taken(self):
        def golden(name):
            with open(os.path.join(GOLDEN, name), "rb") as file:
                return file.read()

        wide = golden("tiny-qwen3-f16.gguf")
        hub = self.hub({"m-Q4_0.gguf": golden("tiny-qwen3-q8_0.gguf"), "m-Q8_0.gguf": wide, "m-F16.gguf": wide + b"more"})
        listed = self.fetched(hub, REPO, "--list", "--device", "cpu").stdout
        self.assertRegex(listed, r"Q4_0 .*\n *Q8_0 .* MB, fits: takes .* of memory\n *F16 ")
        result = self.fetched(hub, REPO, "--device", "cpu")
        self.assertIn("Q8_0 is the largest up to 8 bits that fits", result.stderr)
        shown = self.run_cli(None, "inspect", REPO, "--json")
        self.assertEqual(json.loads(shown.stdout)["config"]["architecture"], "qwen3", shown.stderr)

    def test_names_that_are_none(self):
        hub = self.hub()
        for name in ("model", "a/b/c", "a/..", "-a/b", "a/b:", "/etc/passwd", "a b/c"):
            with self.subTest(name):
                self.refused("", hub, "get", "--", name, code=2)
        self.refused("exactly one of", hub, "get", code=2)
        self.refused("exactly one of", hub, "get", REPO, "--pairs", code=2)
        self.refused("--tries", hub, "get", REPO, "--tries", "0", code=2)
        self.assertEqual(hub.requests, [])


class Interrupted(Hub):
    def begin(self, hub, *arguments):
        """A download of which a megabyte has come."""
        hub.chunk_pause = 0.01
        process = self.start(hub, "get", REPO, *arguments)
        for _ in range(3000):
            if os.path.exists(self.incomplete()) and os.path.getsize(self.incomplete()) > 1 << 20:
                return process
            time.sleep(0.01)
        process.kill()
        self.fail(process.communicate())

    def go_on(self, hub, there):
        before = len(hub.asked("storage"))
        hub.chunk_pause = 0
        self.assertIn("of it are there", self.fetched(hub).stderr)
        self.assertEqual(hub.asked("storage")[before].headers["range"].split("-")[0], f"bytes={there}")
        self.assert_whole(hub)

    def test_a_killed_download_goes_on(self):
        hub = self.hub()
        process = self.begin(hub)
        process.kill()
        process.communicate()
        self.go_on(hub, self.assert_a_beginning())

    def test_ctrl_c_leaves_what_can_be_gone_on_with(self):
        hub = self.hub()
        process = self.begin(hub)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 1, said)
        self.assertIn("the same command goes on", said)
        self.go_on(hub, self.assert_a_beginning())

    def test_what_was_left_of_another_content_is_fetched_anew(self):
        hub = self.hub()
        os.makedirs(self.repo_folder("blobs"))
        with open(self.incomplete(), "wb") as file:
            file.write(b"z" * 1000)
        self.fetched(hub)
        self.assert_whole(hub)

    def test_two_at_once_fetch_a_file_once(self):
        hub = self.hub()
        hub.pause = 0.3
        both = [self.start(hub, "get", REPO) for _ in range(2)]
        for process in both:
            _, said = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, said)
        self.assertEqual(len(hub.asked("storage")), 3)  # parts of the one file
        self.assert_whole(hub)

    def test_a_full_disk_is_said_and_what_came_stays(self):
        hub = self.hub()

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (PART + 5000, PART + 5000))

        self.refused("cannot be written", hub, "get", REPO, preexec_fn=limit)
        self.assertEqual(self.assert_a_beginning(), PART + 5000)
        self.go_on(hub, PART + 5000)

    def test_room_is_looked_for_first(self):
        hub = self.hub()
        hub.tree = json.dumps([{"type": "file", "path": "m-Q4_0.gguf", "size": 1 << 49, "oid": "0" * 40,
                                "lfs": {"oid": "a" * 64, "size": 1 << 49}}])
        said = self.refused("There is no room", hub, "get", REPO)
        self.assertIn("562949.95 GB", said)
        self.assertEqual(hub.asked("storage"), [])


class Misbehaviour(Hub):
    def test_the_token_goes_to_the_hub_alone(self):
        hub = self.hub()
        hub.needs_token = TOKEN
        self.fetched(hub)
        self.assertTrue(all(r.headers["authorization"] == "Bearer " + TOKEN for r in hub.asked("hub")))
        self.assertTrue(hub.asked("storage"))
        for request in hub.asked("storage"):
            self.assertNotIn("authorization", request.headers)
            self.assertNotIn(TOKEN, str(request.headers) + request.path)

    def test_a_token_is_not_sent_unencrypted_to_another_machine_and_proxies_hold(self):
        hub = self.hub()
        self.fetched(hub, more={"HF_ENDPOINT": "http://hub.invalid", "http_proxy": hub.url(), "no_proxy": "localhost"})
        self.assertTrue(hub.asked("hub"))
        self.assertFalse([r for r in hub.requests if "authorization" in r.headers])

    def test_429_is_waited_out_as_long_as_it_asks(self):
        hub = self.hub()
        hub.api_failures = [(429, b"", {"Retry-After": "1"})]
        hub.file_failures = [(429, b"", {"Retry-After": "1"})]
        began = time.monotonic()
        self.fetched(hub)
        self.assertGreater(time.monotonic() - began, 1.9)
        hub.commit = "2" * 40
        hub.api_failures = [(429, b"", {"Retry-After": "86400"})]
        self.refused("asks to wait for 24 h 0 min", hub, "get", REPO)

    def test_503_is_tried_again_and_given_up(self):
        hub = self.hub()
        hub.api_failures, hub.file_failures = [(503,)], [(503,)]
        self.fetched(hub)
        hub.files = {"other-Q4_0.gguf": MODEL[1:]}
        hub.file_failures = [(503,)] * 10
        self.refused("status 503", hub, "get", REPO, "--tries", "2")
        hub.api_failures = [(500,)] * 10
        self.refused("status 500", hub, "get", REPO, "--tries", "2")

    def test_cut_bodies_are_gone_on_with(self):
        hub = self.hub()
        hub.cuts = [1000, 50000, 0]
        self.fetched(hub)
        self.assert_whole(hub)
        asked = {r.headers["range"].split("=")[1].split("-")[0] for r in hub.asked("storage")}
        self.assertIn("1000", asked, "what came before the cut is not fetched again")

    def test_a_server_without_ranges_sends_the_whole_file(self):
        hub = self.hub()
        hub.ranges = False
        self.fetched(hub)
        self.assert_whole(hub)

    def test_an_expired_address_is_asked_for_anew(self):
        hub = self.hub()
        hub.file_failures = [(403, b"expired")]
        self.fetched(hub)
        self.assert_whole(hub)

    def test_a_file_that_changes_on_the_way_is_fetched_anew(self):
        hub = self.hub()
        hub.etags = itertools.chain(["a"], itertools.repeat("b"))
        self.fetched(hub)
        self.assert_whole(hub)
        self.assertTrue(any(r.headers.get("if-range") == '"a"' for r in hub.asked("storage")))

    def test_another_content_than_the_listed_one_is_refused(self):
        hub = self.hub()
        hub.linked_etag = "a" * 64
        self.refused("was changed on the hub", hub, "get", REPO)
        hub.linked_etag, hub.damage = None, True
        self.refused("SHA-256 is not the one", hub, "get", REPO)
        self.assertFalse(os.path.exists(self.snapshot(hub, "Model-Q4_K_M.gguf")))
        hub.damage, hub.length_error = False, 5
        self.refused(f"has {len(MODEL) + 5} bytes", hub, "get", REPO)

    def test_a_slow_drip_is_given_up(self):
        hub = self.hub()
        hub.drip = 0.05
        began = time.monotonic()
        self.refused("too slow", hub, "get", REPO, "--tries", "2", "--patience", "1")
        self.assertLess(time.monotonic() - began, 30)

    def test_gated_private_and_unknown_repositories(self):
        hub = self.hub()
        hub.gate = (403, "GatedRepo")
        self.assertIn(hub.url() + "/" + REPO, self.refused("is gated", hub, "get", REPO))
        hub.gate = (401, "RepoNotFound")
        self.refused("set HF_TOKEN", hub, "get", REPO, more={"HF_TOKEN": None})
        hub.gate = (404, "RepoNotFound")
        self.refused("no public repository 'some/Model-GGUF'", hub, "get", REPO)
        hub.gate = (404, "RevisionNotFound")
        self.refused("has no branch, tag or commit", hub, "get", REPO, "--revision", "old")

    def test_answers_that_are_none(self):
        hub = self.hub()
        good = hub.entry("Model-Q4_K_M.gguf")
        for words, tree in (("is not valid JSON", "[{"), ("It is no list", "{}"), ("lacks the field 'path'", '[{"type": "file"}]'),
                            ("is no SHA-256", json.dumps([{**good, "lfs": {"oid": "../" * 21 + "a", "size": 1}}])),
                            ("is no digest", json.dumps([{"type": "file", "path": "a", "size": 1, "oid": "x/../y"}])),
                            ('"size"', json.dumps([{**good, "lfs": {"oid": "a" * 64, "size": -1}}]))):
            with self.subTest(words):
                hub.tree = tree
                self.refused(words, hub, "get", REPO)
        for path in ("../../x", "/etc/x", "a/../../x", "a//b", "a\\b", "C:x", "a\nb", "./a", ""):
            with self.subTest(path):
                hub.tree = json.dumps([good, {"type": "file", "path": path, "size": 1, "oid": "0" * 40}])
                self.refused("Nothing is fetched of it", hub, "get", REPO)
        self.assertEqual(hub.asked("storage"), [])

    def test_redirects_without_end_are_refused(self):
        hub = self.hub()
        hub.leads_to = f"/{REPO}/resolve/{hub.commit}/Model-Q4_K_M.gguf"
        self.refused("leads on and on", hub, "get", REPO)
        hub.leads_to = "ftp://127.0.0.1/x"
        self.refused("allowed are http and https", hub, "get", REPO)

    def test_wrong_settings_are_named(self):
        hub = self.hub()
        self.refused("HF_ENDPOINT", hub, "get", REPO, more={"HF_ENDPOINT": "ftp://x"})
        self.refused("HF_TOKEN has a character", hub, "get", REPO, more={"HF_TOKEN": "a\nb"})

    @unittest.skipUnless(shutil.which("openssl"), "makes a certificate with openssl")
    def test_an_untrusted_certificate_is_refused(self):
        certificate = os.path.join(self.home, "certificate.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", certificate, "-out",
                        certificate + ".crt", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
                        "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        with open(certificate + ".crt", encoding="utf-8") as made, open(certificate, "a", encoding="utf-8") as file:
            file.write(made.read())
        hub = self.hub({"m-Q4_0.gguf": SMALL}, small=["m-Q4_0.gguf"], certificate=certificate)
        endpoint = {"HF_ENDPOINT": hub.url(scheme="https")}
        self.refused("is not to be trusted", hub, "get", REPO, more=endpoint)
        self.assertEqual(hub.requests, [])
        trusted = {**endpoint, "SSL_CERT_FILE": certificate + ".crt"}
        self.fetched(hub, more=trusted)
        with open(self.snapshot(hub, "m-Q4_0.gguf"), "rb") as file:
            self.assertEqual(file.read(), SMALL)
        hub.files, hub.commit = {"m-Q8_0.gguf": MODEL}, "2" * 40
        self.refused("from https to http", hub, "get", REPO, more=trusted)
        self.assertEqual(hub.asked("storage"), [])


class Offline(Hub):
    def test_nothing_is_asked_and_what_is_there_is_found(self):
        hub = self.hub()
        offline = {"HF_HUB_OFFLINE": "1"}
        said = self.refused("canopy-cli get " + REPO, hub, "get", REPO, more=offline)
        self.assertIn("no model", said)
        self.refused("forbids to ask the hub", hub, "get", "--search", "x", more=offline)
        self.assertEqual(hub.requests, [])
        self.fetched(hub)
        before = len(hub.requests)
        self.assertIn("It is there", self.fetched(hub, more=offline).stdout)
        there = json.loads(self.fetched(hub, REPO, "--json", more=offline).stdout)
        self.assertEqual((there["model"], there["path"]), (REPO, self.snapshot(hub, "Model-Q4_K_M.gguf")))
        self.refused("forbids to ask the hub", hub, "get", REPO, "--list", more=offline)
        self.assertEqual(len(hub.requests), before)

    def test_commands_name_what_fetches_a_model_and_never_fetch(self):
        hub = self.hub()
        for command in (("generate", "-p", "a", "--model"), ("inspect",)):
            self.refused(f"'canopy-cli get {REPO}:Q4_K_M' fetches it", hub, *command, REPO + ":Q4_K_M")
        self.assertEqual(hub.requests, [])


class Lists(Hub):
    def test_search(self):
        hub = self.hub()
        hub.search = [{"id": "a/Tiny-GGUF", "downloads": 12, "likes": 3, "tags": ["gguf", "license:mit"], "gated": False},
                      {"id": "b/Tiny", "downloads": 5, "tags": [], "gated": "manual"}, {"id": "old"}]
        found = json.loads(self.run_cli(hub, "get", "--search", "tiny model", "--json").stdout)
        self.assertEqual([each["repo"] for each in found], ["a/Tiny-GGUF", "b/Tiny"])
        self.assertEqual(found[0], {"repo": "a/Tiny-GGUF", "downloads": 12, "likes": 3, "licence": "mit", "gguf": True,
                                    "gated": False})
        self.assertTrue(found[1]["gated"])
        self.assertIn("search=tiny%20model", hub.asked("hub")[0].path)
        self.assertIn("a/Tiny-GGUF", self.run_cli(hub, "get", "--search", "tiny").stdout)
        hub.search = []
        self.refused("finds nothing", hub, "get", "--search", "x")

    def test_pairs_say_what_was_not_tried(self):
        listed = json.loads(self.run_cli(None, "get", "--pairs", "--json").stdout)
        with open(os.path.join(ROOT, "assets", "pairs.json"), encoding="utf-8") as file:
            kept = json.load(file)["pairs"]
        self.assertEqual(len(listed), len(kept))
        self.assertEqual([each["tried"] for each in listed], ["tried" in each for each in kept])
        self.assertIn("not tried", self.run_cli(None, "get", "--pairs").stdout)

    def test_a_known_drafter_is_named(self):
        hub = FakeHub(repo="Qwen/Qwen3-8B-GGUF", files={"m-Q4_K_M.gguf": SMALL})
        self.addCleanup(hub.close)
        self.assertIn("canopy-cli get z-lab/Qwen3-8B-DFlash-b16", self.fetched(hub, "Qwen/Qwen3-8B-GGUF").stderr)

    def test_models_of_other_programs_by_their_names(self):
        with open(os.path.join(GOLDEN, "tiny-qwen3-f16.gguf"), "rb") as file:
            model = file.read()
        digest = hashlib.sha256(model).hexdigest()

        def write(path, content):
            path = os.path.join(self.home, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)

        layer = {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:" + digest, "size": len(model)}
        manifests = ".ollama/models/manifests/registry.ollama.ai/"
        write(".ollama/models/blobs/sha256-" + digest, model)
        write(manifests + "library/tiny/1b", json.dumps({"layers": [layer]}).encode())
        write(manifests + "library/broken/1b", b"{")
        listed = json.loads(self.run_cli(None, "models", "--json").stdout)
        ollama = {each["name"]: each for each in listed if each["source"] == "Ollama"}
        self.assertEqual(set(ollama), {"tiny:1b", "broken:1b"})
        self.assertNotIn("problem", ollama["tiny:1b"])
        self.assertIn("left out", ollama["broken:1b"]["problem"])
        text = self.run_cli(None, "models")
        self.assertRegex(text.stdout, r"tiny:1b +\S+ \S+ +Ollama")
        self.assertNotIn(self.home, text.stdout)
        self.assertIn("broken:1b", text.stderr)
        shown = self.run_cli(None, "inspect", "tiny:1b", "--json")
        self.assertEqual(json.loads(shown.stdout)["config"]["architecture"], "qwen3", shown.stderr)
        self.refused("left out", None, "inspect", "broken:1b")


if __name__ == "__main__":
    unittest.main()
