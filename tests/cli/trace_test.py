"""canopy-cli trace on a machine without a Vulkan driver.

The traces are written here by a second implementation of the format, after docs/traces.md alone.
"""

import csv
import io
import json
import os
import struct
import tempfile
import unittest

from cli import run

HEADER, PIECES, REPLY_BEGIN, PREFILL, ROUND, REPLY_END = range(1, 7)
AR, CHAIN, TREE, ADAPTIVE = range(4)
ACCEPTED, REJECTED, NOT_REACHED = range(3)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def whole(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def text(value):
    return whole(len(value)) + value


def prologue(major=1, minor=0):
    checked = b"CanopyTr" + struct.pack("<HH", major, minor)
    return checked + struct.pack("<I", crc32c(checked))


def record(kind, payload):
    checked = struct.pack("<IB", len(payload), kind) + payload
    return struct.pack("<I", crc32c(checked)) + checked


def json_record(kind, value):
    return record(kind, json.dumps(value).encode())


def times(**stages):
    names = ("draft", "build", "verify", "walk", "commit", "other")
    present = sum(1 << i for i, name in enumerate(names) if name in stages)
    return bytes([present]) + b"".join(struct.pack("<d", stages[name]) for name in names if name in stages)


def node(state, token, back, rank, log_q, target, log_p=None):
    """Log q as a double, the score as the sum along the path; back is the distance to the parent, None for the root."""
    flags = state | 0x04 | 0x20 | (0x08 if log_p is not None else 0)
    out = bytes([flags]) + whole(token) + (whole(back) if back is not None else b"") + whole(rank)
    out += struct.pack("<d", log_q) + whole(target)
    return out + (struct.pack("<f", log_p) if log_p is not None else b"")


def a_round(number, context, shape, nodes, accepted, emitted, measured, reason="", candidates=(), later=b""):
    out = whole(number) + whole(context) + bytes([ADAPTIVE | shape << 4])
    out += whole(max(1, len(nodes))) + whole(accepted)
    out += whole(len(emitted)) + b"".join(map(whole, emitted))
    out += whole(len(nodes)) + b"".join(nodes)
    out += measured + times(verify=2.5) + times(draft=1.0, verify=4.0)
    out += struct.pack("<d", 90.0) + text(reason.encode()) + b"".join(map(whole, (8 + 1, 7 + 1, 0, 0, 0)))
    out += whole(len(candidates))
    last = 0
    for width, expected, ms in candidates:
        out += whole(width - last) + struct.pack("<dd", expected, ms)
        last = width
    return record(ROUND, out + later)


def sources(match, *of_nodes):
    """Of a round's nodes but the root, since 1.2: 2 the text, 8 earlier replies."""
    return whole(0) + bytes([4]) + whole(match) + bytes([0, *of_nodes])


def header(**changes):
    model = {"name": "Tiny", "file_name": "tiny.gguf", "architecture": "llama", "quantization": "F16"}
    value = {"canopy_version": "9.9", "created": "2026-01-02T03:04:05Z", "redacted": False, "target": model,
             "drafter": None, "device": "Some GPU", "driver": "some driver 3", "kv_type": "f16", "context": 256,
             "variants": "", "calibration": ""}
    return json_record(HEADER, {**value, **changes})


def reply_begin():
    sampling = {"temperature": 0, "top_k": 0, "top_p": 1, "min_p": 0, "seed": 5, "repetition_penalty": 1,
                "presence_penalty": 0, "frequency_penalty": 0, "logit_bias": []}
    return json_record(REPLY_BEGIN, {"turn": 0, "mode": "adaptive", "policy": "measured", "budget": 8,
                                     "max_tokens": 64, "sampling": sampling, "stop_strings": [], "prompt_tokens": 2,
                                     "prompt_ids": [4, 5]})


def pieces(words):
    out = whole(len(words))
    for token, (word, control) in words.items():
        out += whole(token) + bytes([control]) + text(word)
    return record(PIECES, out)


WORDS = {4: (b" once", 0), 5: (b" upon", 0), 10: (b" root", 0), 11: (b" left", 0), 12: (b" right", 0), 13: (b" leaf", 0),
         14: (b" \x1b[31mred", 0), 15: (b"<|end|>", 1)}


def whole_trace():
    """Three rounds: a tree with one accepted token, a plain one, and a tree that the reply ends in."""
    nodes = [node(ACCEPTED, 10, None, 0, 0.0, 11), node(ACCEPTED, 11, 1, 0, -0.1, 14, -0.2),
             node(REJECTED, 12, 2, 1, -1.0, 10, -2.0), node(REJECTED, 13, 2, 0, -0.5, 10)]
    ends = [node(ACCEPTED, 12, None, 0, 0.0, 15), node(REJECTED, 15, 1, 0, -0.25, 10)]
    measured = times(draft=1.0, verify=3.0, walk=0.5, other=0.5)
    return (prologue() + header() + pieces(WORDS) + reply_begin() +
            json_record(PREFILL, {"reused_tokens": 0, "ms": 7.5, "first_token": 10}) +
            a_round(0, 2, TREE, nodes, 1, [11, 14], measured, "Four rows pay.", [(1, 1.0, 4.0), (4, 2.5, 5.0)]) +
            a_round(1, 4, AR, [], 0, [12], times(verify=4.0)) +
            a_round(2, 5, TREE, ends, 0, [15], measured) +
            json_record(REPLY_END, {"finish_reason": "stop_token", "reply_tokens": 5, "decode_ms": 14.0,
                                    "text": "root left red right"}))


class TraceCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def put(self, content, name="run.canopytrace"):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def trace(self, part, path, *arguments):
        result = run("trace", part, path, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result


class Show(TraceCase):
    def test_the_whole_trace(self):
        result = self.trace("show", self.put(whole_trace()))
        self.assertEqual(result.stderr, "")
        for words in ("Tiny (tiny.gguf, llama, F16)", "Some GPU (some driver 3)", "policy measured", "greedy",
                      "stop token after 5 tokens", '" left" "'):
            self.assertIn(words, result.stdout)
        self.assertNotIn("\x1b", result.stdout)  # what a model writes cannot act on a terminal

    def test_a_round_with_its_tree(self):
        shown = self.trace("show", self.put(whole_trace()), "--round", "0").stdout
        self.assertIn("why       Four rows pay.", shown)
        self.assertIn("limits    budget 8, depth 7\n", shown)
        self.assertRegex(shown, r"4 +2\.500 +5\.000 +500\.0  chosen")
        self.assertRegex(shown, r"verify +3\.000 +2\.500 +4\.000")
        tree = shown[shown.index('● " root"'):].splitlines()
        self.assertEqual([line.split("  q")[0].split('  path')[0] for line in tree],
                         ['● " root"', '├─✓ " left"', '│ ├─× " leaf"', '│ └─★ " \\x1b[31mred"', '└─× " right"'])
        self.assertIn("q 0.905  p 0.819  path 0.905  rank 0", tree[1])

    def test_ascii_alone_on_request(self):
        shown = self.trace("show", self.put(whole_trace()), "--round", "0", "--ascii").stdout
        self.assertIn('|-+ " left"', shown)
        self.assertTrue(shown.isascii())

    def test_a_reply_that_ends_inside_its_tree(self):
        shown = self.trace("show", self.put(whole_trace()), "--round", "2").stdout
        self.assertRegex(shown, r'└─✓ "<\|end\|>".*\(the reply ended here\)')
        self.assertNotIn("└─★", shown)

    def test_a_redacted_trace(self):
        content = prologue() + header(redacted=True) + reply_begin() + a_round(0, 2, AR, [], 0, [0], times(verify=1.0))
        shown = self.trace("show", self.put(content)).stdout
        self.assertIn("redacted", shown)
        self.assertIn("#0", shown)


class Stats(TraceCase):
    def test_numbers_by_hand(self):
        stats = json.loads(self.trace("stats", self.put(whole_trace()), "--json").stdout)
        self.assertEqual((stats["rounds"], stats["emitted"], stats["cut_rounds"]), (3, 4, 1))
        self.assertAlmostEqual(stats["tau"], 4 / 3)
        self.assertAlmostEqual(stats["tokens_per_second"], 1000 * 4 / 14)
        self.assertEqual(stats["accepted_histogram"], {"0": 1, "1": 2})
        self.assertEqual(stats["by_depth"][0], {"depth": 1, "offered": 2, "accepted": 2, "rate": 1.0})
        self.assertEqual(stats["by_depth"][1], {"depth": 2, "offered": 1, "accepted": 0, "rate": 0.0})
        self.assertEqual(sum(stats["rounds_by_source"].values()), 3)
        self.assertEqual(stats["by_source"]["suffix"], {"offered": 0, "accepted": 0, "rate": 0.0})
        self.assertEqual(stats["expected_against_emitted"]["rounds"], 1)
        self.assertAlmostEqual(sum(stats["share_of_ms"].values()), 1)

    def test_text(self):
        shown = self.trace("stats", self.put(whole_trace())).stdout
        self.assertIn("passes    3, 1 of them ended inside their tree", shown)
        self.assertRegex(shown, r"tree +2 +3 +1\.500")


class OtherChats(TraceCase):
    """A file of before has the words of wrong guesses that earlier replies alone made."""

    def setUp(self):
        super().setUp()
        nodes = [node(ACCEPTED, 10, None, 0, 0.0, 11), node(ACCEPTED, 11, 1, 0, -0.1, 14, -0.2),
                 node(REJECTED, 12, 2, 1, -1.0, 13, -2.0), node(REJECTED, 13, 2, 0, -0.5, 10)]
        old = (prologue(minor=2) + header() + pieces(WORDS) + reply_begin() +
               json_record(PREFILL, {"reused_tokens": 0, "ms": 7.5, "first_token": 10}) +
               a_round(0, 2, TREE, nodes, 1, [11, 14], times(verify=3.0), later=sources(3, 8, 8, 2)))
        self.old = self.put(old)

    def test_export_tells_none_of_them(self):
        nodes = json.loads(self.trace("export", self.old).stdout)["replies"][0]["rounds"][0]["nodes"]
        self.assertEqual([n["sources"] for n in nodes], [[], ["earlier"], ["earlier"], ["suffix"]])
        self.assertEqual([n["token"] for n in nodes], [10, 11, None, 13], "what was accepted is this chat's text")
        self.assertEqual([n["text"] for n in nodes], [" root", " left", "(from another chat)", " leaf"])
        self.assertIsNone(nodes[2]["target_token"])
        self.assertEqual((nodes[2]["log_q"], nodes[2]["state"]), (-1.0, "rejected"))
        self.assertTrue(all(n["went_on"] is None for n in nodes))

    def test_show_draws_none_of_them(self):
        shown = self.trace("show", self.old, "--round", "0").stdout
        self.assertIn("(from another chat)", shown)
        self.assertNotIn(" right", shown)
        self.assertIn(" leaf", shown)


class Export(TraceCase):
    def test_json_has_everything(self):
        exported = json.loads(self.trace("export", self.put(whole_trace())).stdout)
        self.assertEqual(exported["header"]["device"], "Some GPU")
        reply = exported["replies"][0]
        self.assertEqual(reply["prompt_texts"], [" once", " upon"])
        self.assertEqual(reply["end"]["finish_reason"], "stop_token")
        first = reply["rounds"][0]
        self.assertEqual(first["emitted_texts"][0], " left")
        self.assertEqual(first["ms"], {"draft": 1.0, "build": 0.0, "verify": 3.0, "walk": 0.5, "commit": 0.0,
                                       "other": 0.5})
        leaf = first["nodes"][3]
        self.assertEqual((leaf["parent"], leaf["depth"], leaf["state"], leaf["log_p"]), (1, 2, "rejected", None))
        self.assertEqual((leaf["log_q"], leaf["score"]), (-0.5, -0.1 - 0.5))

    def test_csv_is_a_table_of_rounds(self):
        path = self.put(whole_trace())
        output = os.path.join(self.folder, "out.csv")
        self.assertEqual(self.trace("export", path, "--format", "csv", "-o", output).stdout, "")
        with open(output, newline="", encoding="utf-8") as file:
            content = file.read()
        self.assertEqual(content, self.trace("export", path, "--format", "csv").stdout.replace("\n", "\r\n"))
        rows = list(csv.DictReader(io.StringIO(content)))
        self.assertEqual([row["shape"] for row in rows], ["tree", "ar", "tree"])
        self.assertEqual(rows[0]["reason"], "Four rows pay.")
        self.assertEqual((rows[0]["match"], rows[0]["sources"]), ("0", "dflash"))
        self.assertEqual(float(rows[0]["predicted_tokens_per_second"]), 500)

    def test_the_trace_itself_is_never_overwritten(self):
        path = self.put(whole_trace())
        result = run("trace", "export", path, "-o", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn("would overwrite the trace", result.stderr)
        with open(path, "rb") as file:
            self.assertEqual(file.read(), whole_trace())


class Faults(TraceCase):
    def refused(self, words, *arguments, code=1):
        result = run("trace", *arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertIn(words, result.stderr)
        if code == 1:
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    def test_wrong_files(self):
        self.refused("does not exist", "show", os.path.join(self.folder, "missing.canopytrace"))
        self.refused("does not begin like one", "stats", self.put(b"GGUF and so on and on"))
        self.refused("is empty", "export", self.put(b""))
        self.refused("is a directory", "show", self.folder)
        self.refused("a trace of format 3.1", "show", self.put(prologue(3, 1) + header()))
        self.refused("header is cut off or damaged", "show", self.put(whole_trace()[:100]))
        self.refused("has no pass 3; it has 3", "show", self.put(whole_trace()), "--round", "3")

    def test_wrong_usage_is_code_2(self):
        path = self.put(whole_trace())
        self.refused("--round", "show", path, "--round", "-1", code=2)
        self.refused("--format", "export", path, "--format", "xml", code=2)
        self.refused("subcommand", code=2)
        self.refused("file", "show", code=2)

    def test_a_trace_cut_off_shows_what_there_is(self):
        path = self.put(whole_trace()[:-200])
        result = self.trace("stats", path, "--json")
        self.assertIn("cut off or damaged at byte", result.stderr)
        self.assertEqual(json.loads(result.stdout)["rounds"], 2)

    def test_records_of_a_newer_version_are_left_out(self):
        result = self.trace("stats", self.put(prologue(1, 7) + header() + record(77, b"?") + reply_begin()), "--json")
        self.assertIn("left out: 1.", result.stderr)

    def test_a_round_that_contradicts_itself_is_named(self):
        bad = a_round(0, 2, TREE, [node(REJECTED, 10, None, 0, 0.0, 11)], 0, [11], times(verify=1.0))
        self.refused("its root is not accepted", "show", self.put(prologue() + header() + reply_begin() + bad),
                     "--round", "0")


if __name__ == "__main__":
    unittest.main()
