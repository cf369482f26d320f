"""Find the browser that the site's tests drive; where it is missing, install it (Debian) or say what to install."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Microsoft/Edge/Application/msedge.exe",
)


def find() -> str | None:
    """The path of a Chromium-like browser, the one named by BROWSER_PATH first, or None."""
    named = os.environ.get("BROWSER_PATH")
    if named:
        return shutil.which(named)
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    return found or next((place for place in PLACES if Path(place).is_file()), None)


def main() -> None:
    if find():
        return
    if shutil.which("apt-get") and not os.environ.get("BROWSER_PATH"):
        as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
        print("No browser was found: installing Debian's chromium", flush=True)
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "chromium"]):
            if not as_root or shutil.which("sudo"):
                subprocess.run([*as_root, *command], env=quiet, check=False, stdout=subprocess.DEVNULL)
    if not find():
        sys.exit("The site's tests need a browser: install Chromium or Google Chrome, or name one in BROWSER_PATH.")


if __name__ == "__main__":
    main()
