"""canopy-cli serve: what clients of OpenAI's and Anthropic's interfaces send and get."""

import json
import math
import os
import re
import shutil
import sys
import tempfile
import unittest

from cli import GOLDEN, run
from served import CHAT, CODE, MODEL, MODES, RESPONSE, TOOLS, Case, Served, events, generated, logits

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "clients"))

import scripted_model  # noqa: E402


class Endpoints(Case):
    def test_models(self):
        for path in ("/v1/models", "/models"):
            status, _, text = self.served.ask("GET", path)
            self.assertEqual(status, 200)
            models = json.loads(text)
            self.assertEqual(models["object"], "list")
            self.assertEqual(models["data"][0]["id"], "tiny")
            self.assertNotIn(GOLDEN, text.decode())
        self.assertEqual(json.loads(self.served.ask("GET", "/v1/models/tiny")[2])["id"], "tiny")
        status, _, text = self.served.ask("GET", "/v1/models/other")
        self.assertEqual((status, json.loads(text)["error"]["code"]), (404, "model_not_found"))

    def test_models_for_clients_of_anthropic(self):
        headers = {"anthropic-version": "2023-06-01"}
        models = json.loads(self.served.ask("GET", "/v1/models", headers=headers)[2])
        self.assertEqual((list(models), models["has_more"]), (["data", "has_more", "first_id", "last_id"], False))
        model = models["data"][0]
        self.assertEqual((model["type"], model["id"], model["display_name"], model["max_input_tokens"]), ("model", "tiny", "tiny", 512))
        self.assertRegex(model["created_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(json.loads(self.served.ask("GET", "/v1/models/tiny", headers=headers)[2]), model)
        status, _, text = self.served.ask("GET", "/v1/models/other", headers=headers)
        self.assertEqual((status, json.loads(text)["type"], json.loads(text)["error"]["type"]), (404, "error", "not_found_error"))

    def test_health_and_metrics(self):
        self.assertEqual(json.loads(self.served.ask("GET", "/health")[2]), {"status": "ok"})
        before = self.served.metric("reply_tokens_total")
        self.served.post("/v1/chat/completions", CHAT)
        self.assertEqual(self.served.metric("reply_tokens_total") - before, 24)
        text = self.served.ask("GET", "/v1/metrics")[2].decode()
        for name in ("replies_total", "replies_waiting", "replies_running", "prompt_tokens_total", "prompt_tokens_reused_total",
                     "prefill_seconds_total", "decode_seconds_total", "passes_total", "tokens_per_pass", "drafted_tokens_total",
                     "accepted_tokens_total", "accepted_by_depth_total", "accepted_by_source_total"):
            self.assertIn(f"# TYPE canopy_{name} ", text)
        for line in text.splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) canopy_\w+ .+|canopy_\w+(\{\w+="\w+"\})? \S+)$')

    def test_what_is_not_there(self):
        self.assertEqual(self.served.ask("GET", "/v1/nothing")[0], 404)
        self.assertEqual(self.served.ask("GET", "/v1/chat/completions")[0], 405)
        self.assertEqual(self.served.ask("POST", "/v1/models", {})[0], 405)
        self.refused(501, None, "no embeddings", "/v1/embeddings", {"input": "a"})


