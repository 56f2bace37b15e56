"""Progress on standard error: a line that is rewritten on a terminal, one now and then elsewhere."""

import sys
import time


def duration(seconds):
    """"1:02:03" or "2:03"."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def say(text):
    print(text, file=sys.stderr, flush=True)


class Progress:
    """update() as often as one likes; `done` of `total` gives the bar and the time that is left."""

    BAR = 24

    def __init__(self, what, total, done=0, quiet_seconds=20):
        self.what, self.total, self.first = what, total, done
        self.start = time.monotonic()
        self.shown = self.start if not sys.stderr.isatty() else 0
        self.pause = 0.5 if sys.stderr.isatty() else quiet_seconds

    def update(self, done, note=""):
        now = time.monotonic()
        if now - self.shown < self.pause and done < self.total:
            return
        self.shown = now
        share = min(1, done / self.total) if self.total else 1
        rate = (done - self.first) / max(now - self.start, 1e-9)
        left = duration((self.total - done) / rate) if rate > 0 else "?"
        full = int(share * self.BAR)
        line = f"{self.what} [{'#' * full}{'.' * (self.BAR - full)}] {share:6.1%}  {left} left  {note}"
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\033[K{line}" + ("\n" if done >= self.total else ""))
            sys.stderr.flush()
        else:
            say(line)

    def seconds(self):
        return time.monotonic() - self.start
