"""The programs of the cross build for Windows, under Wine, beside those of this system's build.

CANOPY_CLI and CANOPY_WINDOWS_CLI name the command lines, CANOPY_APP and CANOPY_WINDOWS_APP those with the window,
CANOPY_RUN_WINDOWS what starts a program of Windows. The window is drawn by Wine's Vulkan over the driver that
CANOPY_LAVAPIPE names, on a display that Xvfb keeps in a file. CANOPY_PICTURES=folder keeps pictures of it.
"""

import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import unittest
import urllib.request
import zlib

CLI = os.environ["CANOPY_CLI"]
WINDOWS = [os.environ["CANOPY_RUN_WINDOWS"], os.environ["CANOPY_WINDOWS_CLI"]]
APP = os.environ["CANOPY_APP"]
WINDOWS_APP = [os.environ["CANOPY_RUN_WINDOWS"], os.environ["CANOPY_WINDOWS_APP"]]
NO_DRIVER = {"VK_DRIVER_FILES": "/nonexistent", "VK_ICD_FILENAMES": "/nonexistent"}
LAVAPIPE = os.environ.get("CANOPY_LAVAPIPE", "")
DEMO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "assets", "demos", "code.canopytrace")
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")
MODEL = os.path.join(GOLDEN, "tiny-qwen3-f16.gguf")
DRAFTER = os.path.join(GOLDEN, "tiny-qwen3-dflash-b8-f16.gguf")
PROMPT = "def read(self, size=-1):\n    "


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run_one(self, command, *arguments, code=0, **variables):
        environment = dict(os.environ, CANOPY_CACHE_DIR=self.path("cache"), **variables)
        done = subprocess.run([*command, *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              check=False, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done


class CommandLine(InFolder):
    def both(self, *arguments):
        return [json.loads(self.run_one(command, *arguments).stdout) for command in ([CLI], WINDOWS)]

    def test_writes_the_same_tokens(self):
        for options in ((), ("--temperature", "0.8", "--seed", "7")):
            for files in (("-m", MODEL, "--drafter", DRAFTER), ("-m", MODEL, "--mode", "ar"),
                          ("-m", os.path.join(GOLDEN, "tiny-qwen3"))):
                with self.subTest(options=options, files=files):
                    here, there = self.both("generate", *files, "--device", "cpu", "--raw", "-p", PROMPT, "-n", "40",
                                            "--json", *options)
                    self.assertGreater(len(here["output_ids"]), 20)
                    self.assertEqual(here["output_ids"], there["output_ids"])
                    self.assertEqual(here["text"], there["text"])

    def test_names_of_any_script(self):
        folder = self.path("Modelle für 日本")
        os.mkdir(folder)
        model, trace = os.path.join(folder, "Größe.gguf"), os.path.join(folder, "запись.canopytrace")
        shutil.copy(MODEL, model)
        self.run_one(WINDOWS, "generate", "-m", model, "--device", "cpu", "--raw", "-p", "größer als", "-n", "8",
                     "--trace", trace)
        shown = self.run_one([CLI], "trace", "show", trace).stdout.decode()
        self.assertIn("Größe.gguf", shown)
        self.assertEqual(self.run_one(WINDOWS, "trace", "show", trace).stdout.decode(), shown)
        here, there = self.both("generate", "-m", model, "--device", "cpu", "--raw", "-p", "größer als 日本", "-n", "4",
                                "--json")
        self.assertEqual(here["prompt_ids"], there["prompt_ids"])

    def test_errors_name_the_file(self):
        self.assertIn(b"nowhere.gguf", self.run_one(WINDOWS, "generate", "-m", self.path("nowhere.gguf"), "-p", "x",
                                                    code=1).stderr)
        with open(MODEL, "rb") as file:
            whole = file.read()
        with open(self.path("cut.gguf"), "wb") as file:
            file.write(whole[:len(whole) // 2])
        self.assertIn(b"cut.gguf", self.run_one(WINDOWS, "generate", "-m", self.path("cut.gguf"), "-p", "x",
                                                code=1).stderr)

    def test_serves(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = dict(os.environ, CANOPY_CACHE_DIR=self.path("cache"))
        server = subprocess.Popen([*WINDOWS, "serve", "-m", MODEL, "--device", "cpu", "--port", str(port)],
                                  env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        address = f"http://127.0.0.1:{port}"
        end = time.monotonic() + 120
        while True:
            try:
                with urllib.request.urlopen(address + "/health", timeout=10) as answer:
                    if answer.status == 200:
                        break
            except OSError:
                self.assertIsNone(server.poll(), "the server has ended")
                self.assertLess(time.monotonic(), end, "the server did not come up")
                time.sleep(0.1)
        ask = urllib.request.Request(address + "/v1/completions", method="POST",
                                     headers={"Content-Type": "application/json"},
                                     data=json.dumps({"prompt": PROMPT, "max_tokens": 16, "temperature": 0}).encode())
        with urllib.request.urlopen(ask, timeout=60) as answer:
            served = json.load(answer)["choices"][0]["text"]
        (here,) = [json.loads(self.run_one([CLI], "generate", "-m", MODEL, "--device", "cpu", "--raw", "-p", PROMPT,
                                           "-n", "16", "--json").stdout)]
        self.assertEqual(served, here["text"])


def png_pixels(path):
    """Width, height and the pixels, three bytes each, of a PNG without an alpha channel."""
    with open(path, "rb") as file:
        data = file.read()
    at, packed, width, height = 8, b"", 0, 0
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height = struct.unpack(">II", data[at + 8:at + 16])
        elif kind == b"IDAT":
            packed += data[at + 8:at + 8 + size]
        at += 12 + size
    lines, stride = zlib.decompress(packed), 3 * width
    above, rows = bytearray(stride), []
    for y in range(height):
        kind, row = lines[y * (stride + 1)], bytearray(lines[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for i in range(stride):
            left, up, corner = (row[i - 3], above[i], above[i - 3]) if i >= 3 else (0, above[i], 0)
            if kind == 1:
                row[i] = row[i] + left & 255
            elif kind == 2:
                row[i] = row[i] + up & 255
            elif kind == 3:
                row[i] = row[i] + (left + up >> 1) & 255
            elif kind == 4:
                nearest = min((abs(up - corner), 0, left), (abs(left - corner), 1, up), (abs(left + up - 2 * corner), 2, corner))
                row[i] = row[i] + nearest[2] & 255
        rows.append(bytes(row))
        above = row
    return width, height, b"".join(rows)


@unittest.skipUnless(LAVAPIPE and shutil.which("Xvfb"), "there is no lavapipe or no Xvfb")
class Window(InFolder):
    WIDTH, HEIGHT = 1280, 800

    @classmethod
    def setUpClass(cls):
        cls.screen = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.screen.cleanup)
        told, tells = os.pipe()
        server = subprocess.Popen(["Xvfb", "-displayfd", str(tells), "-fbdir", cls.screen.name, "-noreset", "-nolisten", "tcp",
                                   "-screen", "0", f"{cls.WIDTH}x{cls.HEIGHT}x24"], pass_fds=[tells], stderr=subprocess.DEVNULL)
        cls.addClassCleanup(server.wait)
        cls.addClassCleanup(server.terminate)
        os.close(tells)
        with os.fdopen(told) as number:
            cls.display = ":" + number.readline().strip()
        cls.end_wine()  # of an earlier display
        cls.addClassCleanup(cls.end_wine)

    @classmethod
    def end_wine(cls):
        subprocess.run([WINDOWS_APP[0], "wineboot", "--kill"], stdin=subprocess.DEVNULL, capture_output=True, check=False,
                       timeout=120, env=dict(os.environ, CANOPY_WINE_DISPLAY=cls.display))

    def variables(self, **more):
        # As Windows names them: others are no absolute paths there, and the folder of Wine's user would be taken.
        home = {name: "Z:" + self.path(name).replace("/", "\\") for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME")}
        return {"CANOPY_WINE_DISPLAY": self.display, "VK_DRIVER_FILES": LAVAPIPE, "VK_ICD_FILENAMES": LAVAPIPE, **home, **more}

    def start(self, command, *arguments, **variables):
        environment = dict(os.environ, CANOPY_CACHE_DIR=self.path("cache"), **self.variables(**variables))
        process = subprocess.Popen([*command, *arguments], env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def colours(self, name):
        """How many colours the display shows; keeps a picture where that is wanted."""
        with open(os.path.join(self.screen.name, "Xvfb_screen0"), "rb") as file:
            data = file.read()
        header = struct.unpack(">25I", data[:100])  # X11/XWDFile.h
        at, colormap, line = header[0], header[19], header[12]
        pixels = data[at + 12 * colormap:][:line * self.HEIGHT]
        if folder := os.environ.get("CANOPY_PICTURES"):
            shutil.copy(file.name, os.path.join(folder, name + ".xwd"))
        return len(set(memoryview(pixels).cast("I")))

    def wait_for(self, what, condition, process):
        end = time.monotonic() + 120
        while not condition():
            self.assertIsNone(process.poll(), f"the program has ended before {what}")
            self.assertLess(time.monotonic(), end, f"it took too long until {what}")
            time.sleep(0.1)

    def xdotool(self, *arguments):
        return subprocess.run(["xdotool", *arguments], env=dict(os.environ, DISPLAY=self.display), capture_output=True,
                              check=False, timeout=60).returncode == 0

    def close(self, process, code):
        """As a user closes a window."""
        subprocess.run([WINDOWS_APP[0], "taskkill", "/im", os.path.basename(WINDOWS_APP[1])], stdin=subprocess.DEVNULL,
                       capture_output=True, check=True, timeout=60, env=dict(os.environ, **self.variables()))
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, errors.decode())
        return errors.decode()

    def test_shows_a_recording_until_it_is_closed(self):
        process = self.start(WINDOWS_APP, "--replay", DEMO, "--no-system-fonts")
        self.wait_for("the window is drawn", lambda: self.colours("recording") > 200, process)
        self.assertEqual(self.close(process, 0), "")
        with open(self.path("XDG_CONFIG_HOME", "canopy", "settings.json"), encoding="utf-8") as file:
            self.assertIn("version", json.load(file))

    @unittest.skipUnless(shutil.which("xdotool"), "there is no xdotool")
    def test_asks_for_files_with_the_dialog_of_windows(self):
        process = self.start(WINDOWS_APP, "--replay", DEMO, "--no-system-fonts")
        self.wait_for("the window is drawn", lambda: self.colours("window") > 200, process)
        self.xdotool("mousemove", str(self.WIDTH // 2), str(self.HEIGHT // 3), "click", "2")  # which gives it the keyboard

        def opened():
            if not self.xdotool("search", "--name", "^Open model$"):
                self.xdotool("key", "ctrl+o")
                time.sleep(3)
            return self.xdotool("search", "--name", "^Open model$")

        self.wait_for("the dialog opens", opened, process)
        self.colours("dialog")
        self.assertEqual(self.close(process, 0), "", "an open dialog closes with the window")

    @unittest.skipUnless(shutil.which("xdotool"), "there is no xdotool")
    def test_shows_a_box_where_there_is_no_console(self):
        # start gives a program none of its own outputs, as the desktop does.
        process = self.start([WINDOWS_APP[0], "start", "/wait", "/unix", WINDOWS_APP[1]], "--replay", DEMO, **NO_DRIVER)
        self.wait_for("the box is shown", lambda: self.xdotool("search", "--name", "^Canopy$"), process)
        self.wait_for("it is drawn", lambda: self.colours("box") > 20, process)
        self.assertEqual(self.close(process, 1), "")

    def test_answers_in_the_window(self):
        arguments = ("--model", MODEL, "--device", "cpu", "--prompt", PROMPT, "--max-tokens", "24", "--temperature", "0",
                     "--size", "1200x760", "--no-system-fonts")
        shot = self.path("window.png")
        self.run_one(WINDOWS_APP, *arguments, "--exit-after-reply", "--shot", shot, **self.variables())
        width, height, pixels = png_pixels(shot)
        self.assertEqual((width, height), (1200, 760))
        self.assertGreater(len({pixels[i:i + 3] for i in range(0, len(pixels), 3)}), 200, "the window's picture is blank")
        # The same application without a window writes the same text on both systems.
        texts = [self.run_one(command, *arguments, "--offscreen", "--shot", self.path(name), **self.variables())
                 .stdout.decode().splitlines()[0] for command, name in (([APP], "here.png"), (WINDOWS_APP, "there.png"))]
        self.assertEqual(*texts)
        self.assertNotEqual(texts[0], "")

    def test_draws_a_recording_as_here(self):
        for command, name in (([APP], "here.png"), (WINDOWS_APP, "there.png")):
            self.run_one(command, "--replay", DEMO, "--round", "12", "--offscreen", "--no-system-fonts", "--shot", self.path(name),
                         **self.variables())
        (width, height, here), (*size, there) = png_pixels(self.path("here.png")), png_pixels(self.path("there.png"))
        self.assertEqual([width, height], size)
        self.assertEqual(here, there)
        told = [self.run_one(command, "--replay", DEMO, "--dump-json").stdout for command in ([APP], WINDOWS_APP)]
        self.assertEqual(json.loads(told[0]), json.loads(told[1]))

    def test_says_what_is_missing_without_vulkan(self):
        for without in (NO_DRIVER, {"WINEDLLOVERRIDES": "vulkan-1="}):
            with self.subTest(without=without):
                done = self.run_one(WINDOWS_APP, "--replay", DEMO, code=1, **self.variables(**without))
                self.assertRegex(done.stderr.decode(), r"^The window needs .*Vulkan.* Install the newest driver of your graphics card")


if __name__ == "__main__":
    unittest.main()
