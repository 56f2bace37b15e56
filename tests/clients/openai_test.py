"""OpenAI's client for Python: models, chats, completions, responses."""

import asyncio
import itertools
import json
import unittest

import openai
import pydantic

from client_tests import (ENDLESS, KEY, PROMPT, QUESTION, SCHEMA, TOKENS, ScriptedCase, TinyCase, check_published, wanted_text)
from scripted_model import ANSWER, ARGUMENTS, NAME, THOUGHT

CHAT = {"model": "tiny", "messages": [{"role": "user", "content": PROMPT}], "temperature": 0, "max_tokens": TOKENS}
TOOL = {"type": "function", "function": {"name": NAME, "description": "The weather of a city", "parameters": SCHEMA}}
ASKED = {"model": "scripted", "messages": [{"role": "user", "content": QUESTION}]}
NAMED = {"type": "function", "function": {"name": NAME}}
RESPONSE = {"model": "tiny", "input": PROMPT, "temperature": 0, "max_output_tokens": TOKENS}
RESPONSE_TOOL = {"type": "function", "name": NAME, "parameters": SCHEMA, "strict": False}
RESPONSE_ASKED = {"model": "scripted", "input": QUESTION}


class Client:
    def client(self, **options):
        return openai.OpenAI(**{"base_url": self.url + "/v1", "api_key": KEY, "max_retries": 0, "timeout": 60, **options})

    def fails(self, error, param, words, ask):
        """The client throws this class, with the field and the sentence."""
        with self.assertRaises(error) as caught:
            ask()
        self.assertEqual(caught.exception.param, param)
        self.assertIn(words, str(caught.exception))


def chunks_of(case, stream, usage=False):
    """Checks the chunks of one chat or completion: types, ids, order. Returns the choices' parts and the usage."""
    chunks = [check_published(chunk, ("reasoning_content",)) for chunk in stream]
    case.assertEqual(len({(chunk.id, chunk.created, chunk.model, chunk.object) for chunk in chunks}), 1)
    told = None
    if usage:
        last = chunks.pop()
        case.assertEqual(last.choices, [])
        told = last.usage
        case.assertEqual(told.total_tokens, told.prompt_tokens + told.completion_tokens)
    choices = [chunk.choices[0] for chunk in chunks]
    case.assertTrue(all(len(chunk.choices) == 1 and chunk.usage is None for chunk in chunks))
    case.assertEqual([bool(choice.finish_reason) for choice in choices], [False] * (len(choices) - 1) + [True])
    return choices, told


class Models(Client, TinyCase):
    def test_are_listed(self):
        models = self.client().models.list()
        self.assertEqual([check_published(model, ("max_model_len",)).id for model in models], ["tiny"])
        self.assertEqual(self.client().models.retrieve("tiny").id, "tiny")
        self.fails(openai.NotFoundError, "model", "tiny", lambda: self.client().models.retrieve("other"))

    def test_a_wrong_key(self):
        self.fails(openai.AuthenticationError, None, "key", lambda: self.client(api_key="another-key").models.list())
        self.fails(openai.AuthenticationError, None, "key",
                   lambda: self.client(api_key="another-key").chat.completions.create(**CHAT, stream=True))

    def test_there_are_no_embeddings(self):
        with self.assertRaises(openai.APIStatusError) as caught:
            self.client().embeddings.create(model="tiny", input="a")
        self.assertEqual(caught.exception.status_code, 501)
        self.assertIn("embeddings", str(caught.exception))


