"""The page of sweeps in a headless Chromium, and `canopy-cli results`."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from browser import Browser  # noqa: E402
from sample_sweep import sample_sweep  # noqa: E402

CLI = os.environ["CANOPY_CLI"]
SCRIPT = "</script><script>document.title='taken'</script>"


class ResultsCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def put(self, sweep, name="sweep.json"):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(sweep if isinstance(sweep, str) else json.dumps(sweep))
        return self.path(name)

    def results(self, *arguments, code=0):
        result = subprocess.run([CLI, "results", *arguments], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def open(self, *files):
        page = self.path("report.html")
        made = self.results(*files, "--html", page)
        self.assertEqual(made.stdout, "")
        self.assertIn("The page is in " + page, made.stderr)
        self.browser.messages.clear()
        self.browser.requests.clear()
        self.browser.open(page)
        self.browser.settle()
        self.assertEqual(self.browser.messages, [])
        self.assertEqual(self.browser.requests, ["file://" + page])
        return page

    def text(self, selector="main"):
        return self.browser.ask(f"document.querySelector({json.dumps(selector)}).innerText")


class Page(ResultsCase):
    def test_of_one_sweep_has_everything_and_asks_nobody(self):
        self.open(self.put(sample_sweep()))
        shown = self.text()
        for words in ("GeForce RTX 4090", "same text", "driver 570.1", "Joules a token", "Times plain decoding", "0.1.0 at 1a2b3c",
                      "4 prompts (code 2, gsm 2)", "NVML"):
            self.assertIn(words, shown)
        self.assertGreaterEqual(self.browser.ask("document.querySelectorAll('svg.chart').length"), 4)
        raw = self.browser.ask("document.getElementById('raw0').textContent")
        self.assertEqual(json.loads(raw), sample_sweep(), "the raw file is in it as it was")

    def test_copies_its_tables(self):
        self.open(self.put(sample_sweep()))
        self.browser.ask("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        self.browser.ask("document.querySelector('button[data-copies=markdown]').scrollIntoView({block: 'center'})")
        self.browser.click("button[data-copies=markdown]")
        self.browser.wait("/Copied|Selected/.test(document.querySelector('button[data-copies=markdown]').textContent)")
        markdown = self.browser.ask("document.getElementById('markdown').textContent")
        self.assertEqual(markdown, self.results(self.path("sweep.json")).stdout)

    def test_of_two_machines(self):
        self.open(self.put(sample_sweep()), self.put(sample_sweep("Radeon RX 7900 XTX", 90, 1.5, 12), "other.json"))
        self.assertIn("GeForce RTX 4090 beside Radeon RX 7900 XTX", self.text())
        self.assertEqual(self.browser.ask("document.querySelectorAll('svg.chart')[0].querySelectorAll('.line').length"), 2)

    def test_foreign_names_stay_names(self):
        self.open(self.put(sample_sweep(SCRIPT, model="<img src=x>\u202e", drafter="[a](javascript:1)")))
        self.assertTrue(self.browser.ask("document.title").startswith("Canopy: "))
        self.assertEqual(self.browser.ask("document.querySelectorAll('img').length"), 0)
        self.assertEqual(self.browser.ask("document.scripts.length"), 1)

    def test_fits_phones(self):
        path = self.put(sample_sweep())
        for width in (390, 1280):
            self.browser.size(width, 900)
            self.open(path)
            self.assertLessEqual(self.browser.ask("document.documentElement.scrollWidth"), width)
        self.browser.size(1280, 900)


class Refusals(ResultsCase):
    def test_by_name(self):
        for words, content in (("format", "{}"), ("not.json", "[1,"), ("version", json.dumps({**sample_sweep(), "version": 9})),
                               ("contestant", json.dumps({**sample_sweep(), "contestants": []}))):
            result = self.results(self.put(content, "not.json"), code=1)
            self.assertIn("not.json", result.stderr)
            self.assertIn(words, result.stderr)
        self.assertIn("missing", self.results(self.path("missing"), code=1).stderr)
        self.results(self.put(sample_sweep()), "--html", "-", "--markdown", "-", code=2)


if __name__ == "__main__":
    unittest.main()
