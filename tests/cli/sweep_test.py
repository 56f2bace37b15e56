"""canopy-cli sweep: its file, its journal, going on after a stop and a kill, files of others, a server as a column, and
what is refused. No figure here depends on speed."""

import csv
import http.server
import io
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from cli import CLI, GOLDEN, environment, run

ICD = os.environ.get("CANOPY_TEST_ICD", "")
MODEL = os.path.join(GOLDEN, "tiny-qwen3")
PAIR = ("sweep", "--model", MODEL, "--drafter", os.path.join(GOLDEN, "tiny-qwen3-dflash-b8"), "--context", "640",
        "--kv", "f32")
PROMPTS = [("gsm", "def add(a, b):"), ("code", "import os"), ("gsm", "never measured")]
WAYS = [("ar", None), ("chain", None), ("tree", 3), ("adaptive", None)]


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.prompts = self.file("prompts.jsonl", "\n".join(
            json.dumps({"id": str(i), "category": category, "prompt": text})
            for i, (category, text) in enumerate(PROMPTS)))
        self.out = self.path("sweep.json")

    def path(self, name):
        return os.path.join(self.folder, name)

    def file(self, name, content):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(content)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8", newline="") as file:
            return file.read()

    def loaded(self, name="sweep.json"):
        return json.loads(self.read(name))

    def plan(self, *more, repeats=2, tokens=8):
        return (*PAIR, "--budgets", "3", "--prompts", self.prompts, "--max-tokens", str(tokens), "--repeats",
                str(repeats), *more)


