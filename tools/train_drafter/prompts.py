"""Prompts to measure with: JSON lines as in assets/prompts, and the held-out ones beside this file."""

import json
import os
import typing

from errors import UserError, require

HERE = os.path.dirname(os.path.abspath(__file__))
SHIPPED = os.path.join(os.path.dirname(os.path.dirname(HERE)), "assets", "prompts")


class Prompt(typing.NamedTuple):
    category: str
    text: str


def default_files():
    """assets/prompts/*.jsonl and held_out.jsonl"""
    shipped = sorted(os.path.join(SHIPPED, name) for name in os.listdir(SHIPPED) if name.endswith(".jsonl"))
    return [*shipped, os.path.join(HERE, "held_out.jsonl")]


def read_prompts(paths, limit=None):
    """Prompts of some files, at most `limit` of each category. MT-Bench's eight categories count as one."""
    prompts, counts = [], {}
    for path in paths:
        for number, line in enumerate(lines_of(path), start=1):
            if not line.strip():
                continue
            prompt = parse(line, path, number)
            counts[prompt.category] = counts.get(prompt.category, 0) + 1
            if limit is None or counts[prompt.category] <= limit:
                prompts.append(prompt)
    require(prompts, "There are no prompts to measure with.")
    return prompts


def lines_of(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}).") from None


def parse(line, path, number):
    stem = os.path.splitext(os.path.basename(path))[0]
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise UserError(f"{path}, line {number}: not JSON ({error}).") from None
    text = entry.get("prompt")
    if entry.get("turns"):
        text = entry["turns"][0]
    elif entry.get("messages"):
        text = next((message["content"] for message in entry["messages"] if message.get("role") == "user"), None)
    require(isinstance(text, str), f"{path}, line {number}: there is no user's message in turns, messages or prompt.")
    category = stem if "question_id" in entry else entry.get("category") or entry.get("suite") or stem
    return Prompt(category, text)
