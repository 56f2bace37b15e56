"""export: a run's drafter as a folder in the layout of the published ones (bf16) and, by canopy-cli convert, as one
GGUF file (Q8_0)."""

import json
import os
import subprocess
import tempfile

from drafter_files import load_drafter, write_folder
from errors import UserError, require
from progress import say
from target_files import read_config

HELP = "write a trained drafter as a safetensors folder and a GGUF file"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def add_options(parser):
    parser.add_argument("--run", required=True, help="folder of the run, or of an exported drafter")
    parser.add_argument("--target", required=True, help="Hugging Face folder or GGUF file that it was trained for")
    parser.add_argument("--out", required=True, help="folder for config.json and model.safetensors")
    parser.add_argument("--gguf", help="file to write as well")
    add_convert_options(parser)


def add_convert_options(parser):
    """Of what convert() writes."""
    parser.add_argument("--type", choices=("q8_0", "f16", "bf16"), default="q8_0", help="of matrices (default q8_0)")
    parser.add_argument("--name", help="stated in the GGUF file")
    parser.add_argument("--license", help="stated in the GGUF file, e.g. apache-2.0")
    parser.add_argument("--source", help="where the weights come from, stated in the GGUF file")
    parser.add_argument("--canopy-cli", help="the program that converts (default: the release build's)")


def run(options):
    config = read_config(options.target)
    drafter = load_drafter(options.run, config)
    write_folder(options.out, drafter, config)
    say(f"{options.out}: {sum(p.numel() for p in drafter.parameters()) / 1e6:.1f} million parameters in bf16")
    if options.gguf:
        convert(options, options.out)
        say(f"{options.gguf}: {os.path.getsize(options.gguf)} bytes, {options.type}")


def convert(options, drafter, draft_tokens=()):
    """Writes the GGUF file with the engine's own converter; with draft_tokens its head is over those alone. If the target is a GGUF file, the converter checks the pair
    and copies the target's tokenizer; if it is a folder, it checks the drafter alone."""
    program = options.canopy_cli or os.path.join(ROOT, "build", "release", "bin", "canopy-cli")
    require(os.access(program, os.X_OK), f"{program}: canopy-cli is not there. tools/run builds it; or name another "
                                         "by --canopy-cli.")
    command = [program, "convert", drafter, options.gguf, "--type", options.type, "--overwrite"]
    if os.path.isfile(options.target):
        command += ["--target", options.target]
    for name in ("name", "license", "source"):
        if getattr(options, name):
            command += [f"--{name}", getattr(options, name)]
    with tempfile.TemporaryDirectory() as folder:
        if draft_tokens:
            listed = os.path.join(folder, "draft_tokens.json")
            with open(listed, "w", encoding="utf-8") as file:
                json.dump(list(draft_tokens), file)
            command += ["--draft-tokens", listed]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"canopy-cli convert failed: {done.stderr.strip() or done.stdout.strip()}")
