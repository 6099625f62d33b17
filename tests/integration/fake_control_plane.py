"""Programs that act as etcd, an API server and the rest as far as the sandbox looks at them."""

import sys
from pathlib import Path

from hami_mock.fleet.sandbox import Programs
from hami_mock.fleet.sandbox.programs import find_programs

_READY = """\
import os, signal, socket, sys
def ready():
    name = os.environ.pop("NOTIFY_SOCKET")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
        own.sendto(b"READY=1", name.replace("@", "\\0", 1))
"""
_WAITING = f"{_READY}ready()\nsignal.pause()\n"
_IDLE = "import signal\nsignal.pause()\n"
_API_SERVER = f"""\
{_READY}
import http.server, pathlib, ssl, trustme
words = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:])
folder = pathlib.Path(words["cert-dir"])
folder.mkdir()
authority = trustme.CA()
own = authority.issue_cert("127.0.0.1")
own.private_key_pem.write_to_path(folder / "apiserver.key")
for each in (*own.cert_chain_pems, authority.cert_pem):
    each.write_to_path(folder / "apiserver.crt", append=True)
tokens = pathlib.Path(words["token-auth-file"]).read_text()

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        token = self.headers["Authorization"].removeprefix("Bearer ")
        self.send_response(200 if token in tokens else 401)
        self.end_headers()
        self.wfile.write(b'{{"type": "ADDED"}}\\n')

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", int(words["secure-port"])), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(folder / "apiserver.crt", folder / "apiserver.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
ready()
server.serve_forever()
"""
NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")


def write_programs(folder: Path, **others: str) -> Programs:
    """Write the programs; `others` are the Python texts of those that should be different."""
    texts = dict.fromkeys(NAMES, _IDLE) | {"etcd": _WAITING, "kube-apiserver": _API_SERVER}
    for name, text in (
        texts | {key.replace("_", "-"): text for key, text in others.items()}
    ).items():
        program = folder / name
        program.write_text(f"#!{sys.executable}\n{text}")
        program.chmod(0o755)
    return find_programs(str(folder))
