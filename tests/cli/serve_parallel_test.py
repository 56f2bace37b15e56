"""canopy-cli serve: several replies at once, and clients with keys of their own, who share nothing but the time of passes."""

import functools
import json
import unittest

from served import CHAT, CODE, KEYS, RESPONSE, SeveralKeys, at_once, generated


class Keys(SeveralKeys):
    def test_no_source_of_a_key_finds_the_text_of_another(self):
        question = {"messages": [{"role": "user", "content": "a question of one client alone"}], "temperature": 0, "max_tokens": 60,
                    "canopy": {"rounds": True}, "speculation": {"mode": "tree", "sources": ["recycling", "earlier"]}}

        def ask(key):
            text, found = self.streamed(question, key=key)
            rounds = [data for name, data in found if name == "canopy.round"]
            usage = next(data["usage"] for _, data in found if data != "[DONE]" and data.get("usage"))
            sources = {source for each in rounds for node in each["nodes"] for source in node["sources"]}
            return text, usage["prompt_tokens_details"]["cached_tokens"], sources, [each["width"] for each in rounds]

        first, again = ask(KEYS[0]), ask(KEYS[0])
        self.assertGreater(again[1], 0)
        self.assertIn("earlier", again[2])
        other = ask(KEYS[1])
        self.assertEqual({each[0] for each in (first, again, other)}, {first[0]})
        self.assertEqual(other[1], 0, "a prefix was in the cache")
        self.assertNotIn("earlier", other[2])
        self.assertEqual(other[3], first[3], "drafts differ from those of a client that nobody came before")
        self.assertNotEqual(again[3], first[3])

    def test_responses_of_a_key_are_kept_for_it_alone(self):
        first, second = ({"Authorization": "Bearer " + key} for key in KEYS)
        response = self.served.post("/v1/responses", RESPONSE, headers=first)[1]
        path = "/v1/responses/" + response["id"]
        for method in ("GET", "DELETE"):
            self.assertEqual(self.served.ask(method, path, headers=second)[0], 404)
        further = {**RESPONSE, "previous_response_id": response["id"]}
        self.assertEqual(self.served.post("/v1/responses", further, headers=second)[0], 400)
        self.assertEqual(self.served.post("/v1/responses", further, headers=first)[0], 200)
        self.assertEqual(json.loads(self.served.ask("GET", path, headers=first)[2]), response)

    def test_a_name_in_front_of_a_key_is_no_part_of_it(self):
        for key, status in ((KEYS[0], 200), (KEYS[1], 200), (f"an editor {KEYS[0]}", 401), ("editor", 401), ("# of two clients", 401),
                            (KEYS[0] + KEYS[1], 401), (KEYS[0][:-1], 401), ("", 401)):
            self.assertEqual(self.served.ask("GET", "/v1/models", headers={"Authorization": "Bearer " + key})[0], status, key)


class Parallel(SeveralKeys):
    def test_several_at_once_get_their_own_texts(self):
        prompts = ["import os", "def f", "class A", "return", "for i in", "while True"]
        bodies = [{**CHAT, "messages": [{"role": "user", "content": prompt}]} for prompt in prompts]
        alone = [self.served.post("/v1/chat/completions", body)[1]["choices"][0]["message"]["content"] for body in bodies]
        answers = at_once([functools.partial(self.served.post, "/v1/chat/completions", body) for body in bodies])
        self.assertEqual([answer[1]["choices"][0]["message"]["content"] for answer in answers], alone)

    def test_each_mode_between_the_others_is_the_text_of_generate(self):
        def chat(mode, **more):
            return lambda: self.streamed({**CHAT, "speculation": {"mode": mode}, **more})[0]

        def whole():
            return self.served.post("/v1/chat/completions", CHAT)[1]["choices"][0]["message"]["content"]

        def raw():
            return self.streamed({"prompt": "import os", "temperature": 0}, "/v1/completions", KEYS[1])[0]

        modes = ("ar", "chain", "tree", "adaptive")
        expected = [generated(mode, "-p", "import os", "-n", "24")["text"] for mode in modes]
        expected.append(generated("adaptive", "-p", "import os", "-n", "24", "-t", "1.5", "--seed", "7")["text"])
        expected.append(generated("adaptive", "-p", "import os", "-n", "24")["text"])
        expected.append(generated("adaptive", "--raw", "-p", "import os", "-n", "16")["text"])
        tasks = [chat(mode) for mode in modes] + [chat("adaptive", temperature=1.5, seed=7), whole, raw]
        for _ in range(5):
            self.assertEqual(at_once(tasks), expected)

    def test_log_probabilities_do_not_depend_on_the_others(self):
        body = {"prompt": CODE * 4, "temperature": 0, "max_tokens": 12, "echo": True, "logprobs": 2}

        def weighed():
            return self.served.post("/v1/completions", body)[1]["choices"]

        alone = weighed()
        self.assertEqual(at_once([weighed] * 5 + [lambda: self.streamed(CHAT)[0]] * 3)[:5], [alone] * 5)

    def test_64_connections_at_once(self):
        text = generated("adaptive", "-p", "import os", "-n", "24")["text"]
        answers = at_once([lambda: self.streamed(CHAT)[0]] * 64)
        self.assertEqual(answers, [text] * 64)


if __name__ == "__main__":
    unittest.main()
