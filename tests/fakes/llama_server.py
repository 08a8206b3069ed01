"""Turns llama-server's command line into a server with the faults that are asked for. A real program, no library.

    python llama_server.py -m MODEL --port 8080 [llama-server's options] [faults]

It takes what clef gives to llama-server, and besides:

    --starts FILE         append this process's pid to FILE at the start
    --say LINE            write a line to stderr at the start; may come several times
    --silent-s S          do not listen for S seconds
    --load-s S            listen, and say 503 for S seconds
    --take SHARE          read so much of the model first
    --map SHARE           the same by mapping the file, as llama.cpp does
    --exit-at-start LINE  write LINE to stderr and exit with 1
    --crash-at-start N    end by --signal (SEGV) in the first N starts; needs --starts
    --ignore-term         ignore SIGTERM
    --grandchild FILE     start a process that holds our output open and would outlive us; its pid goes to FILE
    --flood BYTES         write so much without a newline at every decision, half of it no UTF-8
    --decide HOW          answer decisions with: html, nan, 400 … 599, or silence (none at all)
    --from N              be so only from the N-th decision on
    --crash-word WORD     end by --signal when a decision has WORD in it
    --crash-at N          end by --signal at the N-th decision
    --hang-up-at N        close the connection at the N-th decision, without a word
    --signal NAME         SEGV unless told otherwise
    --exit-above N LINE   write LINE and exit with 1 when -ub is more than N
    --exit-with-variable NAME LINE
                          write LINE and exit with 1 when the environment has NAME

With --version alone it says that it is build 5000, as an old one of another tool would; with --list-devices alone it
lists what the environment variable FAKE_DEVICES says, and without that knows no such option.
"""

