"""What the tests of clients share: servers of the two models, and what is asked of them. They run with the client's packages
(tools/test_clients)."""

import json
import os
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))

import scripted_model  # noqa: E402
from served import MODEL, Served, at_once, generated, logits  # noqa: E402, F401

KEY = "a-key-for-clients"
PROMPT = "import os"
TOKENS = 24
QUESTION = "How is the weather in Oslo?"
# Nothing but its limit ends a reply with these.
ENDLESS = {"logit_bias": {"1000": -100, "1001": -100, "1002": -100}}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}


def wanted_text():
    """What the command line writes to PROMPT."""
    return generated("adaptive", "-p", PROMPT, "-n", str(TOKENS))["text"]


def check_published(data, unpublished=()):
    """That an object of a client is what its published type says, with no further fields but these. Clients take anything, so that
    this is to be looked at. Returns it."""
    content = data.to_dict()
    if content.get("object") == "text_completion":
        # Two nulls that OpenAI's own server writes are not in the published type: of a stream's chunks but the last, and of the first
        # token of an echoed prompt.
        for choice in content["choices"]:
            choice["finish_reason"] = choice["finish_reason"] or "stop"
            logprobs = choice.get("logprobs") or {}
            if logprobs.get("token_logprobs") and logprobs["token_logprobs"][0] is None and logprobs["text_offset"][0] == 0:
                logprobs["token_logprobs"][0], logprobs["top_logprobs"][0] = 0.0, {}
    type(data).model_validate_json(json.dumps(content, default=lambda value: value.isoformat()), strict=True)
    further = set(_further(data)) - set(unpublished)
    if further:
        raise AssertionError(f"{type(data).__name__} has fields that are not published: {sorted(further)}")
    return data


def _further(data):
    if isinstance(data, (list, tuple)):
        for each in data:
            yield from _further(each)
    elif hasattr(data, "model_fields_set"):
        yield from data.model_extra or {}
        for name in data.model_fields_set & set(type(data).model_fields):
            yield from _further(getattr(data, name))


class TinyCase(unittest.TestCase):
    """Against tiny-qwen3, which writes texts like code, and a key."""

    @classmethod
    def setUpClass(cls):
        cls.served = Served("--model-name", "tiny", key=KEY, context=2048)
        cls.url = f"http://127.0.0.1:{cls.served.port}"

    @classmethod
    def tearDownClass(cls):
        code = cls.served.stop()
        assert code == 0, (code, cls.served.log)

    def metric(self, name):
        self.served.headers = {"Authorization": "Bearer " + KEY}
        return self.served.metric(name)

    def check_cancelled(self, begin):
        """begin() starts a reply of thousands of tokens and leaves it: it ends."""
        before = self.metric("reply_tokens_total"), self.metric('replies_total{ended="cancelled"}')
        begin()
        end = time.monotonic() + 60
        while self.metric('replies_total{ended="cancelled"}') == before[1] and time.monotonic() < end:
            time.sleep(0.02)
        self.assertEqual((self.metric('replies_total{ended="cancelled"}'), self.metric("replies_running")), (before[1] + 1, 0))
        self.assertLess(self.metric("reply_tokens_total") - before[0], 1900)

    def check_threads(self, ask, threads=8, times=4):
        """ask() gives the same text to each of many threads, several times."""
        texts = at_once([lambda: [ask() for _ in range(times)]] * threads)
        self.assertEqual(texts, [[wanted_text()] * times] * threads)


class ScriptedCase(TinyCase):
    """Against the model that thinks and calls as its script says."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = os.path.join(cls.folder.name, "scripted")
        scripted_model.write(MODEL, folder)
        cls.served = Served(key=KEY, model=folder, context=1024)
        cls.url = f"http://127.0.0.1:{cls.served.port}"

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()
