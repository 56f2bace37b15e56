"""train: a drafter from texts that synthesize wrote. Run again with the same options, it goes on from its
checkpoint."""

import contextlib
import dataclasses
import json
import os

import checkpoint
import dataset
import initial
from atomic import write_atomically
from drafter_files import check_pair, config_json, load_drafter
from errors import require
from features import LiveFeatures, StoredFeatures
from identity import text_digest, weights_digest
from progress import say
from runtime import add_runtime_options, start
from target import load_target
from text import load_text
from trainer import Trainer

HELP = "train a drafter on such text"


def add_options(parser):
    parser.add_argument("--target", required=True, help="Hugging Face folder or GGUF file")
    parser.add_argument("--data", required=True, nargs="+", help="texts written by synthesize (.npz)")
    parser.add_argument("--out", required=True, help="folder of the run: checkpoint.pt, log.jsonl")
    model = parser.add_argument_group("the drafter")
    model.add_argument("--start-from", metavar="DRAFTER", help="go on with the weights of this drafter, the folder of "
                       "a run or of an export, or a GGUF file; what follows is then as it has it")
    model.add_argument("--layers", type=int, help="default 3")
    model.add_argument("--block-size", type=int, help="the root and B - 1 masks (default 8)")
    model.add_argument("--taps", help="target layers, e.g. 1,8,14,20,27 (default: five evenly spread)")
    model.add_argument("--mask-token", help="spelling of a token that text does not contain, or its id in digits")
    model.add_argument("--init", choices=("warm", "random"), help="warm (default): the target's layers")
    loss = parser.add_argument_group("the loss")
    loss.add_argument("--kl", type=float, default=0.5, help="share of the divergence from the target (default 0.5)")
    loss.add_argument("--teacher-top", type=int, default=8, help="the target's tokens it is measured over (default 8)")
    loss.add_argument("--vocabulary", type=int, default=6144, help="sampled columns of the head, 0: all (default 6144)")
    loss.add_argument("--decay", type=float, default=4, help="row i weighs exp(-(i-1)/decay), 0: all alike (default 4)")
    steps = parser.add_argument_group("the steps")
    steps.add_argument("--steps", type=int, default=2000, help="default 2000")
    steps.add_argument("--rows", type=int, default=8, help="texts a step (default 8)")
    steps.add_argument("--anchors", type=int, default=32, help="blocks a text (default 32)")
    steps.add_argument("--roots", choices=("even", "rounds"), default="even",
                       help="even (default): drawn evenly; rounds: seldom at tokens that the target was sure of, as "
                            "when decoding (needs --cache-features and --teacher-top)")
    steps.add_argument("--max-length", type=int, default=448, help="tokens of a text that are used (default 448)")
    steps.add_argument("--optimizer", choices=("muon", "adamw"), default="muon", help="default muon")
    steps.add_argument("--rate", type=float, default=2e-3, help="largest learning rate (default 0.002)")
    steps.add_argument("--weight-decay", type=float, default=0.05, help="of matrices (default 0.05)")
    steps.add_argument("--warmup", type=float, default=0.02, help="share of the steps (default 0.02)")
    steps.add_argument("--final-rate", type=float, default=0.02, help="the cosine's end, of --rate (default 0.02)")
    steps.add_argument("--seed", type=int, default=1, help="default 1")
    steps.add_argument("--held-out", type=float, default=0.02, help="share of prompts kept to measure (default 0.02)")
    steps.add_argument("--minutes", type=float, default=0, help="stop with a checkpoint after so long")
    steps.add_argument("--checkpoint-seconds", type=float, default=300, help="between checkpoints (default 300)")
    steps.add_argument("--measure-every", type=int, default=200, help="steps between measurements (default 200)")
    steps.add_argument("--measure-texts", type=int, default=64, help="held-out texts measured (default 64)")
    steps.add_argument("--cache-features", help="folder to keep the target's features in, for several epochs on a CPU; "
                                                "synthesize --features has written some of them already")
    add_runtime_options(parser)


