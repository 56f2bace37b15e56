#!/usr/bin/env python3
"""Checks that every include between the folders of engine/, cuda_backend/ and app/ runs down.

usage: tools/check_layers.py [--show] [FOLDER]

What a folder may include is what its CMakeLists.txt links: the DEPENDS of canopy_library() or canopy_app_library(), or
for a program the canopy_* names of target_link_libraries(), and whatever those link in turn. An include of any other
folder is an error, and so is a circle in what the folders link. Prints one line for each; exits with 1 if there is one.

--show prints the folders, lowest layer first, and how many files and lines they have.
FOLDER: the root of the sources; without it, the repository of this script.
"""

import os
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"((?:app|engine|cuda_backend)/[^"]+)"', re.MULTILINE)
LIBRARY = re.compile(r"^\s*canopy_(?:app_)?library\(\s*(\w+)([^)]*)\)", re.MULTILINE)
LINKED = re.compile(r"^\s*target_link_libraries\(\s*([\w-]+)([^)]*)\)", re.MULTILINE)
KEYWORDS = {"SOURCES", "DEPENDS", "LINK", "DRAWN", "PUBLIC", "PRIVATE", "INTERFACE"}


def without_comments(cmake):
    return re.sub(r"#[^\n]*", "", cmake)


def words_after(keyword, arguments):
    """The words between a keyword of CMake and the next one."""
    found = []
    taking = False
    for word in arguments.split():
        if word in KEYWORDS:
            taking = word == keyword
        elif taking:
            found.append(word)
    return found


class Folder:
    """One folder with a CMakeLists.txt: its libraries and what they link, by the names of libraries."""

    def __init__(self, path):
        self.path = path
        self.libraries = set()
        self.links = set()
        self.files = 0
        self.lines = 0


def read_folders(root):
    """Folder by its path from the root, for every CMakeLists.txt under them."""
    folders = {}
    for top in ("engine", "cuda_backend", "app"):
        for path, _, names in os.walk(os.path.join(root, top)):
            if "CMakeLists.txt" not in names:
                continue
            with open(os.path.join(path, "CMakeLists.txt"), encoding="utf-8") as file:
                cmake = without_comments(file.read())
            folder = Folder(os.path.relpath(path, root).replace(os.sep, "/"))
            for name, arguments in LIBRARY.findall(cmake):
                folder.libraries.add(name)
                folder.links.update(words_after("DEPENDS", arguments))
            for _, arguments in LINKED.findall(cmake):
                folder.links.update(re.findall(r"\bcanopy_(\w+)", arguments))
            folders[folder.path] = folder
    return folders


def folder_of(path, folders):
    """The folder that a file belongs to: the nearest one above it that has a CMakeLists.txt."""
    while path and path not in folders:
        path = path.rpartition("/")[0]
    return path


def direct_links(folders):
    owner = {library: path for path, folder in folders.items() for library in folder.libraries}
    return {path: {owner[name] for name in folder.links if name in owner} - {path} for path, folder in folders.items()}


def layers(links):
    """The layer of each folder, 1 for one that links no other, and the folders that are in a circle or above one."""
    layer = {}
    left = set(links)
    while True:
        ready = {path for path in left if links[path] <= layer.keys()}
        if not ready:
            return layer, left
        for path in ready:
            layer[path] = 1 + max((layer[each] for each in links[path]), default=0)
        left -= ready


def everything_below(path, links):
    below, open_ends = set(), [path]
    while open_ends:
        for each in links[open_ends.pop()] - below:
            below.add(each)
            open_ends.append(each)
    return below


def check(root):
    """A list of problems, one line each, and the folders with their layers."""
    folders = read_folders(root)
    links = direct_links(folders)
    layer, circle = layers(links)
    problems = [f"{path}/CMakeLists.txt: links folders in a circle" for path in sorted(circle)]
    allowed = {path: everything_below(path, links) for path in folders}
    for top in ("engine", "cuda_backend", "app"):
        for path, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if not name.endswith((".h", ".cpp")):
                    continue
                file_path = os.path.relpath(os.path.join(path, name), root).replace(os.sep, "/")
                here = folder_of(os.path.dirname(file_path), folders)
                with open(os.path.join(path, name), encoding="utf-8") as file:
                    text = file.read()
                if here in folders:
                    folders[here].files += 1
                    folders[here].lines += text.count("\n")
                for match in INCLUDE.finditer(text):
                    there = folder_of(os.path.dirname(match.group(1)), folders)
                    if there == here or there in allowed.get(here, ()):
                        continue
                    line = text.count("\n", 0, match.start(1)) + 1
                    problems.append(
                        f'{file_path}:{line}: includes "{match.group(1)}", but {here}/CMakeLists.txt links nothing of '
                        f"{there or 'that folder'}")
    return sorted(problems), folders, layer


def show(folders, layer):
    for path in sorted(folders, key=lambda each: (layer.get(each, 0), each)):
        folder = folders[path]
        if folder.files:
            print(f"{layer.get(path, 0):3}  {path:24} {folder.files:4} files {folder.lines:6} lines")


def main(arguments):
    shown = "--show" in arguments
    paths = [each for each in arguments if each != "--show"]
    if len(paths) > 1 or any(each.startswith("-") for each in paths):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    root = paths[0] if paths else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    problems, folders, layer = check(root)
    if shown:
        show(folders, layer)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
