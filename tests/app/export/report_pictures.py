"""Makes docs/screenshots/report-*.png: the report of the two bundled sweeps, in every look. By hand, after a change of the page:

    CANOPY_CLI=build/release/bin/canopy-cli CANOPY_CHROMIUM=chromium python3 -B tests/app/export/report_pictures.py [FOLDER]
"""

import os
import subprocess
import sys
import tempfile

from browser import Browser

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
LOOKS = {"dark": ("dark", "no-preference"), "light": ("light", "no-preference"), "projector": ("light", "more")}


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "docs", "screenshots")
    sweeps = [os.path.join(ROOT, "assets", "sweeps", name) for name in ("lavapipe-26.json", "llvmpipe.json")]
    with tempfile.TemporaryDirectory() as pages, Browser(1280, 900) as browser:
        for name, files in (("report", sweeps[:1]), ("report-two", sweeps)):
            page = os.path.join(pages, name + ".html")
            subprocess.run([os.environ["CANOPY_CLI"], "results", *files, "--html", page], check=True)
            for look, (scheme, contrast) in LOOKS.items():
                browser.prefer(prefers_color_scheme=scheme, prefers_contrast=contrast)
                browser.open(page)
                browser.settle()
                browser.picture(os.path.join(folder, f"{name}-{look}.png"), whole=True)


if __name__ == "__main__":
    main()