import argparse
import json
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MESSAGES = {
    401: ("authentication_error", "Invalid API Key"),
    404: ("not_found_error", "File Not Found"),
    501: ("not_supported_error", "This model is not a decision model"),
    503: ("unavailable_error", "Loading model"),
}


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        say("version: 5000 (0ld0ld0)\nbuilt with a compiler for a machine")
        return
    if sys.argv[1:] == ["--list-devices"] and "FAKE_DEVICES" in os.environ:
        print(f"Available devices:\n{os.environ['FAKE_DEVICES']}")
        return
    arguments = read_arguments()
    if arguments.starts:
        with arguments.starts.open("a") as file:
            file.write(f"{os.getpid()}\n")
    for line in arguments.say:
        say(line)
    if arguments.exit_at_start is not None:
        say(arguments.exit_at_start)
        sys.exit(1)
    if arguments.exit_above and int(arguments.ub) > int(arguments.exit_above[0]):
        say(arguments.exit_above[1])
        sys.exit(1)
    if arguments.exit_with_variable and arguments.exit_with_variable[0] in os.environ:
        say(arguments.exit_with_variable[1])
        sys.exit(1)
    if arguments.crash_at_start and len(arguments.starts.read_text().split()) <= arguments.crash_at_start:
        die(arguments.signal)
    if arguments.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if arguments.grandchild:
        holder = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        arguments.grandchild.write_text(str(holder.pid))
    if arguments.take:
        take(Path(arguments.m), arguments.take)
    pages = touch(Path(arguments.m), arguments.map) if arguments.map else None
    time.sleep(arguments.silent_s)
    server = Server((arguments.host, arguments.port), Handler)
    server.arguments, server.pages = arguments, pages
    server.ready_at = time.monotonic() + arguments.load_s
    say(f"srv init: listening on http://{arguments.host}:{arguments.port}")
    server.serve_forever()


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for names in (("-m",), ("--alias",), ("--host",), ("-np",), ("-lv",), ("--threads-http",), ("-b",), ("-ub",)):
        parser.add_argument(*names)
    for name in ("--mmproj", "--device"):
        parser.add_argument(name)
    for name in ("--exit-above", "--exit-with-variable"):
        parser.add_argument(name, nargs=2)
    for name in ("--no-mmproj", "-v"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("-c", type=int, dest="context")
    parser.add_argument("--port", type=int)
    parser.add_argument("--say", action="append", default=[])
    for name in ("--starts", "--grandchild"):
        parser.add_argument(name, type=Path)
    for name in ("--silent-s", "--load-s", "--take", "--map"):
        parser.add_argument(name, type=float, default=0)
    for name in ("--crash-at-start", "--flood", "--from", "--crash-at", "--hang-up-at"):
        parser.add_argument(name, type=int, default=0)
    for name in ("--exit-at-start", "--decide", "--crash-word"):
        parser.add_argument(name)
    parser.add_argument("--ignore-term", action="store_true")
    parser.add_argument("--signal", default="SEGV")
    arguments, unknown = parser.parse_known_args()
    if unknown:
        say(f"error: invalid argument: {unknown[0]}")
        sys.exit(1)
    return arguments


def say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def take(model: Path, share: float) -> None:
    with model.open("rb") as file:
        for _ in range(round(share * model.stat().st_size / 1e6)):
            file.read(1_000_000)


def touch(model: Path, share: float) -> mmap.mmap:
    with model.open("rb") as file:
        pages = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    for at in range(0, round(share * len(pages)), mmap.PAGESIZE):
        pages[at]
    return pages


def die(name: str) -> None:
    number = signal.Signals[f"SIG{name}"]
    os.kill(os.getpid(), number)
    time.sleep(5)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    arguments: argparse.Namespace
    ready_at: float
    pages: mmap.mmap | None
    decisions = 0
    counting = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if time.monotonic() < self.server.ready_at:
            self.refuse(503)
        elif self.path == "/health":
            self.answer({"status": "ok"})
        elif not self.allowed():
            self.refuse(401)
        elif self.path == "/props":
            self.answer({"default_generation_settings": {"n_ctx": self.server.arguments.context}})
        else:
            self.refuse(404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if time.monotonic() < self.server.ready_at:
            self.refuse(503)
        elif not self.allowed():
            self.refuse(401)
        elif self.path == "/tokenize":
            self.answer({"tokens": " ".join(body["content"]).split()})
        elif self.path == "/v1/systemone":
            self.decide(body)
        else:
            self.refuse(404)

    def allowed(self) -> bool:
        return self.headers["Authorization"] == f"Bearer {os.environ.get('LLAMA_API_KEY')}"

    def decide(self, body: dict[str, Any]) -> None:
        arguments = self.server.arguments
        with self.server.counting:
            self.server.decisions += 1
            count = self.server.decisions
        say(f"decision {count}")
        if arguments.flood:
            sys.stderr.buffer.write(b"x" * (arguments.flood // 2) + b"\xff\xfe" * (arguments.flood // 4))
            sys.stderr.buffer.flush()
        if arguments.crash_word and arguments.crash_word in json.dumps(body):
            die(arguments.signal)
        if count == arguments.crash_at:
            die(arguments.signal)
        if count == arguments.hang_up_at:
            self.close_connection = True
            return
        how = arguments.decide if count >= arguments.__dict__["from"] else None
        if how == "silence":
            time.sleep(60)
        if how == "html":
            self.send(200, b"<html><body>Hello</body></html>", "text/html")
        elif how and how.isdecimal():
            self.refuse(int(how))
        else:
            answers = {name: answer_to(question, how == "nan") for name, question in body["questions"].items()}
            self.answer({"model": arguments.alias, "answers": answers, "usage": {"input_tokens": 7}})

    def refuse(self, status: int) -> None:
        kind, message = MESSAGES.get(status, ("server_error", "something went wrong"))
        self.answer({"error": {"code": status, "message": message, "type": kind}}, status)

    def answer(self, body: object, status: int = 200) -> None:
        self.send(status, json.dumps(body).encode(), "application/json")

    def send(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Requests are not logged."""


def answer_to(question: dict[str, Any], broken: bool) -> dict[str, Any]:
    """The first answer gets 0.6, or what is no number."""
    if question["type"] == "noul":
        return {"type": "noul", "noul": None if broken else 0.6}
    criteria = question["criteria"]
    names = list(criteria) if isinstance(criteria, dict) else [str(level) for level in range(len(criteria))]
    rest = 0.4 / max(1, len(names) - 1)
    probabilities: dict[str, float | None] = dict.fromkeys(names, rest)
    probabilities[names[0]] = None if broken else 1 - rest * (len(names) - 1)
    return {"type": question["type"], "probabilities": probabilities}


if __name__ == "__main__":
    main()
