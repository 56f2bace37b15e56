"""Which of Canopy's devices is measured, by the words that canopy-cli's --device takes."""

# As engine/compute/backend.cpp chooses: the best type first, and a later backend before an earlier one.
TYPES = ("discrete", "integrated", "virtual", "cpu", "software")
BACKENDS = ("vulkan", "cuda", "cpu")
PEERS = ("vulkan", "cpu")  # that llama.cpp is built for here


class DeviceError(Exception):
    """The message is for the user."""


def choose(listed, selector):
    """The entry of `canopy-cli devices --json` that the selector names (None: the best), among those that llama.cpp can be
    measured on too."""
    usable = [device for device in listed if device["usable"] and device["backend"] in PEERS]
    fitting = [device for device in usable if selector is None or _fits(device, selector.lower(), listed)]
    if fitting:
        return min(fitting, key=_rank)
    names = "; ".join(f"{device['index']}: {device['name']} [{device['id']}]" for device in usable) or "none"
    wanted = "None is usable" if selector is None else f"None is called {selector!r}"
    raise DeviceError(f"usable devices that llama.cpp is compared on (Vulkan's and the processor): {names}. {wanted}.")


def _rank(device):
    kind = TYPES.index(device["type"]) if device["type"] in TYPES else len(TYPES)
    return kind, -BACKENDS.index(device["backend"]), device["index"]


def _fits(device, word, listed):
    is_called_so = word in device["name"].lower()
    if word.isdecimal():
        # "4090" is a name, "7" a number that is not in the list, also where there is an RX 7900.
        is_name = len(word) > 2 and all(str(other["index"]) != word for other in listed)
        return str(device["index"]) == word or (is_name and is_called_so)
    if word in BACKENDS:
        return device["backend"] == word
    backend, colon, number = word.partition(":")
    if colon and backend in BACKENDS and number.isdecimal():
        return device["id"] == word
    return device["type"] == word if word in TYPES else is_called_so


def number_in_backend(device):
    """Of vulkan:1 the 1, as llama.cpp counts."""
    return int(device["id"].partition(":")[2])