class Server(http.server.BaseHTTPRequestHandler):
    """A server that writes three tokens in two pieces."""

    def do_POST(self):
        self.server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in ({"choices": [{"delta": {"content": "one"}}]}, {"choices": [{"delta": {"content": " two"}}]},
                      {"choices": [{"delta": {}, "finish_reason": "length"}]},
                      {"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 3}}):
            time.sleep(0.01)
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_):
        pass


@unittest.skipUnless(os.path.exists(ICD), "lavapipe is not installed")
class OnDevice(Folder):
    def sweep(self, *arguments, code=0):
        result = run(*arguments, icd=ICD)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def test_json_is_the_file_and_csv_says_the_same(self):
        result = self.sweep(*self.plan("--limit", "1", "--out", self.out, "--json", "--csv", self.path("runs.csv"),
                                       "--markdown", self.path("t.md")))
        sweep = json.loads(result.stdout)
        self.assertEqual(sweep, self.loaded())
        self.assertFalse(os.path.exists(self.out + ".journal"))
        self.assertEqual((sweep["format"], sweep["version"], sweep["kind"], sweep["complete"]),
                         ("canopy-sweep", 1, "sweep", True))
        self.assertEqual([(c["mode"], c["budget"]) for c in sweep["contestants"]], WAYS)
        self.assertEqual([p["id"] for p in sweep["prompts"]], ["0", "1"])
        runs = sweep["runs"]
        self.assertEqual(len(runs), 4 * 2 * 2)
        self.assertEqual(len({(r["contestant"], r["prompt"], r["repeat"]) for r in runs}), len(runs))
        for prompt in (0, 1):
            self.assertEqual(len({r["text_hash"] for r in runs if r["prompt"] == prompt}), 1, "the texts are the same")
        for r in runs:
            self.assertIsNone(r["differs_at"])
            self.assertEqual(r["reused_tokens"], r["prompt_tokens"] - 1, "the prompt was read once")
            self.assertGreater(r["decode_ms"], 0)
        cells = {(c["category"], c["name"]): c for c in sweep["summary"]}
        self.assertEqual({c for c, _ in cells}, {"gsm", "code", "all"})
        for (_, name), cell in cells.items():
            self.assertAlmostEqual(cell["tau"], cell["tokens"] / cell["rounds"])
            self.assertEqual(cell["times_ar"]["pairs"], 2)
            self.assertIsNotNone(cell["times_ar"]["error"])
            if name == "ar":
                self.assertEqual((cell["times_ar"]["value"], cell["tau"]), (1, 1))
        for field in ("device", "driver", "model", "drafter", "kernels", "kv"):
            self.assertTrue(sweep["subjects"][0][field], field)
        self.assertTrue(sweep["canopy"]["commit"])
        text = self.read("sweep.json")
        self.assertNotIn(self.folder, text)
        self.assertNotIn(GOLDEN, text)
        self.assertNotIn("def add", text)
        rows = list(csv.DictReader(io.StringIO(self.read("runs.csv"))))
        self.assertEqual([(int(r["contestant"]), float(r["decode_ms"]), int(r["tokens"])) for r in rows],
                         [(r["contestant"], r["decode_ms"], r["tokens"]) for r in runs])
        table = [line for line in self.read("t.md").splitlines() if line.startswith("|")]
        self.assertEqual(len(table), len(sweep["summary"]) + 2)

    def test_ctrl_c_keeps_whole_replies_and_resume_goes_on(self):
        arguments = self.plan("--modes", "ar,chain", "--out", self.out, repeats=300, tokens=40)
        process = subprocess.Popen([CLI, *arguments], env=environment(ICD), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        while process.poll() is None:
            if os.path.exists(self.out + ".journal") and len(self.read("sweep.json.journal").splitlines()) > 4:
                break
            time.sleep(0.02)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
        self.assertLess(time.monotonic() - sent, 5)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("goes on", errors)
        self.assertIn("chain", output)
        stopped = self.loaded()
        self.assertFalse(stopped["complete"])
        self.assertGreaterEqual(len(stopped["runs"]), 4)

        refused = run(*arguments, icd=ICD)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("that is not finished", refused.stderr)
        other = run(*self.plan("--modes", "ar,chain", "--out", self.out, "--resume", repeats=300, tokens=41), icd=ICD)
        self.assertEqual(other.returncode, 1)
        self.assertIn("has another measurement", other.stderr)

        process = subprocess.Popen([CLI, *arguments, "--resume"], env=environment(ICD), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        wanted = len(stopped["runs"]) + 3
        while process.poll() is None:
            if os.path.exists(self.out + ".journal") and len(self.read("sweep.json.journal").splitlines()) > wanted:
                break
            time.sleep(0.02)
        process.kill()  # as a crash does
        process.communicate(timeout=120)
        journal = self.read("sweep.json.journal")
        lines = journal[:journal.rfind("\n")].splitlines()
        self.assertGreaterEqual(len(lines), wanted)
        self.assertEqual([json.loads(line)["decode_ms"] for line in lines[1:1 + len(stopped["runs"])]],
                         [r["decode_ms"] for r in stopped["runs"]], "what was measured before stays")
        shown = self.sweep("sweep", "--show", self.out + ".journal", "--json")
        self.assertGreaterEqual(len(json.loads(shown.stdout)["runs"]), wanted - 1)

    def stop_early(self, arguments):
        """Begins a sweep, and interrupts it after some replies."""
        process = subprocess.Popen([CLI, *arguments], env=environment(ICD), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        while process.poll() is None:
            if os.path.exists(self.out + ".journal") and len(self.read("sweep.json.journal").splitlines()) > 3:
                break
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=120)[1]
        self.assertEqual(process.returncode, 130, errors)
        return self.loaded()

    def test_resume_takes_the_plan_of_the_file(self):
        stopped = self.stop_early(self.plan("--modes", "ar,tree", "--limit", "0", "--out", self.out, "--seed", "7",
                                            "--temperature", "0.7", repeats=12, tokens=30))
        kept = self.out + ".prompts.jsonl"
        self.assertEqual(sorted(json.loads(line)["prompt"] for line in self.read(kept).splitlines()),
                         sorted(text for _, text in PROMPTS))
        os.remove(self.prompts)
        whole = json.loads(self.sweep(*PAIR, "--resume", "--out", self.out, "--json").stdout)
        self.assertTrue(whole["complete"])
        for field in ("contestants", "prompts", "settings", "baseline"):
            self.assertEqual(whole[field], stopped[field])
        self.assertEqual(len(whole["runs"]), 12 * 2 * 3)
        self.assertEqual(whole["runs"][:len(stopped["runs"])], stopped["runs"])
        self.assertFalse(os.path.exists(kept), "a file of texts stays no longer than it is needed")

    def test_earlier_replies_are_read_where_they_are_named_and_said_in_the_file(self):
        store = self.path("store")
        for _, text in PROMPTS[:2]:
            result = run("generate", *PAIR[1:], "--mode", "ar", "--no-self-test", "-n", "24", "-p", text,
                         "--suffix-store", store, icd=ICD)
            self.assertEqual(result.returncode, 0, result.stderr)
        files = {name: open(os.path.join(store, name), "rb").read() for name in os.listdir(store)}
        plan = self.plan("--modes", "ar,tree", "--limit", "1", "--out", self.out)
        result = self.sweep(*plan, "--sources-from", store, "--json", "--markdown", self.path("t.md"))
        sweep = json.loads(result.stdout)
        self.assertEqual(sweep, self.loaded())
        self.assertEqual([c["sources"] for c in sweep["contestants"]], ["dflash,suffix", "dflash,suffix,earlier"])
        named = sweep["subjects"][0]["earlier_replies"]
        self.assertEqual(named["replies"], 2)
        self.assertGreater(named["tokens"], 2)
        self.assertTrue(all(r["differs_at"] is None for r in sweep["runs"]))
        self.assertIn("drafts from 2 earlier replies, %d tokens" % named["tokens"], self.read("t.md"))
        self.assertIn("drafts from 2 earlier replies", self.sweep("sweep", "--show", self.out).stdout)
        self.assertEqual(files, {name: open(os.path.join(store, name), "rb").read() for name in os.listdir(store)})
        without = run(*PAIR, "--repeats", "3", "--prompts", self.prompts, "--resume", "--out", self.out, icd=ICD)
        self.assertEqual(without.returncode, 1)
        self.assertIn("its number of earlier replies is 2, and here it would be 0", without.stderr)
        self.assertIn("--sources-from does", without.stderr)

    def test_resume_says_what_differs_by_name(self):
        self.stop_early(self.plan("--modes", "ar", "--out", self.out, repeats=300, tokens=40))
        other = run(*PAIR[:3], *PAIR[5:], "--drafter", "none", "--resume", "--out", self.out, icd=ICD)
        self.assertEqual(other.returncode, 1)
        self.assertIn("its drafter is 'tiny-qwen3-dflash-b8', and here it would be none", other.stderr)
        os.remove(self.out + ".prompts.jsonl")
        lost = run(*PAIR, "--resume", "--out", self.out, icd=ICD)
        self.assertEqual(lost.returncode, 1)
        self.assertRegex(lost.stderr, "whose texts are not here: '.'.*--prompts")

    def test_a_server_is_a_column(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        server.asked = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        url = f"http://127.0.0.1:{server.server_port}/v1"
        sweep = json.loads(self.sweep(*self.plan("--modes", "ar", "--server", url, "--server-model", "its-name",
                                                 "--limit", "1", "--out", self.out, "--json")).stdout)
        self.assertEqual([c["name"].split(",")[0] for c in sweep["contestants"]], ["ar", "server"])
        self.assertEqual(sweep["subjects"][1]["device_type"], "server")
        self.assertEqual(sweep["subjects"][1]["device"], f"127.0.0.1:{server.server_port}")
        theirs = [r for r in sweep["runs"] if r["contestant"] == 1]
        self.assertEqual({(r["tokens"], r["rounds"]) for r in theirs}, {(3, 0)})
        self.assertEqual(len(server.asked), 2 + len(theirs))
        self.assertEqual({a["model"] for a in server.asked}, {"its-name"})
        self.assertIn("def add(a, b):", [a["messages"][-1]["content"] for a in server.asked])

    def test_files_of_others_are_laid_beside_it(self):
        self.sweep(*self.plan("--modes", "ar,chain", "--limit", "1", "--out", self.out))
        theirs = self.loaded()
        theirs["subjects"][0]["device"] = "A Much Slower GPU"
        for r in theirs["runs"]:
            r["decode_ms"] *= 2
        theirs["from a later version"] = {"a": 1}
        other = self.file("theirs.json", json.dumps(theirs))
        shown = self.sweep("sweep", "--show", self.out, "--with", other).stdout
        self.assertIn("Beside A Much Slower GPU", shown)
        self.assertRegex(shown, r"chain .* 2\.000 .* 2 of 2")


class Refusals(Folder):
    def refused(self, code, words, *arguments):
        result = run(*arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertIn(words, result.stderr)

    def test_wrong_usage_is_a_sentence_and_code_2(self):
        prompts = ("--prompts", self.prompts)
        for words, arguments in (
            ("'fast'; allowed: ar, chain, tree and adaptive.", ("--modes", "ar,fast", *prompts)),
            ("'0' is not allowed; give a whole number from 1 to 1024.", ("--modes", "tree", "--budgets", "4,0", *prompts)),
            ("--baseline names 'tree 5'", ("--modes", "tree", "--budgets", "4", "--baseline", "tree 5", *prompts)),
            ("There is no folder ", ("--out", self.path("none/t.json"), *prompts)),
            ("Only one of --json, --csv and --markdown", ("--csv", "-", "--json", "-", *prompts)),
            ("--repeats", ("--repeats", "0", *prompts)),
            ("--sources-from names", ("--sources-from", self.path("none"), *prompts)),
        ):
            with self.subTest(arguments):
                self.refused(2, words, *PAIR, *arguments)

    def test_wrong_values_are_named_before_anything_is_loaded(self):
        self.refused(1, "https, which is not supported", *PAIR, "--server", "https://x/v1", "--prompts", self.prompts)
        self.refused(1, "/no/such/prompts.jsonl", *PAIR, "--prompts", "/no/such/prompts.jsonl")

    def test_wrong_files_are_refused_by_name(self):
        self.refused(1, "/no/such.json", "sweep", "--show", "/no/such.json")
        self.refused(1, "x.json: The field 'format' of the sweep is 'x'", "sweep", "--show",
                     self.file("x.json", "{\"format\": \"x\"}"))
        for name in os.listdir(os.path.join(os.path.dirname(GOLDEN), "..", "assets", "sweeps")):
            if name.endswith(".json"):
                self.refused(1, "lacks the field 'format'", "sweep", "--show",
                             os.path.join(os.path.dirname(GOLDEN), "..", "assets", "sweeps", name), "--with",
                             self.file("y.json", "{}"))


if __name__ == "__main__":
    unittest.main()
