"""llm, the command line by Simon Willison, with the file of settings that docs/serving.md shows."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

from client_tests import KEY, PROMPT, QUESTION, TOKENS, ScriptedCase, TinyCase, wanted_text
from scripted_model import ANSWER, ARGUMENTS, NAME, THOUGHT

DOCUMENT = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "docs", "serving.md")
TOOL = f'''
def {NAME}(city: str) -> str:
    "The weather of a city"
    return f"7 degrees in {{city}}"
'''


class Client:
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        with open(DOCUMENT, encoding="utf-8") as file:
            settings = re.search(r"^```yaml\n(- model_id: canopy\n.*?)^```", file.read(), re.MULTILINE | re.DOTALL).group(1)
        self.assertIn("http://127.0.0.1:8737/v1", settings)
        settings = settings.replace("http://127.0.0.1:8737", self.url)
        settings, found = re.subn("model_name: .*", "model_name: " + self.name, settings)
        self.assertEqual(found, 1)
        with open(os.path.join(self.folder.name, "extra-openai-models.yaml"), "w", encoding="utf-8") as file:
            file.write(settings)

        self.done("keys", "set", "canopy", "--value", KEY)

    def run_llm(self, *words):
        env = {**os.environ, "LLM_USER_PATH": self.folder.name, "LLM_LOAD_PLUGINS": ""}
        return subprocess.run([sys.executable, "-S", "-B", "-m", "llm", *words], env=env, text=True, capture_output=True, check=False,
                              timeout=120, stdin=subprocess.DEVNULL)

    def done(self, *words):
        result = self.run_llm(*words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def said(self, *words):
        return self.done(*words, "-m", "canopy")

    def logged(self):
        return json.loads(self.done("logs", "--json", "-n", "0"))


class Prompts(Client, TinyCase):
    name = "tiny"
    options = ("-o", "temperature", "0", "-o", "max_tokens", str(TOKENS))

    def test_streamed_and_whole(self):
        for more in ((), ("--no-stream",)):
            self.assertEqual(self.said(PROMPT, *self.options, *more), wanted_text() + "\n")
        for logged in self.logged():
            self.assertEqual((logged["response"], logged["output_tokens"]), (wanted_text(), TOKENS))
            self.assertGreater(logged["input_tokens"], 0)

    def test_a_conversation(self):
        self.said(PROMPT, *self.options)
        alone = self.logged()[0]["input_tokens"]
        self.said("import sys", "-c", *self.options)
        self.assertGreater(max(logged["input_tokens"] for logged in self.logged()), alone + TOKENS)

    def test_what_is_refused(self):
        result = self.run_llm(PROMPT, "-m", "canopy", "-o", "top_p", "0")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("top_p", result.stderr)
        self.done("keys", "set", "canopy", "--value", "another-key")
        result = self.run_llm(PROMPT, "-m", "canopy")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("key", result.stderr)


class Calls(Client, ScriptedCase):
    name = "scripted"

    def test_a_tool_is_run(self):
        for more in ((), ("--no-stream",)):
            self.assertIn(ANSWER, self.said(QUESTION, "--functions", TOOL, *more))
        calls = [call for logged in self.logged() for call in logged.get("tool_calls", [])]
        self.assertEqual([(call["name"], call["arguments"]) for call in calls], [(NAME, ARGUMENTS)] * 2)
        results = [each for logged in self.logged() for each in logged.get("tool_results", [])]
        self.assertEqual([each["output"] for each in results], ["7 degrees in Oslo"] * 2)

    def test_thinking(self):
        self.assertIn(ANSWER, self.said(QUESTION, "-o", "reasoning_effort", "high"))


if __name__ == "__main__":
    unittest.main()
