"""canopy-cli bench --modes and --forced: what is compared, counted and refused. No figure here depends on speed."""

import csv
import io
import json
import os
import signal
import subprocess
import tempfile
import unittest

from cli import CLI, GOLDEN, environment, run

ICD = os.environ.get("CANOPY_TEST_ICD", "")
MODEL = os.path.join(GOLDEN, "tiny-qwen3")
PAIR = ("bench", "--model", MODEL, "--drafter", os.path.join(GOLDEN, "tiny-qwen3-dflash-b8"), "--context", "640",
        "--kv", "f32")
WAYS = [("ar", None), ("chain", None), ("tree", 3), ("tree", 8), ("adaptive", None)]
PROMPTS = [("gsm", "def add(a, b):"), ("code", "import os"), ("gsm", "for i in range(3):"), ("code", "class A:"),
           ("gsm", "never measured")]
MAX_DEPTH = 7  # of the drafter: its blocks have 8 rows


def golden_replies():
    with open(os.path.join(GOLDEN, "generate.json"), encoding="utf-8") as file:
        return [p for p in json.load(file)["prompts"] if 20 < len(p["prompt_ids"]) < 60][:3]


def forced_entries():
    """The rounds of the published implementations, in the form that --forced reads."""
    return [{"category": "first" if i == 0 else "others", "prompt_ids": p["prompt_ids"], "output_ids": p["output_ids"],
             "chain": {"acceptance_lengths": p["dflash"]["acceptance_lengths"]},
             "tree4": {"acceptance_lengths": p["ddtree"]["4"]["acceptance_lengths"]},
             "tree16": {"acceptance_lengths": p["ddtree"]["16"]["acceptance_lengths"]}}
            for i, p in enumerate(golden_replies())]


def countable(entry, way):
    """Rounds and tokens of the rounds that start where a whole block and its bonus still fit into the reply."""
    rounds = tokens = 0
    start = 1
    for length in entry[way]["acceptance_lengths"]:
        if start >= len(entry["output_ids"]) - MAX_DEPTH:
            break
        rounds, tokens, start = rounds + 1, tokens + length, start + length
    return rounds, tokens


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.prompts = self.file("prompts.jsonl", "\n".join(
            json.dumps({"id": str(i), "category": category, "prompt": text})
            for i, (category, text) in enumerate(PROMPTS)))

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def file(self, name, content):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(content)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8", newline="") as file:
            return file.read()