def run(options):
    device, dtype = start(options)
    for name in ("rows", "anchors", "measure_every", "max_length"):
        require(getattr(options, name) > 0, f"--{name.replace('_', '-')} must be positive.")
    require(options.roots == "even" or (options.cache_features and options.teacher_top > 0 and options.kl > 0),
            "--roots rounds: needs --cache-features, and --teacher-top and --kl above 0.")
    target = load_target(options.target, device, dtype)
    text = dataset.merged([dataset.load(path) for path in options.data], target.config.vocab)
    training, held = dataset.split(text, options.held_out)
    require(training, "The texts hold no row to train on.")
    drafter = (continued_drafter if options.start_from else new_drafter)(options, target)
    config = drafter.config
    check_mask(config.mask_token, text)
    identity = {**identity_of(options, config), "text": text_digest(text), "target": weights_digest(target),
                "start": weights_digest(drafter) if options.start_from else None}
    state = begun(options.out, identity, config_json(config, target.config), device)
    features = feature_source(options, target, config, text)
    with contextlib.closing(features):
        trainer = Trainer(options, target, drafter, text, training, held, features, dtype, identity)
        if state:
            trainer.restore(state)
            say(f"Going on from step {trainer.step}.")
        else:
            trainer.save()
        parameters = sum(p.numel() for p in drafter.parameters())
        say(f"{len(training)} texts to train on, {len(held)} held out; {parameters / 1e6:.1f} million parameters; "
            f"taps {list(config.taps)}; {device}, {'bf16' if dtype.itemsize == 2 else 'f32'}")
        trainer.run()


def new_drafter(options, target):
    """A Drafter as the options describe it, with weights to start from."""
    scaling = target.config.sizes.rope_scaling
    require(not scaling or scaling["rope_type"] == "llama3",
            f"{options.target}: its rope scaling is stored as factors, which a drafter's config.json cannot state; "
            "take the target's Hugging Face folder.")
    layers = 3 if options.layers is None else options.layers
    block = 8 if options.block_size is None else options.block_size
    taps = initial.taps_of(options) or initial.default_taps(target.config.sizes.layers, 5)
    mask = initial.mask_token_id(load_text(options.target), target.config.vocab, options.mask_token)
    config = initial.new_config(target.config, layers, block, taps, mask)
    check_pair(config, target.config, options.target)
    return initial.new_drafter(config, target, options.init != "random", options.seed)


def continued_drafter(options, target):
    """The Drafter of --start-from. Raises UserError where an option contradicts what its weights were trained for; the
    block size may differ."""
    path = options.start_from
    drafter = load_drafter(path, target.config)
    config = drafter.config
    require(options.init is None, f"--init {options.init}: the weights come from --start-from; leave one of them out.")
    mask = options.mask_token
    if mask is not None:
        mask = initial.mask_token_id(load_text(options.target), target.config.vocab, mask)
    for name, asked, has in (("layers", options.layers, config.sizes.layers),
                             ("taps", initial.taps_of(options), config.taps), ("mask-token", mask, config.mask_token)):
        require(asked in (None, has), f"--{name} {shown(asked)}: the drafter of --start-from {path} has {shown(has)}; "
                                      "leave the option out, or start anew without --start-from.")
    block = config.block_size if options.block_size is None else options.block_size
    initial.check_block_size(block)
    drafter.config = dataclasses.replace(config, block_size=block, target_layers=target.config.sizes.layers,
                                         vocab=target.config.vocab)
    return drafter.to(target.head_weight.device)


def shown(value):
    return ",".join(map(str, value)) if isinstance(value, tuple) else value


def check_mask(mask, text):
    """Raises UserError where the mask occurs in the text: its row would be both a token and the lack of one."""
    times = int((text.tokens == mask).sum())
    require(not times, f"--mask-token: the token {mask} occurs {times} times in --data; name one that does not, such "
                       "as a reserved special token.")


def identity_of(options, config):
    """The options that define a run, and the drafter that they describe; those of a checkpoint must be the same. Paths
    of files are left out, as only their contents matter."""
    no_matter = ("command", "out", "target", "data", "start_from", "device", "threads", "precision", "minutes",
                 "checkpoint_seconds", "cache_features", "measure_every", "measure_texts")
    described = {"layers": config.sizes.layers, "block_size": config.block_size, "taps": list(config.taps),
                 "mask_token": config.mask_token, "init": None if options.start_from else options.init or "warm"}
    return {**{name: value for name, value in vars(options).items() if name not in no_matter}, **described}


def begun(folder, identity, config, device):
    """The state of the run in a folder, or None if it begins now; then config.json is written. Raises UserError, and
    leaves the folder unchanged, if it belongs to another run."""
    state = checkpoint.load(folder, device)
    if state:
        checkpoint.same_run(folder, state["identity"], identity)
        return state
    require(not os.path.exists(os.path.join(folder, "model.safetensors")),
            f"--out {folder}: holds a model (model.safetensors); name another folder for the run.")
    os.makedirs(folder, exist_ok=True)
    write_atomically(os.path.join(folder, "config.json"), (json.dumps(config, indent=1) + "\n").encode())
    return None


def feature_source(options, target, config, text):
    top = min(options.teacher_top, target.config.vocab) if options.kl > 0 else 0
    if not options.cache_features:
        return LiveFeatures(target, config.taps, top)
    return StoredFeatures(target, config.taps, top, text, options.cache_features)
