"""A target's tokenizer and chat template, from its Hugging Face folder or GGUF file."""

import dataclasses
import os

import jinja2
import jinja2.sandbox
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers

from errors import UserError, require
from gguf_file import GgufFile
from target_files import read_json

# The expressions of the models' own tokenizer.json, by GGUF's tokenizer.ggml.pre.
_WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
_EXPRESSIONS = {"qwen2": _WORDS % r"\p{N}", "llama-bpe": _WORDS % r"\p{N}{1,3}"}
_GPT2 = {"gpt-2": False, "smollm": True}  # whether digits stand alone
_CONTROL, _USER_DEFINED = 3, 4  # tokenizer.ggml.token_type


class Text:
    """The tokenizer, and the chat template if there is one."""

    def __init__(self, tokenizer, template, special, leading=None):
        self.tokenizer = tokenizer
        self.template = template
        self.special = special  # bos_token and eos_token as templates see them
        self.leading = leading  # id that every prompt begins with, or None

    def encode(self, text):
        """Token ids; special tokens in the text are recognised, none is added."""
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def token_id(self, text):
        """The id of a token by its spelling; None where there is none."""
        return self.tokenizer.token_to_id(text)

    def render(self, messages, open_answer=True):
        """The text of a conversation up to where the answer starts. Variables of the template other than the messages,
        such as enable_thinking, are not set, as in the engine."""
        require(self.template, "The target has no chat template; use --style text.")
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)

        def refuse(message):
            raise jinja2.TemplateError(message)

        environment.globals["raise_exception"] = refuse
        environment.globals["strftime_now"] = lambda form: "26 Jul 2024"  # fixed: text must not depend on the day
        try:
            return environment.from_string(self.template).render(
                messages=messages, add_generation_prompt=open_answer, **self.special)
        except jinja2.TemplateError as error:
            raise UserError(f"The target's chat template refuses a conversation: {error}.") from None

    def prompt(self, user):
        """Ids of a first user turn in the chat template; of the bare text where there is no template."""
        return self.begun(self.encode(self.render([{"role": "user", "content": user}]) if self.template else user))

    def begun(self, ids):
        """Ids with the leading one in front, unless it is there, as the engine begins its prompts."""
        return ids if self.leading is None or ids[:1] == [self.leading] else [self.leading, *ids]


@dataclasses.dataclass(frozen=True)
class ChatFrame:
    """The tokens around the turns of a conversation, as ids."""

    opening: list[int]  # up to the first user turn
    to_answer: list[int]  # from the end of a user turn to the answer
    to_user: list[int]  # from the end of an answer to the next user turn


def chat_frame(text):
    """Cuts the template's own rendering of a conversation at its messages."""
    marks = ["canopyuserone", "canopyanswerone", "canopyusertwo"]
    roles = ["user", "assistant", "user"]
    messages = [{"role": role, "content": mark} for role, mark in zip(roles, marks)]
    first, whole = text.render(messages[:1]), text.render(messages)
    try:
        opening, to_answer = first.split(marks[0])
        _, rest = whole.split(marks[1])
        to_user, _ = rest.split(marks[2])
    except ValueError:
        raise UserError("The target's chat template repeats or drops a message; use --style text.") from None
    return ChatFrame(text.begun(text.encode(opening)), text.encode(to_answer), text.encode(to_user))


def load_text(path):
    """Text of a folder with tokenizer.json or of a GGUF file. Raises UserError."""
    if os.path.isdir(path):
        return _from_folder(path)
    require(os.path.isfile(path), f"{path}: there is no such file or folder.")
    return _from_gguf(GgufFile(path))


def _from_folder(path):
    where = os.path.join(path, "tokenizer.json")
    require(os.path.isfile(where), f"{where}: is missing; the tokenizer is read from it.")
    config = read_json(os.path.join(path, "tokenizer_config.json"), missing_ok=True)
    template = config.get("chat_template")
    if os.path.isfile(os.path.join(path, "chat_template.jinja")):
        with open(os.path.join(path, "chat_template.jinja"), encoding="utf-8") as file:
            template = file.read()
    if isinstance(template, list):  # several, by name
        template = next((entry["template"] for entry in template if entry["name"] == "default"), None)

    def spelling(name):
        value = config.get(name)
        return value.get("content") if isinstance(value, dict) else value

    special = {name: spelling(name) for name in ("bos_token", "eos_token")}
    tokenizer = tokenizers.Tokenizer.from_file(where)
    alone = tokenizer.encode("")  # what the tokenizer adds by itself
    return Text(tokenizer, template, special, alone.ids[0] if alone.special_tokens_mask[:1] == [1] else None)


def _from_gguf(file):
    where = os.path.basename(file.path)
    model, pre = file.require("tokenizer.ggml.model"), file.get("tokenizer.ggml.pre", "gpt-2")
    require(model == "gpt2" and (pre in _GPT2 or pre in _EXPRESSIONS),
            f"{where}: its tokenizer ({model}, {pre}) is not supported; gpt2 with one of "
            f"{', '.join(sorted({*_GPT2, *_EXPRESSIONS}))} is. Use the target's Hugging Face folder instead.")
    tokens, kinds = file.require("tokenizer.ggml.tokens"), file.require("tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ", 1)) for merge in file.require("tokenizer.ggml.merges")]
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges,
                                                ignore_merges=pre == "llama-bpe"))
    if pre in _GPT2:
        digits = [pre_tokenizers.Digits(individual_digits=True)] if _GPT2[pre] else []
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(tokenizers.Regex(_EXPRESSIONS[pre]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_special_tokens([tokenizers.AddedToken(token, normalized=False, special=True)
                                  for token, kind in zip(tokens, kinds) if kind in (_CONTROL, _USER_DEFINED)])

    def spelling(name):
        index = file.get(f"tokenizer.ggml.{name}_token_id")
        return None if index is None else tokens[index]

    special = {"bos_token": spelling("bos"), "eos_token": spelling("eos")}
    leads = file.get("tokenizer.ggml.add_bos_token", pre == "llama-bpe")
    leading = file.get("tokenizer.ggml.bos_token_id") if leads else None
    return Text(tokenizer, file.get("tokenizer.chat_template"), special, leading)
