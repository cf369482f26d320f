"""Serve the built site on localhost until interrupted.

python scripts/serve.py [PORT]
"""

import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SITE = Path(__file__).resolve().parent.parent / "_build" / "html"


def main(port: int = 8000) -> None:
    if not (SITE / "index.html").is_file():
        sys.exit("There is no built site: run `make book` first.")
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), partial(SimpleHTTPRequestHandler, directory=SITE))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        sys.exit(f"Port {port} cannot be used ({reason}): name another with make serve PORT=8001.")
    print(f"The book is at http://localhost:{port}/ (Ctrl-C to stop)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()


if __name__ == "__main__":
    if len(sys.argv) > 2 or (len(sys.argv) == 2 and not sys.argv[1].isdigit()):
        sys.exit("usage: python scripts/serve.py [PORT], a whole number")
    main(*map(int, sys.argv[1:]))