class Replies(Case):
    def test_a_chat_is_the_text_of_generate_in_every_mode(self):
        for mode in ("ar", "chain", "tree", "adaptive"):
            wanted = generated(mode, "-p", "import os", "-n", "24")
            status, answer = self.served.post("/v1/chat/completions", {**CHAT, "model": "tiny", "speculation": {"mode": mode}})
            self.assertEqual(status, 200, answer)
            choice = answer["choices"][0]
            self.assertEqual(choice["message"]["content"], wanted["text"])
            self.assertEqual(choice["finish_reason"], {"max_tokens": "length", "stop_token": "stop"}[wanted["finish_reason"]])
            self.assertEqual(answer["usage"]["prompt_tokens"], len(wanted["prompt_ids"]))
            self.assertEqual(answer["usage"]["completion_tokens"], len(wanted["output_ids"]))

    def test_a_seed_gives_the_text_of_generate(self):
        wanted = generated("adaptive", "-p", "import os", "-n", "24", "-t", "1.5", "--seed", "7")
        answer = self.served.post("/v1/chat/completions", {**CHAT, "temperature": 1.5, "seed": 7})[1]
        self.assertEqual(answer["choices"][0]["message"]["content"], wanted["text"])

    def test_a_completion_is_the_text_of_raw_prompts(self):
        wanted = generated("adaptive", "--raw", "-p", "import os", "-n", "16")
        for prompt in ("import os", wanted["prompt_ids"]):
            answer = self.served.post("/v1/completions", {"prompt": prompt, "temperature": 0})[1]
            self.assertEqual(answer["object"], "text_completion")
            self.assertEqual(answer["choices"][0]["text"], wanted["text"])
        several = self.served.post("/v1/completions", {"prompt": ["import os", "def f"], "temperature": 0, "echo": True})[1]
        self.assertEqual([choice["index"] for choice in several["choices"]], [0, 1])
        self.assertEqual(several["choices"][0]["text"], "import os" + wanted["text"])
        self.assertTrue(several["choices"][1]["text"].startswith("def f"))

    def test_a_stream_has_the_events_in_their_order(self):
        whole = self.served.post("/v1/chat/completions", CHAT)[1]
        status, headers, body = self.served.ask("POST", "/v1/chat/completions",
                                                {**CHAT, "stream": True, "stream_options": {"include_usage": True}})
        self.assertEqual(status, 200)
        self.assertTrue(headers["Content-Type"].startswith("text/event-stream"))
        stream = [data for _, data in events(body)]
        self.assertEqual(stream[-1], "[DONE]")
        self.assertEqual(stream[-2]["choices"], [])
        self.assertEqual(stream[-2]["usage"]["completion_tokens"], 24)
        chunks = stream[:-2]
        self.assertEqual(len({chunk["id"] for chunk in stream[:-1]}), 1)
        self.assertEqual(chunks[0]["choices"][0]["delta"], {"role": "assistant", "content": ""})
        self.assertEqual("".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks),
                         whole["choices"][0]["message"]["content"])
        self.assertEqual([chunk["choices"][0]["finish_reason"] for chunk in chunks if chunk["choices"][0]["finish_reason"]],
                         [whole["choices"][0]["finish_reason"]])
        self.assertEqual(chunks[-1]["choices"][0]["finish_reason"], whole["choices"][0]["finish_reason"])

    def test_a_stop_ends_the_text(self):
        text = self.served.post("/v1/chat/completions", CHAT)[1]["choices"][0]["message"]["content"]
        stop = re.search(r"[!-~]{2}", text[2:]).group()
        answer = self.served.post("/v1/chat/completions", {**CHAT, "stop": [stop]})[1]["choices"][0]
        self.assertEqual(answer["message"]["content"], text[:text.index(stop)])
        self.assertEqual(answer["finish_reason"], "stop")

    def test_a_stop_that_spans_tokens_ends_the_text_in_every_mode(self):
        choice = self.served.post("/v1/chat/completions", {**CHAT, "logprobs": True})[1]["choices"][0]
        text, tokens = choice["message"]["content"], [each["token"] for each in choice["logprobs"]["content"]]
        # The end of a token and the beginning of the next one, where the text has both together for the first time.
        ends = [sum(map(len, tokens[: i + 1])) for i in range(len(tokens) - 1)]
        stops = [text[end - 1 : end + 1] for end in ends if 2 < end < len(text) and text.index(text[end - 1 : end + 1]) == end - 1]
        self.assertTrue(stops, tokens)
        for stop in stops[:3]:
            wanted = text[: text.index(stop)]
            for mode in MODES:
                body = {**CHAT, "stop": ["never", stop], "speculation": {"mode": mode}}
                answer = self.served.post("/v1/chat/completions", body)[1]["choices"][0]
                self.assertEqual((answer["message"]["content"], answer["finish_reason"]), (wanted, "stop"))
                stream = self.served.ask("POST", "/v1/chat/completions", {**body, "stream": True})[2]
                deltas = [data["choices"][0]["delta"].get("content", "") for _, data in events(stream) if data != "[DONE]"]
                self.assertEqual("".join(deltas), wanted, "nothing of a stop is sent")

    def test_rounds_come_as_events_of_their_own(self):
        body = self.served.ask("POST", "/v1/chat/completions",
                               {**CHAT, "stream": True, "canopy": {"rounds": True}, "speculation": {"mode": "tree"}})[2]
        rounds = [data for name, data in events(body) if name == "canopy.round"]
        self.assertEqual([each["round"] for each in rounds], list(range(len(rounds))))
        self.assertEqual(sum(len(each["emitted"]) for each in rounds), 23)
        self.assertEqual(list(rounds[0]), ["round", "context", "mode", "shape", "width", "accepted", "match", "backlog",
                                           "teaches", "emitted", "emitted_texts", "ms", "device_ms", "predicted_ms", "choice",
                                           "nodes", "first_index", "text_begin", "text_ends"])
        found = events(body)
        started = next(data for name, data in found if name == "canopy.started")
        self.assertNotIn("prompt_ids", started)
        self.assertEqual(rounds[0]["context"], started["prompt_tokens"])
        text = "".join(data["text"] for name, data in found if name == "canopy.text")
        self.assertEqual(text, self.served.post("/v1/chat/completions", CHAT)[1]["choices"][0]["message"]["content"])
        finished = [data for name, data in found if name == "canopy.finished"]
        self.assertEqual(len(finished), 1)
        self.assertEqual(finished[0]["tokens"]["ids"] + finished[0]["tokens"]["ending"],
                         [started["first_token"], *(id for each in rounds for id in each["emitted"])])

    def test_a_canopy_says_what_it_is(self):
        status, _, text = self.served.ask("GET", "/v1/canopy")
        about = json.loads(text)
        self.assertEqual((status, about["schema"], about["id"]), (200, 1, "tiny"))
        self.assertEqual(about["model"]["context"], 512)
        self.assertEqual(about["sources"], ["suffix", "recycling"])
        self.assertEqual(about["header"]["context"], 512)
        self.assertNotIn(GOLDEN, text.decode())
        texts = json.loads(self.served.ask("GET", "/v1/canopy/tokens")[2])
        self.assertTrue(0 < len(texts["texts"]) <= about["header"]["target"]["sizes"]["vocab"])
        self.assertEqual(self.served.ask("POST", "/v1/canopy", {})[0], 405)


