"""Anthropic's client for Python: models, messages, counts."""

import asyncio
import itertools
import unittest

import anthropic

from client_tests import (ENDLESS, KEY, PROMPT, QUESTION, SCHEMA, TOKENS, ScriptedCase, TinyCase, check_published, wanted_text)
from scripted_model import ANSWER, ARGUMENTS, NAME, THOUGHT

MESSAGE = {"model": "tiny", "messages": [{"role": "user", "content": PROMPT}], "max_tokens": TOKENS,
           "extra_body": {"temperature": 0}}
TOOL = {"name": NAME, "description": "The weather of a city", "input_schema": SCHEMA}
ASKED = {"model": "scripted", "messages": [{"role": "user", "content": QUESTION}], "max_tokens": 200}
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 1500}


class Client:
    def client(self, **options):
        return anthropic.Anthropic(**{"base_url": self.url, "api_key": KEY, "max_retries": 0, "timeout": 60, **options})

    def fails(self, error, kind, words, ask):
        """The client throws this class, with Anthropic's type of error and the sentence."""
        with self.assertRaises(error) as caught:
            ask()
        self.assertEqual((caught.exception.body["type"], caught.exception.body["error"]["type"]), ("error", kind))
        self.assertIn(words, str(caught.exception))


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def message_of(case, stream):
    """Checks the events of a message: types, order, numbers of blocks, usage. Returns its blocks, the first event's message and the last
    delta."""
    events = [check_published(event) for event in stream]
    case.assertEqual(events[0].type, "message_start")
    case.assertEqual([event.type for event in events[-2:]], ["message_delta", "message_stop"])
    begun, delta = events[0].message, events[-2]
    case.assertEqual((begun.content, begun.stop_reason), ([], None))
    blocks, is_open = [], False
    for event in events[1:-2]:
        if event.type == "content_block_start":
            case.assertFalse(is_open)
            case.assertEqual(event.index, len(blocks))
            blocks.append({**event.content_block.to_dict(), "pieces": ""})
            is_open = True
            continue
        case.assertTrue(is_open)
        case.assertEqual(event.index, len(blocks) - 1)
        if event.type == "content_block_stop":
            is_open = False
            continue
        case.assertEqual(event.type, "content_block_delta")
        kind = event.delta.type.removesuffix("_delta")
        case.assertIn((blocks[-1]["type"], kind), (("text", "text"), ("thinking", "thinking"), ("thinking", "signature"),
                                                   ("tool_use", "input_json")))
        if kind != "signature":
            blocks[-1]["pieces"] += getattr(event.delta, {"input_json": "partial_json"}.get(kind, kind))
    case.assertFalse(is_open)
    case.assertEqual(begun.usage.input_tokens, delta.usage.input_tokens + delta.usage.cache_read_input_tokens)
    return blocks, begun, delta


class Models(Client, TinyCase):
    def test_are_listed(self):
        page = self.client().models.list()
        self.assertEqual((page.has_more, page.first_id, page.last_id), (False, "tiny", "tiny"))
        for model in (*page, self.client().models.retrieve("tiny")):
            check_published(model)
            self.assertEqual((model.id, model.type, model.display_name, model.max_input_tokens), ("tiny", "model", "tiny", 2048))
        self.fails(anthropic.NotFoundError, "not_found_error", "tiny", lambda: self.client().models.retrieve("other"))

    def test_a_wrong_key(self):
        wrong = self.client(api_key="another-key")
        for ask in (lambda: wrong.models.list(), lambda: wrong.messages.create(**MESSAGE),
                    lambda: wrong.messages.create(**MESSAGE, stream=True)):
            self.fails(anthropic.AuthenticationError, "authentication_error", "key", ask)
        # The other kind of key, as a gateway has it.
        client = anthropic.Anthropic(base_url=self.url, auth_token=KEY, max_retries=0)
        self.assertEqual(text_of(client.messages.create(**MESSAGE)), wanted_text())


