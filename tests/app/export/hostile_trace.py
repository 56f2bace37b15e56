"""A recording whose tokens, texts and names try everything that a page or a picture might fall for."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "cli"))

from trace_test import (ACCEPTED, PREFILL, REJECTED, TREE, a_round, header, json_record, node, pieces,  # noqa: E402
                        prologue, reply_begin, times)

SCRIPT = "</script><script>document.title='taken'</script>"
IMAGE = "<img src=x onerror=\"document.title='taken'\">"
WORDS = {4: (b" once", 0), 5: (SCRIPT.encode(), 0), 10: (IMAGE.encode(), 0),
         11: ("\u202egnol \u2066\u200f".encode(), 0), 12: (b"nul\x00\x1b[31m", 0), 13: (b"]]>--><!--", 0),
         14: ("\U0001F333\u2028\u2029&amp;\"'`".encode(), 0), 15: (b"\xff\xfe\xe2\x82", 0),
         16: (b"</text></svg><script>1</script>", 0), 17: (b"</textarea></style></title>\n\n  ", 0)}


def hostile_trace(rounds=3):
    nodes = [node(ACCEPTED, 10, None, 0, 0.0, 11), node(ACCEPTED, 11, 1, 0, -0.1, 16, -0.2),
             node(REJECTED, 12, 2, 1, -1.0, 10, -2.0), node(REJECTED, 13, 2, 0, -0.5, 10),
             node(REJECTED, 17, 4, 2, -1.5, 10), node(ACCEPTED, 16, 4, 0, -0.2, 15, -0.3)]
    out = prologue() + header(
        target={"name": SCRIPT, "file_name": IMAGE + ".gguf", "architecture": "<b>", "quantization": "\u202eQ"},
        device="GPU " + SCRIPT, driver=IMAGE, kv_type="<i>", canopy_version="</footer>" + SCRIPT) + pieces(WORDS)
    out += reply_begin() + json_record(PREFILL, {"reused_tokens": 0, "ms": 7.5, "first_token": 14})
    for i in range(rounds):
        out += a_round(i, 2 + 3 * i, TREE, nodes, 2, [11, 16, 15], times(draft=1.0, verify=3.0), SCRIPT + IMAGE,
                       [(1, 1.0, 4.0), (6, 2.5, 5.0)])
    return out  # without an end: the text is what the tokens make
