"""Make a DFlash drafter for a Llama or Qwen3 model: python3 tools/train_drafter COMMAND --help"""

import argparse
import sys

sys.dont_write_bytecode = True

try:
    import evaluate
    import export
    import rank
    import synthesize
    import train
    from errors import UserError
except ModuleNotFoundError as missing:
    sys.exit(f"train_drafter: the Python package {missing.name} is missing: pip install -r "
             "tools/train_drafter/requirements.txt")

COMMANDS = {"synthesize": synthesize, "train": train, "evaluate": evaluate, "rank": rank, "export": export}


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="train_drafter", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        module.add_options(commands.add_parser(name, help=module.HELP, description=module.__doc__,
                                               formatter_class=argparse.RawDescriptionHelpFormatter))
    options = parser.parse_args(arguments)
    try:
        COMMANDS[options.command].run(options)
    except UserError as error:
        print(f"train_drafter: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ntrain_drafter: interrupted; what was written so far stays.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