class Messages(Client, TinyCase):
    def message(self, **fields):
        return self.client().messages.create(**{**MESSAGE, **fields})

    def test_whole(self):
        message = check_published(self.message())
        self.assertEqual((text_of(message), message.stop_reason, message.stop_sequence), (wanted_text(), "max_tokens", None))
        self.assertEqual((message.role, message.model, message.usage.output_tokens), ("assistant", "tiny", TOKENS))
        again = self.message().usage
        self.assertGreater(again.cache_read_input_tokens, 0)
        count = self.client().messages.count_tokens(model="tiny", messages=MESSAGE["messages"])
        self.assertEqual(again.input_tokens + again.cache_read_input_tokens, check_published(count).input_tokens)

    def test_streamed(self):
        blocks, begun, delta = message_of(self, self.message(stream=True))
        self.assertEqual([(block["type"], block["pieces"]) for block in blocks], [("text", wanted_text())])
        self.assertEqual((delta.delta.stop_reason, delta.usage.output_tokens), ("max_tokens", TOKENS))
        self.assertRegex(begun.id, "^msg_")

    def test_by_the_helper_for_streams(self):
        with self.client().messages.stream(**MESSAGE) as stream:
            self.assertEqual("".join(stream.text_stream), wanted_text())
            final = stream.get_final_message()
        self.assertEqual((text_of(final), final.stop_reason, final.usage.output_tokens), (wanted_text(), "max_tokens", TOKENS))

    def test_of_the_beta(self):
        message = self.client().beta.messages.create(**MESSAGE, betas=["interleaved-thinking-2025-05-14"])
        self.assertEqual(text_of(check_published(message)), wanted_text())

    def test_not_waiting(self):
        async def ask():
            async with anthropic.AsyncAnthropic(base_url=self.url, api_key=KEY, max_retries=0, timeout=60) as client:
                whole = client.messages.create(**MESSAGE)
                async with client.messages.stream(**MESSAGE) as stream:
                    text = "".join([each async for each in stream.text_stream])
                return text_of(await whole), text

        self.assertEqual(asyncio.run(ask()), (wanted_text(), wanted_text()))

    def test_stop_sequences(self):
        text = wanted_text()
        stop = text[5:8]
        message = self.message(stop_sequences=["\x01 never", stop])
        self.assertEqual((text_of(message), message.stop_reason, message.stop_sequence), (text[: text.index(stop)], "stop_sequence", stop))
        blocks, _, delta = message_of(self, self.message(stop_sequences=[stop], stream=True))
        self.assertEqual((blocks[0]["pieces"], delta.delta.stop_sequence), (text[: text.index(stop)], stop))

    def test_a_system_prompt_and_earlier_turns(self):
        turns = [*MESSAGE["messages"], {"role": "assistant", "content": [{"type": "text", "text": "import sys"}]},
                 {"role": "user", "content": [{"type": "text", "text": "import re", "cache_control": {"type": "ephemeral"}}]}]
        count = lambda **fields: self.client().messages.count_tokens(**{"model": "tiny", "messages": turns, **fields}).input_tokens
        self.assertGreater(count(), count(messages=MESSAGE["messages"]))
        self.assertGreater(count(system="Write Python."), count())
        self.assertEqual(count(system=[{"type": "text", "text": "Write Python."}]), count(system="Write Python."))
        self.assertEqual(text_of(self.message(messages=turns, system="Write Python.")),
                         text_of(self.message(messages=turns, system=[{"type": "text", "text": "Write Python."}])))

    def test_what_is_refused(self):
        user = MESSAGE["messages"]
        for error, kind, words, fields in (
                (anthropic.NotFoundError, "not_found_error", "tiny", {"model": "other"}),
                (anthropic.BadRequestError, "invalid_request_error", "max_tokens", {"max_tokens": 0}),
                (anthropic.BadRequestError, "invalid_request_error", "-1", {"extra_body": {"temperature": -1}}),
                (anthropic.BadRequestError, "invalid_request_error", "messages", {"messages": []}),
                (anthropic.BadRequestError, "invalid_request_error", "assistant",
                 {"messages": [*user, {"role": "assistant", "content": "import"}]}),
                (anthropic.BadRequestError, "invalid_request_error", "image",
                 {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "base64", "data": "AA==",
                                                                                           "media_type": "image/png"}}]}]})):
            for stream in (False, True):
                self.fails(error, kind, words, lambda: self.message(**fields, stream=stream))
        self.fails(anthropic.NotFoundError, "not_found_error", "tiny",
                   lambda: self.client().messages.count_tokens(model="other", messages=user))

    def test_many_threads(self):
        client = self.client(max_retries=10)
        self.check_threads(lambda: text_of(client.messages.create(**MESSAGE)))

    def test_a_stream_that_is_left(self):
        def begin():
            fields = {"max_tokens": 1900, "extra_body": {"temperature": 0, **ENDLESS}}
            with self.message(**fields, stream=True) as stream:
                self.assertEqual(len(list(itertools.islice(stream, 4))), 4)

        self.check_cancelled(begin)