@unittest.skipUnless(os.path.exists(ICD), "lavapipe is not installed")
class OnDevice(Folder):
    def bench(self, *arguments):
        result = run(*PAIR, *arguments, icd=ICD)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def check_sums(self, modes, category, parts):
        for mode, budget in WAYS:
            of_way = {m["category"]: m for m in modes if (m["mode"], m["budget"]) == (mode, budget)}
            for field in ("replies", "rounds", "tokens"):
                self.assertEqual(of_way[category][field], sum(of_way[part][field] for part in parts), field)

    def test_modes_over_prompts(self):
        output = self.bench("--modes", "chain,tree,adaptive", "--budgets", "3,8", "--prompts", self.folder.name,
                            "--limit", "2", "--max-tokens", "12", "--repeats", "2", "--json", "-", "--csv",
                            self.path("t.csv"), "--markdown", self.path("t.md"))
        bench = json.loads(output)
        for field in ("device", "driver", "model", "drafter", "version", "commit"):
            self.assertTrue(bench[field], field)
        self.assertEqual((bench["model"], bench["drafter"]), ("tiny-qwen3", "tiny-qwen3-dflash-b8"))
        self.assertEqual((bench["prompts"], bench["repeats"], bench["max_tokens"]), (4, 2, 12))
        modes = bench["modes"]
        self.assertEqual([(m["category"], m["mode"], m["budget"]) for m in modes],
                         [(category, *way) for category in ("gsm", "code", "all") for way in WAYS])
        self.check_sums(modes, "all", ("gsm", "code"))
        for mode in modes:
            self.assertTrue(mode["identical_to_ar"], mode)
            self.assertAlmostEqual(mode["tau"], mode["tokens"] / mode["rounds"])
            self.assertEqual(mode["replies"], 8 if mode["category"] == "all" else 4)
            self.assertEqual(mode["tokens"], next(m for m in modes if m["category"] == mode["category"])["tokens"])
            self.assertGreater(mode["tokens_per_second"], 0)
            self.assertGreaterEqual(mode["sd"], 0)
            self.assertTrue(0 < mode["host_share"] < 1, mode)
            if mode["mode"] == "ar":
                self.assertEqual((mode["tau"], mode["times_ar"], mode["expectation"]["pairs"]), (1, 1, 0))
            elif mode["mode"] != "adaptive":
                self.assertTrue(0 < mode["expectation"]["pairs"] <= mode["rounds"], mode)
                self.assertTrue(1 < mode["expectation"]["mean_expected"] < 9, mode)
        trees = {m["budget"]: m for m in modes if m["mode"] == "tree" and m["category"] == "all"}
        self.assertGreater(trees[8]["expectation"]["mean_expected"], trees[3]["expectation"]["mean_expected"])
        rows = list(csv.DictReader(io.StringIO(self.read("t.csv"))))
        self.assertEqual([(r["category"], r["mode"], r["budget"]) for r in rows],
                         [(m["category"], m["mode"], str(m["budget"] or "-")) for m in modes])
        self.assertEqual([float(r["tau"]) for r in rows], [round(m["tau"], 2) for m in modes])
        table = [line for line in self.read("t.md").splitlines() if line.startswith("|")]
        self.assertEqual(len(table), len(modes) + 2)
        self.assertEqual({line.count("|") for line in table}, {table[0].count("|")})

    def test_emulated_memory_is_labelled_and_set_beside_its_aim(self):
        result = run(*PAIR, "--device", "cpu", "--threads", "1", "--emulate-memory", "7", "--modes", "adaptive", "--prompts",
                     self.prompts, "--limit", "1", "--max-tokens", "6", "--repeats", "1", "--json", icd=ICD)
        self.assertEqual(result.returncode, 0, result.stderr)
        bench = json.loads(result.stdout)
        emulated = bench["emulated_memory"]
        adaptive = [m for m in bench["modes"] if m["mode"] == "adaptive" and m["category"] == "all"]
        self.assertEqual(emulated["gb_s_a_thread"], 7)
        self.assertEqual(emulated["adaptive_times_ar"], adaptive[0]["times_ar"])
        self.assertEqual(emulated["aim"], 1.1 if bench["kernels"] == "avx512" else None)
        self.assertIn("emulated memory of 7 GB/s a thread", bench["driver"])
        words = f"There adaptive is {adaptive[0]['times_ar']:.2f} times as fast as plain decoding"
        self.assertIn(words, result.stderr)
        self.assertIn("the aim is 1.1." if emulated["aim"] else "(The aim of 1.1 is for AVX-512 at 7 GB/s.)", result.stderr)

    def test_long_prompts(self):
        output = self.bench("--modes", "chain", "--prompts", self.prompts, "--prompt-tokens", "64,520", "--limit", "1",
                            "--max-tokens", "6", "--repeats", "1", "--json")
        bench = json.loads(output)
        modes = bench["modes"]
        self.assertEqual([(m["category"], m["mode"]) for m in modes],
                         [(c, m) for c in ("64 tokens", "520 tokens", "all") for m in ("ar", "chain")])
        self.assertTrue(all(m["identical_to_ar"] for m in modes))
        # By context: every round in one of them, and tau of the parts that of the whole.
        contexts = bench["contexts"]
        self.assertEqual([(c["context_from"], c["context_below"], c["mode"]) for c in contexts],
                         [(0, 512, "ar"), (0, 512, "chain"), (512, 1024, "ar"), (512, 1024, "chain")])
        for mode in (m for m in modes if m["category"] == "all"):
            own = [c for c in contexts if c["mode"] == mode["mode"]]
            self.assertEqual(sum(c["rounds"] for c in own), mode["rounds"])
            self.assertAlmostEqual(sum(c["tau"] * c["rounds"] for c in own), mode["tokens"])
            self.assertTrue(all(0 < c["verify_ms"] < c["round_ms"] for c in own), own)
        refused = run(*PAIR, "--modes", "chain", "--prompts", self.prompts, "--prompt-tokens", "639", icd=ICD)
        self.assertEqual(refused.returncode, 1)
        self.assertRegex(refused.stderr, r"need a context of \d+ positions; this model has 640")

    def test_forced_replies_are_drafted_as_the_published_implementations_do(self):
        entries = forced_entries()
        forced = self.file("forced.json", json.dumps(entries))
        results = json.loads(self.bench("--forced", forced, "--budgets", "4,16", "--json"))["forced"]
        self.assertEqual([(r["category"], r["mode"], r["budget"]) for r in results],
                         [(c, m, b) for c in ("first", "others", "all")
                          for m, b in (("chain", None), ("tree", 4), ("tree", 16))])
        for result in results:
            way = result["mode"] + str(result["budget"] or "")
            chosen = [e for e in entries if result["category"] in ("all", e["category"])]
            rounds, tokens = (sum(part) for part in zip(*(countable(e, way) for e in chosen)))
            self.assertEqual((result["reference_rounds"], result["reference_tokens"]), (rounds, tokens), result)
            self.assertEqual((result["rounds"], result["tokens"]), (rounds, tokens), result)
            self.assertEqual((result["same_starts"], result["same_lengths"]), (rounds, rounds), result)
            self.assertEqual(result["difference"], 0)

    def test_other_lengths_than_ours_are_seen(self):
        entry = forced_entries()[0]
        entry["chain"]["acceptance_lengths"] = [1] * len(entry["output_ids"])
        forced = self.file("forced.json", json.dumps([entry]))
        result = json.loads(self.bench("--forced", forced, "--modes", "chain", "--json"))["forced"][-1]
        self.assertEqual(result["reference_tau"], 1)
        self.assertGreater(result["difference"], 0.2)
        self.assertLess(result["same_lengths"], result["same_starts"])

    def test_ctrl_c_ends_with_what_was_measured(self):
        process = subprocess.Popen([CLI, *PAIR, "--modes", "ar", "--prompts", self.prompts, "--max-tokens", "20",
                                    "--repeats", "1000", "--json"], env=environment(ICD), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        for line in process.stderr:  # the first report of progress: by then there is something to show
            if line.startswith("replies: "):
                break
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("Stopped: ", errors)
        self.assertTrue(json.loads(output)["modes"])

    def test_sets_of_sources_are_compared_without_a_drafter_too(self):
        alone = ("bench", "--model", MODEL, "--drafter", "none", "--context", "128", "--modes", "tree", "--budgets", "4", "-n", "8",
                 "--repeats", "1", "--prompts", self.prompts, "--json", "-")
        result = run(*alone, "--sources", "suffix", "--sources", "suffix,recycling", "--sources", "none", icd=ICD)
        self.assertEqual(result.returncode, 0, result.stderr)
        modes = [mode for mode in json.loads(result.stdout)["modes"] if mode["category"] == "all"]
        self.assertEqual([mode["sources"] for mode in modes],
                         ["dflash,suffix", "suffix", "suffix,recycling", "none"], "ar asks none")
        self.assertTrue(all(mode["identical_to_ar"] for mode in modes))
        self.assertEqual(modes[3]["tau"], 1)
        result = run(*alone, "--sources", "dflash", icd=ICD)
        self.assertEqual(result.returncode, 1)
        self.assertIn("name one with --drafter", result.stderr)
        result = run(*alone, "--sources", "oracle", icd=ICD)
        self.assertEqual(result.returncode, 2)
        self.assertIn("no source of drafts 'oracle'; allowed: dflash, suffix, recycling, earlier, draft, mtp, eagle3 and assistant", result.stderr)


    def test_given_rates_decide_what_is_accepted_and_everything_says_so(self):
        plan = ("--modes", "chain,tree,adaptive", "--budgets", "8", "--prompts", self.prompts, "--limit", "1",
                "--max-tokens", "24", "--repeats", "1")
        bench = json.loads(self.bench(*plan, "--accept", "1,0.5", "--json", "-", "--csv", self.path("t.csv"),
                                      "--markdown", self.path("t.md")))
        self.assertEqual(bench["accept_rates"], [1, 0.5])
        self.assertIn("the text is not the model's", bench["note"])
        modes = {mode["mode"]: mode for mode in bench["modes"] if mode["category"] == "all"}
        for mode in modes.values():
            self.assertIsNone(mode["identical_to_ar"])
            self.assertEqual(mode["accepted_by"], "given rates")
        self.assertTrue(all(context["accepted_by"] == "given rates" for context in bench["contexts"]))
        self.assertEqual(modes["ar"]["tau"], 1)
        self.assertGreater(modes["chain"]["tau"], 1.2)
        row = next(csv.DictReader(io.StringIO(self.read("t.csv"))))
        self.assertIn("tau (given rates)", row)
        self.assertIn("tok/s (given rates)", row)
        self.assertEqual(row["same as ar"], "-")
        self.assertIn("acceptance by given rates (1,0.5): the text is not the model's", self.read("t.md"))
        again = json.loads(self.bench(*plan, "--accept", "1,0.5", "--json", "-"))
        same = {mode["mode"]: mode for mode in again["modes"] if mode["category"] == "all"}
        self.assertEqual(same["chain"]["tau"], modes["chain"]["tau"])
        never = json.loads(self.bench(*plan, "--accept", "0", "--json", "-"))
        self.assertEqual({mode["tau"] for mode in never["modes"]}, {1})
        usual = json.loads(self.bench("--modes", "chain", "--prompts", self.prompts, "--limit", "1", "-n", "4",
                                      "--repeats", "1", "--json", "-"))
        self.assertNotIn("accept_rates", usual)
        self.assertEqual({mode["accepted_by"] for mode in usual["modes"]}, {"model"})

    def test_generate_by_given_rates_says_so_and_keeps_nothing(self):
        reply = ("generate", *PAIR[1:], "--mode", "tree", "--no-self-test", "-n", "12", "-p", "def add(a, b):",
                 "--accept", "1")
        result = run(*reply, "--suffix-store", self.path("store"), icd=ICD)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stdout.startswith("[acceptance by given rates (1): the text is not the model's]\n"))
        self.assertFalse(os.path.exists(self.path("store")), "no later draft comes from it")
        result = run(*reply, "--json", icd=ICD)
        self.assertEqual(json.loads(result.stdout)["accept_rates"], [1])
        self.assertIn("the text is not the model's", json.loads(result.stdout)["note"])

    def test_earlier_replies_are_read_where_they_are_named_and_never_written(self):
        store = self.path("store")
        for _, text in PROMPTS[:2]:
            result = run("generate", *PAIR[1:], "--mode", "ar", "--no-self-test", "-n", "24", "-p", text,
                         "--suffix-store", store, icd=ICD)
            self.assertEqual(result.returncode, 0, result.stderr)
        files = {name: open(os.path.join(store, name), "rb").read() for name in os.listdir(store)}
        self.assertEqual(len(files), 1)
        plan = ("--modes", "tree", "--budgets", "8", "--prompts", self.prompts, "--limit", "1", "-n", "16",
                "--repeats", "2")
        bench = json.loads(self.bench(*plan, "--sources-from", store, "--json", "-", "--markdown", self.path("t.md")))
        named = bench["sources_from"]
        self.assertEqual((named["folder"], named["file"], named["replies"]), (store, *files, 2))
        self.assertEqual([mode["sources"] for mode in bench["modes"] if mode["category"] == "all"],
                         ["dflash,suffix", "dflash,suffix,earlier"], "ar asks none")
        self.assertTrue(all(mode["identical_to_ar"] for mode in bench["modes"]))
        self.assertIn("drafts from 2 earlier replies", self.read("t.md"))
        sets = ("--sources", "suffix", "--sources", "earlier")
        bench = json.loads(self.bench(*plan, *sets, "--sources-from", store, "--json", "-"))
        self.assertEqual([mode["sources"] for mode in bench["modes"] if mode["category"] == "all"],
                         ["dflash,suffix", "suffix", "earlier"], "where a set names them, the others stay")
        earlier = [mode for mode in bench["modes"] if mode["sources"] == "earlier" and mode["category"] == "all"][0]
        self.assertGreater(earlier["tau"], 1)
        self.assertEqual(files, {name: open(os.path.join(store, name), "rb").read() for name in os.listdir(store)})
        result = run(*PAIR, *plan, "--sources", "earlier", "--json", "-", icd=ICD)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("--sources-from does", result.stderr)
        self.assertNotIn("sources_from", json.loads(result.stdout))
        self.assertEqual({mode["tau"] for mode in json.loads(result.stdout)["modes"]}, {1}, "none are named")
        os.mkdir(self.path("empty"))
        result = run(*PAIR, *plan, "--sources-from", self.path("empty"), icd=ICD)
        self.assertEqual(result.returncode, 1)
        self.assertIn("has no earlier replies of tiny-qwen3", result.stderr)
        self.assertEqual(os.listdir(self.path("empty")), [])


