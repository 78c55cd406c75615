"""Plays `ferry serve` where a model is too quick or too small for what is tested: answers that take
their time, a context of three messages, memory for one model.

Words of a message say what comes: "slow" never ends, "refused" is an error. Any other answer counts
the messages that came.
    slow_server.py DIRECTORY serve --model=... --port=0 --json
DIRECTORY gets a line in `log` for each load, and one for an answer that nobody hears any more; where
it has a file `one`, it has room for one model."""

import fcntl
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

home, model = sys.argv[1], next(word for word in sys.argv if word.startswith('--model='))
SPARE = 3


def note(text):
    with open(os.path.join(home, 'log'), 'a') as log:
        log.write(text + '\n')


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def refuse(self, status, kind, message):
        body = json.dumps({'error': {'type': kind, 'message': message}}).encode()
        self.send_response(status)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def event(self, delta, reason=None):
        choice = {'index': 0, 'delta': delta, 'finish_reason': reason}
        self.wfile.write(f'data: {json.dumps({"choices": [choice]})}\n\n'.encode())
        self.wfile.flush()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        if self.headers['Authorization'] != 'Bearer ' + os.environ['FERRY_API_KEY']:
            return self.refuse(401, 'authentication_error', 'the API key is missing or wrong')
        messages = body['messages']
        last = messages[-1]['content']
        if 'refused' in last:
            return self.refuse(400, 'invalid_request_error', '[chat.template] the template refuses it')
        if len(messages) > SPARE:
            return self.refuse(400, 'exceed_context_size_error', 'the context is too short')
        self.send_response(200)
        self.send_header('Content-Type', 'text/event-stream')
        self.end_headers()
        self.event({'role': 'assistant', 'content': ''})
        try:
            while 'slow' in last:
                self.event({'content': 'word '})
                time.sleep(0.02)
        except OSError:
            return note('unheard')
        roles = ','.join(turn['role'] for turn in messages)
        self.event({'content': f'{len(messages)} messages: {roles}'})
        self.event({}, 'length' if body['max_tokens'] < 5 else 'stop')
        self.wfile.write(b'data: [DONE]\n\n')


if os.path.exists(os.path.join(home, 'one')):
    room = open(os.path.join(home, 'room'), 'w')
    try:
        fcntl.flock(room, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        note('no room ' + os.path.basename(model))
        print('ferry: [plan.fit] the model does not fit', file=sys.stderr)
        sys.exit(3)
note('loaded ' + os.path.basename(model))
server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
print(json.dumps({'host': '127.0.0.1', 'port': server.server_port}), flush=True)
server.serve_forever()
