#!/usr/bin/env python3
"""Write the folders of tests/golden/sentencepiece: a small tokenizer as tokenizer.model or tokenizer.json, and cases.json,
texts with the ids that Hugging Face's own code gives them.

    python make_sentencepiece.py    # transformers 4.46.3 (the last with the slow tokenizers), sentencepiece, tokenizers
"""

import base64
import io
import json
import os
import shutil
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import LlamaTokenizer

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sentencepiece")

LINES = [
    "A tree of drafts is checked in one pass.", "The draft is short, the check is wide, and the text is the same.",
    "for (int i = 0; i < n; ++i) sum += values[i];", "return the same text    for the same tree",
    "café naïve über Straße", "你好 世界", "the tree the draft the pass the check the text", "1 2 3 45 678",
] * 4

# A few of the replacements of NFKC, among them of several characters by one, of one by several, and by nothing.
RULES = [(0xFF01 + i, [0x21 + i]) for i in range(94)] + [
    (0xFB01, [0x66, 0x69]), (0x2460, [0x31]), (0x3000, [0x20]), (0xA0, [0x20]), (0x2126, [0x3A9]),
    (0x33A2, [0x6B, 0x6D, 0x32]), (0xAD, []), ((0x65, 0x301), [0xE9]), ((0xFF45, 0x301), [0xE9]), ((0x75, 0x308), [0xFC]),
    (0xFDFA, [0x635, 0x644, 0x649, 0x20, 0x627]),
]

TEXTS = [
    "", "the same tree", " the", "  two  spaces ", "café naïve", "cafe\u0301 u\u0308ber", "ｔｈｅ ｔｒｅｅ", "ﬁne ㎢ ①",
    "ｅ\u0301ｅ\u0301 e\u0301", "a\u3000b\u00A0c\u00ADd", "\u2126\uFDFA", "你好\U0001F600世界", "\U0001F468\u200D\U0001F469\u200D\U0001F467",
    "tab\there\n\nlines\r\n", "the</s>the", "the</s> the", "</s>the tree</s>", "<s> the", "<s>the<unk>tree", "x▁y ▁ z", "▁the",
    "zzzqqq", "q\U0001F600\U0001F600q", "for (int i = 0; i < 10; ++i)", "1234567890", "   ", "</s>  ", "\n",
]


def train(kind, **settings):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=model, model_type=kind, vocab_size=380, hard_vocab_limit=False,
        minloglevel=3, character_coverage=1.0, **settings)
    return model.getvalue()


def rules_file(folder):
    path = os.path.join(folder, "rules.tsv")
    with open(path, "w", encoding="ascii") as file:
        for source, target in RULES:
            codes = source if isinstance(source, tuple) else (source,)
            print(" ".join(f"{c:X}" for c in codes) + "\t" + " ".join(f"{c:X}" for c in target), file=file)
    return path


def write(case, files, cases):
    folder = os.path.join(HERE, case)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name, content in files.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
    with open(os.path.join(folder, "cases.json"), "w", encoding="ascii") as file:
        json.dump([{"text": text, "ids": ids} for text, ids in cases], file, indent=0)
        file.write("\n")


def slow(case, model, **config):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tokenizer.model")
        with open(path, "wb") as file:
            file.write(model)
        tokenizer = LlamaTokenizer(path, add_bos_token=False, **config)
        cases = [(text, tokenizer.encode(text, add_special_tokens=False)) for text in TEXTS]
    write(case, {"tokenizer.model": model, "tokenizer_config.json": json.dumps({"add_bos_token": False, **config})}, cases)


def unigram_json(case, model, byte_fallback, **metaspace):
    proto = model_pb2.ModelProto()
    proto.ParseFromString(model)
    vocab = [(piece.piece, piece.score) for piece in proto.pieces]
    tokenizer = Tokenizer(models.Unigram(vocab, 0, byte_fallback))
    steps = [normalizers.Replace(Regex(" {2,}"), " ")]
    if proto.normalizer_spec.precompiled_charsmap:
        steps.insert(0, normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap))
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(**metaspace)
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(**metaspace), decoders.Fuse()])
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in ("<unk>", "<s>", "</s>")])
    # Text that spells a control token is one here, as everywhere in this library; the test allows it too.
    write(case, {"tokenizer.json": tokenizer.to_str()}, [(text, tokenizer.encode(text, add_special_tokens=False).ids) for text in TEXTS])


def gemma_json(case):
    """As Gemma's: pairs merged over whole texts, bytes of what is missing, and line breaks and tags as added tokens."""
    control = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    trainer = trainers.BpeTrainer(
        vocab_size=480, show_progress=False, special_tokens=control + [f"<0x{byte:02X}>" for byte in range(256)])
    tokenizer.train_from_iterator(LINES, trainer)
    file = json.loads(tokenizer.to_str())
    file["added_tokens"] = [token for token in file["added_tokens"] if token["content"] in control]
    tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in ("\n\n", "<table>", "▁▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    texts = TEXTS + ["a\n\n\nb", "x <table>y</table>", "the▁▁tree", "<start_of_turn>user\nthe tree<end_of_turn>\n", "the   tree "]
    write(case, {"tokenizer.json": tokenizer.to_str()}, [(text, tokenizer.encode(text, add_special_tokens=False).ids) for text in texts])


def main():
    gemma_json("gemma-json")
    plain = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False, "byte_fallback": True,
             "allow_whitespace_only_pieces": True}
    bpe = train("bpe", **plain)
    slow("bpe-legacy", bpe, legacy=True)
    slow("bpe", bpe, legacy=False)
    slow("bpe-no-prefix", bpe, legacy=False, add_prefix_space=False)
    with tempfile.TemporaryDirectory() as folder:
        rules = rules_file(folder)
        table = {"normalization_rule_tsv": rules}
        unigram = train("unigram", **table)
        slow("unigram-rules-legacy", unigram, legacy=True)
        slow("unigram-rules", unigram, legacy=False)
        unigram_json("unigram-json-rules", unigram, False)
        unigram_json("unigram-json-bytes", train("unigram", byte_fallback=True, **table), True, prepend_scheme="first", split=False)
    unigram_json("unigram-json", train("unigram", **plain), True, prepend_scheme="never", split=True)


if __name__ == "__main__":
    main()