class Calls(Client, ScriptedCase):
    def message(self, **fields):
        return self.client().messages.create(**{**ASKED, **fields})

    def test_thinking(self):
        message = check_published(self.message(**THINKING))
        self.assertEqual([block.type for block in message.content], ["thinking", "text"])
        self.assertEqual((message.content[0].thinking, text_of(message), message.stop_reason), (THOUGHT, ANSWER, "end_turn"))
        blocks, _, delta = message_of(self, self.message(**THINKING, stream=True))
        self.assertEqual([(block["type"], block["pieces"]) for block in blocks], [("thinking", THOUGHT), ("text", ANSWER)])
        self.assertEqual(delta.delta.stop_reason, "end_turn")
        # What was thought may be sent back.
        turns = [*ASKED["messages"], {"role": "assistant", "content": message.content}, {"role": "user", "content": "And now?"}]
        self.assertEqual(text_of(self.message(messages=turns)), ANSWER)

    def test_calls(self):
        for choice in ("auto", "any", "tool"):
            choice = {"type": choice, "name": NAME} if choice == "tool" else {"type": choice}
            message = check_published(self.message(tools=[TOOL], tool_choice=choice))
            call, = message.content
            self.assertEqual((call.type, call.name, call.input, message.stop_reason), ("tool_use", NAME, ARGUMENTS, "tool_use"))
            blocks, _, delta = message_of(self, self.message(tools=[TOOL], tool_choice=choice, stream=True))
            self.assertEqual([(block["type"], block["name"], block["input"]) for block in blocks], [("tool_use", NAME, {})])
            self.assertEqual(delta.delta.stop_reason, "tool_use")
            with self.client().messages.stream(**ASKED, tools=[TOOL], tool_choice=choice) as stream:
                self.assertEqual(stream.get_final_message().content[0].input, ARGUMENTS)
        self.assertEqual(text_of(self.message(tools=[TOOL], tool_choice={"type": "none"})), ANSWER)
        self.fails(anthropic.BadRequestError, "invalid_request_error", "other",
                   lambda: self.message(tools=[TOOL], tool_choice={"type": "tool", "name": "other"}))

    def test_a_tool_is_run(self):
        asked = []

        @anthropic.beta_tool
        def get_weather(city: str) -> str:
            """The weather of a city.

            Args:
                city: Its name.
            """
            asked.append(city)
            return "7 degrees"

        for stream in (False, True):
            runner = self.client().beta.messages.tool_runner(**ASKED, tools=[get_weather], stream=stream)
            self.assertEqual(text_of(runner.until_done()), ANSWER)
        self.assertEqual(asked, [ARGUMENTS["city"]] * 2)


if __name__ == "__main__":
    unittest.main()