class Chats(Client, TinyCase):
    def chat(self, **fields):
        return self.client().chat.completions.create(**{**CHAT, **fields})

    def test_whole(self):
        answer = check_published(self.chat())
        self.assertEqual(answer.choices[0].message.content, wanted_text())
        self.assertEqual(answer.choices[0].finish_reason, "length")
        self.assertEqual((answer.usage.completion_tokens, answer.model, answer.object), (TOKENS, "tiny", "chat.completion"))
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + TOKENS)
        self.assertGreater(self.chat().usage.prompt_tokens_details.cached_tokens, 0)

    def test_streamed(self):
        for usage in (False, True):
            choices, told = chunks_of(self, self.chat(stream=True, stream_options={"include_usage": usage}), usage)
            self.assertEqual("".join(choice.delta.content or "" for choice in choices), wanted_text())
            self.assertEqual([choice.delta.role for choice in choices], ["assistant"] + [None] * (len(choices) - 1))
            self.assertEqual(choices[-1].finish_reason, "length")
        whole = self.chat().usage
        self.assertEqual((told.prompt_tokens, told.completion_tokens), (whole.prompt_tokens, whole.completion_tokens))

    def test_by_the_helper_for_streams(self):
        stop = wanted_text()[5:8]
        text = wanted_text()[: wanted_text().index(stop)]
        with self.client().chat.completions.stream(**CHAT, stop=stop) as stream:
            events = list(stream)
            final = stream.get_final_completion()
        self.assertEqual(final.choices[0].message.content, text)
        self.assertEqual([event.type for event in events if event.type.endswith("done")], ["content.done"])
        self.assertEqual("".join(event.delta for event in events if event.type == "content.delta"), text)
        # Of a reply that ended at its limit the helper makes an error of its own.
        with self.assertRaises(openai.LengthFinishReasonError), self.client().chat.completions.stream(**CHAT) as stream:
            stream.get_final_completion()

    def test_not_waiting(self):
        async def ask():
            async with openai.AsyncOpenAI(base_url=self.url + "/v1", api_key=KEY, max_retries=0, timeout=60) as client:
                whole = client.chat.completions.create(**CHAT)
                stream = await client.chat.completions.create(**CHAT, stream=True)
                text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
                return (await whole).choices[0].message.content, text

        self.assertEqual(asyncio.run(ask()), (wanted_text(), wanted_text()))

    def test_stop(self):
        text = wanted_text()
        stop = text[5:8]
        answer = self.chat(stop=[stop])
        self.assertEqual((answer.choices[0].message.content, answer.choices[0].finish_reason), (text[: text.index(stop)], "stop"))
        choices, _ = chunks_of(self, self.chat(stop=stop, stream=True))
        self.assertEqual("".join(choice.delta.content or "" for choice in choices), text[: text.index(stop)])

    def test_several_replies(self):
        fields = {"temperature": 1.5, "seed": 7}
        answer = check_published(self.chat(n=2, **fields))
        self.assertEqual([choice.index for choice in answer.choices], [0, 1])
        self.assertEqual(answer.choices[0].message.content, self.chat(**fields).choices[0].message.content)
        self.assertEqual(answer.choices[1].message.content, self.chat(**{**fields, "seed": 8}).choices[0].message.content)

    def test_log_probabilities(self):
        answer = check_published(self.chat(logprobs=True, top_logprobs=3))
        tokens = answer.choices[0].logprobs.content
        self.assertEqual(len(tokens), TOKENS)
        self.assertEqual("".join(token.token for token in tokens), wanted_text())
        for token in tokens:  # the likeliest was taken
            self.assertEqual((token.top_logprobs[0].token, token.top_logprobs[0].logprob), (token.token, token.logprob))
        choices, _ = chunks_of(self, self.chat(logprobs=True, top_logprobs=3, stream=True))
        self.assertEqual([token for choice in choices if choice.logprobs for token in choice.logprobs.content], tokens)

    def test_what_is_refused(self):
        for error, param, words, fields in (
                (openai.NotFoundError, "model", "tiny", {"model": "other"}),
                (openai.BadRequestError, "temperature", "-1", {"temperature": -1}),
                (openai.BadRequestError, "max_tokens", "0", {"max_tokens": 0}),
                (openai.BadRequestError, "top_logprobs", "21", {"logprobs": True, "top_logprobs": 21}),
                (openai.BadRequestError, "n", "9", {"n": 9}),
                (openai.BadRequestError, "response_format", "json_object", {"response_format": {"type": "json_object"}}),
                (openai.BadRequestError, "messages", "", {"messages": []})):
            for stream in (False, True):
                self.fails(error, param, words, lambda: self.chat(**fields, stream=stream))

        class Weather(pydantic.BaseModel):
            city: str

        self.fails(openai.BadRequestError, "response_format", "json_schema",
                   lambda: self.client().chat.completions.parse(**CHAT, response_format=Weather))
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
        with self.assertRaises(openai.BadRequestError):
            self.chat(messages=[{"role": "user", "content": [picture]}])

    def test_many_threads(self):
        client = self.client(max_retries=10)
        self.check_threads(lambda: client.chat.completions.create(**CHAT).choices[0].message.content)

    def test_a_stream_that_is_left(self):
        def begin():
            with self.client().chat.completions.create(**{**CHAT, "max_tokens": 1900}, **ENDLESS, stream=True) as stream:
                self.assertEqual(len(list(itertools.islice(stream, 3))), 3)

        self.check_cancelled(begin)

    def test_fields_of_ours(self):
        answer = self.chat(extra_body={"speculation": {"mode": "tree", "budget": 16}, "top_k": 5, "min_p": 0.1})
        self.assertEqual(answer.choices[0].message.content, wanted_text())
        # Rounds are events with a name of their own, which this client hands on as chunks without choices or leaves out.
        chunks = list(self.chat(stream=True, extra_body={"canopy": {"rounds": True}}))
        self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices), wanted_text())


