"""Where the output of canopy-cli goes: pipes, devices and descriptors are written into, inputs are never replaced, and
output that is lost is an error. Needs no driver; nothing here touches /dev but to read it or to write to /dev/full."""

import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

from cli import CLI, GOLDEN, ROOT, environment, run

TRACE = os.path.join(ROOT, "tests", "trace", "trace_v1.canopytrace")
MODEL = os.path.join(GOLDEN, "tiny-qwen3-f16.gguf")
FOLDER = os.path.join(GOLDEN, "tiny-qwen3")
DRAFTER = os.path.join(GOLDEN, "tiny-qwen3-dflash-b8")


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def file(self, name, content="old"):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(content)
        return self.path(name)

    def copy(self, source, name):
        return shutil.copy(source, self.path(name))

    def done(self, *arguments):
        result = run(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def refused(self, words, *arguments, code=1):
        result = run(*arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn(words, result.stderr)


class Places(Case):
    def test_a_pipe_is_written_into_and_stays(self):
        commands = {"export": ("trace", "export", TRACE, "-o"), "page": ("trace", "export", TRACE, "--html"),
                    "convert": ("convert", DRAFTER), "make-model": ("make-model", "tiny-q4_k_m")}
        for name, command in commands.items():
            with self.subTest(name):
                pipe = self.path(name)
                os.mkfifo(pipe)
                got = []
                reader = threading.Thread(target=lambda: got.append(len(open(pipe, "rb").read())))
                reader.start()
                self.done(*command, pipe)
                reader.join()
                self.assertGreater(got[0], 0)
                self.assertEqual(os.listdir(self.folder).count(name), 1)
                self.assertFalse(os.path.isfile(pipe))
                os.remove(pipe)

    def test_a_device_is_written_into_and_stays(self):
        node = self.path("null")
        try:
            os.mknod(node, 0o666 | 0o020000, os.makedev(1, 3))
            with open(node, "wb"):
                pass
        except PermissionError:
            self.skipTest("no device may be made here")
        self.done("trace", "export", TRACE, "-o", node)
        self.assertEqual(os.stat(node).st_rdev, os.makedev(1, 3))

    def test_a_socket_stays(self):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.path("s"))
            self.refused("it is a socket", "trace", "export", TRACE, "-o", self.path("s"))
        self.assertFalse(os.path.isfile(self.path("s")))

    def test_standard_output_under_another_name(self):
        wanted = self.done("trace", "export", TRACE).stdout
        self.assertEqual(self.done("trace", "export", TRACE, "-o", "/dev/stdout").stdout, wanted)
        self.assertEqual(self.done("trace", "export", TRACE, "-o", "-").stdout, wanted)
        with open(self.path("log"), "w", encoding="utf-8") as log:
            log.write("before\n")
            log.flush()
            subprocess.run([CLI, "trace", "export", TRACE, "-o", "/dev/stdout"], stdout=log, check=True)
        with open(self.path("log"), encoding="utf-8") as log:
            self.assertEqual(log.read(), "before\n" + wanted)

    def test_process_substitution(self):
        script = f'"{CLI}" trace export "{TRACE}" -o >(cat > "{self.path("got")}"; echo > "{self.path("end")}")'
        subprocess.run(["bash", "-c", script + f'; until [ -e "{self.path("end")}" ]; do sleep 0.05; done'],
                       check=True, timeout=60)
        with open(self.path("got"), encoding="utf-8") as file:
            self.assertEqual(file.read(), self.done("trace", "export", TRACE).stdout)

    def test_a_link_stays_and_its_target_is_written(self):
        os.symlink("target", self.path("link"))  # which is not there yet
        for _ in range(2):
            self.done("trace", "export", TRACE, "-o", self.path("link"))
            self.assertTrue(os.path.islink(self.path("link")))
            self.assertTrue(os.path.isfile(self.path("target")))

    def test_the_longest_names(self):
        for name in ("x" * 250 + ".json", "\u4e16" * 83 + ".json"):
            self.done("trace", "export", TRACE, "-o", self.path(name))
            self.assertGreater(os.path.getsize(self.path(name)), 0)
        self.assertEqual(len(os.listdir(self.folder)), 2, "nothing else is left behind")

    def test_the_file_of_a_sweep_is_an_ordinary_one(self):
        os.mkfifo(self.path("pipe"))
        self.refused("no ordinary file", "sweep", "-m", MODEL, "--out", self.path("pipe"), code=2)
        self.assertEqual(os.listdir(self.folder), ["pipe"])


class Inputs(Case):
    def kept(self, words, kept, *arguments):
        """Refused, and the input is what it was."""
        with open(kept, "rb") as file:
            before = file.read()
        self.refused(words, *arguments)
        with open(kept, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_no_command_replaces_what_it_reads(self):
        prompts, model = self.file("p.jsonl", '{"id": "a", "prompt": "hi"}\n'), self.copy(MODEL, "m.gguf")
        text = self.file("t.txt")
        trace = self.copy(TRACE, "r.canopytrace")
        sweep = ("sweep", "-m", model, "--drafter", "none", "--modes", "ar", "--prompts", prompts)
        modes = ("bench", "-m", model, "--drafter", "none", "--modes", "ar", "--prompts", prompts)
        overwrite = "would overwrite"
        for option in ("--csv", "--json", "--markdown", "--out"):
            self.kept(overwrite, prompts, *sweep, option, prompts)
            self.kept(overwrite, model, *sweep, option, model)
        for option in ("--csv", "--json", "--markdown"):
            self.kept(overwrite, prompts, *modes, option, prompts)
        for option in ("--html", "--markdown"):
            self.kept(overwrite, text, "results", text, option, text)
        self.kept(overwrite, model, "bench", "-m", model, "--drafter", "none", "--json", model)
        self.kept(overwrite, model, "calibrate", "-m", model, "--drafter", DRAFTER, "-o", model)
        self.kept(overwrite, model, "report", "-m", model, "--out", model)
        self.kept(overwrite, text, "generate", "-m", model, "-f", text, "--trace", text)
        drafter = shutil.copytree(DRAFTER, self.path("drafter"))
        tokens = self.file(os.path.join("drafter", "draft_tokens.json"))
        self.kept(overwrite, tokens, "calibrate", "-m", model, "--drafter", drafter, "-o", tokens)
        for path in (model, text):
            self.kept(overwrite, path, "logits", "-m", model, "--drafter", "none", "-f", text, "--rows", path)
        self.kept(overwrite, trace, "trace", "what-if", trace, "-o", trace)
        self.kept(overwrite, model, "convert", DRAFTER, model, "--target", model, "--overwrite")
        for option in ("-o", "--html"):
            self.kept(overwrite, trace, "trace", "export", trace, option, trace)

    def test_by_whatever_name(self):
        text, model = self.file("t.txt"), self.path("model")
        shutil.copytree(FOLDER, model)
        os.link(text, self.path("hard"))
        os.symlink("t.txt", self.path("soft"))
        for name in ("hard", "soft", "./t.txt", "model/../t.txt"):
            self.kept("would overwrite", text, "results", text, "--html", os.path.join(self.folder, name))
        config = os.path.join(model, "config.json")
        self.kept("would overwrite the model", config, "bench", "-m", model, "--drafter", "none", "--json", config)

    def test_two_outputs_are_two_files(self):
        one = self.path("one")
        self.refused("name the same file", "trace", "export", TRACE, "--html", one, "--animation", one)
        self.refused("name the same file", "sweep", "-m", MODEL, "--csv", one, "--markdown",
                     os.path.join(self.folder, ".", "one"))
        self.refused("name the same file", "sweep", "-m", MODEL, "--out", one, "--csv", one + ".journal")
        self.refused("name the same file", "make-model", "tiny-q4_k_m", one, "--drafter", one, "--overwrite")
        self.assertEqual(os.listdir(self.folder), [])


class Lost(Case):
    COMMANDS = (("--version",), ("--help",), ("trace", "--help"), ("inspect", MODEL), ("trace", "show", TRACE),
                ("trace", "stats", TRACE), ("trace", "export", TRACE),
                ("predict", "-m", "tiny-q4_k_m"))

    def lost(self, words, *arguments, **options):
        result = subprocess.run([CLI, *arguments], stderr=subprocess.PIPE, env=environment("/nonexistent"), text=True,
                                check=False, timeout=300, **options)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn(words, result.stderr)

    def test_a_full_disk(self):
        for command in self.COMMANDS:
            with self.subTest(command), open("/dev/full", "w", encoding="utf-8") as full:
                self.lost("Standard output cannot be written: No space left on device. Make room", *command, stdout=full)

    def test_closed(self):
        for command in self.COMMANDS:
            with self.subTest(command):
                self.lost("Standard output cannot be written: it is closed.", *command, preexec_fn=lambda: os.close(1))

    def test_what_prints_nothing_needs_no_output(self):
        output = self.path("out.json")
        subprocess.run([CLI, "trace", "export", TRACE, "-o", output], check=True, preexec_fn=lambda: os.close(1))
        with open(output, encoding="utf-8") as file:
            self.assertEqual(file.read(), self.done("trace", "export", TRACE).stdout)

    def test_a_reader_that_has_enough_is_left_in_peace(self):
        for ignored in (False, True):
            with self.subTest(ignored):
                first, second = os.pipe()
                os.close(first)
                action = signal.SIG_IGN if ignored else signal.SIG_DFL
                result = subprocess.run([CLI, "inspect", MODEL], stdout=second, stderr=subprocess.PIPE, check=False,
                                        preexec_fn=lambda action=action: signal.signal(signal.SIGPIPE, action))
                os.close(second)
                self.assertEqual(result.returncode, 1 if ignored else -signal.SIGPIPE)
                self.assertEqual(result.stderr, b"")

    def test_the_limit_of_sizes_is_a_message(self):
        result = subprocess.run([CLI, "trace", "export", TRACE, "-o", self.path("x")], stderr=subprocess.PIPE, text=True,
                                check=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
        self.assertEqual(result.returncode, 1)
        self.assertIn("raise the limit (ulimit -f)", result.stderr)


if __name__ == "__main__":
    unittest.main()
