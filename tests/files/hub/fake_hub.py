#!/usr/bin/env python3
"""A hub on loopback for tests, as far as clients of models and data sets need one.

usage: fake_hub.py ROOT

ROOT/models/ORG/NAME/REVISION/... and ROOT/datasets/... hold the files ('/' in a revision is '%2F'). Large files (1,000 bytes or
more) lie on a second origin that the hub sends on to. ROOT/rules.json is read before each answer: a list of faults,
  {"in": PART OF THE PATH, "origin": "hub" | "cdn", "times": N, then what happens:
   "status", "headers", "body": this answer;  "cut": the connection ends after so many bytes;  "flip": one byte is wrong;
   "no_range": the whole file whatever was asked for;  "ms_per_64k": slow}
Each request becomes a line of ROOT/log.jsonl. The first line of standard output has the two origins."""
import hashlib
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

LARGE = 1000
PAGE = 5  # files a page of a list: few, so that every test turns pages
root = Path(sys.argv[1])
lock = threading.Lock()
used = {}  # how often each rule was followed


def sums(path):
    data = path.read_bytes()
    return len(data), hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest(), hashlib.sha256(data).hexdigest()


def files_of(top):
    return sorted(str(p.relative_to(top)) for p in top.rglob("*") if p.is_file())


def commit_of(top):
    text = "\n".join(f"{name} {sums(top / name)[1]}" for name in files_of(top))
    return hashlib.sha1(text.encode()).hexdigest()


def rule_for(origin, path):
    with lock:
        try:
            rules = json.loads((root / "rules.json").read_text())
            stamp = (root / "rules.json").stat()
        except FileNotFoundError:
            return {}
        for number, rule in enumerate(rules):
            key = (stamp.st_ino, stamp.st_mtime_ns, number)
            if rule["in"] in path and rule.get("origin", origin) == origin and used.get(key, 0) < rule.get("times", 1 << 30):
                used[key] = used.get(key, 0) + 1
                return rule
    return {}


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, *_):
        pass  # a client that was killed, or has had enough


class Hub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    origin = "hub"

    def log_message(self, *_):
        pass

    def answer(self, status, headers=(), body=b"", length=None, rule={}):
        # Before it is sent: who has the answer finds the line.
        with lock, open(root / "log.jsonl", "a") as log:
            log.write(json.dumps({"method": self.command, "origin": self.origin, "path": self.path, "status": status,
                                  "range": self.headers.get("Range"), "auth": self.headers.get("Authorization"),
                                  "agent": self.headers.get("User-Agent")}) + "\n")
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        sent = 0
        try:
            while self.command != "HEAD" and sent < len(body):
                piece = body[sent:sent + 65536]
                self.wfile.write(piece)
                sent += len(piece)
                time.sleep(rule.get("ms_per_64k", 0) / 1000)
        except OSError:
            self.close_connection = True

    def refuse(self, status, code, text, more=()):
        self.answer(status, {"X-Error-Code": code, "X-Error-Message": text, "Content-Type": "application/json", **dict(more)},
                    json.dumps({"error": text}).encode())

    def give_file(self, path, etag, headers, rule):
        data = path.read_bytes()
        headers = {**headers, "ETag": f'"{etag}"', "Accept-Ranges": "bytes"}
        status, first = 200, 0
        asked = self.headers.get("Range")
        if asked and not rule.get("no_range"):
            first = int(asked.split("=")[1].split("-")[0])
            if first >= len(data):
                return self.answer(416, {"Content-Range": f"bytes */{len(data)}"})
            status = 206
            headers["Content-Range"] = f"bytes {first}-{len(data) - 1}/{len(data)}"
        body = data[first:]
        length = len(body)
        if rule.get("flip") and body:
            body = body[:-1] + bytes([body[-1] ^ 1])
        if "cut" in rule:
            body = body[:rule["cut"]]
            self.close_connection = True
        self.answer(status, headers, body, length, rule)

    def do_GET(self):
        url = urlsplit(self.path)
        rule = rule_for(self.origin, unquote(url.path))
        if "status" in rule:
            return self.answer(rule["status"], rule.get("headers", {}), rule.get("body", "").encode())
        if self.origin == "cdn":
            path = root / unquote(url.path)[len("/signed/"):]
            return self.give_file(path, sums(path)[2], {}, rule)
        part = url.path.strip("/").split("/")
        is_api = part[0] == "api"
        part = part[is_api:]
        kind = part.pop(0) if part[0] in ("models", "datasets") else "models"
        repo, (verb, revision) = "/".join(part[:2]), (part[2:4] + ["", ""])[:2]
        base = root / kind / repo
        if len(part) < 2 or not base.is_dir():
            known = self.headers.get("Authorization")
            return self.refuse(404 if known else 401, "RepoNotFound", "Repository not found")
        revision = unquote(revision) or "main"
        tops = [base / quote(revision, safe="")] if (base / quote(revision, safe="")).is_dir() else \
            [top for top in sorted(base.iterdir()) if commit_of(top) == revision]
        if not tops:
            return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        top = tops[0]
        commit, names = commit_of(top), files_of(top)
        if is_api and verb in ("", "revision"):
            about = {"id": repo, "sha": commit, "private": False, "gated": False, "disabled": False, "tags": [], "downloads": 0,
                     "likes": 0, "siblings": [{"rfilename": name} for name in names]}
            return self.answer(200, {"Content-Type": "application/json"}, json.dumps(about).encode())
        if is_api and verb == "tree":
            rows = []
            folders = {str(parent) for name in names for parent in Path(name).parents if str(parent) != "."}
            rows += [{"type": "directory", "oid": hashlib.sha1(f.encode()).hexdigest(), "size": 0, "path": f} for f in sorted(folders)]
            for name in names:
                size, blob, sha256 = sums(top / name)
                row = {"type": "file", "oid": blob, "size": size, "path": name}
                if size >= LARGE:
                    row["lfs"] = {"oid": sha256, "size": size, "pointerSize": 134}
                rows.append(row)
            at = int(parse_qs(url.query).get("cursor", ["0"])[0])
            headers = {"Content-Type": "application/json"}
            if at + PAGE < len(rows):
                host = "http://%s:%d" % self.server.server_address
                headers["Link"] = f'<{host}{url.path}?recursive=True&expand=False&cursor={at + PAGE}>; rel="next"'
            return self.answer(200, headers, json.dumps(rows[at:at + PAGE]).encode())
        name = unquote("/".join(part[4:]))
        if verb != "resolve" or name not in names:
            return self.refuse(404, "EntryNotFound", "Entry not found", {"X-Repo-Commit": commit})
        size, blob, sha256 = sums(top / name)
        head = {"X-Repo-Commit": commit}
        if size < LARGE:
            return self.give_file(top / name, blob, head, rule)
        link = "http://%s:%d/signed/%s" % (*cdn.server_address, quote(str((top / name).relative_to(root))))
        self.answer(302, {**head, "ETag": f'"{blob}"', "X-Linked-Size": str(size), "X-Linked-ETag": f'"{sha256}"', "Location": link})

    do_HEAD = do_GET


cdn = Server(("127.0.0.1", 0), type("Cdn", (Hub,), {"origin": "cdn"}))
hub = Server(("127.0.0.1", 0), Hub)
threading.Thread(target=cdn.serve_forever, daemon=True).start()
print("http://127.0.0.1:%d http://127.0.0.1:%d" % (hub.server_address[1], cdn.server_address[1]), flush=True)
hub.serve_forever()
