"""The manual pages and completions that packages install, held to what --help lists of each command."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

PROGRAMS = os.environ.get("CANOPY_PROGRAMS", "canopy:canopy-cli").split(":")


def output(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)
    assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stderr}"
    return done.stdout


def section(text, title):
    found = re.search(rf"(?msi)^{title}:\n(.*?)(?:\n\n|\Z)", text)
    return found.group(1) if found else ""


def commands_of(program, words=()):
    """(words of a command) -> (its options, {option: its fixed values}, its subcommands), by --help."""
    text = output(program, *words, "--help")
    options, values = set(), {}
    for line in text.splitlines():  # in whatever groups they are
        # As CLI11 writes it before 2.5, "-m,--model TEXT", and since, "-m,     --model TEXT".
        found = re.match(r" {2,12}(-\w(?:, *--[\w-]+)*|--[\w-]+(?:,--[\w-]+)*)(?:\{\w+\})?(.*)", line)
        if not found:
            continue
        names = found.group(1).replace(" ", "").split(",")
        options.update(names)
        fixed = re.match(r" \S+:\{([^}]*)\}", found.group(2))
        if fixed:
            values.update({name: fixed.group(1).split(",") for name in names})
    below = [line.split()[0] for line in section(text, "Subcommands").splitlines() if re.match(r"  \S", line)]
    commands = {words: (options, values, below)}
    for name in below:
        commands.update(commands_of(program, (*words, name)))
    return commands


class OptionTexts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.programs = {os.path.basename(program): (program, commands_of(program)) for program in PROGRAMS}

    def test_there_is_something_to_compare(self):
        _, commands = self.programs["canopy-cli"]
        self.assertIn("--prompt", commands[("generate",)][0])
        self.assertEqual(commands[("generate",)][1]["--kv"], ["f16", "f32", "q8_0"])
        self.assertIn(("trace", "show"), commands)
        self.assertNotIn(("logits",), commands, "what is hidden is in no list")

    def test_the_manual_has_every_option_and_no_other(self):
        for name, (program, commands) in self.programs.items():
            page = output(program, "--man")
            self.assertRegex(page, rf'^\.TH {name.upper().replace("-", ".*-")} 1 ')
            written, words, lines = {}, (), page.splitlines()
            for at, line in enumerate(lines):
                if line.startswith(".SS "):
                    words = tuple(line.replace("\\-", "-").split()[2:])
                if line.startswith(".TP") and lines[at + 1].startswith("\\fB\\-"):
                    head = lines[at + 1].replace("\\-", "-")
                    written.setdefault(words, set()).update(re.findall(r"\\fB(-[^\\]*)\\fR", head))
            self.assertEqual(written, {words: options for words, (options, _, _) in commands.items()})

    @unittest.skipUnless(shutil.which("man"), "man-db is not installed")
    def test_the_manual_has_no_errors_of_formatting(self):
        for name, (program, _) in self.programs.items():
            page = output(program, "--man")
            done = subprocess.run(["man", "--warnings", "--encoding=UTF-8", "--local-file", "-"], input=page, text=True,
                                  capture_output=True, check=False, timeout=120, env=dict(os.environ, LC_ALL="C.UTF-8"))
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.assertIn(f"{name}", done.stdout)

    def complete_in_bash(self, name, script, lines):
        """What bash offers at the end of each line of words, as a list of lists."""
        ask = (f"source {script}\n"
               "while IFS= read -r line; do\n"
               "  IFS=$'\\x1f' read -ra COMP_WORDS <<<\"$line\"\n"
               # read leaves out an empty last word
               "  [[ $line != *$'\\x1f' ]] || COMP_WORDS+=('')\n"
               "  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
               f"  _{name.replace('-', '_')}\n"
               "  echo \"${COMPREPLY[*]}\"\n"
               "done\n")
        text = "".join("\x1f".join([name, *words]) + "\n" for words in lines)
        return [line.split() for line in output("bash", "--norc", "-c", ask, input=text).splitlines()]

    @unittest.skipUnless(shutil.which("bash"), "bash is not installed")
    def test_bash_offers_commands_options_and_values(self):
        for name, (program, commands) in self.programs.items():
            with tempfile.TemporaryDirectory() as folder:
                script = os.path.join(folder, "completions")
                with open(script, "w", encoding="utf-8") as file:
                    file.write(output(program, "--completions", "bash"))
                asked, expected = [], []
                for words, (options, values, below) in commands.items():
                    asked.append((*words, "-"))
                    expected.append(sorted(options))
                    asked.append((*words, ""))
                    expected.append(sorted(below))
                    for option, fixed in values.items():
                        asked += [(*words, option, ""), (*words, option, "="), (*words, option, "=", fixed[0])]
                        expected += [sorted(fixed)] * 2 + [sorted(f for f in fixed if f.startswith(fixed[0]))]
                found = self.complete_in_bash(name, script, asked)
                self.assertEqual(len(found), len(asked))
                for words, offered, right in zip(asked, found, expected):
                    self.assertEqual(sorted(offered), right, words)

    def test_bash_takes_the_value_of_an_option_for_no_command(self):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "completions")
            with open(script, "w", encoding="utf-8") as file:
                file.write(output(self.programs["canopy-cli"][0], "--completions", "bash"))
            offered = self.complete_in_bash("canopy-cli", script,
                                            [("generate", "--prompt", "trace", "--kv", "f"), ("trace", "sh"),
                                             ("generate", "--prompt", "")])
            self.assertEqual(offered, [["f16", "f32"], ["show"], []])

    def test_fish_has_every_option(self):
        for name, (program, commands) in self.programs.items():
            script = output(program, "--completions", "fish")
            written = {words: set() for words in commands}
            for line in script.splitlines():
                if line.startswith("#") or " -a " in line and " -l " not in line and " -s " not in line:
                    continue
                condition = re.search(r" -n '([^']*)'", line)
                words = tuple(re.findall(r"(?<!not )__fish_seen_subcommand_from (\S+?)(?:;|$)", condition.group(1))
                              if condition else ())
                head = line.split(" -d ")[0]
                written[words].update("-" + short for short in re.findall(r" -s (\S+)", head))
                written[words].update("--" + long for long in re.findall(r" -l (\S+)", head))
            self.assertEqual(written, {words: options for words, (options, _, _) in commands.items()})
            below = re.findall(r"(?m)^complete -c \S+(?: -n '[^']*')? -f -a (\S+) -d ", script)
            self.assertEqual(sorted(below), sorted(words[-1] for words in commands if words))

    def test_zsh_has_every_option(self):
        for program, commands in self.programs.values():
            script = output(program, "--completions", "zsh")
            self.assertTrue(script.startswith("#compdef "))
            found = {}
            for words, body in re.findall(r"(?ms)^    '([^'\n]*)'\)\n      options=\(\n(.*?)^      \)", script):
                found[tuple(words.split()[1:])] = set(re.findall(r"(?m)^        '(-[^:\n]*):", body))
            self.assertEqual(found, {words: options for words, (options, _, _) in commands.items()})

    def test_shells_take_the_scripts(self):
        checks = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "--no-execute"]}
        for shell, check in checks.items():
            if not shutil.which(shell):
                continue  # only bash is everywhere
            for program in PROGRAMS:
                with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
                    file.write(output(program, "--completions", shell))
                    file.flush()
                    self.assertEqual(output(*check, file.name), "")

    def test_another_shell_is_refused(self):
        for program in PROGRAMS:
            done = subprocess.run([program, "--completions", "tcsh"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn('--completions is "tcsh"; it must be bash, zsh or fish.', done.stderr)
            self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