class Completions(Client, TinyCase):
    def completion(self, prompt=PROMPT, **fields):
        return self.client().completions.create(model="tiny", prompt=prompt, temperature=0, **fields)

    def test_whole_and_streamed(self):
        answer = check_published(self.completion(max_tokens=8))
        self.assertEqual((answer.object, answer.usage.completion_tokens), ("text_completion", 8))
        choices, usage = chunks_of(self, self.completion(max_tokens=8, stream=True, stream_options={"include_usage": True}), True)
        self.assertEqual("".join(choice.text for choice in choices), answer.choices[0].text)
        self.assertEqual(usage.completion_tokens, 8)

    def test_several_prompts(self):
        answer = check_published(self.completion(["import os", "def f"], echo=True, max_tokens=4))
        self.assertEqual([choice.index for choice in answer.choices], [0, 1])
        self.assertTrue(answer.choices[0].text.startswith("import os") and answer.choices[1].text.startswith("def f"))
        ids = self.completion([[72, 79], [72]], max_tokens=4)
        self.assertEqual(len(ids.choices), 2)

    def test_log_probabilities_of_the_prompt(self):
        answer = check_published(self.completion(echo=True, logprobs=2, max_tokens=6)).choices[0]
        logprobs = answer.logprobs
        self.assertEqual("".join(logprobs.tokens), answer.text)
        self.assertEqual((logprobs.token_logprobs[0], logprobs.top_logprobs[0]), (None, None))
        for name, offset, own, top in list(zip(logprobs.tokens, logprobs.text_offset, logprobs.token_logprobs,
                                               logprobs.top_logprobs))[1:]:
            self.assertEqual(answer.text[offset : offset + len(name)], name)
            self.assertEqual(top[name], own)
        bare = self.completion(echo=True, logprobs=2, max_tokens=0).choices[0]
        self.assertEqual(bare.text, PROMPT)
        self.assertEqual(bare.logprobs.token_logprobs, logprobs.token_logprobs[: len(bare.logprobs.tokens)])

    def test_what_is_refused(self):
        self.fails(openai.BadRequestError, "suffix", "suffix", lambda: self.completion(suffix="x"))
        self.fails(openai.BadRequestError, "prompt", "prompt", lambda: self.completion([]))