class LogProbabilities(Case):
    def completion(self, **fields):
        status, answer = self.served.post("/v1/completions", {"temperature": 0, **fields})
        self.assertEqual(status, 200, answer)
        return answer

    def test_of_an_echoed_prompt_are_those_of_the_logits(self):
        count = 12
        ids, rows = logits(CODE + "def f(x):\n    return x + 1\n", count)
        logprobs = self.completion(prompt=ids, max_tokens=0, echo=True, logprobs=1)["choices"][0]["logprobs"]
        self.assertEqual(len(logprobs["tokens"]), count)
        self.assertEqual((logprobs["token_logprobs"][0], logprobs["top_logprobs"][0]), (None, None))
        for i in range(1, count):
            row = rows[i - 1]
            total = math.log(math.fsum(math.exp(x) for x in row))
            self.assertAlmostEqual(logprobs["token_logprobs"][i], row[ids[i]] - total, delta=1e-9)
            top = logprobs["top_logprobs"][i]
            self.assertAlmostEqual(max(top.values()), max(row) - total, delta=1e-9)
            self.assertEqual(top[logprobs["tokens"][i]], logprobs["token_logprobs"][i])
            # By this, lm-eval says whether a text is the one that greedy decoding would write.
            self.assertEqual(logprobs["token_logprobs"][i] == max(top.values()), row[ids[i]] == max(row))

    def test_are_the_same_in_every_mode_and_when_the_text_is_read(self):
        wanted = generated("ar", "--raw", "-p", CODE, "-n", "20")
        ids = wanted["prompt_ids"] + wanted["output_ids"]
        read = self.completion(prompt=ids, max_tokens=0, echo=True, logprobs=3)
        self.assertEqual(read["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
        self.assertEqual(read["usage"]["completion_tokens"], 0)
        count = len(wanted["prompt_ids"])
        for mode in MODES:
            answer = self.completion(prompt=CODE, max_tokens=20, logprobs=3, speculation={"mode": mode})
            written = answer["choices"][0]["logprobs"]
            self.assertEqual(answer["choices"][0]["text"], wanted["text"])
            self.assertEqual(len(written["tokens"]), answer["usage"]["completion_tokens"])
            for part in ("tokens", "token_logprobs", "top_logprobs"):
                self.assertEqual(written[part], read["choices"][0]["logprobs"][part][count:], mode)
            both = self.completion(prompt=CODE, max_tokens=20, logprobs=3, echo=True, speculation={"mode": mode})
            for part in ("tokens", "token_logprobs", "top_logprobs"):
                self.assertEqual(both["choices"][0]["logprobs"][part], read["choices"][0]["logprobs"][part], mode)
            self.assertEqual(both["choices"][0]["text"], CODE + wanted["text"])

    def test_places_of_tokens_are_those_in_the_text(self):
        for body in ({"prompt": "import os\n# h\u00e9llo"}, {"prompt": ["x = 1\n", "def f"], "max_tokens": 1}):
            for choice in self.completion(**body, echo=True, logprobs=0)["choices"]:
                logprobs = choice["logprobs"]
                for name, offset in zip(logprobs["tokens"], logprobs["text_offset"]):
                    if not name.startswith("bytes:"):
                        self.assertEqual(choice["text"][offset : offset + len(name)], name)

    def test_of_chats_do_not_depend_on_mode_bias_and_temperature(self):
        answers = []
        for mode in MODES:
            answer = self.served.post("/v1/chat/completions", {**CHAT, "temperature": 1.5, "seed": 7, "top_k": 20, "logprobs": True,
                                                               "top_logprobs": 4, "speculation": {"mode": mode}})[1]
            answers.append(answer["choices"])
            content = answer["choices"][0]["logprobs"]["content"]
            self.assertEqual(len(content), answer["usage"]["completion_tokens"])
            for token in content:
                self.assertEqual(bytes(token["bytes"]).decode(errors="replace"), token["token"])
                self.assertEqual(len(token["top_logprobs"]), 4)
                values = [each["logprob"] for each in token["top_logprobs"]]
                self.assertEqual(values, sorted(values, reverse=True))
                self.assertLessEqual(token["logprob"], values[0])
        self.assertEqual(answers, answers[:1] * len(MODES))
        bare = self.served.post("/v1/chat/completions", {**CHAT, "temperature": 1.5, "seed": 7, "top_k": 20})[1]["choices"][0]
        self.assertEqual(bare["message"], answers[0][0]["message"])
        self.assertIsNone(bare["logprobs"])

    def test_come_in_streams_with_their_text(self):
        body = {"prompt": CODE, "temperature": 0, "max_tokens": 16, "echo": True, "logprobs": 2}
        whole = self.completion(**body)["choices"][0]
        chunks = [data["choices"][0] for _, data in events(self.served.ask("POST", "/v1/completions", {**body, "stream": True})[2])
                  if data != "[DONE]"]
        self.assertEqual(chunks[0]["text"], CODE)
        for part in whole["logprobs"]:
            self.assertEqual([each for chunk in chunks if chunk["logprobs"] for each in chunk["logprobs"][part]],
                             whole["logprobs"][part])
        for chunk in chunks:
            self.assertEqual("".join(chunk["logprobs"]["tokens"]) if chunk["logprobs"] else "", chunk["text"])

        whole = self.served.post("/v1/chat/completions", {**CHAT, "logprobs": True})[1]["choices"][0]
        stream = self.served.ask("POST", "/v1/chat/completions", {**CHAT, "logprobs": True, "stream": True})[2]
        chunks = [data["choices"][0] for _, data in events(stream) if data != "[DONE]"]
        content = [each for chunk in chunks if chunk["logprobs"] for each in chunk["logprobs"]["content"]]
        self.assertEqual(content, whole["logprobs"]["content"])
        for chunk in chunks[:-1]:
            tokens = chunk["logprobs"]["content"] if chunk["logprobs"] else []
            self.assertEqual("".join(each["token"] for each in tokens), chunk["delta"].get("content", ""))


class SeveralReplies(Case):
    def test_each_has_the_seed_behind_that_before_it(self):
        body = {**CHAT, "temperature": 1.5, "seed": 7}
        alone = [self.served.post("/v1/chat/completions", {**body, "seed": 7 + i})[1] for i in range(3)]
        texts = [answer["choices"][0]["message"]["content"] for answer in alone]
        self.assertEqual(len(set(texts)), 3)
        answer = self.served.post("/v1/chat/completions", {**body, "n": 3, "best_of": 3})[1]
        self.assertEqual([choice["index"] for choice in answer["choices"]], [0, 1, 2])
        self.assertEqual([choice["message"]["content"] for choice in answer["choices"]], texts)
        self.assertEqual(answer["usage"]["prompt_tokens"], alone[0]["usage"]["prompt_tokens"])
        self.assertEqual(answer["usage"]["completion_tokens"], sum(each["usage"]["completion_tokens"] for each in alone))
        stream = self.served.ask("POST", "/v1/chat/completions", {**body, "n": 3, "stream": True})[2]
        streamed = {}
        for _, data in events(stream):
            if data != "[DONE]":
                choice = data["choices"][0]
                streamed.setdefault(choice["index"], []).append(choice)
        self.assertEqual(["".join(each["delta"].get("content", "") for each in streamed[i]) for i in range(3)], texts)
        self.assertTrue(all(choices[-1]["finish_reason"] for choices in streamed.values()))

    def test_without_a_seed_each_is_drawn_by_itself(self):
        answer = self.served.post("/v1/chat/completions", {**CHAT, "temperature": 2, "n": 4})[1]
        self.assertGreater(len({choice["message"]["content"] for choice in answer["choices"]}), 1)

    def test_to_each_prompt_of_a_list(self):
        answer = self.served.post("/v1/completions", {"prompt": ["import os", "def f"], "n": 2, "temperature": 0, "echo": True})[1]
        self.assertEqual([choice["index"] for choice in answer["choices"]], [0, 1, 2, 3])
        self.assertEqual([choice["text"].startswith("import os") for choice in answer["choices"]], [True, True, False, False])


class CallsThatMustBeMade(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        model = os.path.join(cls.folder.name, "tiny")
        shutil.copytree(MODEL, model)
        with open(os.path.join(GOLDEN, "chat_tools.json"), encoding="utf-8") as file:
            template = json.load(file)["templates"]["qwen3"]
        path = os.path.join(model, "tokenizer_config.json")
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**config, "chat_template": template}, file)
        cls.served = Served(model=model, context=1024)

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def test_the_reply_goes_on_with_a_call(self):
        body = {**CHAT, "max_tokens": 8, "tools": TOOLS}
        free = self.served.post("/v1/chat/completions", body)[1]
        named = {"type": "function", "function": {"name": "get_weather"}}
        for choice, opening in (("required", '<tool_call>\n{"name": "'), (named, '<tool_call>\n{"name": "get_weather", "arguments":')):
            status, answer = self.served.post("/v1/chat/completions", {**body, "tool_choice": choice, "logprobs": True})
            self.assertEqual(status, 200, answer)
            # A model of random weights writes no call: the client sees what it wrote, and why it ended.
            message = answer["choices"][0]["message"]
            self.assertNotIn("tool_calls", message)
            self.assertTrue(message["content"].startswith(opening), message)
            self.assertEqual(answer["choices"][0]["finish_reason"], "length")
            self.assertGreater(answer["usage"]["prompt_tokens"], free["usage"]["prompt_tokens"])
            written = "".join(each["token"] for each in answer["choices"][0]["logprobs"]["content"])
            self.assertEqual(message["content"], opening + written)
            stream = self.served.ask("POST", "/v1/chat/completions", {**body, "tool_choice": choice, "stream": True})[2]
            self.assertEqual("".join(data["choices"][0]["delta"].get("content", "") for _, data in events(stream) if data != "[DONE]"),
                             message["content"])

    def test_other_interfaces_begin_the_same_call(self):
        chat = self.served.post("/v1/chat/completions", {**CHAT, "tools": TOOLS, "tool_choice": "required"})[1]
        content = chat["choices"][0]["message"]["content"]
        tool = {"name": "get_weather", "input_schema": TOOLS[0]["function"]["parameters"]}
        asked = {**CHAT, "tools": [tool], "tool_choice": {"type": "any"}}
        status, message = self.served.post("/v1/messages", asked)
        self.assertEqual(status, 200, message)
        self.assertEqual("".join(block["text"] for block in message["content"]), content)
        counted = self.served.post("/v1/messages/count_tokens", asked)[1]["input_tokens"]
        self.assertEqual(counted, chat["usage"]["prompt_tokens"])
        status, response = self.served.post("/v1/responses", {
            **RESPONSE, "tools": [{"type": "function", "name": "get_weather", "parameters": tool["input_schema"]}],
            "tool_choice": "required"})
        self.assertEqual(status, 200, response)
        self.assertEqual("".join(part["text"] for item in response["output"] for part in item["content"]), content)

    def test_none_is_as_if_there_were_no_tools(self):
        bare = self.served.post("/v1/chat/completions", CHAT)[1]
        none = self.served.post("/v1/chat/completions", {**CHAT, "tools": TOOLS, "tool_choice": "none"})[1]
        self.assertEqual(none["choices"], bare["choices"])


class ThinkingInAChannel(Case):
    """A model with Gemma 4's tokens, whose prompt ends inside its channel of thinking, or behind it where that is off. The marks are added
    tokens that are no control tokens by their type, as in GGUF files of llama.cpp's converter."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        model = os.path.join(cls.folder.name, "tiny")
        shutil.copytree(MODEL, model)
        names = {"<|im_start|>": "<|turn>", "<|im_end|>": "<turn|>", "<|endoftext|>": "<|channel>", "<|mask|>": "<channel|>"}
        for name in ("tokenizer.json", "tokenizer_config.json"):
            path = os.path.join(model, name)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for old, new in names.items():
                text = text.replace(old, new)
            content = json.loads(text)
            added = content.get("added_tokens") or list(content["added_tokens_decoder"].values())
            for token in added:
                token["special"] = "channel" not in token["content"]
            if "chat_template" in content:
                content["pad_token"] = "<turn|>"
                content["chat_template"] = (
                    "{%- for message in messages %}{{- '<|turn>' + message['role'] + '\n' + message['content'] + '<turn|>\n' }}"
                    "{%- endfor %}{%- if add_generation_prompt %}{{- '<|turn>model\n<|channel>thought\n' }}"
                    "{%- if not enable_thinking %}{{- '<channel|>' }}{%- endif %}{%- endif %}")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(content, file)
        cls.model = model
        cls.served = Served(model=model)

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def test_is_told_apart_in_every_interface(self):
        asked = {**CHAT, "chat_template_kwargs": {"enable_thinking": True}}
        message = self.served.post("/v1/chat/completions", asked)[1]["choices"][0]["message"]
        thought = message["reasoning_content"]
        self.assertTrue(thought)
        self.assertFalse(message["content"])
        deltas = [data["choices"][0]["delta"] for _, data in
                  events(self.served.ask("POST", "/v1/chat/completions", {**asked, "stream": True})[2]) if data != "[DONE]"]
        self.assertEqual("".join(delta.get("reasoning_content") or "" for delta in deltas), thought)
        self.assertEqual("".join(delta.get("content") or "" for delta in deltas), "")
        blocks = self.served.post("/v1/messages", {**CHAT, "thinking": {"type": "adaptive"}})[1]["content"]
        self.assertEqual([(block["type"], block["thinking"]) for block in blocks], [("thinking", thought)])
        items = self.served.post("/v1/responses", {**RESPONSE, "reasoning": {"effort": "high"}})[1]["output"]
        self.assertEqual([(item["type"], [part["text"] for part in item["content"]]) for item in items], [("reasoning", [thought])])

    def test_is_not_where_it_is_off(self):
        message = self.served.post("/v1/chat/completions", {**CHAT, "reasoning_effort": "none"})[1]["choices"][0]["message"]
        self.assertTrue(message["content"])
        self.assertFalse(message.get("reasoning_content"))

    def test_in_the_command_line_too(self):
        result = run("generate", "--model", self.model, "--device", "cpu", "--context", "512", "--drafter", "none", "--json", "-p", "import os",
                     "-n", "24", "--thinking", "on")
        self.assertEqual(result.returncode, 0, result.stderr)
        reply = json.loads(result.stdout)
        self.assertEqual(reply["text"], "")
        asked = {**CHAT, "chat_template_kwargs": {"enable_thinking": True}}
        message = self.served.post("/v1/chat/completions", asked)[1]["choices"][0]["message"]
        self.assertEqual(reply["thinking"], message["reasoning_content"])


class CallsOfGemma(Case):
    """A model that calls as Gemma 4 does, whose marks are control tokens."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        model = os.path.join(cls.folder.name, "scripted")
        scripted_model.write(MODEL, model, scripted_model.GEMMA)
        cls.served = Served(model=model, context=1024)

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    CHAT = {"messages": [{"role": "user", "content": "How is the weather in Oslo?"}], "temperature": 0, "tools": TOOLS}
    NAMED = {"type": "function", "function": {"name": "get_weather"}}

    def expect_call(self, choice):
        self.assertEqual(choice["finish_reason"], "tool_calls")
        self.assertIsNone(choice["message"]["content"])
        self.assertEqual([(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in choice["message"]["tool_calls"]],
                         [("get_weather", {"city": "Oslo"})])
        return choice["message"]

    def test_are_told_in_every_mode(self):
        for mode in MODES:
            status, answer = self.served.post("/v1/chat/completions", {**self.CHAT, "speculation": {"mode": mode}})
            self.assertEqual(status, 200, answer)
            self.assertNotIn("reasoning_content", self.expect_call(answer["choices"][0]))

    def test_behind_thinking(self):
        answer = self.served.post("/v1/chat/completions", {**self.CHAT, "reasoning_effort": "high"})[1]
        self.assertEqual(self.expect_call(answer["choices"][0])["reasoning_content"], scripted_model.THOUGHT)

    def test_are_begun_where_one_is_asked_for(self):
        for choice in ("required", self.NAMED):
            for effort in ("none", "high"):
                status, answer = self.served.post("/v1/chat/completions", {**self.CHAT, "tool_choice": choice, "reasoning_effort": effort})
                self.assertEqual(status, 200, answer)
                self.assertNotIn("reasoning_content", self.expect_call(answer["choices"][0]))

    def test_come_whole_in_a_stream(self):
        for choice in ("auto", "required", self.NAMED):
            stream = self.served.ask("POST", "/v1/chat/completions", {**self.CHAT, "tool_choice": choice, "stream": True})[2]
            choices = [data["choices"][0] for _, data in events(stream) if data != "[DONE]"]
            self.assertEqual("".join(choice["delta"].get("content") or "" for choice in choices), "")
            calls = [call for choice in choices for call in choice["delta"].get("tool_calls", [])]
            self.assertEqual([call["function"].get("name") for call in calls], ["get_weather", None])
            self.assertEqual(json.loads("".join(call["function"]["arguments"] for call in calls)), {"city": "Oslo"})
            self.assertEqual(choices[-1]["finish_reason"], "tool_calls")

    def test_are_answered(self):
        call = self.served.post("/v1/chat/completions", self.CHAT)[1]["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": call["tool_calls"][0]["id"], "content": "7 degrees, rain"}
        answer = self.served.post("/v1/chat/completions", {**self.CHAT, "messages": [*self.CHAT["messages"], call, result]})[1]["choices"][0]
        self.assertEqual((answer["message"]["content"], answer["finish_reason"]), (scripted_model.ANSWER, "stop"))

    def test_in_the_other_interfaces(self):
        tool = {"name": "get_weather", "input_schema": TOOLS[0]["function"]["parameters"]}
        message = self.served.post("/v1/messages", {"messages": self.CHAT["messages"], "max_tokens": 100, "tools": [tool]})[1]
        self.assertEqual([(block["type"], block.get("name"), block.get("input")) for block in message["content"]],
                         [("tool_use", "get_weather", {"city": "Oslo"})])
        self.assertEqual(message["stop_reason"], "tool_use")
        response = self.served.post("/v1/responses", {
            "input": "How is the weather in Oslo?", "tools": [{"type": "function", "name": "get_weather", "parameters": tool["input_schema"]}]})[1]
        self.assertEqual([(item["type"], item.get("name"), json.loads(item["arguments"])) for item in response["output"]],
                         [("function_call", "get_weather", {"city": "Oslo"})])

    def test_are_text_where_no_tools_were_offered(self):
        answer = self.served.post("/v1/chat/completions", {"messages": self.CHAT["messages"], "temperature": 0})[1]["choices"][0]
        self.assertEqual(answer["message"]["content"], '<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>}<tool_call|>')
        self.assertEqual(answer["finish_reason"], "stop")

    def test_a_message_writes_none_of_their_marks(self):
        forged = "<tool_response|>"
        plain = self.served.post("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "x" + forged}]})[1]["input_tokens"]
        bare = self.served.post("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "x"}]})[1]["input_tokens"]
        self.assertGreater(plain, bare + 3)  # letters, not the one token


class Messages(Case):
    """Anthropic's interface. A request of CHAT's fields is one of it, too."""

    def text_of(self, message):
        return "".join(block["text"] for block in message["content"] if block["type"] == "text")

    def refused_message(self, status, kind, words, body, path="/v1/messages", **options):
        got, answer = self.served.post(path, body, **options)
        self.assertEqual(got, status, answer)
        self.assertEqual((list(answer), list(answer["error"])), (["type", "error"], ["type", "message"]))
        self.assertEqual((answer["type"], answer["error"]["type"]), ("error", kind))
        self.assertIn(words, answer["error"]["message"])
        self.assertNotIn(GOLDEN, json.dumps(answer))

    def test_a_message_is_the_text_of_a_chat(self):
        chat = self.served.post("/v1/chat/completions", CHAT)[1]
        for path in ("/v1/messages", "/messages"):
            status, message = self.served.post(path, {**CHAT, "model": "tiny"}, headers={"anthropic-version": "2023-06-01"})
            self.assertEqual(status, 200, message)
            self.assertEqual(self.text_of(message), chat["choices"][0]["message"]["content"])
            self.assertRegex(message["id"], "^msg_[0-9a-f]{24}$")
            self.assertEqual((message["type"], message["role"], message["model"]), ("message", "assistant", "tiny"))
            self.assertEqual((message["stop_reason"], message["stop_sequence"]), ("max_tokens", None))
            usage = message["usage"]
            self.assertEqual(usage["input_tokens"] + usage["cache_read_input_tokens"], chat["usage"]["prompt_tokens"])
            self.assertEqual(usage["output_tokens"], 24)

    def test_a_stream_has_the_events_in_their_order(self):
        whole = self.served.post("/v1/messages", CHAT)[1]
        status, headers, body = self.served.ask("POST", "/v1/messages", {**CHAT, "stream": True})
        self.assertEqual(status, 200)
        self.assertTrue(headers["Content-Type"].startswith("text/event-stream"))
        stream = [(name, data) for name, data in events(body) if name != "ping"]
        for name, data in stream:
            self.assertEqual(data["type"], name)
        self.assertEqual(stream[0][0], "message_start")
        self.assertEqual(stream[0][1]["message"]["content"], [])
        self.assertEqual([name for name, _ in stream[-2:]], ["message_delta", "message_stop"])
        blocks = []
        for name, data in stream[1:-2]:
            if name == "content_block_start":
                self.assertEqual(data["index"], len(blocks))
                blocks.append(dict(data["content_block"]))
            elif name == "content_block_delta":
                self.assertEqual(data["index"], len(blocks) - 1)
                field = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}[data["delta"]["type"]]
                blocks[-1][field] += data["delta"][field]
            else:
                self.assertEqual((name, data["index"]), ("content_block_stop", len(blocks) - 1))
        without = [{key: value for key, value in block.items() if key != "signature"} for block in blocks]
        self.assertEqual(without, [{key: value for key, value in block.items() if key != "signature"} for block in whole["content"]])
        self.assertEqual(stream[-2][1]["delta"], {"stop_reason": "max_tokens", "stop_sequence": None})
        usage = stream[-2][1]["usage"]
        self.assertEqual(usage["output_tokens"], 24)
        self.assertEqual(usage["input_tokens"] + usage["cache_read_input_tokens"],
                         stream[0][1]["message"]["usage"]["input_tokens"])

    def test_the_stop_sequence_that_ended_it_is_named(self):
        text = self.text_of(self.served.post("/v1/messages", CHAT)[1])
        stop = re.search(r"[!-~]{2}", text[2:]).group()
        message = self.served.post("/v1/messages", {**CHAT, "stop_sequences": ["\x01 never", stop]})[1]
        self.assertEqual(self.text_of(message), text[:text.index(stop)])
        self.assertEqual((message["stop_reason"], message["stop_sequence"]), ("stop_sequence", stop))

    def test_rounds_come_as_events_of_their_own(self):
        body = self.served.ask("POST", "/v1/messages",
                               {**CHAT, "stream": True, "canopy": {"rounds": True}, "speculation": {"mode": "tree"}})[2]
        rounds = [data for name, data in events(body) if name == "canopy.round"]
        self.assertEqual([each["round"] for each in rounds], list(range(len(rounds))))
        self.assertEqual(sum(len(each["emitted"]) for each in rounds), 23)

    def test_tokens_are_counted_without_the_model(self):
        message = self.served.post("/v1/messages", CHAT)[1]
        done = self.served.metric('replies_total{ended="done"}')
        asked = {"model": "tiny", "messages": CHAT["messages"]}
        for path in ("/v1/messages/count_tokens", "/messages/count_tokens"):
            status, answer = self.served.post(path, asked)
            self.assertEqual((status, list(answer)), (200, ["input_tokens"]), answer)
            self.assertEqual(answer["input_tokens"],
                             message["usage"]["input_tokens"] + message["usage"]["cache_read_input_tokens"])
        more = self.served.post("/v1/messages/count_tokens", {**asked, "system": "Answer in one word."})[1]["input_tokens"]
        self.assertGreater(more, answer["input_tokens"])
        # More than the context holds can be counted.
        long = self.served.post("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "word " * 5000}]})[1]
        self.assertGreater(long["input_tokens"], 512)
        self.assertEqual(self.served.metric('replies_total{ended="done"}'), done)
        self.refused_message(404, "not_found_error", "'tiny' is", {**asked, "model": "other"}, "/v1/messages/count_tokens")

    def test_refusals_have_the_form_of_the_interface(self):
        asked = "invalid_request_error"
        self.refused_message(400, asked, '"temperature" is -1', {**CHAT, "temperature": -1})
        self.refused_message(400, asked, '"max_tokens" is missing', {"messages": CHAT["messages"]})
        self.refused_message(400, asked, "'image'",
                             {**CHAT, "messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]})
        self.refused_message(400, asked, "the context holds 512", {**CHAT, "messages": [{"role": "user", "content": "word " * 5000}]})
        self.refused_message(404, "not_found_error", "'tiny' is", {**CHAT, "model": "other"})
        self.refused_message(415, asked, "Content-Type", json.dumps(CHAT), headers={"Content-Type": "text/plain"})
        for body in (b"", b"{", b"[1]", b"null", b'{"messages": "\xff"}', b"[" * 100000):
            self.refused_message(400, asked, "", body)
        status, _, text = self.served.ask("GET", "/v1/messages")
        self.assertEqual((status, json.loads(text)["type"]), (405, "error"))


class Responses(Case):
    """OpenAI's newer interface."""

    def text_of(self, response):
        return "".join(part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"])

    def chat_text(self, *messages):
        body = {**CHAT, "messages": [{"role": role, "content": content} for role, content in messages]}
        return self.served.post("/v1/chat/completions", body)[1]["choices"][0]["message"]["content"]

    def test_a_response_is_the_text_of_a_chat(self):
        chat = self.served.post("/v1/chat/completions", CHAT)[1]
        for path, asked in (("/v1/responses", "import os"), ("/responses", [{"role": "user", "content": "import os"}])):
            status, response = self.served.post(path, {**RESPONSE, "input": asked, "metadata": {"a": "b"}})
            self.assertEqual(status, 200, response)
            self.assertEqual(self.text_of(response), chat["choices"][0]["message"]["content"])
            self.assertRegex(response["id"], "^resp_[0-9a-f]{24}$")
            self.assertEqual((response["object"], response["model"], response["status"]), ("response", "tiny", "incomplete"))
            self.assertEqual(response["incomplete_details"], {"reason": "max_output_tokens"})
            self.assertEqual((response["metadata"], response["max_output_tokens"]), ({"a": "b"}, 24))
            usage = response["usage"]
            self.assertEqual((usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]),
                             (chat["usage"]["prompt_tokens"], 24, chat["usage"]["prompt_tokens"] + 24))

    def test_a_stream_has_the_events_in_their_order(self):
        whole = self.served.post("/v1/responses", RESPONSE)[1]
        status, headers, body = self.served.ask("POST", "/v1/responses",
                                                {**RESPONSE, "stream": True, "canopy": {"rounds": True}})
        self.assertEqual(status, 200)
        self.assertTrue(headers["Content-Type"].startswith("text/event-stream"))
        stream = events(body)
        self.assertEqual(stream.pop(), (None, "[DONE]"))
        for number, (name, data) in enumerate(stream):
            self.assertEqual((data["type"], data["sequence_number"]), (name, number))
        names = [name for name, _ in stream if not name.startswith("canopy.")]
        self.assertEqual(names[:4], ["response.created", "response.in_progress", "response.output_item.added",
                                     "response.content_part.added"])
        self.assertEqual(names[-3:], ["response.content_part.done", "response.output_item.done", "response.incomplete"])
        self.assertEqual(sum(len(data["emitted"]) for name, data in stream if name == "canopy.round"), 23)
        text = "".join(data["delta"] for name, data in stream if name == "response.output_text.delta")
        self.assertEqual(text, self.text_of(whole))
        final = stream[-1][1]["response"]
        self.assertEqual(self.text_of(final), text)
        self.assertEqual({data["item_id"] for name, data in stream if "item_id" in data}, {item["id"] for item in final["output"]})
        # It can be asked for, as it was.
        self.assertEqual(json.loads(self.served.ask("GET", "/v1/responses/" + final["id"])[2]), final)

    def test_a_response_goes_on_from_an_earlier_one(self):
        first = self.served.post("/v1/responses", {**RESPONSE, "instructions": "Be brief."})[1]
        asked = {**RESPONSE, "input": "def f", "previous_response_id": first["id"]}
        status, second = self.served.post("/v1/responses", asked)
        self.assertEqual(status, 200, second)
        self.assertEqual(second["previous_response_id"], first["id"])
        # The instructions were the first request's alone.
        turns = [("user", "import os"), ("assistant", self.text_of(first)), ("user", "def f")]
        self.assertEqual(self.text_of(second), self.chat_text(*turns))
        third = self.served.post("/v1/responses", {**RESPONSE, "input": "x", "previous_response_id": second["id"]})[1]
        self.assertEqual(self.text_of(third), self.chat_text(*turns, ("assistant", self.text_of(second)), ("user", "x")))
        path = "/responses/" + first["id"]
        self.assertEqual(json.loads(self.served.ask("DELETE", path)[2]),
                         {"id": first["id"], "object": "response", "deleted": True})
        for method in ("GET", "DELETE"):
            self.assertEqual(self.served.ask(method, path)[0], 404)
        self.assertEqual(self.served.ask("POST", path, {})[0], 405)
        status, answer = self.served.post("/v1/responses", asked)
        self.assertEqual((status, answer["error"]["code"]), (400, "previous_response_not_found"))
        # What goes on from another has its own copy of it.
        self.assertEqual(self.served.post("/v1/responses", {**asked, "previous_response_id": second["id"]})[0], 200)

    def test_what_is_not_to_be_stored_is_not(self):
        response = self.served.post("/v1/responses", {**RESPONSE, "store": False})[1]
        self.assertEqual(self.served.ask("GET", "/v1/responses/" + response["id"])[0], 404)

    def test_fields_are_refused_by_name(self):
        path = "/v1/responses"
        self.refused(400, "temperature", "is -1", path, {**RESPONSE, "temperature": -1})
        self.refused(400, "background", "is true", path, {**RESPONSE, "background": True})
        self.refused(400, "text.format.type", "json_schema", path, {**RESPONSE, "text": {"format": {"type": "json_schema"}}})
        self.refused(400, "input[0].content[0].type", "input_image", path,
                     {**RESPONSE, "input": [{"role": "user", "content": [{"type": "input_image", "image_url": "a"}]}]})
        self.refused(400, "input", "the context holds 512", path, {**RESPONSE, "input": "word " * 5000})
        self.refused(400, "input", "missing", path, {})
        self.refused(404, "model", "'tiny' is", path, {**RESPONSE, "model": "other"})


if __name__ == "__main__":
    unittest.main()
