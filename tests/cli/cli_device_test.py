"""canopy-cli on a device: JSON output, whose names other programs rely on, streaming, and Ctrl-C."""

import array
import json
import os
import re
import signal
import struct
import subprocess
import tempfile
import time
import unittest

from cli import CLI, GOLDEN, environment, run

ICD = os.environ.get("CANOPY_TEST_ICD", "")
MODEL = os.path.join(GOLDEN, "tiny-qwen3")
FIELDS = ["prompt_ids", "output_ids", "text", "finish_reason", "mode", "device", "backend", "tau", "rounds", "prefill_ms",
          "decode_ms", "tokens_per_second", "plain"]


def prompts():
    with open(os.path.join(GOLDEN, "generate.json"), encoding="utf-8") as file:
        return json.load(file)["prompts"]


@unittest.skipUnless(os.path.exists(ICD), "lavapipe is not installed")
class OnDevice(unittest.TestCase):
    def succeed(self, *arguments, **options):
        result = run(*arguments, icd=ICD, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def generate(self, *arguments):
        return json.loads(self.succeed("generate", "--model", MODEL, "--context", "512", "--json", *arguments).stdout)

    def test_devices(self):
        devices = json.loads(self.succeed("devices", "--json").stdout)
        self.assertEqual([d["index"] for d in devices], list(range(len(devices))))
        self.assertTrue(any(d["usable"] and d["type"] == "cpu" for d in devices))
        self.assertIn(devices[0]["name"], self.succeed("devices").stdout)

    def test_messages_of_the_validation_layer_reach_stderr(self):
        # Nothing the program does breaks a rule; the layer's advice on best practice always has something to say.
        talkative = dict(environment(ICD), CANOPY_VALIDATION="core",
                         VK_LAYER_ENABLES="VK_VALIDATION_FEATURE_ENABLE_BEST_PRACTICES_EXT")
        result = subprocess.run([CLI, "devices"], env=talkative, capture_output=True, text=True, timeout=300,
                                check=False)
        if "vulkan-validationlayers" in result.stderr:
            self.skipTest("the validation layer is not installed")
        self.assertEqual(result.returncode, 0, result.stderr)
        # How a message begins depends on the version of the layer.
        self.assertRegex(result.stderr, r"canopy-cli: warning: (Validation Warning|vk\w+\(\): )")
        self.assertNotIn("Validation", result.stdout)
        self.assertEqual(self.succeed("devices").stderr, "")

    def test_generate_gives_the_golden_reply_in_exactly_the_agreed_fields(self):
        golden = next(p for p in prompts() if len(p["prompt_ids"]) < 30)
        reply = self.generate("--raw", "--kv", "f32", "--prompt", golden["prompt"], "--max-tokens", "20")
        self.assertEqual(list(reply), FIELDS)
        self.assertEqual(reply["prompt_ids"], golden["prompt_ids"])
        self.assertEqual(reply["output_ids"], golden["output_ids"][:20])
        self.assertTrue(golden["output_text"].startswith(reply["text"]))
        self.assertEqual((reply["mode"], reply["finish_reason"]), ("adaptive", "max_tokens"))
        self.assertEqual(sum(entry["emitted"] for entry in reply["rounds"]), 19)
        self.assertAlmostEqual(reply["tau"], 19 / len(reply["rounds"]))
        for entry in reply["rounds"]:
            self.assertEqual(list(entry), ["width", "accepted", "emitted", "match", "ms", "nodes"])
            self.assertEqual(len(entry["nodes"]), entry["width"] - 1)
            for node in entry["nodes"]:
                self.assertTrue(node["sources"] and set(node["sources"]) <= {"suffix", "recycling"}, node)
                if "suffix" in node["sources"]:
                    self.assertGreaterEqual(node["went_on"]["places"], node["went_on"]["times"])
                    self.assertGreater(node["went_on"]["times"], 0)
                else:
                    self.assertIsNone(node["went_on"])
            self.assertEqual(entry["emitted"], 1 + sum(node["accepted"] for node in entry["nodes"]))
            self.assertEqual(list(entry["ms"]), ["draft", "build", "verify", "walk", "commit", "other"])
            self.assertGreater(entry["ms"]["verify"], 0)
        total = sum(sum(entry["ms"].values()) for entry in reply["rounds"])
        self.assertAlmostEqual(reply["decode_ms"], total, places=3)
        self.assertAlmostEqual(reply["tokens_per_second"], 1000 * 19 / total, places=3)
        # Adaptive wrote some of it plainly, or passes were timed behind it: at least three either way.
        self.assertEqual(list(reply["plain"]), ["tokens_per_second", "pass_ms", "passes", "own_rounds"])
        self.assertGreaterEqual(reply["plain"]["passes"], 3)
        self.assertAlmostEqual(reply["plain"]["tokens_per_second"], 1000 / reply["plain"]["pass_ms"], places=3)

    def test_weights_are_quantized_on_load_and_that_is_said(self):
        golden = next(p for p in prompts() if len(p["prompt_ids"]) < 30)
        model = os.path.join(GOLDEN, "tiny-qwen3-f16.gguf")
        ids = {}
        for quantize in ("none", "q8_0", "auto"):
            result = self.succeed("generate", "--model", model, "--context", "512", "--raw", "--kv", "f32", "--prompt",
                                  golden["prompt"], "--max-tokens", "8", "--quantize", quantize, "--json")
            ids[quantize] = json.loads(result.stdout)["output_ids"]
            self.assertEqual("Quantized while loading: " in result.stderr, quantize == "q8_0", result.stderr)
        self.assertEqual(ids["auto"], ids["none"])  # it fits as it is
        self.assertEqual(len(ids["q8_0"]), 8)

    def test_kernels_that_the_device_lacks_are_refused_by_name(self):
        model = os.path.join(GOLDEN, "tiny-qwen3-f16.gguf")
        refused = run("generate", "--model", model, "--prompt", "a", "--kernels", "matrix_i8", icd=ICD)
        if "cooperative matrices" not in refused.stderr:
            self.skipTest("this driver has cooperative matrices")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("which the kernels of the family matrix_i8 need", refused.stderr)

    def test_a_seed_gives_the_same_text_and_another_seed_another(self):
        drawn = lambda seed: self.generate("--prompt", "import", "--max-tokens", "16", "--temperature", "1.5",
                                           "--seed", seed)["output_ids"]
        first = drawn("1")
        self.assertEqual(drawn("1"), first)
        self.assertNotEqual(drawn("2"), first)

    def test_a_seed_of_minus_one_is_drawn_and_told(self):
        options = ("--prompt", "import", "--max-tokens", "16", "--temperature", "1.5", "--seed")
        first, second = self.generate(*options, "-1"), self.generate(*options, "-1")
        self.assertNotEqual(first["seed"], second["seed"])
        again = self.generate(*options, str(first["seed"]))
        self.assertEqual(again["output_ids"], first["output_ids"])
        self.assertEqual(list(again), FIELDS)
        told = self.succeed("generate", "--model", MODEL, "--context", "512", *options, "-1").stderr
        self.assertRegex(told, r"The seed was drawn: --seed \d+ repeats it\.")

    def test_a_prompt_from_a_pipe_is_the_same_as_one_that_is_named(self):
        named = self.generate("--prompt", "import os")["prompt_ids"]
        for arguments in ((), ("-f", "-"), ("-f", "/dev/stdin")):
            piped = self.succeed("generate", "--model", MODEL, "--context", "512", "--json", "-n", "1", *arguments,
                                 input="import os\n").stdout
            self.assertEqual(json.loads(piped)["prompt_ids"], named)
        with tempfile.NamedTemporaryFile("wb", suffix=".txt") as file:
            file.write("import os\r\n".encode("utf-16"))
            file.flush()
            self.assertEqual(self.generate("-f", file.name, "-n", "1")["prompt_ids"], named)

    def model_with_template(self, folder, template):
        for name in os.listdir(MODEL):
            if name != "tokenizer_config.json":
                os.symlink(os.path.join(os.path.abspath(MODEL), name), os.path.join(folder, name))
        with open(os.path.join(MODEL, "tokenizer_config.json"), encoding="utf-8") as file:
            config = json.load(file)
        config["chat_template"] = template
        with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        return folder

    def test_conversations_of_other_programs_reach_the_template_whole(self):
        template = ("{% for m in messages %}[{{ m.role }}]{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}"
                    "{{ m.content }}{% for c in m.tool_calls or [] %}<{{ c.function.name }} "
                    "{{ c.function.arguments | tojson }}>{% endfor %}{% endfor %}{% if tools %}T{% endif %}")
        user = {"role": "user", "content": "a\nb"}
        call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": {"z": 2, "b": "ü"}}}
        with tempfile.TemporaryDirectory() as folder:
            model = self.model_with_template(folder, template)

            def prompt(*turns, model=model, **request):
                reply = self.succeed("generate", "--model", model, "--context", "512", "--no-self-test", "-n", "1", "--json",
                                     "--chat", "/dev/stdin",
                                     input=json.dumps({"messages": turns, **request} if request else turns))
                return json.loads(reply.stdout)["prompt_ids"], reply.stderr

            plain = prompt(user)[0]
            parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
            self.assertEqual(prompt({"role": "user", "content": parts})[0], plain)
            self.assertNotEqual(prompt(user, tools=[{"name": "f"}])[0], plain)
            silent = prompt(user, {"role": "assistant", "content": None, "tool_calls": [call]}, user)[0]
            self.assertNotEqual(silent, prompt(user, {"role": "assistant", "content": ""}, user)[0])
            text = json.dumps(call["function"]["arguments"])
            for same in ({"role": "assistant", "tool_calls": [{**call, "function": {"name": "add", "arguments": text}}]},
                         {"role": "assistant", "content": "", "function_call": {"name": "add", "arguments": text}}):
                self.assertEqual(prompt(user, same, user)[0], silent)
            thought = prompt(user, {"role": "assistant", "content": "5", "reasoning_content": "2 + 3"}, user)[0]
            self.assertNotEqual(thought, prompt(user, {"role": "assistant", "content": "5"}, user)[0])
            for same in ({"role": "assistant", "content": "5", "reasoning": "2 + 3"},
                         {"role": "assistant", "content": "5", "thinking": "2 + 3"},
                         {"role": "assistant", "content": [{"type": "thinking", "thinking": "2 + 3"}, "5"]}):
                self.assertEqual(prompt(user, same, user)[0], thought)
            self.assertGreater(len(prompt(user, {"role": "tool", "content": "5"})[0]), len(plain))
        with tempfile.TemporaryDirectory() as folder:
            model = self.model_with_template(folder, "{% for m in messages if m.role != 'tool' %}{{ m.content }}{% endfor %}")
            _, notes = prompt(user, {"role": "assistant", "content": "5", "reasoning": "2 + 3"}, model=model)
            self.assertRegex(notes, 'leaves out what was thought .* "reasoning_content" of turn 1')
            for words, turn in (('no place for the field "tool_calls" of turn 1',
                                 {"role": "assistant", "content": "x", "tool_calls": [call]}),
                                ('leaves out turn 1, whose role is "tool"', {"role": "tool", "content": "5"})):
                refused = run("generate", "--model", model, "--no-self-test", "--chat", "/dev/stdin", icd=ICD,
                              input=json.dumps([user, turn]))
                self.assertEqual(refused.returncode, 1)
                self.assertIn(words, refused.stderr)

    def test_thinking_is_switched_where_the_template_has_a_switch(self):
        template = ("{% for m in messages %}{{ m.content }}{% endfor %}"
                    "{% if enable_thinking is defined %}{{ 'on' if enable_thinking else 'off' }}{% endif %}")
        with tempfile.TemporaryDirectory() as folder:
            model = self.model_with_template(folder, template)

            def prompt(*options):
                result = self.succeed("generate", "--model", model, "--context", "512", "--no-self-test", "--json", "-n", "1",
                                      "-p", "a", *options)
                self.assertNotIn("switch", result.stderr)
                return json.loads(result.stdout)["prompt_ids"]

            on, off, unset = prompt("--thinking", "on"), prompt("--thinking", "off"), prompt()
            self.assertEqual(len({str(on), str(off), str(unset)}), 3)
        told = self.succeed("generate", "--model", MODEL, "--context", "512", "-p", "a", "-n", "1", "--thinking", "on")
        self.assertIn("has no switch for thinking", told.stderr)

    def test_a_talk_goes_on_when_the_context_is_full(self):
        long = "x = 1; " * 40
        result = self.succeed("chat", "--model", MODEL, "--context", "64", "--max-tokens", "4", "--no-self-test",
                              input=f"def f():\n{long}\ndef g():\ndef h():\ndef i():\ndef j():\n")
        self.assertEqual(result.stderr.count("reply: 4 tokens"), 5, result.stderr)
        self.assertIn("tokens by itself, but the context holds only 64. Use fewer tokens, or load the model with a longer "
                      "context: it was made for 2048.", result.stderr)
        self.assertRegex(result.stderr, r"The context is full: the oldest \d+ lines and their replies are left out")
        whole = self.succeed("chat", "--model", MODEL, "--context", "2048", "--max-tokens", "4", "--no-self-test",
                             input=long * 20 + "\n")
        self.assertIn("holds only 2048, all that the model was made for", whole.stderr)
        self.assertNotIn("longer context", whole.stderr)

    def test_commands_of_a_talk(self):
        result = self.succeed("chat", "--model", MODEL, "--context", "512", "--max-tokens", "4", "--no-self-test",
                              input="def f():\r\n/new\ndef f():\n/x\n/help\n/thinking\n/usr/bin/env\n/quit\nnever\n")
        prompts_ = re.findall(r"prompt: (\d+) tokens", result.stderr)
        self.assertEqual(len(prompts_), 3, result.stderr)
        self.assertEqual(prompts_[0], prompts_[1])  # nothing of the first line is in the second's prompt
        self.assertIn("There is no /x; /help lists what there is.", result.stderr)
        self.assertIn("/new               begin a new conversation", result.stderr)

    def test_a_line_that_is_no_text_is_refused_and_the_talk_goes_on(self):
        result = subprocess.run([CLI, "chat", "--model", MODEL, "--context", "512", "--max-tokens", "4", "--no-self-test"],
                                env=environment(ICD), capture_output=True, check=False, timeout=300,
                                input=b"caf\xe9\ndef g():\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(b"The line is not in UTF-8: byte 3", result.stderr)
        self.assertEqual(result.stderr.count(b"reply: 4 tokens"), 1)

    def test_ctrl_c_on_a_terminal_stops_the_reply_and_not_the_talk(self):
        ours, theirs = os.openpty()
        process = subprocess.Popen([CLI, "chat", "--model", MODEL, "--context", "2048", "--no-self-test", "--temperature", "1",
                                    "--max-tokens", "2000"], env=environment(ICD), stdin=theirs, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, start_new_session=True)
        os.close(theirs)
        os.write(ours, b"x = [1,\n")
        self.assertTrue(process.stdout.read(1))  # the reply has begun
        process.send_signal(signal.SIGINT)
        seen = b""
        while b"ended by cancelled" not in seen:
            seen += os.read(process.stderr.fileno(), 4096)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)  # while it waits for a line
        while b"ends the conversation" not in seen.split(b"cancelled")[1]:
            seen += os.read(process.stderr.fileno(), 4096)
        os.write(ours, b"/quit\n")
        _, errors = process.communicate(timeout=60)
        os.close(ours)
        self.assertEqual(process.returncode, 0, errors)

    def test_a_conversation_from_a_file(self):
        turns = [{"role": "user", "content": "def f():"}, {"role": "assistant", "content": "pass"},
                 {"role": "user", "content": "def g():"}]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(turns, file)
            file.flush()
            reply = self.generate("--chat", file.name, "--max-tokens", "4")
        self.assertGreater(reply["prompt_ids"].count(1001), 3)  # <|im_start|>: three turns and the one to write

    def logits(self, text, *arguments):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(text)
            file.flush()
            return json.loads(self.succeed("logits", "--model", MODEL, "--context", "512", "--kv", "f32", "--text-file",
                                           file.name, *arguments).stdout)

    def test_logits_lists_what_greedy_decoding_would_write_next(self):
        golden = next(p for p in prompts() if 8 <= len(p["prompt_ids"]) < 30)
        count = len(golden["prompt_ids"])
        got = self.logits(golden["prompt"], "--positions", str(count), "--top", "3")
        self.assertEqual(got["ids"], golden["prompt_ids"])
        self.assertEqual([len(top) for top in got["top"]], [3] * count)
        self.assertEqual(got["top"][-1][0][0], golden["output_ids"][0])
        for top in got["top"]:
            self.assertEqual(top, sorted(top, key=lambda entry: (-entry[1], entry[0])))

    def test_logits_start_anew_with_each_window(self):
        text = "def f(x):\n    return x + 1\n\n\ndef g(x):\n    return x\n"
        whole = self.logits(text, "--positions", "8", "--window", "8")
        halves = self.logits(text, "--positions", "8", "--window", "4")
        self.assertEqual(halves["top"][:4], whole["top"][:4])
        self.assertNotEqual(halves["top"][4:], whole["top"][4:])

    def test_logits_writes_whole_rows_to_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows")
            got = self.logits("def f(x):\n    return x + 1\n", "--positions", "6", "--window", "4", "--rows", path)
            rows = array.array("f")
            with open(path, "rb") as file:
                rows.frombytes(file.read())
        vocab = len(rows) // 6
        self.assertEqual(len(rows), 6 * vocab)
        for position, top in enumerate(got["top"]):
            row = rows[position * vocab : (position + 1) * vocab]
            self.assertEqual(row.index(max(row)), top[0][0])
            self.assertEqual([row[token] for token, _ in top], [struct.unpack("f", struct.pack("f", x))[0] for _, x in top])

    def test_logits_of_a_text_that_is_too_short(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("short")
            file.flush()
            result = run("logits", "--model", MODEL, "--context", "512", "--text-file", file.name, icd=ICD)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"has \d+ tokens; 2000 positions were asked for")

    def test_text_streams_to_stdout_and_statistics_to_stderr(self):
        result = self.succeed("generate", "--model", MODEL, "--context", "512", "--prompt", "import os",
                              "--max-tokens", "8")
        self.assertIn("tok/s", result.stderr)
        self.assertNotIn("tok/s", result.stdout)
        self.assertIn("8 tokens", result.stderr)

    def test_a_conversation_on_the_terminal(self):
        result = self.succeed("generate", "--model", MODEL, "--context", "512", "--chat", "-", "--max-tokens", "4",
                              input="def f():\ndef g():\n")
        self.assertEqual(result.stderr.count("reply: 4 tokens"), 2, result.stderr)
        self.assertIn("reused", result.stderr)

    def test_a_conversation_on_the_terminal_computes_no_reply_again(self):
        # Drawn at a high temperature, the reply's text would be cut into other tokens than it was written with: only the
        # first of its 40 would be found in the cache.
        result = self.succeed("generate", "--model", MODEL, "--context", "512", "--chat", "-", "--max-tokens", "40",
                              "--temperature", "2", "--seed", "4", input="def f():\ndef g():\n")
        first, second = re.findall(r"prompt: (\d+) tokens(?: \((\d+) reused\))?", result.stderr)
        replies = [int(n) for n in re.findall(r"reply: (\d+) tokens", result.stderr)]
        # All but the reply's last token, whose K/V a pass of its own would have written.
        self.assertGreaterEqual(int(second[1]), int(first[0]) + replies[0] - 1, result.stderr)

    def test_ctrl_c_ends_the_reply_and_still_reports(self):
        process = subprocess.Popen([CLI, "generate", "--model", MODEL, "--context", "2048", "--raw", "--prompt",
                                    "x = [1,", "--temperature", "1", "--max-tokens", "2000"],
                                   env=environment(ICD), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = process.stdout.read(1)  # text has begun
        self.assertTrue(first)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn(b"ended by cancelled", errors)

    def test_a_context_that_is_too_long_is_refused_with_numbers(self):
        result = run("generate", "--model", MODEL, "--prompt", "a", "--context", "5000", icd=ICD)
        self.assertEqual(result.returncode, 1)
        self.assertIn("5000", result.stderr)
        self.assertIn("2048", result.stderr)

    def test_bench_of_loading(self):
        result = self.succeed("bench", "--load", "--model", MODEL, "--repeats", "1", "--json", "--device", "software")
        bench = json.loads(result.stdout)
        self.assertGreater(bench["file_bytes"], 0)
        self.assertGreater(bench["device_bytes"], 0)
        for stage in ("cached_file", "copy", "upload", "repack", "load_warm"):
            self.assertGreater(bench["seconds"][stage], 0, stage)
        warm = bench["share_warm"]
        self.assertGreater(warm["of_reading_and_copying"], 0)
        self.assertGreaterEqual(warm["of_slowest_stage"], warm["of_reading_and_copying"])
        self.assertEqual(bench["share_cold"] is None, bench["seconds"]["load_cold"] is None)
        refused = run("bench", "--load", "--quantize", "auto", icd=ICD)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--quantize may be none", refused.stderr)

    def test_bench(self):
        result = self.succeed("bench", "--model", MODEL, "--context", "512", "--widths", "1,2,16", "--repeats", "2",
                              "--decode-tokens", "4", "--prefill-tokens", "40", "--at", "60", "--json")
        bench = json.loads(result.stdout)
        for field in ("device", "driver", "model"):
            self.assertTrue(bench[field])
        for value in (bench["peak"]["read_gb_s"], bench["peak"]["fma_gflop_s"], bench["decode_tokens_per_second"],
                      bench["prefill_tokens_per_second"]):
            self.assertGreater(value, 0)
        self.assertEqual(list(bench["pass_ms"]), ["1", "2", "16"])
        for share in bench["share_of_fma_peak"].values():
            self.assertTrue(0 < share < 1.2, bench)
        # This driver has no matrix cores.
        self.assertEqual((bench["peak"]["matrix_gflop_s"], bench["share_of_matrix_peak"]), (0, {}))
        peak = bench["peak"]["fma_gflop_s"] / bench["peak"]["plain_fma_gflop_s"]
        for width, median in bench["pass_ms"].items():
            self.assertLessEqual(bench["best_pass_ms"][width], median)
            self.assertAlmostEqual(bench["share_of_plain_fma"][width], bench["share_of_fma_peak"][width] * peak)

        self.assertNotIn("distinct_experts", bench)
        self.assertNotIn("worst_step", bench)  # two steps have no eight neighbours

    def test_bench_with_emulated_memory_says_so_everywhere(self):
        options = ("bench", "--model", MODEL, "--context", "512", "--widths", "1,2", "--repeats", "1", "--decode-tokens", "2",
                   "--prefill-tokens", "8", "--at", "16", "--device", "cpu", "--threads", "1", "--emulate-memory", "0.5")
        result = self.succeed(*options, "--json")
        bench = json.loads(result.stdout)
        self.assertEqual(bench["emulated_memory"], {"gb_s_a_thread": 0.5, "adaptive_times_ar": None, "aim": None})
        self.assertTrue(bench["driver"].endswith(", emulated memory of 0.5 GB/s a thread"), bench["driver"])
        self.assertLessEqual(bench["peak"]["read_gb_s"], 0.5)
        self.assertIn("Memory is emulated: 0.5 GB/s for each thread. No speed here is this machine's own.", result.stderr)
        self.assertIn("emulated memory of 0.5 GB/s a thread), kernels", self.succeed(*options).stdout)
        refused = run(*options[:-6], "--device", "software", "--emulate-memory", "7", icd=ICD)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("Memory is emulated on the processor alone", refused.stderr)
        refused = run("bench", "--load", "--model", MODEL, "--emulate-memory", "7", icd=ICD)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("slows passes, not loading", refused.stderr)

    def test_bench_names_the_worst_step(self):
        widths = [*range(1, 12), 20]
        options = ("bench", "--model", MODEL, "--context", "512", "--widths", ",".join(map(str, widths)), "--repeats", "1",
                   "--decode-tokens", "4", "--prefill-tokens", "40", "--at", "60")
        bench = json.loads(self.succeed(*options, "--json").stdout)
        best = {int(width): ms for width, ms in bench["best_pass_ms"].items()}
        step = {width: best[width + 1] - best[width] for width in widths if width + 1 in best}

        def above(width):
            near = sorted((other for other in step if other != width), key=lambda other: (abs(other - width), other))[:8]
            return (step[width] - sum(step[other] for other in near) / 8) / best[width]

        worst = bench["worst_step"]
        self.assertEqual(worst["width"], max(step, key=above))
        self.assertAlmostEqual(worst["above_neighbours"], above(worst["width"]))
        self.assertRegex(self.succeed(*options).stdout, r"worst step: from \d+ rows to \d+, -?[0-9.]+% of the pass")

    def test_bench_of_experts(self):
        with tempfile.TemporaryDirectory() as folder:
            model = os.path.join(folder, "mixture.gguf")
            self.succeed("make-model", "tiny-moe-q4_k", model)  # of 16 experts, of which a row uses 4
            options = ("bench", "--model", model, "--context", "512", "--widths", "1,2,16", "--repeats", "1",
                       "--decode-tokens", "4", "--prefill-tokens", "40", "--at", "60")
            bench = json.loads(self.succeed(*options, "--json").stdout)
            table = self.succeed(*options).stdout
        experts = bench["distinct_experts"]
        self.assertEqual(experts["1"], 4)
        self.assertGreater(experts["16"], 4)
        self.assertLessEqual(experts["16"], 16)
        best = bench["best_pass_ms"]
        self.assertEqual(list(bench["steps"]), ["2", "16"])
        self.assertAlmostEqual(bench["steps"]["2"], best["2"] / best["1"] / max(2, experts["2"] / 4) - 1)
        self.assertRegex(table, r"width  experts  ms/expert     step\n    1     4\.00 .* -\n")


if __name__ == "__main__":
    unittest.main()