class Calls(Client, ScriptedCase):
    def chat(self, **fields):
        return self.client().chat.completions.create(**{**ASKED, **fields})

    def test_thinking(self):
        message = check_published(self.chat(reasoning_effort="high"), ("reasoning_content",)).choices[0].message
        self.assertEqual((message.reasoning_content, message.content), (THOUGHT, ANSWER))
        choices, _ = chunks_of(self, self.chat(reasoning_effort="high", stream=True))
        thought = [i for i, choice in enumerate(choices) if getattr(choice.delta, "reasoning_content", None)]
        said = [i for i, choice in enumerate(choices) if choice.delta.content]
        self.assertEqual("".join(choices[i].delta.reasoning_content for i in thought), THOUGHT)
        self.assertEqual("".join(choices[i].delta.content for i in said), ANSWER)
        self.assertLess(thought[-1], said[0])
        self.assertEqual(self.chat(reasoning_effort="none").choices[0].message.content, ANSWER)

    def check_call(self, call):
        self.assertEqual((call.type, call.function.name, json.loads(call.function.arguments)), ("function", NAME, ARGUMENTS))

    def test_calls(self):
        for choice in ("auto", "required", NAMED):
            answer = check_published(self.chat(tools=[TOOL], tool_choice=choice)).choices[0]
            self.assertEqual((answer.finish_reason, answer.message.content), ("tool_calls", None))
            self.check_call(answer.message.tool_calls[0])
            choices, _ = chunks_of(self, self.chat(tools=[TOOL], tool_choice=choice, stream=True))
            self.assertEqual(choices[-1].finish_reason, "tool_calls")
            calls = [call for each in choices for call in each.delta.tool_calls or []]
            self.assertEqual({call.index for call in calls}, {0})
            self.assertEqual([bool(call.id) for call in calls], [True] + [False] * (len(calls) - 1))
            self.assertEqual(json.loads("".join(call.function.arguments or "" for call in calls)), ARGUMENTS)
        self.fails(openai.BadRequestError, "tool_choice", "other",
                   lambda: self.chat(tools=[TOOL], tool_choice={"type": "function", "function": {"name": "other"}}))

    def test_a_conversation_with_a_tool(self):
        class Weather(pydantic.BaseModel):
            city: str

        tool = openai.pydantic_function_tool(Weather, name=NAME)
        with self.client().chat.completions.stream(**ASKED, tools=[tool]) as stream:
            done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
            message = stream.get_final_completion().choices[0].message
        self.assertEqual([(event.name, event.parsed_arguments) for event in done], [(NAME, Weather(**ARGUMENTS))])
        turns = ASKED["messages"] + [message.to_dict(), {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "7"}]
        answer = self.chat(messages=turns, tools=[tool]).choices[0]
        self.assertEqual((answer.finish_reason, answer.message.content), ("stop", ANSWER))


# Required by Open Responses, whose types these are beside OpenAI's.
OPEN_RESPONSES = ("frequency_penalty", "presence_penalty", "store")
ITEM_EVENTS = ("output_item", "content_part", "output_text", "reasoning_text", "function_call_arguments")


def response_of(case, stream):
    """Checks the events of a response: types, numbers, order, ids, that each part is what its pieces are. Returns it."""
    events = [check_published(event, OPEN_RESPONSES) for event in stream]
    case.assertEqual([event.sequence_number for event in events], list(range(len(events))))
    kinds = [event.type.removeprefix("response.") for event in events]
    case.assertEqual(kinds[:2], ["created", "in_progress"])
    case.assertIn(kinds[-1], ("completed", "incomplete"))
    final = events[-1].response
    case.assertEqual(kinds[-1], final.status)
    case.assertEqual({event.response.id for event in events[:2]}, {final.id})
    open_item, open_part, text = None, None, ""
    items = []
    for kind, event in zip(kinds[2:-1], events[2:-1]):
        name, _, what = kind.partition(".")
        case.assertIn(name, ITEM_EVENTS)
        case.assertEqual(event.output_index, len(items))
        if name == "output_item":
            if what == "added":
                case.assertIsNone(open_item)
                case.assertEqual(event.item.status, "in_progress")
                open_item, parts = event.item.id, 0
            else:
                case.assertEqual((event.item.id, open_part), (open_item, None))
                open_item = None
                items.append(event.item)
            continue
        case.assertEqual(event.item_id, open_item)
        if name != "function_call_arguments":
            case.assertEqual(event.content_index, parts)
        if name == "content_part" and what == "added":
            case.assertIsNone(open_part)
            open_part, text = event.part.type, ""
        elif name == "content_part":
            case.assertEqual((event.part.type, event.part.text), (open_part, text))
            open_part, parts = None, parts + 1
        elif what == "delta":
            text += event.delta
        elif name == "function_call_arguments":
            case.assertEqual(event.arguments, text)
            text = ""
        else:
            case.assertEqual((event.text, name), (text, open_part))
    case.assertEqual([item.to_dict() for item in items], [item.to_dict() for item in final.output])
    return final


