"""The page of a recording in a headless Chromium: it opens, plays, scrubs, asks nobody for anything, and believes nothing
that a token says."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, HERE)

from browser import Browser  # noqa: E402
from hostile_trace import IMAGE, hostile_trace  # noqa: E402

CLI = os.environ["CANOPY_CLI"]
SAMPLES = os.environ["CANOPY_REVEAL_SAMPLES"]
DEMOS = os.path.join(ROOT, "assets", "demos")


def export(trace, page, *options):
    subprocess.run([CLI, "trace", "export", trace, "--html", page, *options], check=True, capture_output=True, timeout=120)
    with open(page, encoding="utf-8") as file:
        return file.read()


class PageCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.browser = Browser()
        cls.pages = {}

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def page(self, trace):
        if trace not in self.pages:
            path = os.path.join(self.folder.name, f"{len(self.pages)}.html")
            export(trace, path)
            self.pages[trace] = path
        return self.pages[trace]

    def open(self, trace="code", **preferred):
        path = self.page(trace if os.sep in trace else os.path.join(DEMOS, trace + ".canopytrace"))
        self.browser.prefer(prefers_color_scheme="dark", prefers_reduced_motion="no-preference", **preferred) \
            if not preferred else self.browser.prefer(**preferred)
        self.browser.messages.clear()
        self.browser.requests.clear()
        self.browser.open(path)
        self.browser.wait("document.documentElement.dataset.ready === 'yes'")
        self.browser.settle()
        return path

    def quiet(self, path):
        self.assertEqual(self.browser.messages, [])
        self.assertEqual(self.browser.requests, ["file://" + path])

    def text(self, selector):
        return self.browser.ask(f"document.querySelector({json.dumps(selector)}).innerText")

    def seen(self):
        """The text of the reply as far as it is shown."""
        return self.browser.ask("[...document.querySelectorAll('#reply span')].filter((s) => !s.hidden)"
                                ".map((s) => s.textContent).join('')")

    def ink(self):
        """Pixels of the tree that are not clear."""
        return self.browser.ask("(() => { const c = document.getElementById('tree'), o = document.createElement('canvas');"
                                " o.width = c.width; o.height = c.height;"
                                " const t = o.getContext('2d', {willReadFrequently: true}); t.drawImage(c, 0, 0);"
                                " const d = t.getImageData(0, 0, o.width, o.height).data; let n = 0;"
                                " for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; })()")


class Demo(PageCase):
    def test_opens_without_a_word_on_the_console_and_asks_nobody(self):
        path = self.open()
        self.quiet(path)
        self.assertGreater(self.ink(), 10_000)
        self.assertIn("SmolLM2-135M-Instruct", self.text("header"))
        self.assertIn("pass 1 of 53", self.text("#pass"))
        self.assertIn("Python class Stack", self.text("#question"))
        self.assertGreater(len(self.seen()), 5)

    def test_scrubs_by_key_slider_strip_and_text(self):
        path = self.open()
        first = self.seen()
        self.browser.press("ArrowRight")
        self.assertIn("pass 2 of 53", self.text("#pass"))
        self.assertTrue(self.seen().startswith(first))
        self.assertGreater(len(self.seen()), len(first))
        self.browser.press("End")
        self.assertIn("pass 53 of 53", self.text("#pass"))
        whole = self.seen()
        self.browser.press("Home")
        self.assertEqual(self.seen(), first)
        self.browser.ask("(() => { const s = document.getElementById('scrub'); s.value = 20;"
                         " s.dispatchEvent(new Event('input')); })()")
        self.browser.settle()
        self.assertIn("pass 21 of 53", self.text("#pass"))
        self.assertTrue(whole.startswith(self.seen()))
        x, y, width = self.browser.ask("(() => { const b = document.getElementById('strip').getBoundingClientRect();"
                                       " return [b.left, b.top + 30, b.width]; })()")
        self.browser.click_at(x + width * 10.5 / 53, y)
        self.assertIn("pass 11 of 53", self.text("#pass"))
        self.browser.press("Home")
        self.browser.ask("document.querySelector('#reply [data-round=\"0\"]').click()")
        self.browser.settle()
        self.assertIn("pass 1 of 53", self.text("#pass"))
        self.quiet(path)

    def test_plays_to_the_end_and_stops(self):
        path = self.open()
        self.browser.press("End")
        self.browser.press("ArrowLeft")
        self.browser.press(" ")
        self.browser.wait("document.getElementById('play').getAttribute('aria-label') === 'Play'")
        self.assertIn("pass 53 of 53", self.text("#pass"))
        self.quiet(path)

    def test_slow_motion_has_six_steps_with_their_words(self):
        path = self.open()
        self.browser.press("ArrowRight")
        before = self.seen()
        begins = ["A small drafter guesses", "The likeliest continuation", "The big model reads the whole tree",
                  "Token by token", "Where no guess fits", None]
        pictures = set()
        for i, words in enumerate(begins):
            self.browser.press(str(i + 1))
            caption = self.text("#caption")
            if words:
                self.assertIn(words, caption)
            pictures.add(self.ink())
            if i < 5:  # nothing is told before its time
                self.assertEqual(self.text("#emitted"), "\u2026")
                self.assertLess(len(self.seen()), len(before))
        self.assertGreaterEqual(len(pictures), 5)
        self.assertEqual(self.seen(), before)
        self.browser.press("s")
        self.browser.press("s")
        self.browser.wait("document.getElementById('caption').innerText.includes('A small drafter')")
        self.browser.wait("document.getElementById('caption').innerText.includes('The likeliest')")
        self.quiet(path)

    def test_reduced_motion_moves_only_by_key(self):
        path = self.open(prefers_color_scheme="dark", prefers_reduced_motion="reduce")
        self.browser.press("s")
        caption = self.text("#caption")
        self.assertIn("A small drafter", caption)
        self.browser.ask("new Promise((done) => setTimeout(() => done(1), 900))")
        self.assertEqual(self.text("#caption"), caption)
        self.browser.press("ArrowRight")
        self.assertIn("The likeliest", self.text("#caption"))
        self.quiet(path)

    def test_follows_the_colours_of_the_system(self):
        for scheme, ground in (("dark", "rgb(11, 15, 14)"), ("light", "rgb(221, 228, 224)")):
            path = self.open(prefers_color_scheme=scheme, prefers_reduced_motion="no-preference")
            self.assertEqual(self.browser.ask("getComputedStyle(document.documentElement).backgroundColor"), ground)
            self.quiet(path)

    def test_a_word_under_the_mouse_tells_about_itself(self):
        self.open()
        for _ in range(8):
            self.browser.press("ArrowRight")
        x, y = self.browser.ask(
            "(() => { const r = data.rounds[8], b = r.boxes.find((box) => r.f[box[0]] === 2);"
            " const c = document.getElementById('tree').getBoundingClientRect(), fit = c.width / data.canvas.w;"
            " return [c.left + (b[1] + 12) * fit, c.top + b[2] * fit]; })()")
        self.browser.move_to(x, y)
        self.assertIn("guessed, and the big model wrote another", self.text("#card"))
        self.assertIn("guessed with", self.text("#card"))

    def test_statistics_are_those_of_the_trace(self):
        self.open()
        result = subprocess.run([CLI, "trace", "stats", os.path.join(DEMOS, "code.canopytrace"), "--json"], check=True,
                                capture_output=True, text=True, timeout=60)
        stats = json.loads(result.stdout)
        shown = self.text(".stats")
        self.assertIn(f"{stats['tau']:.2f}", shown)
        self.assertIn(f"{stats['accepted']} of {stats['drafted']:,}", shown)

    def test_shows_the_same_moments_as_the_window(self):
        for demo in ("code", "prose"):
            self.open(demo)
            trace = os.path.join(DEMOS, demo + ".canopytrace")
            output = subprocess.run([SAMPLES, trace], check=True, capture_output=True, text=True, timeout=60).stdout
            for sample in json.loads(output):
                now = self.browser.ask(f"reveal(data.rounds[{sample['round']}], {sample['phase']}, {sample['progress']})")
                where = (demo, sample["round"], sample["phase"], sample["progress"])
                for field in ("draftShown", "walker", "whole"):
                    self.assertEqual(now[field], sample[field], where + (field,))
                for field in ("filled", "verified"):
                    self.assertAlmostEqual(now[field], sample[field], 5, where + (field,))
                self.assertEqual(len(now["nodes"]), len(sample["nodes"]), where)
                for mine, theirs in zip(now["nodes"], sample["nodes"]):
                    self.assertEqual(mine["judged"], theirs[1], where)
                    for name, value in zip(("shown", "strength", "lit", "width"), theirs[:1] + theirs[2:]):
                        self.assertAlmostEqual(mine[name], value, 4, where + (name,))


class Predicted(PageCase):
    def test_no_time_that_is_predicted_is_called_measured(self):
        recording = os.path.join(self.folder.name, "there.canopytrace")
        demo = os.path.join(DEMOS, "code.canopytrace")
        subprocess.run([CLI, "trace", "what-if", demo, "--device", "h100", "-o", recording], check=True,
                       capture_output=True, timeout=120)
        self.open(recording)
        text = self.text("body")
        self.assertNotIn("measured", text)
        self.assertIn("for this pass, predicted", text)
        self.assertIn("Tokens a second, predicted", text)
        self.assertIn("nothing was recorded on this device", text)
        self.assertIn("predicted", self.text("header .badge + .badge"))
        picture = os.path.join(self.folder.name, "there.svg")
        subprocess.run([CLI, "trace", "export", recording, "--svg", picture, "--round", "3"], check=True,
                       capture_output=True, timeout=120)
        with open(picture, encoding="utf-8") as file:
            self.assertIn(" predicted<", file.read())
        self.open("code")
        self.assertIn("for this pass, measured", self.text("body"))


class Hostile(PageCase):
    def trace(self):
        path = os.path.join(self.folder.name, "hostile.canopytrace")
        if not os.path.exists(path):
            with open(path, "wb") as file:
                file.write(hostile_trace())
        return path

    def test_nothing_that_a_token_says_is_done(self):
        path = self.open(self.trace())
        for key in ("ArrowRight", "4", "6", "End"):
            self.browser.press(key)
        self.quiet(path)
        self.assertTrue(self.browser.ask("document.title").startswith("Canopy: "))
        self.assertEqual(self.browser.ask("document.querySelectorAll('img, iframe, object, link[rel=stylesheet]').length"), 0)
        self.assertEqual(self.browser.ask("document.scripts.length"), 2)  # the data, and the page's own
        self.assertIn(IMAGE[:20], self.browser.ask("data.labels.join(' ')"))
        # A token's text stands in the page as it is, but for what would turn or end it.
        seen = self.seen()
        self.assertIn("</text></svg><script>1</script>", seen)
        self.assertIn("\\u202egnol", seen)
        self.assertNotIn("\u202e", seen)

    def test_the_file_has_no_raw_control_and_no_foreign_markup(self):
        with open(self.page(self.trace()), "rb") as file:
            content = file.read()
        self.assertFalse([byte for byte in content if byte < 32 and byte not in (9, 10)])
        self.assertEqual(content.count(b"<script"), 2)
        self.assertEqual(content.count(b"</script"), 2)
        self.assertNotIn(b"<img", content)
        self.assertNotIn("\u202e".encode(), content)

    def test_the_policy_forbids_what_is_not_the_pages_own(self):
        path = self.page(self.trace())
        with open(path, encoding="utf-8") as file:
            content = file.read()
        self.assertIn("default-src 'none'", content)
        self.assertNotIn("unsafe-inline", content)
        changed = os.path.join(self.folder.name, "changed.html")
        with open(changed, "w", encoding="utf-8") as file:
            file.write(content.replace("<main>", "<main><script>document.title = 'taken'</script>"
                                                 "<img src='http://example.invalid/x.png'>", 1))
        self.browser.messages.clear()
        self.browser.open(changed)
        self.browser.settle()
        self.assertNotEqual(self.browser.ask("document.title"), "taken")
        self.assertTrue(any("Content Security Policy" in message for message in self.browser.messages))


class Sizes(PageCase):
    def test_fits_phones_and_wide_screens(self):
        for width, height in ((390, 844), (900, 700), (2560, 1440)):
            self.browser.size(width, height)
            path = self.open()
            self.assertLessEqual(self.browser.ask("document.documentElement.scrollWidth"), width)
            self.quiet(path)
        self.browser.size(1280, 900)


if __name__ == "__main__":
    unittest.main()