class Refusals(Folder):
    def refused(self, code, words, *arguments):
        result = run(*PAIR, *arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertIn(words, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    def test_wrong_usage_is_a_sentence_and_code_2(self):
        prompts = ("--prompts", self.prompts)
        for words, arguments in (
            ("'fast'; allowed: ar, chain, tree and adaptive.", ("--modes", "ar,fast", *prompts)),
            ("--policy names 'luck'", ("--modes", "adaptive", "--policy", "luck", *prompts)),
            ("--prompts belongs to the comparison of modes", prompts),
            ("--widths belongs to the measurement of passes", ("--modes", "ar", "--widths", "1", *prompts)),
            ("--repeats has no meaning with --forced", ("--forced", self.prompts, "--repeats", "2")),
            ("--accept belongs to the comparison of modes", ("--accept", "0.5")),
            ("--accept has no meaning with --forced", ("--forced", self.prompts, "--accept", "0.5")),
            ("--sources-from belongs to the comparison of modes", ("--sources-from", self.folder.name)),
            ("a folder that generate --suffix-store",
             ("--modes", "chain", "--sources-from", self.path("none"), *prompts)),
            ("--forced compares chain and tree", ("--forced", self.prompts, "--modes", "ar")),
            ("There is no folder ", ("--modes", "ar", "--csv", self.path("none/t.csv"), *prompts)),
            ("Only one of --json, --csv and --markdown", ("--modes", "ar", "--csv", "-", "--json", "-", *prompts)),
        ):
            with self.subTest(arguments):
                self.refused(2, words, *arguments)

    def test_rates_that_are_none_are_named_with_what_is_allowed(self):
        for words, rates in (("'1.5' is no rate of acceptance", "0.5,1.5"), ("'' is no rate of acceptance", "0.5,"),
                             ("'high' is no rate of acceptance", "high"),
                             ("There are 65 rates of acceptance", ",".join(["1"] * 65))):
            for command in (PAIR + ("--modes", "chain"), ("generate", *PAIR[1:], "--prompt", "a")):
                with self.subTest(rates):
                    result = run(*command, "--accept", rates)
                    self.assertEqual((result.returncode, result.stdout), (2, ""))
                    self.assertEqual(result.stderr.splitlines()[0],
                                     f"--accept: {words}; allowed: numbers from 0 to 1, one for each depth, at most 64 "
                                     "with commas in between, as in 0.8,0.7,0.6.")

    def test_given_rates_are_not_recorded_nor_talked_on(self):
        trace = self.path("a.canopytrace")
        for words, arguments in (("Leave --trace or --accept out", ("--prompt", "a", "--trace", trace)),
                                 ("a conversation cannot go on it", ("--chat", "-"))):
            with self.subTest(arguments):
                result = run("generate", *PAIR[1:], "--accept", "0.5", *arguments)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(words, result.stderr)
                self.assertFalse(os.path.exists(trace))

    def test_wrong_files_are_named_before_anything_is_loaded(self):
        os.mkdir(self.path("empty"))
        entry = forced_entries()[0]
        for words, content in (("not a JSON array", {}), ("not a JSON array", []),
                               ("entry 0: prompt_ids or output_ids", [{"category": "a"}]),
                               ("entry 1, chain: acceptance_lengths is empty or holds a 0",
                                [entry, dict(entry, chain={"acceptance_lengths": [2, 0]})])):
            with self.subTest(words):
                self.refused(1, words, "--forced", self.file("forced.json", json.dumps(content)))
        for words, prompts in (("/no/such/prompts.jsonl", "/no/such/prompts.jsonl"),
                               ("has no .jsonl file", self.path("empty"))):
            with self.subTest(words):
                self.refused(1, words, "--modes", "ar", "--prompts", prompts)


if __name__ == "__main__":
    unittest.main()