class Responses(Client, TinyCase):
    def create(self, **fields):
        return self.client().responses.create(**{**RESPONSE, **fields})

    def test_whole(self):
        response = check_published(self.create(metadata={"a": "b"}), OPEN_RESPONSES)
        self.assertEqual((response.output_text, response.status, response.metadata), (wanted_text(), "incomplete", {"a": "b"}))
        self.assertEqual(response.incomplete_details.reason, "max_output_tokens")
        self.assertEqual(response.usage.output_tokens, TOKENS)
        self.assertEqual(response.usage.total_tokens, response.usage.input_tokens + TOKENS)

    def test_streamed(self):
        response = response_of(self, self.create(stream=True))
        self.assertEqual((response.output_text, response.usage.output_tokens), (wanted_text(), TOKENS))

    def test_kept_gone_on_from_and_deleted(self):
        client = self.client()
        first = self.create()
        self.assertEqual(check_published(client.responses.retrieve(first.id), OPEN_RESPONSES), first)
        second = self.create(previous_response_id=first.id, input="import sys")
        self.assertEqual(second.previous_response_id, first.id)
        whole = self.create(input=[{"role": "user", "content": PROMPT}, {"role": "assistant", "content": first.output_text},
                                   {"role": "user", "content": "import sys"}])
        self.assertEqual(second.output_text, whole.output_text)
        self.assertEqual(second.usage.input_tokens, whole.usage.input_tokens)
        client.responses.delete(first.id)
        with self.assertRaises(openai.NotFoundError):
            client.responses.retrieve(first.id)
        self.fails(openai.BadRequestError, "previous_response_id", first.id, lambda: self.create(previous_response_id=first.id))
        with self.assertRaises(openai.NotFoundError):
            client.responses.retrieve(self.create(store=False).id)

    def test_what_is_refused(self):
        for error, param, fields in ((openai.NotFoundError, "model", {"model": "other"}),
                                     (openai.BadRequestError, "temperature", {"temperature": 1e9}),
                                     (openai.BadRequestError, "background", {"background": True}),
                                     (openai.BadRequestError, "truncation", {"truncation": "auto"})):
            for stream in (False, True):
                self.fails(error, param, param, lambda: self.create(**fields, stream=stream))
        self.fails(openai.AuthenticationError, None, "key", lambda: self.client(api_key="another-key").responses.create(**RESPONSE))

    def test_many_threads(self):
        client = self.client(max_retries=10)
        self.check_threads(lambda: client.responses.create(**RESPONSE).output_text)

    def test_a_stream_that_is_left(self):
        def begin():
            with self.create(max_output_tokens=1900, extra_body=ENDLESS, stream=True) as stream:
                self.assertEqual(len(list(itertools.islice(stream, 6))), 6)

        self.check_cancelled(begin)


class ResponsesWithCalls(Client, ScriptedCase):
    def create(self, **fields):
        return self.client().responses.create(**{**RESPONSE_ASKED, **fields})

    def test_thinking(self):
        response = check_published(self.create(reasoning={"effort": "high"}), OPEN_RESPONSES)
        streamed = response_of(self, self.create(reasoning={"effort": "high"}, stream=True))
        for each in (response, streamed):
            self.assertEqual([item.type for item in each.output], ["reasoning", "message"])
            self.assertEqual((each.output[0].content[0].text, each.output_text, each.status), (THOUGHT, ANSWER, "completed"))
            self.assertGreater(each.usage.output_tokens_details.reasoning_tokens, 0)

    def test_by_the_helper_for_streams(self):
        with self.client().responses.stream(**RESPONSE_ASKED) as stream:
            text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
            self.assertEqual((stream.get_final_response().output_text, text), (ANSWER, ANSWER))

    def test_calls(self):
        for choice in ("auto", "required", {"type": "function", "name": NAME}):
            whole = check_published(self.create(tools=[RESPONSE_TOOL], tool_choice=choice), OPEN_RESPONSES)
            streamed = response_of(self, self.create(tools=[RESPONSE_TOOL], tool_choice=choice, stream=True))
            for response in (whole, streamed):
                call, = response.output
                self.assertEqual((call.type, call.name, json.loads(call.arguments)), ("function_call", NAME, ARGUMENTS))
                answer = self.create(previous_response_id=response.id, tools=[RESPONSE_TOOL],
                                     input=[{"type": "function_call_output", "call_id": call.call_id, "output": "7"}])
                self.assertEqual(answer.output_text, ANSWER)


if __name__ == "__main__":
    unittest.main()
