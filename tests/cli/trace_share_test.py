"""canopy-cli trace export --svg, --png, --html: what is written, and what is refused."""

import os
import struct
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "app", "export"))

from cli import run  # noqa: E402
from hostile_trace import hostile_trace  # noqa: E402
from trace_test import header, prologue, whole_trace  # noqa: E402

CODE = os.path.join(ROOT, "assets", "demos", "code.canopytrace")
SVG = "{http://www.w3.org/2000/svg}"


class ShareCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def put(self, content, name="run.canopytrace"):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    def export(self, trace, *options):
        result = run("trace", "export", trace, *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, "")
        for name in options:
            if name.startswith(self.folder):
                self.assertIn("Written: " + name, result.stderr)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()


class Pictures(ShareCase):
    def test_a_round_as_svg_is_text_that_says_what_is_seen(self):
        self.export(CODE, "--round", "11", "--svg", self.path("a.svg"))
        svg = ElementTree.fromstring(self.read("a.svg"))
        self.assertEqual(svg.get("viewBox"), "0 0 1280 720")
        self.assertIn("SmolLM2-135M-Instruct Q4_1", svg.find(SVG + "title").text)
        self.assertIn("Pass 12 of 53. Two guesses were right", svg.find(SVG + "desc").text)
        words = [text.text for text in svg.iter(SVG + "text")]
        for each in ("return", "else", "accepted", "not reached", "so far", "next token"):
            self.assertIn(each, words)
        self.assertIn("width 25", " ".join(words))
        self.assertIn("prefers-color-scheme:light", svg.find(SVG + "style").text)
        self.assertLess(len(self.read("a.svg")), 100_000)

    def test_themes_and_sizes(self):
        grounds = {}
        for theme in ("dark", "light", "projector"):
            name = theme + ".svg"
            self.export(CODE, "--round", "0", "--svg", self.path(name), "--theme", theme, "--size", "900x500")
            svg = ElementTree.fromstring(self.read(name))
            self.assertEqual((svg.get("width"), svg.get("height")), ("900", "500"))
            self.assertNotIn("prefers-color-scheme", svg.find(SVG + "style").text)
            grounds[theme] = svg.find(SVG + "style").text
        self.assertEqual(len(set(grounds.values())), 3)

    def test_a_round_as_png_has_exactly_that_size_twice_the_same(self):
        for scale, size in (("1", (640, 400)), ("2", (1280, 800))):
            for name in ("a.png", "b.png"):
                self.export(CODE, "--round", "3", "--png", self.path(name), "--size", "640x400", "--scale", scale)
            png = self.read("a.png")
            self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
            self.assertEqual(struct.unpack(">II", png[16:24]), size)
            self.assertEqual(png, self.read("b.png"))

    def test_foreign_texts_stay_texts(self):
        trace = self.put(hostile_trace())
        self.export(trace, "--round", "1", "--svg", self.path("a.svg"), "--png", self.path("a.png"))
        content = self.read("a.svg")
        svg = ElementTree.fromstring(content)
        self.assertEqual({each.tag for each in svg.iter()} - {SVG + n for n in (
            "svg", "title", "desc", "style", "path", "text", "g")}, set())
        self.assertFalse([byte for byte in content if byte < 32 and byte != 10])
        self.assertNotIn("\u202e", content.decode())
        words = " ".join(text.text or "" for text in svg.iter(SVG + "text"))
        self.assertIn("\\u202egnol", words)
        self.assertIn("]]>--><!--", words)

    def test_rounds_of_other_shapes(self):
        trace = self.put(whole_trace())
        for i in range(3):
            self.export(trace, "--round", str(i), "--svg", self.path("a.svg"), "--png", self.path("a.png"))
            self.assertIsNotNone(ElementTree.fromstring(self.read("a.svg")).find(SVG + "desc").text)


class Animations(ShareCase):
    def test_ten_rounds_move_by_style_alone(self):
        self.export(CODE, "--round", "8", "--animation", self.path("a.svg"), "--size", "960x540")
        svg = ElementTree.fromstring(self.read("a.svg"))
        style = svg.find(SVG + "style").text
        self.assertEqual(style.count("@keyframes"), 30)
        self.assertIn("prefers-reduced-motion", style)
        self.assertEqual(len(list(svg.iter(SVG + "g"))), 30)
        self.assertLess(len(self.read("a.svg")), 800_000)


class Refusals(ShareCase):
    def refused(self, words, *arguments, code=1):
        result = run("trace", "export", *arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn(words, result.stderr)

    def test_by_name(self):
        trace, out = self.put(whole_trace()), self.path("out")
        self.refused("name it with --round", trace, "--svg", out, code=2)
        self.refused("passes 0 to 2", trace, "--svg", out, "--round", "3")
        self.refused("must be like 1280x720", trace, "--svg", out, "--round", "0", "--size", "big", code=2)
        self.refused("must be like 1280x720", trace, "--svg", out, "--round", "0", "--size", "100x100x100", code=2)
        self.refused("480x240", trace, "--svg", out, "--round", "0", "--size", "10x10")
        self.refused("--theme", trace, "--svg", out, "--round", "0", "--theme", "pink", code=2)
        self.refused("--round belongs to", trace, "--round", "0", code=2)
        self.refused("-o is for", trace, "--html", out, "-o", out, code=2)
        self.refused("would overwrite the trace", trace, "--html", trace)
        self.refused("passes 0 to 2", trace, "--html", out, "--round", "9")
        self.refused("has 2 there", trace, "--html", out, "--round", "1", "--rounds", "5")
        self.refused("480x323", trace, "--animation", self.path("a.svg"), "--size", "480x300")
        self.refused("must end in .svg", trace, "--animation", self.path("a.png"), code=2)
        self.refused("does not exist", self.path("missing"), "--html", out)
        self.refused("does not begin like one", self.put(b"no trace at all, really", "other"), "--html", out)
        self.refused("no whole pass", self.put(prologue() + header(), "short"), "--html", out)
        self.assertFalse(os.path.exists(out))
        self.assertEqual(self.read("run.canopytrace"), whole_trace())

    def test_a_folder_that_is_not_there(self):
        self.refused("nowhere", self.put(whole_trace()), "--html", self.path("nowhere/a.html"))

    def test_a_cut_recording_gives_a_page_that_says_so(self):
        trace = self.put(whole_trace()[:-200])
        self.export(trace, "--html", self.path("a.html"))
        self.assertIn(b"cut off or damaged", self.read("a.html"))


if __name__ == "__main__":
    unittest.main()
