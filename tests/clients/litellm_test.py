"""litellm, by which many agents ask: the server as openai/ and as anthropic/."""

import asyncio
import itertools
import json
import os
import unittest

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks GitHub for prices

import litellm  # noqa: E402

from client_tests import (ENDLESS, KEY, PROMPT, QUESTION, SCHEMA, TOKENS, ScriptedCase, TinyCase, wanted_text)  # noqa: E402
from scripted_model import ANSWER, ARGUMENTS, NAME, THOUGHT  # noqa: E402

litellm.suppress_debug_info = True
litellm.telemetry = False
PROVIDERS = ("openai", "anthropic")
TOOL = {"type": "function", "function": {"name": NAME, "description": "The weather of a city", "parameters": SCHEMA}}


class Client:
    def options(self, provider, **fields):
        base = {"openai": "/v1", "text-completion-openai": "/v1", "anthropic": ""}[provider]
        return {"model": f"{provider}/{self.name}", "api_base": self.url + base, "api_key": KEY, "num_retries": 0, "timeout": 60,
                **fields}


class Chats(Client, TinyCase):
    name = "tiny"

    def options(self, provider, **fields):
        return super().options(provider, **{"messages": [{"role": "user", "content": PROMPT}], "temperature": 0, "max_tokens": TOKENS,
                                            **fields})

    def test_whole(self):
        for provider in PROVIDERS:
            answer = litellm.completion(**self.options(provider))
            self.assertEqual((answer.choices[0].message.content, answer.choices[0].finish_reason), (wanted_text(), "length"))
            self.assertEqual(answer.usage.completion_tokens, TOKENS)
            self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + TOKENS)

    def test_streamed(self):
        for provider in PROVIDERS:
            chunks = list(litellm.completion(**self.options(provider, stream=True, stream_options={"include_usage": True})))
            self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices), wanted_text())
            whole = litellm.stream_chunk_builder(chunks)
            self.assertEqual((whole.choices[0].message.content, whole.choices[0].finish_reason), (wanted_text(), "length"))
            self.assertEqual(whole.usage.completion_tokens, TOKENS)

    def test_not_waiting(self):
        async def ask(provider):
            whole = litellm.acompletion(**self.options(provider))
            stream = await litellm.acompletion(**self.options(provider, stream=True))
            text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
            return (await whole).choices[0].message.content, text

        for provider in PROVIDERS:
            self.assertEqual(asyncio.run(ask(provider)), (wanted_text(), wanted_text()))

    def test_stop(self):
        text = wanted_text()
        stop = text[5:8]
        for provider in PROVIDERS:
            choice = litellm.completion(**self.options(provider, stop=[stop])).choices[0]
            self.assertEqual((choice.message.content, choice.finish_reason), (text[: text.index(stop)], "stop"))

    def test_completions(self):
        options = self.options("text-completion-openai", prompt=PROMPT, echo=True, logprobs=1)
        del options["messages"]
        choice = litellm.text_completion(**options).choices[0]
        self.assertTrue(choice.text.startswith(PROMPT))
        self.assertEqual("".join(choice.logprobs.tokens), choice.text)

    def test_what_is_refused(self):
        for provider in PROVIDERS:
            for error, words, fields in ((litellm.AuthenticationError, "key", {"api_key": "another-key"}),
                                         (litellm.NotFoundError, "other", {"model": provider + "/other"}),
                                         (litellm.BadRequestError, "-1", {"temperature": -1})):
                for stream in (False, True):
                    with self.assertRaises(error) as caught:
                        litellm.completion(**self.options(provider, stream=stream, **fields))
                    self.assertIn(words, str(caught.exception))

    def test_many_threads(self):
        for provider in PROVIDERS:
            self.check_threads(lambda: litellm.completion(**self.options(provider)).choices[0].message.content)

    def test_a_stream_that_is_left(self):
        def begin():
            stream = litellm.completion(**self.options("openai", stream=True, max_tokens=1900, extra_body=ENDLESS))
            self.assertEqual(len(list(itertools.islice(stream, 3))), 3)
            stream.completion_stream.response.close()

        self.check_cancelled(begin)


class Calls(Client, ScriptedCase):
    name = "scripted"

    def options(self, provider, **fields):
        return super().options(provider, **{"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 200, **fields})

    def test_calls(self):
        named = {"type": "function", "function": {"name": NAME}}
        for provider in PROVIDERS:
            for choice in ("auto", "required", named):
                whole = litellm.completion(**self.options(provider, tools=[TOOL], tool_choice=choice))
                stream = litellm.completion(**self.options(provider, tools=[TOOL], tool_choice=choice, stream=True))
                for answer in (whole, litellm.stream_chunk_builder(list(stream))):
                    self.assertEqual(answer.choices[0].finish_reason, "tool_calls")
                    call, = answer.choices[0].message.tool_calls
                    self.assertEqual((call.function.name, json.loads(call.function.arguments)), (NAME, ARGUMENTS))
                    turns = [{"role": "user", "content": QUESTION}, answer.choices[0].message,
                             {"role": "tool", "tool_call_id": call.id, "content": "7"}]
                    after = litellm.completion(**self.options(provider, messages=turns, tools=[TOOL]))
                    self.assertEqual((after.choices[0].message.content, after.choices[0].finish_reason), (ANSWER, "stop"))

    def test_thinking(self):
        for provider, fields in (("openai", {"extra_body": {"reasoning_effort": "high"}}),
                                 ("anthropic", {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 1500,
                                                "allowed_openai_params": ["thinking"]})):
            whole = litellm.completion(**self.options(provider, **fields)).choices[0].message
            stream = litellm.completion(**self.options(provider, stream=True, **fields))
            for message in (whole, litellm.stream_chunk_builder(list(stream)).choices[0].message):
                self.assertEqual((message.reasoning_content, message.content), (THOUGHT, ANSWER))

    def test_responses(self):
        options = {"model": "openai/scripted", "api_base": self.url + "/v1", "api_key": KEY}
        first = litellm.responses(input=QUESTION, **options)
        self.assertEqual(first.output[-1].content[0].text, ANSWER)
        events = list(litellm.responses(input=QUESTION, stream=True, previous_response_id=first.id, **options))
        self.assertEqual(events[-1].type, "response.completed")
        self.assertEqual(events[-1].response.output[-1].content[0].text, ANSWER)


if __name__ == "__main__":
    unittest.main()
