"""canopy-cli on a machine without a Vulkan driver: help, errors, inspect."""

import json
import os
import tempfile
import unittest

from cli import GOLDEN, run

MODEL = os.path.join(GOLDEN, "tiny-qwen3-f16.gguf")
FOLDER = os.path.join(GOLDEN, "tiny-qwen3")


class Help(unittest.TestCase):
    def test_help_and_version_need_no_driver(self):
        result = run("--help")
        self.assertEqual(result.returncode, 0)
        for command in ("devices", "inspect", "generate", "bench"):
            self.assertIn(command, result.stdout)
            of_command = run(command, "--help")
            self.assertEqual(of_command.returncode, 0, of_command.stderr)
            self.assertIn("--json", of_command.stdout)
            if command in ("generate", "bench"):
                self.assertRegex(of_command.stdout, r"--kernels [\s\S]*matrix_i8[\s\S]*8 bits")
                self.assertRegex(of_command.stdout, r"--quantize [\s\S]*none[\s\S]*q8_0[\s\S]*q4_k[\s\S]*auto")
        self.assertNotIn("logits", result.stdout)  # for tools/bench_llamacpp, not for users
        version = run("--version")
        self.assertEqual(version.returncode, 0)
        self.assertRegex(version.stdout, r"^canopy-cli \d+\.\d+\.\d+\n$")


class Errors(unittest.TestCase):
    def refused(self, code, words, *arguments):
        result = run(*arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertIn(words, result.stderr)
        return result.stderr

    def test_wrong_usage_is_code_2(self):
        self.refused(2, "exactly one of", "generate")
        self.refused(2, "exactly one of", "generate", "--prompt", "a", "--chat", "-")
        self.refused(2, "--json", "generate", "--chat", "-", "--json")
        self.refused(2, "--raw", "generate", "--chat", "-", "--raw")
        self.refused(2, "--max-tokens", "generate", "--prompt", "a", "--max-tokens", "0")
        self.refused(2, "--kv", "generate", "--prompt", "a", "--kv", "q2")
        self.refused(2, "--quantize", "generate", "--prompt", "a", "--quantize", "q2_k")
        self.refused(2, "--kernels", "generate", "--prompt", "a", "--kernels", "fma")
        self.refused(2, "--temperature", "generate", "--prompt", "a", "--temperature", "warm")
        self.refused(2, "--temperature", "generate", "--prompt", "a", "--temperature", "-1", "--model", MODEL)

    def test_a_misspelt_word_is_named_with_what_may_have_been_meant(self):
        self.refused(2, "canopy-cli has no command 'frobnicate'.", "frobnicate")
        self.refused(2, "did you mean generate?", "genrate", "--prompt", "a")
        self.refused(2, "canopy-cli trace has no command 'shwo'; did you mean show?", "trace", "shwo", "x")
        self.refused(2, "canopy-cli generate has no option '--promt'; did you mean --prompt?", "generate", "--promt=a")
        commands = self.refused(2, "name one of the commands")
        self.assertIn("generate", commands)
        self.assertIn("chat", commands)

    def test_every_number_has_a_range_that_is_said_in_one_sentence(self):
        generate, chat, bench, sweep = ("generate", "-p", "a"), ("chat",), ("bench",), ("sweep",)
        report, predict = ("report",), ("predict", "-m", "tiny-moe-q4_k")
        trace = ("trace", "what-if", "x.canopytrace")
        options = (
            (generate, "--max-tokens", "0 -1 4294967296 1e3 0x10 many"), (generate, "--context", "0 -1 99999999999"),
            (generate, "--budget", "0 1025 -1"), (generate, "--top-k", "-1 4294967296 1.5"),
            (generate, "--temperature", "-1 nan inf 1e99 0x1p3 warm"), (generate, "--top-p", "0 1.1 -0.5 nan"),
            (generate, "--min-p", "1 -0.1 nan"),
            (generate, "--seed", "-2 18446744073709551616 99999999999999999999 1.5 0x10 x"),
            (chat, "--max-tokens", "0"), (chat, "--seed", "-2"),
            (bench, "--context", "0"), (bench, "--widths", "0 -1 4097"), (bench, "--at", "0"), (bench, "--repeats", "0 1001"),
            (bench, "--decode-tokens", "0"), (bench, "--emulate-memory", "0 -1 1001 nan fast"),
            (bench, "--prefill-tokens", "0"), (bench, "--limit", "0"),
            (bench, "--prompt-tokens", "0"), (bench, "--budgets", "0 1025 -3"), (bench, "--max-tokens", "0"),
            (sweep, "--repeats", "0 -1"), (sweep, "--limit", "-1"), (sweep, "--budgets", "0 5000"),
            (sweep, "--seed", "-2 18446744073709551616"), (sweep, "--order-seed", "-2 18446744073709551616"),
            (sweep, "--temperature", "-1 nan"), (("calibrate",), "--seconds", "0 nan 3601"),
            (report, "--widths", "0"), (report, "--contexts", "-1"), (report, "--seconds", "nan"),
            (report, "--repeats", "0"), (report, "--calibrate", "601"), (predict, "--context", "-1"),
            (predict, "--widths", "0"), (trace, "--budget", "0"), (trace, "--widest", "0"), (trace, "--depth", "0"),
            (("trace", "export", "x"), "--round", "-1"), (("trace", "export", "x"), "--rounds", "0"),
            (("trace", "export", "x"), "--scale", "nan 9"), (("trace", "show", "x"), "--round", "18446744073709551616"))
        for command, option, values in options:
            for value in values.split():
                with self.subTest((*command, option, value)):
                    first = self.refused(2, option, *command, f"{option}={value}").split("\n")[0]
                    self.assertRegex(first, f"^{option}: '{value}' is not allowed; give a (whole )?number .*\\.$")
                    self.assertLess(len(first), 150)

    def test_a_number_with_zeros_in_front_is_decimal(self):
        self.refused(2, "--max-tokens", "generate", "-p", "a", "-n", "00")
        self.refused(1, "Vulkan driver", "generate", "-p", "a", "-n", "010", "--model", MODEL, "--device", "vulkan")

    def test_what_fails_is_one_line_and_code_1(self):
        for words, arguments in (
            ("Vulkan driver", ("generate", "--prompt", "a", "--model", MODEL, "--device", "vulkan")),
            ("Vulkan driver", ("bench", "--model", MODEL, "--device", "vulkan:0")),
            ("/no/such/model.gguf", ("generate", "--prompt", "a", "--model", "/no/such/model.gguf")),
            ("/no/such/prompt.txt", ("generate", "--prompt-file", "/no/such/prompt.txt", "--model", MODEL)),
            ("/no/such/model.gguf", ("inspect", "/no/such/model.gguf")),
        ):
            with self.subTest(arguments):
                message = self.refused(1, words, *arguments)
                self.assertEqual(message.count("\n"), 1, message)
                self.assertTrue(message.startswith("canopy-cli: "), message)

    def test_a_conversation_that_is_none_is_refused(self):
        for content in ("[]", "{", '[{"role": "user"}]', '"text"', '{"messages": []}', '{"messages": 1}', "[1]", "5"):
            with self.subTest(content), tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                file.write(content)
                file.flush()
                self.refused(1, file.name, "generate", "--chat", file.name, "--model", MODEL)


class Inputs(unittest.TestCase):
    """Everything is read and checked before a device is opened, so that what is accepted fails for want of a driver."""

    def read(self, *arguments, **options):
        result = run(*arguments, "--model", MODEL, "--device", "vulkan", **options)
        self.assertEqual(result.returncode, 1, result.stderr)
        return result.stderr

    def accepted(self, *arguments, **options):
        self.assertIn("Vulkan driver", self.read(*arguments, **options))

    def through_a_pipe(self, text, *arguments):
        """With the name of a pipe, as <(...) of shells gives it, in place of PIPE."""
        reading, writing = os.pipe()
        os.write(writing, text)
        os.close(writing)
        try:
            return self.read(*(f"/dev/fd/{reading}" if a == "PIPE" else a for a in arguments), pass_fds=(reading,))
        finally:
            os.close(reading)

    def test_prompts_are_read_from_pipes(self):
        for arguments in ((), ("-f", "-"), ("-f", "/dev/stdin")):
            with self.subTest(arguments):
                self.accepted("generate", *arguments, input="hi\n")
        self.assertIn("Vulkan driver", self.through_a_pipe(b"hi", "generate", "-f", "PIPE"))
        empty = run("generate", "--model", MODEL, input="")
        self.assertEqual(empty.returncode, 2)
        self.assertIn("Standard input has no prompt.", empty.stderr)
        self.assertIn("at most 16777216 are allowed", self.read("generate", "-f", "/dev/zero"))

    def test_whatever_need_not_be_mapped_is_read_from_pipes(self):
        chat = b'[{"role": "user", "content": "hi"}]'
        prompts = b'{"id": 1, "prompt": "hi"}\n'
        tools = b'[{"type": "function", "function": {"name": "add"}}]'
        self.assertIn("Vulkan driver", self.through_a_pipe(chat, "generate", "--chat", "PIPE"))
        self.assertIn("Vulkan driver", self.through_a_pipe(tools, "generate", "-p", "hi", "--tools", "PIPE"))
        for command in (("bench", "--modes", "ar"), ("sweep", "--modes", "ar")):
            self.assertIn("Vulkan driver", self.through_a_pipe(prompts, *command, "--prompts", "PIPE"))
        self.assertIn("Vulkan driver", self.through_a_pipe(b'[{"prompt_ids": [1], "output_ids": [2], "chain": '
                                                           b'{"acceptance_lengths": [1]}}]', "bench", "--forced", "PIPE"))
        self.assertIn("lacks the field 'format'", self.through_a_pipe(b"{}", "sweep", "--show", "PIPE"))
        result = run("results", "-", input="{}")
        self.assertIn("lacks the field 'format'", result.stderr)

    def test_what_must_be_mapped_says_so_of_a_pipe(self):
        for command in (("inspect", "/dev/stdin"), ("generate", "-p", "a", "-m", "/dev/stdin"),
                        ("trace", "show", "/dev/stdin")):
            with self.subTest(command):
                self.assertIn("What is mapped into memory must be a file", run(*command, input="GGUF").stderr)

    def test_texts_in_other_encodings_are_read_or_refused_by_name(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "text")

            def write(content):
                with open(path, "wb") as file:
                    file.write(content)

            for options, text in ((("-f", path), "hé"), (("--chat", path), '[{"role": "user", "content": "hé"}]'),
                                  (("-p", "hi", "--tools", path), '[{"name": "é"}]')):
                for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
                    write(text.encode(encoding))
                    with self.subTest((options, encoding)):
                        self.accepted("generate", *options)
                for encoding, words in (("latin-1", "is not in UTF-8"), ("utf-16-le", "UTF-16 without a byte-order mark"),
                                        ("utf-16-be", "UTF-16 without a byte-order mark")):
                    write(text.encode(encoding))
                    with self.subTest((options, encoding)):
                        message = self.read("generate", *options)
                        self.assertIn(words, message)
                        self.assertIn(path, message)
                write(b"a\0b")
                self.assertIn("is no text: byte 1 is 0", self.read("generate", *options))
            write(b'\xef\xbb\xbf{"id": 1, "prompt": "hi"}\n')
            self.accepted("bench", "--modes", "ar", "--prompts", path)
            write(b'{"id": 1, "prompt": "caf\xe9"}\n')
            self.assertIn("is not in UTF-8", self.read("bench", "--modes", "ar", "--prompts", path))
        self.assertIn("The text of --prompt is not in UTF-8", self.read("generate", "-p", b"caf\xe9"))
        self.assertIn("The text of --stop is not in UTF-8", self.read("generate", "-p", "a", "--stop", b"\xe9"))

    def chat(self, *turns, **request):
        """What is said of a conversation."""
        return self.read("generate", "--chat", "/dev/stdin",
                         input=json.dumps({"messages": turns, **request} if request else turns))

    def test_conversations_of_other_programs_are_read(self):
        user = {"role": "user", "content": "Add"}
        call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}
        silent = {"role": "assistant", "content": None, "tool_calls": [call]}
        for turns in (
            ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}, "c"]},),
            (user, silent, {"role": "tool", "tool_call_id": "c", "content": "5"}, {"role": "developer", "content": "x"}),
            (user, {"role": "assistant", "tool_calls": [{"name": "add", "arguments": {"a": 2}}]}),
            (user, {"role": "assistant", "content": None, "function_call": {"name": "add", "arguments": ""}}),
            (user, {"role": "assistant", "content": "5", "reasoning": "2 + 3", "refusal": None}, user),
        ):
            with self.subTest(turns):
                self.assertIn("Vulkan driver", self.chat(*turns))
        request = self.chat(user, temperature=0.5, model="x", tools=[{"type": "function"}], stream=None)
        self.assertIn("Vulkan driver", request)
        self.assertRegex(request, "Not used of the request in /dev/stdin: temperature, model\\.")

    def test_what_no_conversation_can_have_is_refused_by_turn_and_field(self):
        user = {"role": "user", "content": "a"}
        picture = {"type": "image_url", "image_url": {"url": "data:"}}
        for words, turn in (
            ('"content" of turn 1 has a part of the type "image_url"', {"role": "user", "content": [picture]}),
            ('"images" of turn 1', {"role": "user", "content": "a", "images": ["aGk="]}),
            ('Turn 1 lacks the field "content"', {"role": "user", "content": None}),
            ('Turn 1 lacks the field "role"', {"content": "a"}),
            ('"content" of turn 1 is 5', {"role": "user", "content": 5}),
            ('"content" of turn 1 is an object', {"role": "user", "content": {}}),
            ('"role" of turn 1 is "critic"; allowed are system, user', {"role": "critic", "content": "a"}),
            ('"role" of turn 1 is 7', {"role": 7, "content": "a"}),
            ('"tool_calls" of turn 1 is "x"', {"role": "assistant", "content": "", "tool_calls": "x"}),
            ('Turn 1 lacks the field "tool_calls[0].function.name"', {"role": "assistant", "tool_calls": [{}]}),
            ('"tool_calls[0].function.arguments" of turn 1 is not valid JSON',
             {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{a"}}]}),
            ('"tool_calls[0].function.arguments" of turn 1 is "[1]"; an object',
             {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "[1]"}}]}),
            ('"reasoning_content" of turn 1 is an array', {"role": "assistant", "content": "a", "reasoning_content": []}),
            ("Turn 1 is 5", 5),
        ):
            with self.subTest(words):
                message = self.chat(user, turn)
                self.assertIn(words, message)
                self.assertNotIn("json.exception", message)
        self.assertIn("is no JSON array with tools", self.chat(user, tools={"a": 1}))
        broken = self.read("generate", "--chat", "/dev/stdin", input="[{")
        self.assertIn("is not valid JSON: it ends too early, at line 1, column 3", broken)
        self.assertNotIn("json.exception", broken)


class Inspect(unittest.TestCase):
    def test_files_and_folders_as_json(self):
        for path in (MODEL, FOLDER):
            with self.subTest(path):
                result = run("inspect", path, "--json")
                self.assertEqual(result.returncode, 0, result.stderr)
                description = json.loads(result.stdout)
                self.assertEqual(description["config"]["architecture"], "qwen3")
                self.assertGreater(len(description["tensors"]), 80)

    def test_text_names_the_tensors(self):
        result = run("inspect", MODEL)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("blk.7.ffn_down", result.stdout)


if __name__ == "__main__":
    unittest.main()
